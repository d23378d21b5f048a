import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import pytest

from plimsoll.planning import codec


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, kw_only=True)
class Inner:
    size: float
    colour: Colour = Colour.RED


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str
    inner: Inner | None = None
    many: tuple[Inner, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    flag: bool = False
    pair: tuple[str, int] = ("a", 1)


FULL = Outer(
    name="ünïcode \u2028 'quoted'",
    inner=Inner(size=0.1, colour=Colour.BLUE),
    many=(Inner(size=1), Inner(size=2.5)),
    words={"b": "2", "a": "1"},
    flag=True,
    pair=("b", 2),
)


@pytest.mark.parametrize("value", [FULL, Outer(name="")])
def test_a_value_survives_the_way_to_bytes_and_back(value):
    assert codec.decode(Outer, json.loads(codec.canonical(value))) == value


def test_equal_values_have_equal_bytes_whatever_the_order_of_their_mappings():
    other = Outer(name="x", words={"a": "1", "b": "2"})
    assert codec.canonical(Outer(name="x", words={"b": "2", "a": "1"})) == codec.canonical(other)


def test_fields_at_their_default_are_left_out_so_that_old_values_read_like_new_ones():
    assert codec.encode(Outer(name="x")) == {"name": "x"}


def test_fields_of_a_newer_version_are_passed_over_at_any_depth_where_that_is_asked_for():
    data = codec.encode(FULL)
    for place in (data, data["inner"], data["many"][1]):
        place["newer"] = [{"than": "this"}]
    assert codec.decode(Outer, data, newer=True) == FULL
    with pytest.raises(codec.CodecError, match="newer is not known"):
        codec.decode(Outer, data)
    with pytest.raises(codec.CodecError, match="name is missing"):
        codec.decode(Outer, {"newer": 1}, newer=True)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, "Outer.name is missing"),
        ({"name": 3}, "Outer.name is 3; it must be of type str"),
        ({"name": "x", "flag": 1}, "Outer.flag is 1"),
        ({"name": "x", "colour": "red"}, "Outer.colour is not known"),
        ({"name": "x", "inner": {"size": "big"}}, "Outer.inner.size is 'big'"),
        ({"name": "x", "inner": {"size": True}}, "Outer.inner.size is True"),
        ({"name": "x", "inner": {"size": 1, "colour": "green"}}, "one of red, blue"),
        ({"name": "x", "many": {"size": 1}}, "it must be a list"),
        ({"name": "x", "pair": ["a"]}, "it must be a list"),
        ({"name": "x", "words": ["a"]}, "it must be an object"),
        ([], "it must be an object"),
    ],
)
def test_a_wrong_place_is_named(data, words):
    with pytest.raises(codec.CodecError, match="(?s)" + words.replace(".", r"\.")):
        codec.decode(Outer, data)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, object()])
def test_what_has_no_canonical_form_is_refused(value):
    with pytest.raises(codec.CodecError):
        codec.encode(value)


def test_digests_differ_where_values_do():
    assert codec.digest(Inner(size=1)) != codec.digest(Inner(size=2))
    assert len(codec.digest(FULL)) == 16


def test_a_whole_number_has_the_same_bytes_whether_it_was_a_float_or_not():
    assert codec.canonical({"tokens": 2.0}) == codec.canonical({"tokens": 2}) == b'{"tokens":2}'
