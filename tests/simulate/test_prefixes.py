"""Blocks of prompt tokens that requests share in one engine's cache."""

from __future__ import annotations

import pytest

from plimsoll.simulate.prefixes import Prefixes


@pytest.mark.parametrize("free", [-1, 0])
def test_where_no_memory_is_free_nothing_that_nobody_uses_stays(free: int) -> None:
    """Blocks that divide no prefix evenly may count for a little more than there is."""
    prefixes = Prefixes(16)
    prefixes.trim(free)
    assert prefixes.held([1, 2]) == 0
