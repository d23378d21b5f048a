"""Chance that can be repeated: everything random in a run follows from one seed and from what it is for."""

from __future__ import annotations

import random


def seeded(seed: int, purpose: str) -> random.Random:
    """Each purpose has a stream of its own, so that longer prompts do not move the arrivals."""
    return random.Random(f"{seed}/{purpose}")  # noqa: S311 - load is no secret
