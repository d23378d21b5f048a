"""The words behind `vllm serve`, taken or refused as a version's own parser and its checks of the configuration do.

Two stages, as in the engine: the parser ends the process at once with 2, the configuration's checks end it some seconds
later with 1. What a flag is comes from the version's list; how many words it takes from the reader that `plimsoll import` has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.cli.importing.argv import CommandLine, Given, parse_argv
from plimsoll.cli.importing.values import BadValueError, size
from plimsoll.facts.engine_flags import Flag, FlagKind
from plimsoll.facts.engines import EngineFacts

USAGE: Final = "usage: vllm serve [model_tag] [options]\n"
PARSER, CONFIGURATION = 2, 1
"""Exit codes."""


class FlagsRefused(Exception):
    """What the engine writes before it ends, and how it ends."""

    def __init__(self, text: str, code: int) -> None:
        super().__init__(text)
        self.text = text
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """A command line that was taken: values by flag, of those that were given."""

    model: str | None
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    on: Mapping[str, bool] = field(default_factory=dict)
    parts: frozenset[str] = frozenset()
    """Flags of JSON values that were given in parts, of which the stand-in reads none."""

    def has(self, flag: str) -> bool:
        return flag in self.values or flag in self.parts

    def text(self, flag: str) -> str | None:
        found = self.values.get(flag)
        return found[0] if found else None

    def number(self, flag: str) -> int | None:
        text = self.text(flag)
        return None if text is None or text in ("auto", "-1") else size(text)

    def share(self, flag: str) -> float | None:
        text = self.text(flag)
        return None if text is None else float(text)


def read(argv: Sequence[str], facts: EngineFacts) -> Words:
    """The words behind `vllm serve`; FlagsRefused where the engine would not start with them."""
    line = parse_argv(argv, facts.flags, {})
    _parsed(line, facts)
    values: dict[str, tuple[str, ...]] = {}
    switches: dict[str, bool] = {}
    for given in line.given:
        if given.path is not None:
            continue
        if given.flag.kind is FlagKind.BOOL:
            switches[given.flag.name] = given.on
        else:
            values[given.flag.name] = given.words
    model = values.get("--model", (None,))[0] or next(iter(line.positionals), None)
    parts = frozenset(given.flag.name for given in line.given if given.path is not None)
    words = Words(model=model, values=values, on=switches, parts=parts)
    _checked(words, facts)
    return words


def _parsed(line: CommandLine, facts: EngineFacts) -> None:
    for unread in line.unread:
        spelling = unread.what.split()[0].partition("=")[0]
        if facts.flags.find(spelling) is not None:
            raise _usage(_misused(spelling, unread.what, facts))
        several = _candidates(spelling, facts) if spelling.startswith("--") else ()
        if len(several) > 1:
            raise _usage(f"ambiguous option: {spelling} could match {', '.join(several)}")
    if line.unread or len(line.positionals) > 1:
        words = [one.what for one in line.unread] + line.positionals[1:]
        raise _usage(f"unrecognized arguments: {' '.join(words)}")
    for given in line.given:
        for word in given.words if given.path is None else ():
            problem = _problem(given.flag, word)
            if problem:
                raise _usage(f"argument {_spellings(given)}: {problem}")


def _candidates(spelling: str, facts: EngineFacts) -> Sequence[str]:
    """Every spelling that the word begins, as the parser lists them."""
    word = spelling.replace("_", "-")
    listed = (name for flag in facts.flags.values() for name in (flag.name, *flag.also))
    return sorted(name for name in listed if name.startswith(word))


def _misused(spelling: str, what: str, facts: EngineFacts) -> str:
    found = facts.flags.find(spelling)
    name = found.flag.name if found else spelling
    if "=" in what:
        return f"argument {name}: ignored explicit argument {what.partition('=')[2]!r}"
    return f"argument {name}: expected one argument"


def _spellings(given: Given) -> str:
    return "/".join((given.flag.name, *given.flag.also))


def _problem(flag: Flag, word: str) -> str | None:
    """What the parser says to a value."""
    kinds: Mapping[FlagKind, tuple[str, Callable[[str], object]]] = {
        FlagKind.INT: ("int", int),
        FlagKind.FLOAT: ("float", float),
        FlagKind.SIZE: ("human_readable_int", size),
        FlagKind.SIZE_OR_AUTO: ("human_readable_int_or_auto", _size_or_auto),
        FlagKind.JSON: ("loads", json.loads),
    }
    if flag.kind in kinds and not (flag.nullable and word.lower() == "none"):
        name, read_as = kinds[flag.kind]
        try:
            read_as(word)
        except (ValueError, BadValueError):
            return f"invalid {name} value: {word!r}"
    if flag.choices and word not in flag.choices:
        return f"invalid choice: {word!r} (choose from {', '.join(map(repr, flag.choices))})"
    return None


def _size_or_auto(word: str) -> int:
    return -1 if word in ("auto", "-1") else size(word)


def _usage(message: str) -> FlagsRefused:
    return FlagsRefused(f"{USAGE}vllm serve: error: {message}\n", PARSER)


def _checked(words: Words, facts: EngineFacts) -> None:
    """What argparse takes and the configuration does not."""
    problems = list(_problems(words, facts))
    if problems:
        many = "s" if len(problems) > 1 else ""
        said = "".join(f"{problem}\n" for problem in problems)
        raise FlagsRefused(
            f"pydantic_core._pydantic_core.ValidationError: {len(problems)} validation error{many} for VllmConfig\n{said}",
            CONFIGURATION,
        )


def _problems(words: Words, facts: EngineFacts) -> Iterator[str]:
    share = words.share("--gpu-memory-utilization")
    if share is not None and not 0 < share <= 1:
        kind, bound = (
            ("less_than_equal", "less than or equal to 1")
            if share > 1
            else ("greater_than", "greater than 0")
        )
        yield f"gpu_memory_utilization\n  Input should be {bound} [type={kind}, input_value={share:g}, input_type=float]"
    for flag in (
        "--max-num-seqs",
        "--max-num-batched-tokens",
        "--tensor-parallel-size",
        "--pipeline-parallel-size",
    ):
        value = words.number(flag)
        if value is not None and value < 1:
            kind = f"[type=greater_than_equal, input_value={value}, input_type=int]"
            yield f"{facts.flags[flag].dest}\n  Input should be greater than or equal to 1 {kind}"
    for name, given in words.values.items():
        allowed = facts.flags[name].values
        for word in given:
            if allowed and word not in allowed and word.lower() != "none":
                yield f"  Value error, Unknown {facts.flags[name].dest}: {word}. Must be one of {sorted(allowed)}"
    sequences, tokens = words.number("--max-num-seqs"), words.number("--max-num-batched-tokens")
    if sequences and tokens and tokens < sequences:
        yield (
            f"  Value error, max_num_batched_tokens ({tokens}) must be greater than or equal to "
            f"max_num_seqs ({sequences})."
        )
    active = words.number("--max-num-active-seqs")
    if sequences and active and active > sequences:
        yield (
            f"  Value error, max_num_active_seqs ({active}) must be less than or equal to "
            f"max_num_seqs ({sequences})."
        )
    if words.on.get("--enable-auto-tool-choice") and not words.text("--tool-call-parser"):
        yield "TypeError: Error: --enable-auto-tool-choice requires --tool-call-parser"
