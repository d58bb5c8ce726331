"""Patches or convolutions? Digits by the number of training images, with their pixels shuffled, and
drawn pixel by pixel, for notebook 23.

    python -m transformer.experiments.images --folder runs/images

Three settings of each family with one seed, at every size; with its best by validation, on writers
of its own, the other seeds. What was expected was written down before the runs, in
data/runs/images.md.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer.core.weights import count_parameters
from transformer.corpora.digits import read_digits
from transformer.experiments.choosing import best_rates
from transformer.experiments.runner import Job, run_command, run_jobs
from transformer.fast.attention import MultiHeadAttention, kernel_attention
from transformer.fast.training import fused_adam
from transformer.images import (
    VIT,
    ConvolutionalClassifier,
    ConvolutionalConfig,
    ImageConfig,
    VisionConfig,
    VisionTransformer,
    accuracy,
    as_drawings,
    as_pairs,
    draw,
    shifted,
)
from transformer.language import LanguageConfig, LanguageModel
from transformer.optimizer import peak_rate
from transformer.runs.training import TrainingConfig, train, validation_loss

COMMAND = "python -m transformer.experiments.images"
SIZES = (32, 128, 512, 1029)
PLAIN, CNN, SHIFTED, LOGISTIC = "ViT", "CNN", "ViT, shifted", "logistic regression"
STEPS = (0, -1, 1)
MOVES = {
    SHIFTED: (STEPS, STEPS),
    "ViT, up and down": (STEPS, (0,)),
    "ViT, to the sides": ((0,), STEPS),
}
FAMILIES = {
    **dict.fromkeys((PLAIN, *MOVES), VisionConfig()),
    CNN: ConvolutionalConfig(),
}
PEAKS, STRENGTHS = (0.003, 0.0015, 0.006), (0.1, 0.01, 1.0)
FAST_VIT = replace(
    VIT, attention=partial(MultiHeadAttention, bias=True, attend=kernel_attention)
)
UPDATES, WARMUP, IMAGES = 300, 30, 64
DRAWING = LanguageConfig(
    ImageConfig().vocab_size,
    d_model=64,
    d_ff=128,
    N=3,
    h=4,
    positions="learned",
    max_positions=66,
    pad_id=ImageConfig().pad_id,
    bos_id=ImageConfig().bos_id,
    eos_id=ImageConfig().eos_id,
)
DRAWN, DRAWING_UPDATES = 50, 1000  # drawings of each class
ADDED = (
    1.0,
    0.1,
    0.01,
    0.001,
)  # to the counts of pixels by themselves; validation chooses


# What is trained


def sample(size: int, seed: int) -> tuple[Tensor, Tensor]:
    """So many training images and their digits, drawn by the seed."""
    images, digits = read_digits("train")
    rows = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))[
        :size
    ]
    return images[rows], digits[rows]


def moved(
    images: Tensor, digits: Tensor, down: tuple = STEPS, right: tuple = STEPS
) -> tuple[Tensor, Tensor]:
    """The images, and each moved by a pixel, in all eight directions where nothing else is said."""
    return (
        torch.cat([shifted(images, i, j) for i in down for j in right]),
        digits.repeat(len(down) * len(right)),
    )


def training_of(config, peak: float, seed: int, **changes) -> TrainingConfig:
    """Updates of IMAGES images with a rate that falls to 0."""
    lr_scale = peak / peak_rate(config.d_model, WARMUP)
    common = dict(
        updates=UPDATES,
        batch_tokens=IMAGES * 64,
        warmup=WARMUP,
        lr_scale=lr_scale,
        schedule="linear",
        clip=1.0,
        validate_every=500,
        precision="fp32",
        seed=seed,
    )
    return TrainingConfig(**(common | changes))


def classifier(
    config: ImageConfig, images: Tensor, digits: Tensor, peak: float, seed: int
) -> nn.Module:
    """A trained model of a configuration."""
    torch.manual_seed(seed)
    if type(config) is ConvolutionalConfig:
        model = ConvolutionalClassifier(config)
    else:
        model = VisionTransformer(config, FAST_VIT)
    train(
        model,
        as_pairs(images, digits, config),
        training_of(config, peak, seed),
        optimizer=fused_adam,
    )
    return model


def logistic(images: Tensor, digits: Tensor, C: float) -> Callable:
    """Logistic regression on pixels: images, digits -> accuracy."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=C, max_iter=2000).fit(images.flatten(1) / 16, digits)
    return lambda images, digits: float(model.score(images.flatten(1) / 16, digits))


def scores(family: str, size: int, setting: float, seed: int) -> dict:
    """A family trained on so many images with a setting: its rate, or logistic regression's C."""
    images, digits = sample(size, seed)
    if family == LOGISTIC:
        score, parameters = logistic(images, digits, setting), 650
    else:
        if family in MOVES:
            images, digits = moved(images, digits, *MOVES[family])
        model = classifier(FAMILIES[family], images, digits, setting, seed)
        score, parameters = partial(accuracy, model), count_parameters(model)
    return {
        "what": "curve",
        "family": family,
        "images": size,
        "rate": setting,
        "parameters": parameters,
        **{split: score(*read_digits(split)) for split in ("validation", "test")},
    }


def curves(
    settings: dict[str, dict[int, float]], seed: int, folder: Path, device: str
) -> list[dict]:
    """Every family at every size: {family: {images: its setting}}."""
    return [
        scores(family, size, setting, seed)
        for family, own in settings.items()
        for size, setting in own.items()
    ]


# Pixels in another order


def mixed(images: Tensor) -> Tensor:
    """One permutation of all pixels, always the same."""
    order = torch.randperm(
        images[0].numel(), generator=torch.Generator().manual_seed(23)
    )
    return images.flatten(1)[:, order].reshape(images.shape)


def shuffle(
    peaks: dict[str, float], seed: int, folder: Path, device: str
) -> list[dict]:
    """Both networks on all training images, as they are and with their pixels mixed."""
    return [
        shuffled_scores(family, config, peaks[family], seed, order)
        for family, config in ((PLAIN, VisionConfig(patch=1)), (CNN, FAMILIES[CNN]))
        for order in (torch.Tensor.clone, mixed)
    ]


def shuffled_scores(
    family: str, config: ImageConfig, peak: float, seed: int, order: Callable
) -> dict:
    """A network that learns from order(images) and is tested on order(images)."""
    images, digits = sample(SIZES[-1], seed)
    model = classifier(config, order(images), digits, peak, seed)
    tested, shown = read_digits("test")
    return {
        "what": "shuffle",
        "family": family,
        "mixed": order is mixed,
        "rate": peak,
        "parameters": count_parameters(model),
        "test": accuracy(model, order(tested), shown),
    }


# Drawings


def pixel_frequencies(images: Tensor, digits: Tensor, added: float) -> Tensor:
    """How often each pixel has each grey level in a class: (10, size, size, levels).

    added: to the count of each level, for none is impossible.
    """
    levels = nn.functional.one_hot(images, ImageConfig().levels).double()
    counts = (
        torch.stack([levels[digits == digit].sum(dim=0) for digit in range(10)]) + added
    )
    return counts / counts.sum(dim=-1, keepdim=True)


def bits_by_themselves(p: Tensor, images: Tensor, digits: Tensor) -> float:
    """Mean bits a pixel of images by frequencies p (10, size, size, levels)."""
    return -p[digits].gather(-1, images[..., None]).log2().mean().item()


def distances(images: Tensor, others: Tensor) -> Tensor:
    """Of each image the root mean square of its difference from the nearest other one."""
    a, b = (x.flatten(1).double() for x in (images, others))
    return torch.cdist(a, b).min(dim=1).values / math.sqrt(a.shape[1])


def judged(
    what: str, images: Tensor, digits: Tensor, judge: nn.Module, known: Tensor
) -> dict:
    """How images read, and how near they are to known ones."""
    near = distances(images, known)
    return {
        "what": "drawing",
        "row": what,
        "read": accuracy(judge, images, digits),
        "copies": (near == 0).double().mean().item(),
        "distance": near.median().item(),
        "distance.near": near.quantile(0.05).item(),
    }


def trained_to_draw(images, digits, seed: int, folder: Path) -> LanguageModel:
    """A language model of pixels, trained or gone on with."""
    torch.manual_seed(seed)
    model = LanguageModel(DRAWING)
    training = training_of(
        DRAWING,
        PEAKS[0],
        seed,
        updates=DRAWING_UPDATES,
        batch_tokens=32 * 66,
        epsilon_ls=0.0,
    )
    train(
        model,
        as_drawings(images, digits, ImageConfig()),
        training,
        folder,
        resume=(folder / "checkpoint.safetensors").is_file(),
        optimizer=fused_adam,
    )
    return model


def best_addition(images, digits) -> float:
    """What to add to the counts of pixels by themselves, chosen on validation."""
    held_out = read_digits("validation")

    def bits(added):
        return bits_by_themselves(pixel_frequencies(images, digits, added), *held_out)

    return min(ADDED, key=bits)


def drawings(peak: float, seed: int, folder: Path, device: str) -> list[dict]:
    """A language model of pixels: its drawings, test images, pixels by themselves; ten to see."""
    images, digits = sample(SIZES[-1], seed)
    tested, shown = read_digits("test")
    judge = classifier(FAMILIES[CNN], images, digits, peak, seed)
    model, c = trained_to_draw(images, digits, seed, folder), ImageConfig()
    asked = torch.arange(10).repeat(DRAWN)
    torch.manual_seed(seed)
    drawn = draw(model, asked, c)
    added = best_addition(images, digits)
    p = pixel_frequencies(images, digits, added)
    alone = p[asked].flatten(0, 2).multinomial(1).reshape(drawn.shape)
    # of 65 tokens one is the end mark, which costs next to nothing
    nats = (
        65
        * validation_loss(model, as_drawings(tested, shown, c))["validation_loss"]
        / 64
    )
    return [
        {
            **judged("language model", drawn, asked, judge, images),
            "bits": nats / math.log(2),
            "parameters": count_parameters(model),
            "drawn": drawn[:20].flatten(1).tolist(),
        },
        {
            **judged("each pixel by itself", alone, asked, judge, images),
            "added": added,
            "bits": bits_by_themselves(p, tested, shown),
        },
        judged("test images", tested, shown, judge, images),
    ]


# The runs


def sweep_jobs(seed: int) -> list[Job]:
    """The first, the second and the third setting of every family."""
    tried = [
        {**dict.fromkeys(FAMILIES, peak), LOGISTIC: C}
        for peak, C in zip(PEAKS, STRENGTHS)
    ]
    return [
        Job(
            f"setting-{number}",
            partial(
                curves,
                {
                    family: dict.fromkeys(SIZES, setting)
                    for family, setting in own.items()
                },
                seed,
            ),
            {"seed": seed},
            COMMAND,
        )
        for number, own in enumerate(tried, 1)
    ]


def chosen(rows: list[dict], seed: int) -> dict[str, dict[int, float]]:
    """{family: {images: setting}}: the best on validation with this seed, the first of equals."""
    own = [row for row in rows if row["what"] == "curve" and row["seed"] == seed]
    best = {
        size: best_rates(
            [row for row in own if row["images"] == size], lambda row: row["validation"]
        )
        for size in dict.fromkeys(row["images"] for row in own)
    }
    return {
        family: {size: rates[family] for size, rates in best.items() if family in rates}
        for family in dict.fromkeys(row["family"] for row in own)
    }


def other_jobs(best: dict[str, dict], seeds: tuple[int, ...]) -> list[Job]:
    """The other seeds with the best settings, shuffled pixels with all, drawings with three; seed
    by seed."""
    last = {family: own[SIZES[-1]] for family, own in best.items()}
    works = {
        "curves": (curves, best, seeds[1:]),
        "shuffle": (shuffle, last, seeds),
        "drawings": (drawings, last[CNN], seeds[:3]),
    }
    return [
        Job(f"{name}-{seed}", partial(work, given, seed), {"seed": seed}, COMMAND)
        for seed in seeds
        for name, (work, given, own) in works.items()
        if seed in own
    ]


def main(
    seeds: tuple[int, ...] = (1, 2, 3, 4, 5),
    folder: Path = Path("runs/images"),
    record: Path | None = None,
    minutes: float | None = None,
) -> None:
    """Sweep every family, then train with all seeds, on one thread; about ten minutes of a core.

    Args:
        seeds: of training images, initial weights and the order of the batches; the first sweeps
        folder: where the runs are kept while they go on
        record: the file of results (data/runs/images.json where not given)
        minutes: stop after so many; the same command goes on
    """
    run = partial(
        run_jobs,
        folder=folder,
        devices=["cpu"],
        record=record or "images",
        minutes=minutes,
    )
    best = chosen(run(sweep_jobs(seeds[0])), seeds[0])
    run(other_jobs(best, seeds))


if __name__ == "__main__":
    run_command(main)
