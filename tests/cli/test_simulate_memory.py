"""More requests than the machine can hold: a sentence of what would do, and what was played by then."""

import json
import weakref

import pytest

from plimsoll.cli import simulate, simulate_play
from plimsoll.cli.simulate_asked import Asked
from plimsoll.cli.simulate_side import freed
from plimsoll.simulate.compare import Comparison, Result
from plimsoll.simulate.stages import Stages
from tests.cli.test_simulate import llm, requests, simulated

__all__ = ["llm", "requests"]

TOO_MANY = "error: --trace: some 2,000 requests need more memory than there is; take a part with --days, or less with --scale\n"
CHEAP = ("--routing", "service", "--jobs", "1")


def full(*_: object, **_more: object) -> None:
    raise MemoryError


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ((simulate, "load"), "error: --trace {trace}: needs more memory than there is; bring a part of it\n"),
        ((Stages, "arrivals"), TOO_MANY),
        ((Asked, "better"), TOO_MANY),
        ((Comparison, "best"), TOO_MANY),
        ((simulate_play, "side_by_side"), TOO_MANY.replace("\n", "; --jobs 1 needs the least\n")),
    ],
    ids=["read", "drawn", "looked at", "played", "played side by side"],
)
def test_requests_that_cannot_be_held_are_told_with_their_number_and_what_would_do(
    place: tuple[object, str], said: str, llm: str, requests: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(*place, full)
    jobs = ("--jobs", "2") if place[0] is simulate_play else ()
    ran = simulated(llm, requests, *CHEAP, *jobs)
    assert (ran.code, ran.out, ran.err) == (3, "", said.format(trace=requests))


def test_what_was_played_before_memory_ran_out_is_not_lost(
    llm: str, requests: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = Comparison.best

    def one_alone(self: Comparison, policy: str) -> Result:
        if policy != "plimsoll":
            raise MemoryError
        return best(self, policy)

    monkeypatch.setattr(Comparison, "best", one_alone)
    ran = simulated(llm, requests, *CHEAP, "-o", "json")
    assert ran.code == 130
    assert TOO_MANY.replace("error: ", "note: ") in ran.err
    assert json.loads(ran.out)["results"]


def test_what_filled_the_memory_is_let_go_of_before_anybody_hears_of_it() -> None:
    held: list[weakref.ref[set[int]]] = []

    def fill() -> None:
        much = {1}
        held.append(weakref.ref(much))
        raise MemoryError

    with pytest.raises(MemoryError):
        freed(fill)
    assert held[0]() is None
