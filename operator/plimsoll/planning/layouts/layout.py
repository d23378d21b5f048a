"""One way to cut a model over GPUs, and its name. `every` lists the layouts that exist, `rules` turns layouts down."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_SAID: Final = re.compile(r"tp(\d+)(?:-pp(\d+))?(?:-dp(\d+))?(-ep)?(?:-dcp(\d+))?")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Layout:
    """How many ranks there are of each kind of parallelism."""

    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    expert_parallel: bool = False
    """True where whole experts are spread over the tensor x data ranks; False where each expert is cut over them."""
    decode_context: int = 1
    """Over how many of the tensor ranks the tokens of the cache are spread."""

    @property
    def gpus(self) -> int:
        return self.tensor * self.pipeline * self.data

    @property
    def expert_ranks(self) -> int:
        """Over how many ranks the routed experts are spread (whole) or cut (sharded)."""
        return self.tensor * self.data

    @property
    def size_order(self) -> tuple[int, ...]:
        """A key that sorts small and simple layouts first. Made of plain numbers, as thousands of layouts are compared."""
        return (
            self.gpus,
            self.tensor,
            self.pipeline,
            self.data,
            self.expert_parallel,
            self.decode_context,
        )

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
        """The layout of a name that `str` made, as a status keeps it; None for any other text."""
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
    """Devices of each pod."""
