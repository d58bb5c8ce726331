"""The closing page of `transformer demo`."""


def scores(report: dict) -> list[str]:
    """Lines of the scores, and of the heads that align and resolve best."""
    rows = []
    for name, split in (("test set", "test"), ("harder test set", "hard")):
        rows.append(
            "{0}: BLEU {bleu:.1f}, exact match {exact_match:.1%}   [{signature}]".format(
                name, **report[split]
            )
        )
    rows.append(
        "word alignment: error {error:.3f} on test (cross-attention, layer {layer}, head "
        "{head}, chosen on validation); the diagonal has {diagonal:.3f}".format(
            **report["alignment"]
        )
    )
    rows.append(
        '"its" to its antecedent: accuracy {accuracy:.3f} on {count} of test '
        "({attention}, layer {layer}, head {head}, chosen on validation); first noun "
        "{first noun:.3f}, nearest noun {nearest noun:.3f}, chance {chance:.3f}".format(
            **report["pronoun"]
        )
    )
    return rows


def page(report: dict, samples: list, folder) -> str:
    """Translations, scores, heads, and what to open next, as text.

    report: what demo.json holds; samples: (example, its translation).
    """
    rows = ["", "Held-out sentences, translated:"]
    for example, output in samples:
        wrong = (
            "" if output == example.target else f"      (should be: {example.target})"
        )
        rows += [f"  {example.source}", f"    {output}{wrong}"]
    rows += scores(report)
    return "\n".join(
        [
            *rows,
            f"pictures and figures: {folder}  ({report['seconds']:.0f} s in all)",
            "",
            "Open next: notebooks/04_attention.ipynb (make lab opens JupyterLab); or translate a "
            "sentence",
            "of your own:",
            f'  transformer translate --folder {folder} "The old cat sees the garden."',
        ]
    )
