"""Values that are made fast: the same as any dataclass makes, as frozen, and as particular about what they are given."""

import copy
import dataclasses
import pickle

import pytest

from plimsoll.facts.pod_sample import PodSample
from plimsoll.values import light


@light
@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    name: str
    size: int = 1
    parts: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    name: str
    size: int = 1
    parts: tuple[int, ...] = ()


def test_it_is_what_its_dataclass_would_have_made():
    for given in ({"name": "a"}, {"name": "a", "size": 3}, {"name": "a", "parts": (1,), "size": 2}):
        assert dataclasses.asdict(Light(**given)) == dataclasses.asdict(Plain(**given))
    assert repr(Light(name="a")) == "Light(name='a', size=1, parts=())"
    assert Light(name="a") == Light(name="a", size=1)
    assert hash(Light(name="a")) == hash(Light(name="a", size=1))


def test_fields_by_place_are_given_by_place():
    @light
    @dataclasses.dataclass(frozen=True, slots=True)
    class Placed:
        name: str
        size: int = 1
        more: int = dataclasses.field(default=2, kw_only=True)

    assert dataclasses.astuple(Placed("a", 3, more=4)) == ("a", 3, 4)
    assert Placed("a") == Placed(name="a", size=1, more=2)
    with pytest.raises(TypeError):
        Placed("a", 3, 4)  # type: ignore[call-arg]


def test_it_is_frozen():
    made = Light(name="a")
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.size = 2  # type: ignore[misc]
    assert type(made) is Light


@pytest.mark.parametrize("given", [{}, {"name": "a", "unheard_of": 1}], ids=["too little", "too much"])
def test_it_takes_neither_less_nor_more_than_its_fields(given):
    with pytest.raises(TypeError):
        Light(**given)


def test_it_is_copied_pickled_and_replaced_as_any_other():
    made = PodSample(pod="uid", at=1.0, running=2.0)
    assert copy.deepcopy(made) == pickle.loads(pickle.dumps(made)) == made
    assert dataclasses.replace(made, at=3.0) == PodSample(pod="uid", at=3.0, running=2.0)


def test_what_is_more_than_its_fields_is_refused():
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Checked:
        one: int

        def __post_init__(self) -> None:
            assert self.one

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Mutable:
        parts: list[int] = dataclasses.field(default_factory=list)

    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Further(Plain):
        more: int = 0

    for kind in (Checked, Mutable, Further):
        with pytest.raises(TypeError, match="more than its fields"):
            light(kind)
