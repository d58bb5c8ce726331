"""Processes that train together, one a GPU, started by torchrun: their numbers, shares and sums."""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta

import torch
from torch import distributed, nn


def process_number() -> int:
    """This process's number among those that train together, from 0; 0 where there is one."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def process_count() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


@contextmanager
def processes(device: torch.device) -> Iterator[torch.device]:
    """Inside this block torchrun's processes know each other; yields this one's device.

    Without torchrun the block is any other.
    """
    if "LOCAL_RANK" not in os.environ:
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # The first process may prepare a corpus for hours; one that dies is torchrun's business
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=timedelta(days=1))
    together = False
    try:
        yield device
        distributed.barrier()  # leave together
        together = True
    finally:
        # After an error NCCL would wait here for the others, and they for this one
        if together or device.type != "cuda":
            time.sleep(
                0.3
            )  # with torch 2.3 the next line could wait for ever without it
            distributed.destroy_process_group()


def sum_over_processes(number: float, device: torch.device) -> float:
    """A number added up over all processes that train together; each gets the sum."""
    if process_count() == 1:
        return number
    kind = torch.float32 if device.type == "mps" else torch.float64
    total = torch.tensor(float(number), dtype=kind, device=device)
    distributed.all_reduce(total)
    return total.item()


def copies_in_step(module: nn.Module) -> nn.Module:
    """A module whose gradients are averaged over all processes after each backward pass.

    Alone, the module itself.
    """
    if process_count() == 1:
        return module
    # The only buffer, the table of sines, is the same everywhere
    return nn.parallel.DistributedDataParallel(
        module, broadcast_buffers=False, gradient_as_bucket_view=True
    )


def without_exchange(module: nn.Module, more: bool) -> AbstractContextManager:
    """Inside this block a backward pass keeps its gradients to itself where more are to come."""
    return module.no_sync() if more and process_count() > 1 else nullcontext()


def own_share(items: Sequence) -> list[tuple[int, object]]:
    """[(number, item), ...] of those items that this process works on."""
    return list(enumerate(items))[process_number() :: process_count()]


def check_share(accumulate: int) -> None:
    """ValueError where an update has no batch for one of the processes."""
    count = process_count()
    if accumulate % count:
        raise ValueError(
            f"accumulate is {accumulate}: {count} processes need a multiple of "
            f"{count}, so that each has as many batches in every update"
        )
