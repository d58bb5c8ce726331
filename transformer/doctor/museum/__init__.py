"""Broken models, each with one real bug, and healthy ones, which together test the checkup."""

from transformer.doctor.museum import heads, losses, masks, wiring
from transformer.doctor.museum.healthy import HEALTHY, patient
from transformer.doctor.museum.rooms import check, exhibit
from transformer.doctor.museum.small import EXHIBITS, Exhibit

__all__ = [
    "EXHIBITS",
    "HEALTHY",
    "Exhibit",
    "check",
    "exhibit",
    "heads",
    "losses",
    "masks",
    "patient",
    "wiring",
]
