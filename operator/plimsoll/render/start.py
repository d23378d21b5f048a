"""How a container starts its engine: directly, or through our supervisor.

A container starts a program with arguments, never a shell. Where one program has to run before another (a Ray cluster before the engine
in it), a few fixed lines of Python, which every engine image has, run the first and become the other. The supervisor is one file that an
init container brings; the container then starts it, with the engine's own command line as its last arguments.
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
"""How many words of a command line become the container's `command`, as in `vllm serve`, so that an image's own entry point does not
matter; the others become its `args`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    command: tuple[str, ...]
    args: tuple[str, ...]


def supervised(start: Start, drain_seconds: int, more: tuple[str, ...] = ()) -> Start:
    """The start of the same program under the supervisor, which gives running answers `drain_seconds` to end. `more` are further arguments
    of the supervisor."""
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
    """The text, escaped for the kubelet, which expands $(NAME) in commands, variables and probes."""
    return text.replace("$", "$$")
