"""A systemd unit: ExecStart and Environment, with systemd's own quoting and continued lines."""

from __future__ import annotations

import re
import shlex

from plimsoll.cli.importing.draft import ImportProblem
from plimsoll.cli.importing.environment import EnvValue

_DIRECTIVES = {
    "Restart": "a Deployment restarts by itself",
    "User": "Plimsoll runs the engine without root",
    "Group": "Plimsoll runs the engine without root",
}


def read_unit(text: str) -> tuple[list[str], dict[str, EnvValue], list[tuple[str, str]]]:
    """The words of ExecStart, the variables, and what else the unit says."""
    start: str | None = None
    environment: dict[str, EnvValue] = {}
    lost: list[tuple[str, str]] = []
    section = ""
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        stripped = line.strip()
        if not stripped or stripped[0] in "#;":
            continue
        if stripped.startswith("["):
            section = stripped.strip("[]")
            continue
        key, _, value = (part.strip() for part in stripped.partition("="))
        if section != "Service":
            lost.append((f"{section}.{key}={value}", "a cluster starts pods by its own order"))
        elif key == "ExecStart":
            start = value.lstrip("-@:+!")
        elif key == "Environment":
            for word in _words(value, key):
                name, _, assigned = word.partition("=")
                environment[name] = EnvValue(value=assigned)
        elif key == "EnvironmentFile":
            lost.append((f"{key}={value}", "the file is not here; write its variables as Environment="))
        else:
            lost.append(
                (
                    f"{key}={value}",
                    _DIRECTIVES.get(key, "it is for systemd, and Plimsoll writes the pod by itself"),
                )
            )
    if start is None:
        raise ImportProblem(
            "the unit has no ExecStart in its [Service] section; that line holds the engine's command"
        )
    return (
        [word.replace("%%", "%").replace("$$", "$") for word in _words(start, "ExecStart")],
        environment,
        lost,
    )


def _words(value: str, key: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError as error:
        raise ImportProblem(f"{key}: broken quoting: {error}") from None
