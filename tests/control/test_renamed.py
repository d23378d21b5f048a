"""What was learned of a set stays where an edit of the pods' text renames it, and its entry in the plan is the same."""

import pytest

from plimsoll.control.memory import Learnt, Memory
from plimsoll.control.scaling import decide
from tests.control.situations import NOW, known, serving, signals, situation

TAUGHT = Learnt(concurrency=20.0, most=1.5)


def looked_at(memory: Memory, name: str, entry: str) -> Memory:
    """After one look that teaches."""
    seen = situation(signals(2, inflight=14, rate=1.2), serving(2, name=name, entry=entry))
    return decide(now=NOW, situation=seen, memory=memory).memory


@pytest.mark.parametrize(
    ("kept_by", "name", "entry", "stays"),
    [
        ("e1", "set-b", "e1", True),
        ("e1", "set-a", "e1", True),
        ("set-a", "set-a", "e1", True),
        ("set-a", "set-a", "", True),
        ("e1", "set-b", "e2", False),
        ("set-a", "set-b", "e2", False),
    ],
    ids=[
        "renamed",
        "as before",
        "kept by a release that knew names alone",
        "nobody says which entry it is",
        "another entry",
        "another entry, and kept by name",
    ],
)
def test_what_replicas_carry_is_known_by_the_plans_entry_and_not_by_the_sets_name(
    kept_by: str, name: str, entry: str, stays: bool
):
    after = looked_at(known(learnt={kept_by: TAUGHT}, since=NOW - 10_000), name, entry).of("serve").learnt
    (found,) = after.items()
    assert found[0] == (entry or name)
    assert (found[1].most is not None) is stays
    assert ((found[1].concurrency or 50.0) < 30) is stays
    later = looked_at(Memory(roles={"serve": known(learnt=after).of("serve")}), "set-z", entry or name)
    assert (later.of("serve").learnt[entry or name].most is not None) is stays
