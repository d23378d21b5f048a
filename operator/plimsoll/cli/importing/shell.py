"""Shell text taken apart into simple commands, and the engine's command found among them.

Understood are quoting, continued lines, assignments and exports before the command, and the usual wrappers (sudo, exec,
nohup, env, uv run, bash -c). A pipeline of programs is refused, for only one of them is the engine; copies of the
output (redirections, tee) are left out and said.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from plimsoll.cli.importing.draft import ImportProblem
from plimsoll.cli.importing.environment import EnvValue

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_WRAPPERS = frozenset(
    {"sudo", "exec", "nohup", "env", "time", "uvx", "command", "nice", "stdbuf", "-E", "-oL", "-eL", "--"}
)
_MODULES = {
    "vllm.entrypoints.openai.api_server": "vllm",
    "vllm.entrypoints.api_server": "vllm",
    "vllm.entrypoints.cli.main": "cli",
    "vllm": "cli",
    "dynamo.vllm": "dynamo",
    "huggingfaceserver": "kserve",
}
_SHELLS = frozenset({"sh", "bash", "dash", "zsh"})


UNREAD: Final = "only the engine's own command is read"


@dataclass(slots=True, kw_only=True)
class Found:
    """An engine's command: the words behind `vllm serve`, and what was set before it."""

    argv: list[str]
    environment: dict[str, EnvValue] = field(default_factory=dict)
    lost: list[tuple[str, str]] = field(default_factory=list)
    dialect: str = "vllm"


def commands_in(text: str) -> list[list[str]]:
    """The simple commands of a text, as words; raises ImportProblem for broken quoting and for pipelines."""
    joined = re.sub(r"\\[ \t]*\r?\n", " ", text.replace("\r\n", "\n"))
    lines = [line for line in joined.split("\n") if not line.lstrip().startswith("#")]
    lexer = shlex.shlex(
        "\n".join(re.sub(r"^\s*[$%]\s+", "", line) for line in lines), posix=True, punctuation_chars=";<>|&\n"
    )
    lexer.whitespace = " \t\r"
    lexer.whitespace_split = True
    lexer.commenters = ""
    try:
        tokens = list(lexer)
    except ValueError as error:
        raise ImportProblem(
            f"broken quoting: {error}; close every ' and \" and end no line with a lone \\"
        ) from None
    return [command for command in _split(tokens) if command]


def _split(tokens: Sequence[str]) -> list[list[str]]:
    commands: list[list[str]] = [[]]
    copies: list[list[str]] = []
    place = 0
    while place < len(tokens):
        token = tokens[place]
        place += 1
        if token.strip(";&\n") == "" and token:
            commands.append([])
        elif re.fullmatch(r"&?>+[&|]?", token):
            stream = commands[-1].pop() if commands[-1] and commands[-1][-1] in ("1", "2") else ""
            copies.append([stream + token + "".join(tokens[place : place + 1])])
            place += 1
        elif token in ("|", "|&") and tokens[place : place + 1] == ["tee"]:
            copies.append([])
            while place < len(tokens) and tokens[place].strip(";&\n"):
                copies[-1].append(tokens[place])
                place += 1
        elif token and set(token) <= set("|<>&;\n"):
            raise ImportProblem(
                f"a pipeline or redirection ({token.strip()!r}): give the engine's command alone, as vllm serve MODEL ..."
            )
        else:
            commands[-1].append(token)
    return [*commands, *copies]


def engine_in(words: Sequence[str]) -> Found | None:
    """The engine's command in the words of one simple command, or None where it starts something else."""
    found = Found(argv=[])
    place = 0
    while place < len(words):
        word = words[place]
        if _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            found.environment[name] = EnvValue(value=value)
        elif word not in _WRAPPERS:
            break
        place += 1
    start = _start(words, place)
    if start is None:
        return None
    begin, after, found.dialect = start
    wrapper = [word for word in words[place:begin] if word not in _WRAPPERS]
    if wrapper and wrapper != ["uv", "run"]:
        found.lost.append((" ".join(wrapper), "the pod starts the engine without a wrapper"))
    found.argv = list(words[after:])
    return found


def _start(words: Sequence[str], place: int) -> tuple[int, int, str] | None:
    """Where the engine's command begins, where its own words begin, and whose words they are."""
    for at in range(place, len(words)):
        program = words[at].rpartition("/")[2]
        following = words[at + 1] if at + 1 < len(words) else ""
        if program == "vllm" and following == "serve":
            return at, at + 2, "vllm"
        if program.startswith("python") and following == "-m" and at + 2 < len(words):
            kind = _MODULES.get(words[at + 2])
            if kind == "cli":
                return (at, at + 4, "vllm") if words[at + 3 : at + 4] == ["serve"] else None
            return (at, at + 3, kind) if kind else None
        if program.startswith("python") and following.endswith("api_server.py"):
            return at, at + 2, "vllm"
    return None


def exports_in(words: Sequence[str]) -> dict[str, EnvValue]:
    """Variables that a command sets for those after it."""
    assigned = words[1:] if words[:1] in (["export"], ["set"]) else words
    if not assigned or not all(_ASSIGNMENT.match(word) for word in assigned):
        return {}
    return {name: EnvValue(value=value) for name, _, value in (word.partition("=") for word in assigned)}


def script_of(words: Sequence[str]) -> str | None:
    """The script of `bash -c SCRIPT`, or None."""
    program = words[0].rpartition("/")[2] if words else ""
    if program not in _SHELLS:
        return None
    for at, word in enumerate(words[1:], start=1):
        if re.fullmatch(r"-\w*c", word) and at + 1 < len(words):
            return words[at + 1]
        if not word.startswith("-"):
            return None
    return None


def find_engines(
    words_of_commands: Sequence[Sequence[str]], environment: dict[str, EnvValue] | None = None
) -> list[Found]:
    """Every engine that a script starts, with the variables set before it."""
    known = dict(environment or {})
    found: list[Found] = []
    left: list[tuple[str, str]] = []
    for words in words_of_commands:
        inner = script_of(words)
        if inner is not None:
            found += find_engines(commands_in(inner), known)
            continue
        engine = engine_in(words)
        if engine is not None:
            engine.environment = {**known, **engine.environment}
            engine.lost = [*left, *engine.lost]
            left = []
            found.append(engine)
            continue
        exported = exports_in(words)
        known |= exported
        if not exported:
            left.append((" ".join(words), UNREAD))
    if found:
        found[-1].lost += left
    return found
