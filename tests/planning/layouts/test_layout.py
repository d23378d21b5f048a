"""The words for a layout, written and read."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.planning.layouts.layout import Layout

ways = st.integers(1, 64)


@given(
    st.builds(
        Layout, tensor=ways, pipeline=ways, data=ways, expert_parallel=st.booleans(), decode_context=ways
    )
)
def test_what_is_written_of_a_layout_reads_as_it_was(layout: Layout) -> None:
    assert Layout.read(str(layout)) == layout


@pytest.mark.parametrize("text", ["", "tp", "tp2-", "tp2-xx", "2", "pp2-tp2"])
def test_what_is_no_layout_reads_as_none(text: str) -> None:
    assert Layout.read(text) is None
