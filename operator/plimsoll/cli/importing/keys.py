"""Keys that a text names by a variable from a Secret: the fields that hold the Secret, so that what was protected stays so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from plimsoll.cli.importing.argv import Given
from plimsoll.cli.importing.draft import Draft
from plimsoll.cli.importing.environment import HUB_TOKENS, Environment, EnvValue, said_of, secret_field

KEYED: Final[Mapping[str, tuple[str, ...]]] = {
    "--api-key": ("VLLM_API_KEY",),
    "--hf-token": HUB_TOKENS,
}
"""Flags that hold a key, each with the variables that the engine reads where the flag is absent."""
_ALONE: Final = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::?-[^}]*)?\}|\$(\w+)")


def write_keys(draft: Draft, environment: Environment, remaining: dict[str, list[Given]]) -> Environment:
    """Write the Secrets behind flags and variables that hold a key; returns the variables that are still to be written."""
    left = dict(environment)
    carriers: dict[str, str] = {}
    for flag, variables in KEYED.items():
        path = secret_field(variables[0])
        written = _flag(draft, environment, remaining, flag, path)
        carriers |= dict.fromkeys(written, path)
        for name in variables:
            carrier = _carrier((environment.get(name) or EnvValue()).value or "", environment)
            if carrier is not None:
                left[name] = EnvValue(secret=environment[carrier].secret)
                carriers[carrier] = path
            if written and name in left and left[name].secret != environment[written[0]].secret:
                draft.lose(said_of(name, left.pop(name)), f"the engine takes {flag}, which is there too")
    for name, path in carriers.items():
        # It was there only to be named: whatever the engine reads by itself is written as it stands.
        if name in left and secret_field(name) == "" and name not in draft.facts.environment:
            draft.drop(said_of(name, left.pop(name)), f"spec.{path}")
    return left


def _flag(
    draft: Draft, environment: Environment, remaining: dict[str, list[Given]], flag: str, path: str
) -> list[str]:
    """Write the first Secret that a flag's words name; returns the variable that held it."""
    for given in remaining.get(flag, ()):
        carriers = [name for word in given.words if (name := _carrier(word, environment)) is not None]
        told = environment[carriers[0]].secret if carriers else None
        if told is None:
            continue
        del remaining[flag]
        draft.put(path, {"name": told[0], "key": told[1]}, f"{given.spelling} from Secret {told[0]}")
        if len(given.words) > 1:
            draft.lose(f"{given.what}, further ones", f"{path} names one key")
        return carriers[:1]
    return []


def _carrier(word: str, environment: Environment) -> str | None:
    """The variable from a Secret that a word consists of; None where it is or holds anything else."""
    match = _ALONE.fullmatch(word)
    name = next(filter(None, match.groups()), "") if match else ""
    told = environment.get(name)
    return name if told is not None and told.secret is not None else None
