"""A large fleet's answers are read without a look through all that the program holds, and garbage still goes."""

import gc
import weakref
from collections.abc import Iterator

import pytest

from plimsoll.handlers.garbage import YOUNG, collect_seldom


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class Held:
    """A value that holds itself."""

    def __init__(self) -> None:
        self.own = self


def test_the_rows_of_a_large_answer_are_no_reason_to_look_through_everything():
    collect_seldom()
    whole = []

    def noted(phase: str, about: dict[str, int]) -> None:
        if phase == "start" and about["generation"] == 2:
            whole.append(about)

    gc.callbacks.append(noted)
    try:
        rows = [{"metric": {"pod": f"chat-{number}"}, "value": [0, "1"]} for number in range(240_000)]
    finally:
        gc.callbacks.remove(noted)
    assert len(rows) == 240_000
    assert whole == []


def test_values_that_hold_only_themselves_still_go():
    collect_seldom()
    lost = weakref.ref(Held())
    others = [[number] for number in range(2 * YOUNG)]
    assert len(others) == 2 * YOUNG
    assert lost() is None
