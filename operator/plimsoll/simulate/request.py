"""One request of a simulated engine: what is asked, and how far it has come. How it moves is `engine`'s."""

from __future__ import annotations

from collections.abc import Sequence


class Request:
    """One request, and where it stands. Mutable: millions of them pass through a run."""

    __slots__ = (
        "admitted_at",
        "arrival",
        "base",
        "cached",
        "came_at",
        "computed",
        "finished_at",
        "first_at",
        "full_at",
        "generated",
        "input_tokens",
        "joined",
        "last_at",
        "left",
        "order",
        "output_tokens",
        "outside",
        "preemptions",
        "prefix",
        "shared_blocks",
    )

    def __init__(
        self, arrival: float, input_tokens: int, output_tokens: int, prefix: Sequence[int] = ()
    ) -> None:
        self.arrival = arrival
        self.input_tokens = input_tokens
        self.output_tokens = output_tokens
        self.prefix = prefix
        """Ids of shared blocks of prompt tokens, from its start."""
        self.came_at = arrival
        """When the engine was handed it."""
        self.admitted_at = -1.0
        """When it left the queue for the first time."""
        self.first_at = -1.0
        self.finished_at = -1.0
        self.preemptions = 0
        self.generated = 0
        """Tokens given out when it last joined the batch; `Engine.tokens` says how many by now."""
        self.last_at = -1.0
        self.outside = 0.0
        self.order = -1
        """Of admission; -1 where it does not run."""
        self.joined = -1
        """The step it joined the decoding batch after; -1 while its prompt is computed."""
        self.base = 0
        """Cached tokens when it joined."""
        self.full_at = 0
        """A step, modulo the size of blocks, before which all its blocks are full."""
        self.left = 0
        """Prompt tokens still to be computed."""
        self.computed = 0
        self.cached = 0
        self.shared_blocks = 0
