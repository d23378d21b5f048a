"""What real starts have taught about the memory ledger: bounded residuals of its terms, never token counts.

A residual is what a term really took minus what the formula said, for one model on one GPU under one engine version and
one set of flags. The operator writes them (one object for the whole cluster), an admin may hand in a read-only seed from
elsewhere, and a plan takes both merged as an input. Bounds keep one odd start from moving a fleet. How a term uses its
residual is `planning.ledger`'s work.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from plimsoll.facts.gpus import GIB

MOST_BYTES: Final = 16 * GIB
"""No residual may move a term by more; what is further off is a wrong formula or a wrong reading."""
MOST_ENTRIES: Final = 2048
"""Entries of one export, of about 300 bytes each."""
MOST_TEXT: Final = 900_000
"""Bytes of one export: a ConfigMap may have 1 MiB."""
ONE_START: Final = 64 * 2**20
"""Bytes within which starts of one model under one set of flags lay of one another in the logs."""
LONGEST_MEMORY: Final = 20
"""Starts of one kind after which each further one counts as the twentieth."""
LONGEST_WORD: Final = 256
SCHEMA: Final = 1
BETWEEN: Final = 6
"""Bytes that set one entry apart from the next."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class LearnedKey:
    """What must be equal for one start to teach another."""

    model: str
    """Digest of the model's facts, or `shape:` and a digest for what holds for all checkpoints of one shape."""
    gpu: str
    """Catalogue name."""
    engine: str
    """Name and version, e.g. vllm-0.33.0."""
    flags: str
    """Layout and settings that move memory, as one readable word; `planning.learned_key` makes it."""


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Residual:
    key: LearnedKey
    term: str
    """Name of the ledger's term."""
    bytes: int
    """Measured minus predicted; the mean over the starts, clamped to the bound."""
    half_width: int
    """90% of the starts lay within this of the mean; never below what one start can vary."""
    starts: int
    name: str = ""
    """The model as somebody wrote it, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    residuals: tuple[Residual, ...] = ()
    """Sorted by key and term, one each."""

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


NOTHING: Final = Learned()


class LearnedError(ValueError):
    """A file of residuals that cannot be read; the message names the entry, the value and what would be right."""


def learned(residuals: Iterable[Residual], newest: Iterable[Residual] = ()) -> Learned:
    """Sorted, clamped and bounded; where a key and term come twice, the one with more starts behind it stays. Where there are
    too many, `newest` stay before all others, or nothing would ever be learned again."""
    best: dict[tuple[LearnedKey, str], Residual] = {}
    for entry in sorted(residuals):
        place = (entry.key, entry.term)
        if place not in best or entry.starts > best[place].starts:
            best[place] = _clamped(entry)
    fresh = {(entry.key, entry.term) for entry in newest}
    order = sorted(best, key=lambda place: (place not in fresh, -best[place].starts, place))[:MOST_ENTRIES]
    sizes = accumulate(len(_line(best[place])) + BETWEEN for place in order)
    stay = [place for place, size in zip(order, sizes, strict=True) if size <= MOST_TEXT]
    return Learned(residuals=tuple(best[place] for place in sorted(stay)))


def merged(own: Learned, seed: Learned) -> Learned:
    """The operator's own starts win over an admin's seed, whatever the counts: they are from this cluster."""
    mine = {(entry.key, entry.term) for entry in own.residuals}
    strange = [entry for entry in seed.residuals if (entry.key, entry.term) not in mine]
    return learned([*own.residuals, *strange])


def taught(known: Learned, lessons: Iterable[Residual]) -> Learned:
    """What is known with what one more start showed. The newest starts count at least a twentieth, so that what changes
    is followed, and at most that much once there are twenty, so that no odd one moves a fleet."""
    best = {(entry.key, entry.term): entry for entry in known.residuals}
    newest = sorted(lessons)
    for lesson in newest:
        place = (lesson.key, lesson.term)
        best[place] = _folded(best[place], lesson) if place in best else lesson
    return learned(best.values(), newest)


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
    """By how much a difference passes what one start can vary: the part of it that says something about other starts."""
    beyond = max(0.0, abs(size) - ONE_START)
    return beyond if size > 0 else -beyond


def forgotten(known: Learned, *, words: Iterable[str]) -> Learned:
    """Without the entries in whose key or name each of the words stands."""
    asked = [word.casefold() for word in words]

    def meant(entry: Residual) -> bool:
        key = entry.key
        text = f"{key.model} {key.gpu} {key.engine} {key.flags} {entry.term} {entry.name}".casefold()
        return all(word in text for word in asked)

    return Learned(residuals=tuple(entry for entry in known.residuals if not meant(entry)))


def export_learned(value: Learned) -> str:
    """One line an entry, sorted: short diffs in git."""
    body = ",\n".join(f"    {_line(entry)}" for entry in value.residuals)
    return f'{{\n  "schema": {SCHEMA},\n  "residuals": [\n{body}\n  ]\n}}\n' if body else _EMPTY


def _line(entry: Residual) -> str:
    return json.dumps(
        {
            "model": entry.key.model,
            "gpu": entry.key.gpu,
            "engine": entry.key.engine,
            "flags": entry.key.flags,
            "term": entry.term,
            "bytes": entry.bytes,
            "halfWidth": entry.half_width,
            "starts": entry.starts,
            **({"name": entry.name} if entry.name else {}),
        }
    )


def import_learned(text: str) -> Learned:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise LearnedError(f"learned facts must be JSON as `export` writes it: {error}") from None
    if (
        not isinstance(data, dict)
        or data.get("schema") != SCHEMA
        or not isinstance(data.get("residuals"), list)
    ):
        raise LearnedError(f'learned facts must be an object with "schema": {SCHEMA} and a list "residuals"')
    return learned(_residual(index, row) for index, row in enumerate(data["residuals"]))


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


def _residual(index: int, row: object) -> Residual:
    if not isinstance(row, dict):
        raise LearnedError(f"residuals[{index}] is {row!r}; it must be an object")

    def text(name: str) -> str:
        value = row.get(name)
        if not isinstance(value, str) or not value or len(value) > LONGEST_WORD:
            raise LearnedError(
                f"residuals[{index}].{name} is {value!r}; it must be a word of at most {LONGEST_WORD} letters"
            )
        return value

    def number(name: str, least: int | None = None) -> int:
        value = row.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or (least is not None and value < least):
            bound = "" if least is None else f" of at least {least}"
            raise LearnedError(f"residuals[{index}].{name} is {value!r}; it must be an integer{bound}")
        return value

    return Residual(
        key=LearnedKey(model=text("model"), gpu=text("gpu"), engine=text("engine"), flags=text("flags")),
        term=text("term"),
        bytes=number("bytes"),
        half_width=number("halfWidth", 0),
        starts=number("starts", 1),
        name=text("name") if row.get("name") else "",
    )


_EMPTY: Final = f'{{\n  "schema": {SCHEMA},\n  "residuals": []\n}}\n'
