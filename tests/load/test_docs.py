"""docs/load.md describes every key of the JSON."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

from plimsoll.load.bottleneck import Judgement, Word
from plimsoll.load.compare import Compared, Comparison
from plimsoll.load.conclusions import Ramp, Step
from plimsoll.load.engine import EngineWindow
from plimsoll.load.knee import Knee, Sign
from plimsoll.load.result import Counts, LengthsSeen, Problem, RatesSeen, Result
from plimsoll.load.sketch import Spread
from plimsoll.load.slo import Promise

DOCS = (Path(__file__).parents[2] / "docs" / "load.md").read_text()
KINDS = (
    *(Result, Counts, RatesSeen, LengthsSeen, Problem, Promise, Spread),
    *(Ramp, Step, EngineWindow, Knee, Judgement, Comparison, Compared),
)


def keys() -> Iterator[str]:
    for kind in KINDS:
        yield from (item.name for item in dataclasses.fields(kind))


def test_every_key_is_described():
    prose = re.sub(r"```.*?```", "", DOCS, flags=re.DOTALL)
    described = set(re.findall(r"[a-z][a-z0-9_]+", " ".join(re.findall(r"`([^`]+)`", prose))))
    assert sorted(set(keys()) - described) == []


def test_every_word_and_sign_is_described():
    assert [word for word in (*Word, *Sign) if word not in DOCS] == []
