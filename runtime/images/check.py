"""Reads the Dockerfiles beside it as a reviewer would: `python runtime/images/check.py` prints what is wrong and ends with 1.

Held to: bases by digest, or made here, wheels alone and by hash, nothing of Debian's that only its own programs read, a user without rights at the end, nothing piped from
the network into a shell, no secret in a layer, no package host's address, an entry point that no shell stands between.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parent
SECRET = re.compile(
    r"(?i)\b[\w-]*(token|password|passwd|secret|api_?key|credential)[\w-]*\s*=\s*['\"]?[^\s'\"$]"
)
PIPED = re.compile(r"\b(curl|wget)\b[^\n;&]*\|\s*(\S*/)?(ba|da|z)?sh\b")
APT = ("apt-get update", "--no-install-recommends", "rm -rf /var/lib/apt/lists/*")
"""What belongs to an installation in one and the same layer."""
BY_DIGEST = re.compile(r"@sha256:[0-9a-f]{64}$")
MADE_HERE = "localhost/"
"""Of a base that another Dockerfile beside it makes: no registry has given it a digest, and that one is held to the same."""
REFUSAL = 'case "${BASE}" in *@sha256:*) ;; *)'
"""How a Dockerfile whose BASE has no default ends a build that was handed one without a digest."""
ADDRESS = re.compile(r"https?://|--(extra-)?index-url|--find-links|--trusted-host")


class Instruction(NamedTuple):
    line: int
    word: str
    rest: str


def instructions(text: str) -> Iterator[Instruction]:
    """Continued lines are one; comments are none."""
    begun, parts = 0, []
    for number, raw in enumerate(text.splitlines(), start=1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        begun = begun or number
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            word, _, rest = " ".join(parts).partition(" ")
            yield Instruction(begun, word.upper(), rest.strip())
            begun, parts = 0, []


def problems(text: str) -> list[str]:
    found = list(instructions(text))
    arguments = {
        name: value for one in found if one.word == "ARG" for name, _, value in [one.rest.partition("=")]
    }
    return [*_bases(found, arguments), *_steps(found), *_end(found)]


def _bases(found: list[Instruction], arguments: dict[str, str]) -> Iterator[str]:
    stages: set[str] = set()
    refused = any(one.word == "RUN" and one.rest.startswith(REFUSAL) for one in found)
    for one in (each for each in found if each.word == "FROM"):
        name, _, stage = one.rest.partition(" AS ")
        base = re.sub(r"\$\{?(\w+)\}?", lambda match: arguments.get(match[1], ""), name.split()[-1])
        pinned = base in stages or base == "scratch" or base.startswith(MADE_HERE) or BY_DIGEST.search(base)
        handed_in = name == "${BASE}" and not base and refused
        if not pinned and not handed_in:
            yield f"line {one.line}: FROM {name}: name the base by digest, found {base or 'nothing'}"
        stages.add(stage.strip())


def _steps(found: list[Instruction]) -> Iterator[str]:
    for one in found:
        if PIPED.search(one.rest):
            yield f"line {one.line}: {one.word}: what comes from the network is piped into a shell"
        if one.word in ("ENV", "ARG", "RUN", "LABEL") and SECRET.search(one.rest):
            yield f"line {one.line}: {one.word}: a secret stays in the layer; hand it in by --mount=type=secret"
        if ADDRESS.search(one.rest):
            yield f"line {one.line}: {one.word}: an address of a package host; whoever builds names it in the secret pip"
        if one.word == "RUN" and "apt-get install" in one.rest:
            for needed in APT:
                if needed not in one.rest:
                    yield f"line {one.line}: RUN: apt-get install without {needed}"
        if one.word == "ADD":
            yield f"line {one.line}: ADD: use COPY, which neither fetches nor unpacks"
        for step in one.rest.split("&&") if one.word == "RUN" else ():
            if " pip install" in step and "--require-hashes" not in step and "${TORCH}" not in step:
                yield f"line {one.line}: RUN: pip install without --require-hashes"


def _end(found: list[Instruction]) -> Iterator[str]:
    last = {one.word: one for one in found}
    user = last["USER"].rest if "USER" in last else ""
    if not re.fullmatch(r"[1-9]\d*(:\d+)?", user):
        yield f"USER: the image must end as a user without rights, by number; found {user or 'none'}"
    entry = last.get("ENTRYPOINT")
    try:
        words = json.loads(entry.rest) if entry is not None else []
    except ValueError:
        words = []
    if not words:
        yield "ENTRYPOINT: a list of words, which no shell reads"


def main() -> int:
    bad = False
    for file in sorted(HERE.glob("*/Dockerfile")):
        for problem in problems(file.read_text(encoding="utf-8")):
            bad = True
            print(f"{file.parent.name}/Dockerfile: {problem}")  # noqa: T201 - a program of its own
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
