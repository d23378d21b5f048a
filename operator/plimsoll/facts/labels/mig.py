"""MIG slices as devices of their own: the name of a profile, and the catalogue entry for the part of a card that it means.

A slice's share of memory and bandwidth goes by memory slices, its share of operations by compute slices. It has no link to another slice,
so an engine never spans two of them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from plimsoll.facts.gpus import GIB, MIB, Gpu, Link, LinkKind

_PROFILE = re.compile(r"(?P<compute>\d+)g\.(?P<memory>\d+)gb(?P<rest>.*)", re.IGNORECASE)

_ROUNDING = 0.1
"""Share by which the gigabytes in a profile's name may be off by rounding; where they are further off it is another card's profile."""


@dataclass(frozen=True, slots=True)
class MigProfile:
    """The name of a MIG profile, such as 3g.40gb, in its parts."""

    compute: int
    gigabytes: int
    extras: str = ""
    """Attributes such as +me; they change nothing that planning reads."""

    @classmethod
    def parse(cls, text: str) -> MigProfile | None:
        match = _PROFILE.fullmatch(text)
        if match is None:
            return None
        return cls(int(match["compute"]), int(match["memory"]), match["rest"])

    def __str__(self) -> str:
        return f"{self.compute}g.{self.gigabytes}gb{self.extras}"


def slice_of(gpu: Gpu, profile: MigProfile) -> Gpu | None:
    """The part of a card that a profile means; None where the card cannot be cut so."""
    slices = gpu.mig_slices
    if not 1 <= profile.compute <= slices:
        return None
    memory_slices = 8 if slices == 7 else slices
    exact = profile.gigabytes * GIB / gpu.memory_bytes * memory_slices
    share = round(exact)
    if (
        not 1 <= share <= memory_slices
        or share < profile.compute - 1
        or abs(exact - share) > _ROUNDING * share
    ):
        return None
    return replace(
        gpu,
        name=f"{gpu.name}-MIG-{profile}",
        memory_bytes=_memory(gpu, share, memory_slices),
        memory_measured=False,
        bandwidth=gpu.bandwidth * share // memory_slices,
        flops={dtype: rate * profile.compute // slices for dtype, rate in gpu.flops.items()},
        link=Link(kind=LinkKind.PCIE, bytes_per_second=gpu.pcie_bytes_per_second, domain=1),
        aliases=(),
        mig_slices=0,
    )


def _memory(gpu: Gpu, share: int, memory_slices: int) -> int:
    """Memory of a slice. About 128 MiB are lost for each memory slice, and once more for the whole: 1g.5gb shows 4,864 MiB of 5,120."""
    whole_mib = round(gpu.memory_bytes / GIB) * 1024
    return (whole_mib * share // memory_slices - 128 * (share + 1)) * MIB
