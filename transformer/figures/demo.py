"""The closing page of `transformer demo`."""


def page(report: dict, samples: list, folder) -> str:
    """Translations, scores, heads, and what to open next, as text.

    report: what demo.json holds; samples: (example, its translation).
    """
    rows = ["", "Held-out sentences, translated:"]
    for example, output in samples:
        wrong = "" if output == example.target else f"      (should be: {example.target})"
        rows += [f"  {example.source}", f"    {output}{wrong}"]
    rows += [score_line(name, report[split])
             for split, name in (("test", "test set"), ("hard", "harder test set"))]
    rows += [alignment_line(report["alignment"]), pronoun_line(report["pronoun"]),
             f"pictures and figures: {folder}  ({report['seconds']:.0f} s in all)", "",
             "Open next: notebooks/04_attention.ipynb (make lab opens JupyterLab); or translate a "
             "sentence", "of your own:",
             f'  transformer translate --folder {folder} "The old cat sees the garden."']
    return "\n".join(rows)


def score_line(name: str, part: dict) -> str:
    """The scores of one test set."""
    return (f"{name}: BLEU {part['bleu']:.1f}, exact match {part['exact_match']:.1%}   "
            f"[{part['signature']}]")


def alignment_line(alignment: dict) -> str:
    """How well the best head of cross-attention aligns words."""
    return (f"word alignment: error {alignment['error']:.3f} on test (cross-attention, layer "
            f"{alignment['layer']}, head {alignment['head']}, chosen on validation); the diagonal "
            f"has {alignment['diagonal']:.3f}")


def pronoun_line(pronoun: dict) -> str:
    """How often the best head leads from "its" to what it stands for."""
    return (f"\"its\" to its antecedent: accuracy {pronoun['accuracy']:.3f} on {pronoun['count']} "
            f"of test ({pronoun['attention']}, layer {pronoun['layer']}, head {pronoun['head']}, "
            f"chosen on validation); first noun {pronoun['first noun']:.3f}, nearest noun "
            f"{pronoun['nearest noun']:.3f}, chance {pronoun['chance']:.3f}")
