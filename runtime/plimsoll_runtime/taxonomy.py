"""From an engine's last lines to a word, a sentence and a remedy. A function of lines, phase and exit code, by the table of `rules`."""

from __future__ import annotations

import re
import signal
from collections.abc import Mapping, Sequence

from plimsoll_runtime.failure import MOST_EVIDENCE, Failure, plain
from plimsoll_runtime.remedies import MORE_HOST_MEMORY
from plimsoll_runtime.rules import RULES
from plimsoll_runtime.rules.rule import SERVING, Rule

_ROOT = re.compile(
    r"^(?:\([^)]*\) )?(?:[A-Z]+ [\d: -]+\[[^]]*\] )?(?P<said>[\w.]*(?:Error|Exception|Interrupt): .+)"
)
_LOGGED = re.compile(
    r"^(?:\([^)]*\) )*(?:(?:INFO|WARNING|ERROR|CRITICAL) [\d: -]+\[[^]]*\] |/\S+\.py:\d+: \w*Warning: )?"
)
_FRAME = re.compile(r'File "[^"]+", line \d+, in ')
_QUOTED = re.compile(r" {4}(?!assert )")
"""Where a frame has no line to quote, what comes next is another frame or the error."""
_INPUT = re.compile(
    r"Input (?P<why>should be .+?) \[type=\w+, input_value=(?P<value>.+?)(?:, input_type=\w+)?\]$"
)
_SENDERS: Mapping[int, str] = {
    signal.SIGILL: "this CPU lacks an instruction that the image was built for: other nodes (spec.topology.nodeSelector), or"
    " another spec.engine.image",
    signal.SIGBUS: "a file that was mapped into memory had no room or was cut short: a larger volume at /dev/shm (spec.podPatches),"
    " and look at the volume of the weights",
    signal.SIGKILL: "nothing of the engine's own sends it: look for memory pressure on the node, and for who else kills there"
    " (kubectl describe pod and node, dmesg)",
}
"""What to look for where a process was killed by a signal that leaves no words."""
_VAGUE = re.compile(
    "Engine core initialization failed|EngineDeadError|leaked shared_memory|See root cause above"
)


def explained(lines: Sequence[str], phase: str, code: int, *, memory_kills: int = 0) -> Failure:
    """Why an engine ended that nobody asked to; `phase` is where its start was, or `serving`."""
    if memory_kills:
        return Failure(
            "HostOutOfMemory",
            "the kernel killed a process of this container, which was over its memory limit",
            MORE_HOST_MEMORY,
            _last_words(lines),
        )
    for those in _said_and_quoted(lines):
        for rule in RULES:
            if rule.phases is not None and phase not in rule.phases:
                continue
            for line in those:
                found = rule.pattern.search(line)
                if found is not None:
                    remedy = _remedy(found.groupdict().get("signal"), rule.remedy)
                    return Failure(rule.word, _message(rule, found, lines), remedy, _evidence(line, lines))
    how = f"was killed by signal {code - 128}" if code > 128 else f"ended with exit code {code}"
    where = "while it served" if phase == SERVING else f"in the phase {phase} of its start"
    errors = _errors(lines)
    said = f": {errors[-1]}" if errors else ""
    return Failure(
        "EngineEnded",
        f"the engine {how} {where}{said}",
        _remedy(code - 128, "kubectl logs --previous says why"),
        _last_words(lines),
    )


def _remedy(number: str | int | None, otherwise: str) -> str:
    return _SENDERS.get(int(number or 0), otherwise)


def _said_and_quoted(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """A traceback quotes the lines of the program that it passes; those tell only where nobody said anything. An assertion says
    nothing but its own line."""
    said: list[str] = []
    quoted: list[str] = []
    for before, line in zip(("", *lines), lines):
        is_quoted = _FRAME.search(before) is not None and _QUOTED.match(_LOGGED.sub("", line)) is not None
        (quoted if is_quoted else said).append(line)
    return said, quoted


def _message(rule: Rule, found: re.Match[str], lines: Sequence[str]) -> str:
    groups = {name: value or "" for name, value in found.groupdict().items()}
    line = said_in(found.string)
    words = {**groups, "line": line}
    words["what"] = groups.get("what") or (_refused_fields(lines) if groups.get("input") else "") or line
    words["fits"] = (
        _suffix("; {} tokens would fit", groups.get("fits")) if "length" in groups else groups.get("fits", "")
    )
    causes = _errors(lines)
    words["cause"] = f": {causes[-1]}" if causes else " without a word"
    words["wanted"] = _suffix(" (it asked for another {})", groups.get("wanted"))
    return plain(rule.message.format_map(words))


def _refused_fields(lines: Sequence[str]) -> str:
    """pydantic names each field in the line above what it says of it."""
    pairs = zip(map(said_in, lines), map(said_in, lines[1:]))
    found = [(field, refused) for field, said in pairs if (refused := _INPUT.match(said)) is not None]
    return "; ".join(f"{field} is {said['value']}: it {said['why']}" for field, said in found)


def _suffix(text: str, value: str | None) -> str:
    return text.format(value) if value else ""


def said_in(line: str) -> str:
    """Without who logged it where."""
    text = plain(_LOGGED.sub("", line))
    found = _ROOT.match(text)
    return found["said"] if found else text


def _evidence(line: str, lines: Sequence[str]) -> tuple[str, ...]:
    last = [one for one in _errors(lines) if one not in plain(line)]
    return (plain(line), *last[-(MOST_EVIDENCE - 1) :])


def _last_words(lines: Sequence[str]) -> tuple[str, ...]:
    """What reads like an error, else the very last lines."""
    return _errors(lines) or tuple(plain(line) for line in lines if line.strip())[-MOST_EVIDENCE:]


def _errors(lines: Sequence[str]) -> tuple[str, ...]:
    """The last few, each once."""
    errors = [said_in(line) for line in lines if _ROOT.match(plain(line)) and not _VAGUE.search(line)]
    return tuple(dict.fromkeys(errors))[-MOST_EVIDENCE:]
