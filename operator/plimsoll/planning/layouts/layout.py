"""One way to cut a model over GPUs, and the words for it. Which layouts exist and why others do not is `layouts`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SAID: Final = re.compile(r"tp(\d+)(?:-pp(\d+))?(?:-dp(\d+))?(-ep)?(?:-dcp(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Layout:
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert_parallel: bool = False
    """Experts whole and spread over tensor x data ranks, instead of each cut over them."""
    decode_context: int = 1

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.data

    @property
    def expert_ranks(self) -> int:
        """Over how many ranks the routed experts are spread (whole) or cut (sharded)."""
        return self.tensor * self.data

    def __str__(self) -> str:
        parts = [f"tp{self.tensor}"]
        if self.pipeline > 1:
            parts.append(f"pp{self.pipeline}")
        if self.data > 1:
            parts.append(f"dp{self.data}")
        if self.expert_parallel:
            parts.append("ep")
        if self.decode_context > 1:
            parts.append(f"dcp{self.decode_context}")
        return "-".join(parts)

    @staticmethod
    def read(text: str) -> Layout | None:
        """What `str` made of one, as a status keeps it; None of anything else."""
        found = _SAID.fullmatch(text)
        if found is None:
            return None
        tensor, pipeline, data, experts, context = found.groups()
        return Layout(
            tensor=int(tensor),
            pipeline=int(pipeline or 1),
            data=int(data or 1),
            expert_parallel=experts is not None,
            decode_context=int(context or 1),
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """How a replica is cut into pods."""

    pods: int
    devices: int
    """Of each pod."""
