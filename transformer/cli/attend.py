"""transformer attend: where every head looks."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from transformer.core.files import prepare_folder


@dataclass
class Attend:
    """Translate a sentence and draw where every head looks, as PNG pictures or as a page to
    explore."""

    sentence: tyro.conf.Positional[str]  # the sentence, in quotes
    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    output: Path = Path("attention")  # folder for the pictures
    # one page of this name instead, for a browser: it holds the model and translates what is typed
    html: Path | None = None

    def run(self) -> None:
        from transformer.models.maps import attention_maps
        from transformer.models.pretrained import load
        from transformer.models.search import translate
        from transformer.views.heads import save_all
        from transformer.views.pages import view

        made = (
            (self.output, "--output")
            if self.html is None
            else (self.html.parent, "--html")
        )
        prepare_folder(*made)
        model, tokenizer = load(self.folder)
        output = translate(model, tokenizer, [self.sentence])[0]
        if self.html is not None:
            print(output)
            view(model, tokenizer, self.sentence).save(self.html)
            print(self.html)
            return
        maps = attention_maps(model, tokenizer, [(self.sentence, output)])[0]
        print(output)
        for path in save_all(maps, self.output):
            print(path)
