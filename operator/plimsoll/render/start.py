"""The one switch for how a container starts its engine: as it is, or through our supervisor.

No shell ever: a program and its words. Where one program has to run before another (a Ray cluster before the engine in it)
a few fixed lines of Python, which every engine image has, run the one and become the other. The supervisor is one file that
an init container brings; it is the program then, and the words that would have been follow.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from plimsoll.engines.command import EngineCommand

FIRST: Final = "--first"
THEN: Final = "--then"
SEQUENCE: Final = f"""\
import os, subprocess, sys
words, steps = sys.argv[1:], []
while words[0] == {FIRST!r}:
    count = int(words[1])
    steps.append(words[2 : 2 + count])
    words = words[2 + count :]
for step in steps:
    subprocess.run(step, check=True)
os.execvp(words[1], words[1:])
"""
PYTHON: Final = ("python3", "-I", "-S", "-c")
RUNTIME_FOLDER: Final = "/plimsoll"
RUNTIME_FILE: Final = "plimsoll_runtime.pyz"
RUNTIME_PORT: Final = 8079
RUNTIME_PORT_NAME: Final = "runtime"
SUPERVISOR: Final = ("python3", "-I", "-S", f"{RUNTIME_FOLDER}/{RUNTIME_FILE}")
PROGRAM_WORDS: Final = 2
"""`vllm serve`, `ray start`: what of a command line is the program, so that an image's own entry point does not matter."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    command: tuple[str, ...]
    args: tuple[str, ...]


def supervised(start: Start, drain_seconds: int, more: tuple[str, ...] = ()) -> Start:
    """The same through the supervisor, which gives running answers as long to end as was planned for them. `more` are words of its own."""
    how = ("serve", "--port", str(RUNTIME_PORT), "--grace", str(drain_seconds), *more, "--")
    return Start(command=SUPERVISOR, args=(*how, *start.command, *start.args))


def start_of(engine: EngineCommand) -> Start:
    literal = tuple(map(verbatim, engine.argv))
    program, rest = literal[:PROGRAM_WORDS], (*literal[PROGRAM_WORDS:], *engine.placed)
    if not engine.before:
        return Start(command=program, args=rest)
    steps = (word for step in engine.before for word in (FIRST, str(len(step)), *step))
    return Start(command=(*PYTHON, verbatim(SEQUENCE)), args=(*steps, THEN, *program, *rest))


def verbatim(text: str) -> str:
    """A text in which the kubelet, which expands $(NAME) in words, variables and probes, finds nothing to expand."""
    return text.replace("$", "$$")
