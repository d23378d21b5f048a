"""What real starts have taught about the memory ledger, and ramps about speed: bounded corrections, never token counts.

A residual is what a term of the ledger really took less what its formula said, for one model on one GPU under one engine version and
one set of flags. The operator writes residuals to one object for the whole cluster, an admin may hand in some from elsewhere, and a plan
gets both merged. Bounds keep one odd start from changing a whole fleet. `planning.memory` applies them; `learned_speed` has what ramps
teach.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from operator import attrgetter
from typing import Final, TypeVar

from plimsoll.api.plainjson import parsed
from plimsoll.facts.gpus import GIB
from plimsoll.facts.learned_rows import LONGEST_WORD, LearnedError, LearnedKey, Row
from plimsoll.facts.learned_speed import Speed

MOST_BYTES: Final = 16 * GIB
"""The most that a residual may move a term; a larger difference comes from a wrong formula or a wrong reading."""
MOST_ENTRIES: Final = 2048
"""The most residuals that are kept, of about 300 bytes each."""
MOST_TEXT: Final = 850_000
"""The most bytes that residuals take in an export, as a ConfigMap may have 1 MiB."""
MOST_SPEED_TEXT: Final = 100_000
"""The most bytes that speeds take in an export, which are some three hundred entries; the newest are kept."""
ONE_START: Final = 64 * 2**20
"""Bytes by which starts of one model with the same flags differed at most in the logs."""
LONGEST_MEMORY: Final = 20
"""After so many starts each further one counts as if it were the twentieth."""
SCHEMA: Final = 1
_Entry = TypeVar("_Entry")
BETWEEN: Final = 6
"""Bytes between one entry and the next in an export."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Residual:
    """By how much a term of the ledger was off, in the mean of the starts with one key."""

    key: LearnedKey
    term: str
    """Name of the ledger's term."""
    bytes: int
    """Measured less predicted bytes, in the mean over the starts and within the bound."""
    half_width: int
    """Bytes around the mean within which 90% of the starts lay; never less than single starts vary."""
    starts: int
    name: str = ""
    """The model as somebody wrote it, for people."""

    @property
    def words(self) -> str:
        """The text in which people search for it."""
        key = self.key
        return f"{key.model} {key.gpu} {key.engine} {key.flags} {self.term} {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """All that was learned."""

    residuals: tuple[Residual, ...] = ()
    """Sorted by key and term, one each."""
    speeds: tuple[Speed, ...] = ()
    """Sorted by key, one each."""

    @property
    def entries(self) -> int:
        return len(self.residuals) + len(self.speeds)

    def find(self, term: str, key: LearnedKey) -> Residual | None:
        place = (key, term)
        index = bisect_left(self.residuals, place, key=lambda residual: (residual.key, residual.term))
        if index < len(self.residuals):
            found = self.residuals[index]
            if (found.key, found.term) == place:
                return found
        return None

    def residual(self, term: str, key: LearnedKey) -> int | None:
        """Bytes to add to a term, or None where nothing was learned."""
        found = self.find(term, key)
        return None if found is None else found.bytes

    def speed(self, key: LearnedKey) -> Speed | None:
        index = bisect_left(self.speeds, key, key=attrgetter("key"))
        return self.speeds[index] if index < len(self.speeds) and self.speeds[index].key == key else None


NOTHING: Final = Learned()


def learned(
    residuals: Iterable[Residual], newest: Iterable[Residual] = (), *, speeds: Iterable[Speed] = ()
) -> Learned:
    """What was learned, sorted and within all bounds. Of two residuals with the same key and term the one from more starts is kept, of two
    speeds with the same key the newer one. Where there are too many residuals, `newest` are kept before all others, as otherwise nothing
    new could be learned any more."""
    best: dict[tuple[LearnedKey, str], Residual] = {}
    for entry in sorted(residuals):
        place = (entry.key, entry.term)
        if place not in best or entry.starts > best[place].starts:
            best[place] = _clamped(entry)
    fresh = {(entry.key, entry.term) for entry in newest}
    order = sorted(best, key=lambda place: (place not in fresh, -best[place].starts, place))[:MOST_ENTRIES]
    sizes = accumulate(len(_line(best[place])) + BETWEEN for place in order)
    stay = [place for place, size in zip(order, sizes, strict=True) if size <= MOST_TEXT]
    return Learned(residuals=tuple(best[place] for place in sorted(stay)), speeds=_bounded(speeds))


def _bounded(speeds: Iterable[Speed]) -> tuple[Speed, ...]:
    newest = {one.key: one.bounded() for one in sorted(speeds, key=lambda one: (one.at, one))}
    order = sorted(newest.values(), key=lambda one: (-one.at, one.key))
    sizes = accumulate(len(one.line()) + BETWEEN for one in order)
    return tuple(sorted(one for one, size in zip(order, sizes, strict=True) if size <= MOST_SPEED_TEXT))


def merged(own: Learned, seed: Learned) -> Learned:
    """What the operator has learned together with what an admin handed in. The operator's own entries come first, however few starts they
    are from, as they are from this cluster."""
    return learned(
        _over(own.residuals, seed.residuals, by=_place),
        speeds=_over(own.speeds, seed.speeds, by=lambda entry: entry.key),
    )


def added(there: Learned, own: Learned, *, since: Learned) -> Learned:
    """What is stored (`there`), with what we have learned since we last read it (`since`) and whoever wrote it since could not know. An entry
    that they have taken out is not brought back by a further start, as its mean still includes what they took out."""
    removed = {*map(_place, since.residuals)} - {*map(_place, there.residuals)}
    lessons = sorted(entry for entry in {*own.residuals} - {*since.residuals} if _place(entry) not in removed)
    speeds = {*own.speeds} - {*since.speeds}
    if not lessons and not speeds:
        return there
    return learned(
        _over(lessons, there.residuals, by=_place),
        lessons,
        speeds=_over(speeds, there.speeds, by=lambda entry: entry.key),
    )


def _place(entry: Residual) -> tuple[LearnedKey, str]:
    """What identifies a residual: there is one for each key and term."""
    return entry.key, entry.term


def _over(
    first: Iterable[_Entry], others: Iterable[_Entry], *, by: Callable[[_Entry], Hashable]
) -> list[_Entry]:
    """All of the first entries, and those of the others whose key (`by`) none of the first has."""
    preferred = [*first]
    taken = {by(entry) for entry in preferred}
    return [*preferred, *(entry for entry in others if by(entry) not in taken)]


def paced(known: Learned, speed: Speed) -> Learned:
    """What is known, with what one more ramp showed in place of an older ramp with the same key."""
    return learned(known.residuals, speeds=[*known.speeds, speed])


def taught(known: Learned, lessons: Iterable[Residual]) -> Learned:
    """What is known, with what one more start showed. A new start counts as one among all, but never less than a twentieth, so that changes
    are followed; and it is bounded, so that an odd one cannot change a whole fleet."""
    best = {(entry.key, entry.term): entry for entry in known.residuals}
    newest = sorted(map(_clamped, lessons))
    for lesson in newest:
        place = (lesson.key, lesson.term)
        best[place] = _folded(best[place], lesson) if place in best else lesson
    return learned(best.values(), newest, speeds=known.speeds)


def _folded(old: Residual, new: Residual) -> Residual:
    before = min(old.starts, LONGEST_MEMORY - 1)
    off = new.bytes - old.bytes
    return Residual(
        key=old.key,
        term=old.term,
        bytes=old.bytes + round(off / (before + 1)),
        half_width=max(new.half_width, round((old.half_width * before + 2 * abs(off)) / (before + 1))),
        starts=old.starts + 1,
        name=new.name or old.name,
    )


def beyond_noise(size: float) -> float:
    """The part of a difference that is more than single starts vary, and so says something about other starts."""
    beyond = max(0.0, abs(size) - ONE_START)
    return beyond if size > 0 else -beyond


def forgotten(known: Learned, *, words: Iterable[str]) -> Learned:
    """What is known, without the entries whose key or name has all of these words in it."""
    asked = [word.casefold() for word in words]

    def meant(entry: Residual | Speed) -> bool:
        return all(word in entry.words.casefold() for word in asked)

    return Learned(
        residuals=tuple(entry for entry in known.residuals if not meant(entry)),
        speeds=tuple(entry for entry in known.speeds if not meant(entry)),
    )


def export_learned(value: Learned) -> str:
    """The text of an export: sorted, with one entry on each line, so that diffs in git are short."""
    lists = {"residuals": [_line(entry) for entry in value.residuals]}
    if value.speeds:
        lists["speeds"] = [entry.line() for entry in value.speeds]
    written = (f'  "{name}": {_list(lines)}' for name, lines in lists.items())
    return f'{{\n  "schema": {SCHEMA},\n' + ",\n".join(written) + "\n}\n"


def _list(lines: list[str]) -> str:
    return "[\n" + ",\n".join(f"    {line}" for line in lines) + "\n  ]" if lines else "[]"


def _line(entry: Residual) -> str:
    return json.dumps(
        {
            **entry.key.to_data(),
            "term": entry.term,
            "bytes": entry.bytes,
            "halfWidth": entry.half_width,
            "starts": entry.starts,
            **({"name": entry.name} if entry.name else {}),
        }
    )


def import_learned(text: str) -> Learned:
    try:
        data = parsed(text)
    except ValueError as error:
        raise LearnedError(f"learned facts must be JSON as `export` writes it: {error}") from None
    if (
        not isinstance(data, dict)
        or data.get("schema") != SCHEMA
        or not isinstance(data.get("residuals"), list)
        or not isinstance(data.get("speeds", []), list)
    ):
        raise LearnedError(
            f'learned facts must be an object with "schema": {SCHEMA}, a list "residuals" and none or a list "speeds"'
        )
    speeds = data.get("speeds", [])
    return learned(
        [_residual(Row.of(f"residuals[{at}]", one)) for at, one in enumerate(data["residuals"])],
        speeds=[Speed.read(Row.of(f"speeds[{at}]", one)) for at, one in enumerate(speeds)],
    )


def _clamped(entry: Residual) -> Residual:
    clamped = max(-MOST_BYTES, min(MOST_BYTES, entry.bytes))
    return Residual(
        key=entry.key,
        term=entry.term,
        bytes=clamped,
        half_width=max(0, min(MOST_BYTES, entry.half_width)),
        starts=entry.starts,
        name=entry.name[:LONGEST_WORD],
    )


def _residual(row: Row) -> Residual:
    return Residual(
        key=row.key(),
        term=row.text("term"),
        bytes=row.whole("bytes"),
        half_width=row.whole("halfWidth", 0),
        starts=row.whole("starts", 1),
        name=row.name(),
    )
