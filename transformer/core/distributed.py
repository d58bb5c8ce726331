"""Processes that train together, one a GPU, started by torchrun: their numbers, shares and sums."""

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from inspect import signature
from typing import Any

import torch
from torch import distributed, nn

from transformer.core.interrupt import Interrupted, ignore_next_sigterm


def rank() -> int:
    """This process's number among those that train together, from 0; 0 where there is one."""
    return distributed.get_rank() if distributed.is_initialized() else 0


def world_size() -> int:
    """How many processes train together."""
    return distributed.get_world_size() if distributed.is_initialized() else 1


def processes() -> int:
    """How many processes train together, or are going to, as torchrun says before they know it."""
    if distributed.is_initialized() or "LOCAL_RANK" not in os.environ:
        return world_size()
    return int(os.environ.get("WORLD_SIZE", 1))


class LostPeer(Interrupted):
    """Another process that trains along has ended, so that this one cannot go on."""


# What errors say where a process does not answer any more
LOST = re.compile(
    r"connection (closed|reset|refused)|by peer|broken pipe|nccl|gloo", re.I
)


@contextmanager
def watch_peers() -> Iterator[None]:
    """`LostPeer` where the block fails because another process has ended."""
    try:
        yield
    except RuntimeError as error:
        if world_size() == 1 or not LOST.search(str(error)):
            raise
        ignore_next_sigterm()
        raise LostPeer(
            f"another of the {world_size()} processes has ended, so this one stops, too: "
            "start all again, with --resume (in Python resume=True) from the last "
            "checkpoint on"
        ) from None


@contextmanager
def process_group(device: torch.device) -> Iterator[torch.device]:
    """Inside this block torchrun's processes know each other; yields this one's device.

    Without torchrun, and where they know each other already, the block is any other. `LostPeer`
    where one of them ends before.
    """
    if "LOCAL_RANK" not in os.environ or distributed.is_initialized():
        yield device
        return
    if device.type == "cuda":
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    # The first process may prepare a corpus for hours; one that dies is torchrun's business
    # Gloo for what the host knows, too: by NCCL it would have to wait for the GPU
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    distributed.init_process_group(backend, timeout=timedelta(days=1))
    together = False
    try:
        with watch_peers():
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


def from_first(value: Any) -> Any:
    """The first process's value, for all."""
    if world_size() == 1:
        return value
    values = [value]
    distributed.broadcast_object_list(values)
    return values[0]


def copy_from_first(module: nn.Module) -> None:
    """Give a module's parameters the values that they have in the first process."""
    if world_size() > 1:
        for parameter in module.parameters():
            distributed.broadcast(parameter.data, 0)


def sum_over_processes(number: float) -> float:
    """A host's number added up over all processes that train together; each gets the sum."""
    if world_size() == 1:
        return number
    # a group that somebody else has made may have nothing but NCCL
    device = "cuda" if distributed.get_backend() == "nccl" else "cpu"
    total = torch.tensor(float(number), dtype=torch.float64, device=device)
    distributed.all_reduce(total)
    return total.item()


def sum_on_device(number: torch.Tensor) -> torch.Tensor:
    """A device's number (a tensor) added up over all processes, in fp64; alone, as it is.

    On a GPU no host waits for it.
    """
    if world_size() == 1:
        return number
    total = number.double()
    distributed.all_reduce(total)
    return total


def copies_in_step(module: nn.Module) -> nn.Module:
    """A module whose gradients are averaged over all processes after each backward pass.

    Alone, the module itself.
    """
    if world_size() == 1:
        return module
    # The only buffer, the table of sines, is the same everywhere
    copies = nn.parallel.DistributedDataParallel
    new = "forward_sync_buffers" in signature(copies).parameters
    alike: dict[str, Any] = {
        "forward_sync_buffers" if new else "broadcast_buffers": False
    }
    return copies(module, gradient_as_bucket_view=True, **alike)


def without_exchange(module: nn.Module, more: bool) -> AbstractContextManager:
    """Inside this block a backward pass keeps its gradients to itself where more are to come."""
    return module.no_sync() if more and world_size() > 1 else nullcontext()


def own_share(items: Sequence) -> list[tuple[int, object]]:
    """[(number, item), ...] of those items that this process works on."""
    return list(enumerate(items))[rank() :: world_size()]


def check_share(accumulate: int) -> None:
    """ValueError where an update has no batch for one of the processes."""
    count = world_size()
    if accumulate % count:
        raise ValueError(
            f"accumulate is {accumulate}: {count} processes need a multiple of "
            f"{count}, so that each has as many batches in every update"
        )


@contextmanager
def rank_zero_first() -> Iterator[None]:
    """The other processes enter this block when the first has left it, and find what it made.

    ValueError in each of them where the first could not finish, with its reason: whichever process
    ends first, and has the others stopped before they can speak, has said it.
    """
    reason: list[str | None] = [None]
    if rank() > 0:
        distributed.broadcast_object_list(reason)
        if reason[0] is not None:
            raise ValueError(
                f"the first process stopped, so this one does: {reason[0]}"
            )
    try:
        yield
    except BaseException as error:
        reason = [str(error) or type(error).__name__]
        raise
    finally:
        if rank() == 0 and world_size() > 1:
            distributed.broadcast_object_list(reason)
