"""transformer export, transformer import: models for and from other libraries."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from transformer.core.files import prepare_folder, write_file
from transformer.core.weights import count_parameters
from transformer.models.families import family_of
from transformer.models.pretrained import load, save


@dataclass
class Export:
    """Write a trained model for CTranslate2, which serves it on CPUs and GPUs without torch."""

    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    output: Path = Path(
        "exported"
    )  # the new folder: CTranslate2's model, and the tokenizer

    def run(self) -> None:
        from transformer.models.export import export_ctranslate2, type_names

        model, tokenizer = load(self.folder)
        export_ctranslate2(model, type_names(tokenizer), self.output)
        write_file(self.output / "tokenizer.json", tokenizer.save)
        print(
            f"{self.output} holds the model for CTranslate2; notebook 20 shows how it is used "
            "(`translate_there`)"
        )


@dataclass
class Import:
    """Turn a folder of the library transformers, with a Marian or a GPT-2 model, into a folder of
    this package."""

    source: tyro.conf.Positional[Path]  # the folder that was downloaded
    output: Path = Path(
        "runs/imported"
    )  # the new folder, for --folder of the other commands

    def run(self) -> None:
        from transformer.imported import import_folder

        if self.output.exists() and any(self.output.iterdir()):
            raise FileExistsError(
                f"{self.output} is there already: name a folder that is not"
            )
        found = import_folder(self.source)
        prepare_folder(self.output, "--output")
        save(found.model, self.output, found.tokenizer)
        print(
            f"{found.used} tensors became {count_parameters(found.model):,} parameters; ignored: "
            f"{', '.join(found.ignored) or 'none'}"
        )
        print(f"{self.output} holds a model of the family {family_of(found.model)}")
