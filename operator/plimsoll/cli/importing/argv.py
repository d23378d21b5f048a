"""A `vllm serve` argv taken apart with the flags that the engine's own parser lists.

What is taken: underscores for dashes, --x=y, -tp 2, -O3, --no-x, dotted paths into JSON, several words where the parser
takes several, and unique prefixes (said, because a later release can make them ambiguous). Whether a value is right and
what it means is left to `fields` and `features`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from plimsoll.facts.engine_flags import Flag, FlagKind, FlagTable, Match
from plimsoll.facts.engines import StaleFlag

_NUMBER = re.compile(r"-\d+(\.\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A known flag as it stood on the command line."""

    flag: Flag
    spelling: str
    words: tuple[str, ...] = ()
    negated: bool = False
    path: str | None = None
    abbreviated: bool = False
    inline: bool = False
    """True where the value stood behind an equals sign."""

    @property
    def what(self) -> str:
        if self.flag.name in ("--api-key", "--hf-token") and self.words:
            return f"{self.spelling} (hidden)"
        return " ".join((self.spelling, *self.words))

    @property
    def text(self) -> str:
        return self.words[0] if self.words else ""

    @property
    def on(self) -> bool:
        """The value of a switch."""
        return not self.negated


@dataclass(frozen=True, slots=True, kw_only=True)
class Stale:
    """A flag that the version does not have any more."""

    flag: StaleFlag
    spelling: str
    words: tuple[str, ...]

    @property
    def what(self) -> str:
        return " ".join((self.spelling, *self.words))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Words that no flag of the version explains, with the reason."""

    what: str
    why: str


@dataclass(slots=True, kw_only=True)
class CommandLine:
    positionals: list[str] = field(default_factory=list)
    given: list[Given] = field(default_factory=list)
    stale: list[Stale] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def parse_argv(
    argv: Iterable[str],
    flags: FlagTable,
    stale: Mapping[str, StaleFlag],
    foreign: Mapping[str, str] | None = None,
    version: str = "",
) -> CommandLine:
    """Take the words behind `vllm serve` apart. `foreign` names flags of a wrapper, with the reason they are lost."""
    words = list(argv)
    line = CommandLine()
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        if not word.startswith("-") or word == "-" or _NUMBER.fullmatch(word):
            line.positionals.append(word)
            continue
        if word == "--":
            line.positionals += words[place:]
            break
        spelling, value = _split(word)
        foreign_why = _foreign(spelling, foreign or {})
        match = flags.find(spelling)
        old = stale.get(_canonical(spelling))
        if foreign_why is not None:
            place, taken = _take(words, place, value, "?")
            line.unread.append(Unread(what=" ".join((spelling, *taken)), why=foreign_why))
        elif old is not None and (match is None or match.abbreviated):
            place, taken = _take(words, place, value, None if old.words else "0")
            line.stale.append(Stale(flag=old, spelling=spelling, words=taken))
        elif match is not None:
            place = _known(line, match, (spelling, value), words, place)
        else:
            place, taken = _take(words, place, value, "?")
            line.unread.append(
                Unread(what=" ".join((spelling, *taken)), why=_unknown(spelling, flags, version))
            )
    return line


def _split(word: str) -> tuple[str, str | None]:
    """A word as a flag's spelling and the value behind its '=', if any."""
    if re.fullmatch(r"-O\S+", word):
        return "--optimization-level", word[2:].removeprefix("=")
    if word == "-O":
        return "--optimization-level", None
    spelling, equals, value = word.partition("=")
    return spelling, value if equals else None


def _canonical(spelling: str) -> str:
    head, dot, path = spelling.partition(".")
    return head.replace("_", "-") + dot + path


def _foreign(spelling: str, foreign: Mapping[str, str]) -> str | None:
    """Why a flag of a wrapper is lost; None where it is no such flag."""
    name = _canonical(spelling)
    if name in foreign:
        return foreign[name]
    return next(
        (why for prefix, why in foreign.items() if prefix.endswith("*") and name.startswith(prefix[:-1])),
        None,
    )


def _known(
    line: CommandLine, match: Match, word: tuple[str, str | None], words: list[str], place: int
) -> int:
    """Read a known flag and its words; returns where to go on."""
    flag, (spelling, value) = match.flag, word
    if flag.kind is FlagKind.BOOL and match.path is None:
        negated = match.negated
        if value is not None:
            if value.lower() not in ("true", "false"):
                line.unread.append(
                    Unread(what=f"{spelling}={value}", why=f"{flag.name} is a switch and takes no value")
                )
                return place
            negated = negated == (value.lower() == "true")
        line.given.append(
            Given(
                flag=flag,
                spelling=spelling,
                negated=negated,
                abbreviated=match.abbreviated,
                inline=value is not None,
            )
        )
        return place
    nargs = None if match.path is not None else flag.nargs
    place, taken = _take(words, place, value, nargs)
    if not taken and nargs != "?":
        line.unread.append(Unread(what=spelling, why=f"{flag.name} needs a value, and none follows"))
        return place
    line.given.append(
        Given(
            flag=flag,
            spelling=spelling,
            words=taken,
            negated=match.negated,
            path=match.path,
            abbreviated=match.abbreviated,
            inline=value is not None,
        )
    )
    return place


def _take(words: list[str], place: int, value: str | None, nargs: str | None) -> tuple[int, tuple[str, ...]]:
    """The words that belong to a flag: nargs as argparse means it, None for exactly one, "0" for none."""
    if value is not None:
        return place, (value,)
    most = {"0": 0, "?": 1, None: 1}.get(nargs, len(words))
    taken: list[str] = []
    while place < len(words) and len(taken) < most:
        word = words[place]
        if word.startswith("-") and word != "-" and not _NUMBER.fullmatch(word):
            break
        taken.append(word)
        place += 1
    return place, tuple(taken)


def _unknown(spelling: str, flags: FlagTable, version: str) -> str:
    candidates = flags.candidates(spelling) if spelling.startswith("--") else ()
    if len(candidates) > 1:
        return f"vLLM {version} refuses it: it could mean {', '.join(candidates[:4])}"
    near = flags.near(spelling)
    hint = f"; the nearest flags are {', '.join(near)}" if near else ""
    return f"vLLM {version} has no flag {spelling}{hint}"
