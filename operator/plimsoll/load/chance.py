"""Random numbers that can be repeated: everything random in a run follows from one seed and from what it is for."""

from __future__ import annotations

import random


def seeded(seed: int, purpose: str) -> random.Random:
    """A random stream for a purpose. Each has its own, so that for instance other lengths of prompts leave arrivals as they are."""
    return random.Random(f"{seed}/{purpose}")  # noqa: S311 - load is no secret
