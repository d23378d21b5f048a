"""Values with some fields changed, made without their constructor: the same as made with it, and the old one stays as it was."""

import dataclasses

import pytest

from plimsoll.control.copying import replace
from plimsoll.control.memory import Blocked, Learnt, LoadMemory, RoleMemory
from plimsoll.control.prompts import StepMemory
from plimsoll.facts.pod_sample import PodSample

VALUES = (
    (RoleMemory(begun=1.0, wishes=((1.0, 2.0),)), {"seen": 3.0, "begun": None}),
    (LoadMemory(level=4.0), {"trend": 0.5}),
    (Learnt(most=2.0), {"steps": StepMemory(lumps=1.0)}),
    (StepMemory(), {"skew": 2.0, "lumps": 3.0}),
    (Blocked(until=1.0, retry_s=2.0), {"until": 5.0}),
    (PodSample(pod="name", at=1.0, running=2.0), {"pod": "uid"}),
)


@pytest.mark.parametrize(("value", "changes"), VALUES, ids=lambda one: type(one).__name__)
def test_a_copy_is_what_the_constructor_would_have_made(value, changes):
    before = dataclasses.replace(value)
    assert replace(value, **changes) == dataclasses.replace(value, **changes)
    assert replace(value, **changes) != value == before
    assert replace(value) == value
    assert replace(value) is not value


def test_a_copy_is_as_frozen_as_what_it_was_made_of():
    copied = replace(RoleMemory(), seen=1.0)
    with pytest.raises(dataclasses.FrozenInstanceError):
        copied.seen = 2.0  # type: ignore[misc]


def test_what_a_value_does_not_have_is_not_made_up():
    with pytest.raises(KeyError):
        replace(RoleMemory(), unheard_of=1)  # type: ignore[call-arg]


def test_who_checks_or_computes_something_when_it_is_made_is_not_copied_past_that():
    @dataclasses.dataclass(frozen=True, slots=True)
    class Checked:
        one: int
        other: int

        def __post_init__(self) -> None:
            assert self.one <= self.other

    with pytest.raises(TypeError):
        replace(Checked(1, 2), one=3)
