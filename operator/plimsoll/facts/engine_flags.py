"""The command line of an engine, flag by flag, as its own parser lists it.

The lists are generated from the real parsers (tests/real_parser). A flag is looked up by its full spelling, by the short or inverse
spellings that its parser registers, and by unique prefix. The engine accepts a prefix silently, and the next release may add a flag
that makes it ambiguous; so a match by prefix always says that it is one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property


class FlagKind(StrEnum):
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    STR = "str"
    SIZE = "size"
    """An integer that also takes 1k (1000) and 1K (1024)."""
    SIZE_OR_AUTO = "size-or-auto"
    JSON = "json"
    JSON_OR_WORD = "json-or-word"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    name: str
    """Its main spelling, dashes included: --max-num-seqs."""
    kind: FlagKind
    default: object = None
    """None where the parser has no default, and the engine decides by model and GPU."""
    nargs: str | None = None
    """As argparse means it: + takes one or more words, ? at most one."""
    also: tuple[str, ...] = ()
    """Other spellings the parser registers: -tp, --no-enforce-eager."""
    choices: tuple[str, ...] = ()
    """Any other value is refused by the parser. Empty: the parser takes everything."""
    values: tuple[str, ...] = ()
    """Any other value passes the parser and kills the engine later."""
    deprecated: bool = False
    nullable: bool = False

    @property
    def dest(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """The flag that a spelling means."""

    flag: Flag
    negated: bool = False
    abbreviated: bool = False
    """True where only a unique prefix was given."""
    path: str | None = None
    """What is behind the first dot, as in --compilation-config.cudagraph_mode."""


@dataclass(frozen=True)
class FlagTable(Mapping[str, Flag]):
    """All flags of one version by main spelling."""

    flags: Mapping[str, Flag] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Flag:
        return self.flags[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.flags)

    def __len__(self) -> int:
        return len(self.flags)

    @cached_property
    def _spellings(self) -> Mapping[str, tuple[Flag, bool]]:
        found: dict[str, tuple[Flag, bool]] = {}
        for flag in self.flags.values():
            found[flag.name] = (flag, False)
            for other in flag.also:
                found[other] = (flag, _inverts(flag, other))
        return found

    def find(self, spelling: str) -> Match | None:
        """The flag a spelling means (underscores, short forms, dotted paths, unique prefixes), or None."""
        head, _, path = spelling.partition(".")
        name = head if not head.startswith("--") else head.replace("_", "-")
        exact = self._spellings.get(name)
        if exact is not None:
            return Match(flag=exact[0], negated=exact[1], path=path or None)
        if not name.startswith("--"):
            return None
        longer = {
            flag.name: (flag, negated)
            for other, (flag, negated) in self._spellings.items()
            if other.startswith(name)
        }
        if len(longer) != 1:
            return None
        flag, negated = next(iter(longer.values()))
        return Match(flag=flag, negated=negated, abbreviated=True, path=path or None)

    def candidates(self, spelling: str) -> tuple[str, ...]:
        """Flags that a prefix could mean, where it could mean several."""
        name = spelling.partition(".")[0].replace("_", "-")
        return tuple(
            sorted({flag.name for other, (flag, _) in self._spellings.items() if other.startswith(name)})
        )

    def near(self, spelling: str, most: int = 3) -> tuple[str, ...]:
        """Flags with a similar spelling, the most similar first, for an error that says what would be right."""
        name = spelling.partition(".")[0].replace("_", "-")
        return tuple(difflib.get_close_matches(name, sorted(self._spellings), n=most, cutoff=0.6))


def _inverts(flag: Flag, spelling: str) -> bool:
    """Whether a spelling of a flag means its opposite, as --no-x, or --disable-x of --enable-x."""
    if flag.kind is not FlagKind.BOOL:
        return False
    plain, other = flag.name.removeprefix("--"), spelling.removeprefix("--")
    if other == f"no-{plain}":
        return True
    stem, stem_other = plain.partition("-")[2], other.partition("-")[2]
    opposite = {plain.partition("-")[0], other.partition("-")[0]} == {"enable", "disable"}
    return opposite and stem == stem_other
