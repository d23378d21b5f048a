"""What an engine's supervisor reports of the engine's start: how far it is, and what memory it got.

A pod wrote the report, so the range and form of every figure are checked; one that is missing or impossible is None, never zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from plimsoll.api.plainjson import parsed
from plimsoll.facts.failure import plain

SCHEMA: Final = 1
MOST_REPORT: Final = 64 * 1024
"""The most bytes of a report, of which the engine's command line is the longest part."""
_LONGEST_WORD: Final = 63
_LONGEST_PHASE: Final = 200
_LONGEST_SENTENCE: Final = 240
_MOST_ADAPTERS: Final = 64
_MOST_WARNINGS: Final = 8
_MOST_PHASES: Final = 256
_MOST_SECONDS: Final = 10**6
_MOST_BYTES: Final = 2**50
_MOST_TOKENS: Final = 2**40


class ReportUnreadable(ValueError):
    """An answer that is no report of a supervisor of this release."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """How many bytes of the model have been fetched so far."""

    done: int
    total: int | None = None
    rate: int | None = None
    """Bytes a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSeen:
    """One LoRA adapter in one replica."""

    name: str
    id: str
    """Id of the declared adapter; with another id it is of an earlier list."""
    state: str
    """Waiting, Fetching, Loaded, Failed."""
    reason: str = ""
    message: str = ""
    """Set where it waits or has failed."""
    remedy: str = ""

    @property
    def settled(self) -> bool:
        return self.state in ("Loaded", "Failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned:
    """A warning: something is not as the plan expects, but the engine runs."""

    word: str
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        helps = f". Remedy: {self.remedy}" if self.remedy else ""
        return f"{self.word}: {self.message}{helps}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One report of a supervisor."""

    state: str
    """preflight, fetching, starting, serving, draining, failed."""
    phase: str = ""
    fetching: Fetching | None = None
    start_seconds: int | None = None
    """All phases of the start together."""
    weights_bytes: int | None = None
    kv_bytes: int | None = None
    kv_tokens: int | None = None
    blocks: int | None = None
    block_size: int | None = None
    cold: bool | None = None
    """Whether kernels were compiled during the start; None where it is not reported."""
    adapters: tuple[AdapterSeen, ...] | None = None
    """Adapters that the supervisor loads; None where it loads none."""
    warnings: tuple[Warned, ...] = ()

    @property
    def serves(self) -> bool:
        return self.state in ("serving", "draining")


def read_report(text: bytes) -> Report:
    try:
        data = parsed(text)
    except ValueError as error:
        raise ReportUnreadable(f"it is no JSON: {error}") from None
    if not isinstance(data, dict) or data.get("schema") != SCHEMA or not isinstance(data.get("state"), str):
        raise ReportUnreadable(f'it is no object with "schema": {SCHEMA} and a "state"')
    measured = _mapping(data.get("measured"))
    return Report(
        state=plain(data["state"], _LONGEST_WORD),
        phase=_word(data.get("phase"), _LONGEST_PHASE),
        fetching=_fetching(_mapping(data.get("progress"))),
        start_seconds=_seconds(data.get("phases")),
        weights_bytes=_count(measured.get("weightsBytes"), _MOST_BYTES),
        kv_bytes=_count(measured.get("kvBytes"), _MOST_BYTES),
        kv_tokens=_count(measured.get("kvTokens"), _MOST_TOKENS),
        blocks=_count(measured.get("blocks"), _MOST_TOKENS),
        block_size=_count(measured.get("blockSize"), _MOST_TOKENS),
        adapters=_adapters(data.get("adapters")),
        cold={"cold": True, "warm": False}.get(_word(measured.get("compileCache"))),
        warnings=_warnings(data.get("warnings")),
    )


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _word(value: object, longest: int = _LONGEST_WORD) -> str:
    return plain(value, longest) if isinstance(value, str) else ""


def _count(value: object, most: int) -> int | None:
    """A figure of at least one; None where it is absent, null or impossible."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    # The comparison also keeps out nan, and integers that are too large for a float.
    return round(value) if 1 <= value <= most else None


def _adapters(told: object) -> tuple[AdapterSeen, ...] | None:
    if not isinstance(told, list):
        return None
    return tuple(_adapter(_mapping(one)) for one in told[:_MOST_ADAPTERS])


def _adapter(told: Mapping[str, Any]) -> AdapterSeen:
    """One adapter. Its message is kept only where it waits or has failed: while it is fetched the message changes all the time, and each
    change would be a turn."""
    state = _word(told.get("state"))
    speaks = state in ("Waiting", "Failed")
    return AdapterSeen(
        name=_word(told.get("name")),
        id=_word(told.get("id")),
        state=state,
        reason=_word(told.get("word")),
        message=_sentence(told.get("message")) if speaks else "",
        remedy=_sentence(told.get("remedy")) if speaks else "",
    )


def _warnings(told: object) -> tuple[Warned, ...]:
    """The warnings that have a word and a message, and no more of them than people read."""
    found = [_mapping(one) for one in (told if isinstance(told, list) else ())[:_MOST_WARNINGS]]
    each = [
        Warned(
            word=_word(one.get("word")),
            message=_sentence(one.get("message")),
            remedy=_sentence(one.get("remedy")),
        )
        for one in found
    ]
    return tuple(one for one in each if one.word and one.message)


def _sentence(value: object) -> str:
    return plain(value, _LONGEST_SENTENCE) if isinstance(value, str) else ""


def _fetching(progress: Mapping[str, Any]) -> Fetching | None:
    done = _count(progress.get("bytes"), _MOST_BYTES)
    if done is None:
        return None
    return Fetching(
        done=done,
        total=_count(progress.get("of"), _MOST_BYTES),
        rate=_count(progress.get("rate"), _MOST_BYTES),
    )


def _seconds(phases: object) -> int | None:
    if not isinstance(phases, list):
        return None
    each = [_count(_mapping(one).get("seconds"), _MOST_SECONDS) or 0 for one in phases[:_MOST_PHASES]]
    return sum(each) or None
