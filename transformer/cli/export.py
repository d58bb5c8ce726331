"""transformer export, transformer import: models for and from other libraries."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from transformer.core.files import prepare_folder, write_file

# how each form is used, said after the export
USES = {
    "ctranslate2": "the model for CTranslate2; notebook 20 shows how it is used "
    "(`translate_there`)",
    "onnx": 'model.onnx; onnxruntime.InferenceSession("model.onnx").run(["logits"], '
    '{"source": ids, "target": ids}) gives logits (B, T, V) for int64 ids of source '
    "(B, S) and target (B, T)",
    "torch": 'model.pt2; torch.export.load("model.pt2").module()(source, target) gives '
    "logits (B, T, V) for ids of source (B, S) and target (B, T)",
}


@dataclass
class Export:
    """Write a trained model for other programs: for CTranslate2, which serves it on CPUs and GPUs
    without torch; as model.onnx, for onnxruntime and others; or as model.pt2, by torch.export.

    The last two are one graph, token ids to logits, for batches and lengths of any size.
    """

    folder: Path | None = None  # a trained model's; tatoeba; or the bundled one's
    output: Path = Path("exported")  # the new folder: the model, and the tokenizer
    # onnx needs more: pip install 'annotated-attention[onnx]'
    format: Literal["ctranslate2", "onnx", "torch"] = "ctranslate2"

    def run(self) -> None:
        from transformer.models import graph
        from transformer.models.export import export_ctranslate2, type_names
        from transformer.models.pretrained import load

        model, tokenizer = load(self.folder)
        if self.format == "ctranslate2":
            export_ctranslate2(model, type_names(tokenizer), self.output)
        elif self.format == "onnx":
            graph.export_onnx(model, self.output)
        else:
            graph.export_torch(model, self.output)
        write_file(self.output / "tokenizer.json", tokenizer.save)
        print(f"{self.output} holds {USES[self.format]}")


@dataclass
class Import:
    """Turn a folder of the library transformers, with a Marian or a GPT-2 model, into a folder of
    this package."""

    source: tyro.conf.Positional[Path]  # the folder that was downloaded
    # the new folder, for --folder of the other commands
    output: Path = Path("runs/imported")

    def run(self) -> None:
        from transformer.core.weights import count_parameters
        from transformer.imported import import_folder
        from transformer.models.families import family_of
        from transformer.models.pretrained import save

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
