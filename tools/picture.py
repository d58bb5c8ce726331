"""Draw the README's picture, data/attention.png, with the model that comes with the package: python tools/picture.py"""

import json

import pairs

from transformer import plotting
from transformer.decoding import translate
from transformer.pretrained import load
from transformer.visualization import attention_maps

SENTENCE = "The old cat behind the school has lost its ball."


def main():
    model, tokenizer = load(None)
    card = json.loads((pairs.ROOT / "data" / "models" / "bundled" / "card.json").read_text(encoding="utf8"))
    maps = attention_maps(model, tokenizer, [(SENTENCE, translate(model, tokenizer, [SENTENCE])[0])])[0]
    its, alignment = card["pronoun"], card["alignment"]
    if its["attention"] != "encoder":
        raise SystemExit("the pronoun's head is not in the encoder: mend the picture and the README's text")
    left, right = plotting.new_axes(4.6, 3.8, columns=2)
    plotting.heatmap(maps.encoder[its["layer"] - 1, its["head"] - 1], maps.source, maps.source,
                     f"encoder, layer {its['layer']}, head {its['head']}", left, largest=1.0,
                     labels=("looks at", "English"))
    plotting.heatmap(maps.cross[alignment["layer"] - 1, alignment["head"] - 1], maps.source, maps.target,
                     f"cross-attention, layer {alignment['layer']}, head {alignment['head']}", right, largest=1.0,
                     labels=("English", "German, as it is written"))
    plotting.save(left, pairs.ROOT / "data" / "attention.png")


if __name__ == "__main__":
    main()
