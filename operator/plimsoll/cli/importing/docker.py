"""`docker run` (podman, nerdctl) and compose files: an image, its options, and the words its entrypoint gets."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from plimsoll.cli.importing.draft import ImportProblem, leaves
from plimsoll.cli.importing.environment import EnvValue
from plimsoll.cli.importing.shell import Found, commands_in, engine_in, find_engines, script_of
from plimsoll.cli.importing.sources import Mount

_PROGRAMS = frozenset({"docker", "podman", "nerdctl"})
_SWITCHES = frozenset(
    {
        "-d",
        "-i",
        "-t",
        "-it",
        "-ti",
        "-dit",
        "--detach",
        "--rm",
        "--init",
        "--privileged",
        "--interactive",
        "--tty",
    }
)
_WHY: Mapping[str, str] = {
    "--name": "metadata.name",
    "-p": "networking.service.port is the Service's port",
    "--publish": "networking.service.port is the Service's port",
    "-v": "spec.storage says where weights live; no folder of a host is mounted",
    "--volume": "spec.storage says where weights live; no folder of a host is mounted",
    "--mount": "spec.storage says where weights live; no folder of a host is mounted",
    "--shm-size": "Plimsoll sizes shared memory by the layout",
    "--ipc": "Plimsoll sizes shared memory by the layout",
    "--env-file": "the file is not here; write its variables with -e",
}


@dataclass(slots=True, kw_only=True)
class Container:
    """One container that runs an engine."""

    found: Found
    image: str | None = None
    name: str | None = None
    gpus: int | None = None
    mounts: tuple[Mount, ...] = ()
    lost: list[tuple[str, str]] = field(default_factory=list)


def is_run(words: Sequence[str]) -> bool:
    """Whether a simple command runs a container."""
    start = [word for word in words if word != "sudo"][:3]
    return bool(start) and start[0].rpartition("/")[2] in _PROGRAMS and "run" in start[1:3]


def read_run(words: Sequence[str]) -> Container:
    """A `docker run` command."""
    container = Container(found=Found(argv=[]))
    place = list(words).index("run") + 1
    entrypoint: list[str] = []
    while place < len(words) and words[place].startswith("-"):
        option, equals, value = words[place].partition("=")
        place += 1
        if option in _SWITCHES:
            continue
        if re.fullmatch(r"-[epvuwm].+", option):
            option, value, equals = option[:2], words[place - 1][2:], "="
        if not equals:
            value = words[place] if place < len(words) else ""
            place += 1
        if option in ("-e", "--env"):
            name, assigned, text = value.partition("=")
            container.found.environment[name] = (
                EnvValue(value=text) if assigned else EnvValue(other="the shell around it")
            )
        elif option == "--entrypoint":
            entrypoint = shlex.split(value)
        elif option == "--name":
            container.name = value
        elif option == "--gpus":
            container.gpus = _gpus(value)
            container.lost.append((f"--gpus {value}", "the layout says how many GPUs a replica takes"))
        else:
            container.lost.append(
                (f"{option} {value}", _WHY.get(option, "Plimsoll writes the pod by itself"))
            )
    if place >= len(words):
        raise ImportProblem(
            "`docker run` names no image; write the image and behind it the engine's arguments"
        )
    container.image = words[place]
    _read_words(container, entrypoint, list(words[place + 1 :]))
    return container


def read_compose(document: Mapping[str, Any]) -> list[Container]:
    """Every service of a compose file that runs an engine."""
    services = document.get("services")
    if not isinstance(services, Mapping):
        raise ImportProblem("services: a compose file maps names to services")
    containers: list[Container] = []
    others: list[tuple[str, str]] = []
    for name, service in services.items():
        if not isinstance(service, Mapping):
            raise ImportProblem(f"services.{name}: must be a map, and is {service!r}")
        entrypoint, command = _words(service.get("entrypoint")), _words(service.get("command"))
        if not _is_engine(str(service.get("image", "")), [*entrypoint, *command]):
            others.append((f"services.{name}", "it runs no vLLM"))
            continue
        containers.append(_service(str(name), service, entrypoint, command))
    if not containers:
        raise ImportProblem(
            "no service of the compose file runs vLLM (an image with vllm in its name, or `vllm serve`)"
        )
    others += [
        (key, "only services are read") for key in document if key not in ("services", "version", "name")
    ]
    containers[0].lost += others
    return containers


def _service(name: str, service: Mapping[str, Any], entrypoint: list[str], command: list[str]) -> Container:
    """One service of a compose file as a container."""
    container = Container(
        found=Found(argv=[]), image=service.get("image"), name=str(service.get("container_name") or name)
    )
    environment = service.get("environment") or {}
    if isinstance(environment, list):
        environment = dict(str(item).partition("=")[::2] for item in environment)
    if not isinstance(environment, Mapping):
        raise ImportProblem(f"services.{name}.environment: must be a map or a list, and is {environment!r}")
    for key, value in environment.items():
        container.found.environment[str(key)] = _compose_value(value)
    container.gpus = _reserved(service)
    read = ("image", "command", "entrypoint", "environment", "container_name")
    for key in service:
        if key not in read:
            for path, value in leaves(service[key], f"services.{name}.{key}"):
                container.lost.append((f"{path}: {value}", _compose_why(str(key))))
    _read_words(container, entrypoint, command)
    return container


def _compose_why(key: str) -> str:
    if key in ("volumes", "tmpfs"):
        return "spec.storage says where weights live; no folder of a host is mounted"
    if key in ("deploy", "runtime", "gpus", "devices"):
        return "the layout says how many GPUs a replica takes"
    if key in ("ports", "expose", "networks", "network_mode", "hostname"):
        return "networking.service.port is the Service's port"
    return "Plimsoll writes the pod by itself"


def _compose_value(value: Any) -> EnvValue:
    text = "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
    return (
        EnvValue(other="the shell around it")
        if text.startswith("$") or value is None
        else EnvValue(value=text)
    )


def _read_words(container: Container, entrypoint: list[str], words: list[str]) -> None:
    """The words that reach the engine: behind the image's own entrypoint, or behind one that is given."""
    known = container.found.environment
    all_words = [*entrypoint, *words]
    script = script_of(all_words)
    if script is not None:
        engines = find_engines(commands_in(script), known)
        if not engines:
            raise ImportProblem(f"the script {script!r} starts no vLLM")
        container.found = engines[0]
        return
    found = engine_in(all_words)
    if found is not None:
        found.environment = {**known, **found.environment}
        container.found = found
        return
    if all_words[:1] == ["serve"]:
        all_words = all_words[1:]
    container.found.argv = all_words


def _is_engine(image: str, words: list[str]) -> bool:
    return "vllm" in image or engine_in(words) is not None or "vllm serve" in " ".join(words)


def _words(value: Any) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        try:
            return shlex.split(re.sub(r"\\\n", " ", value))
        except ValueError as error:
            raise ImportProblem(f"broken quoting: {error} in {value!r}") from None
    if isinstance(value, list):
        return [str(word) for word in value]
    raise ImportProblem(f"a command is text or a list of words, not {value!r}")


def _gpus(value: str) -> int | None:
    text = value.strip("'\"")
    if text.isdigit():
        return int(text)
    match = re.fullmatch(r"device=([\w,:.-]+)", text)
    return len(match[1].split(",")) if match else None


def _reserved(service: Mapping[str, Any]) -> int | None:
    """GPUs that a compose service reserves."""
    value: Any = service
    for key in ("deploy", "resources", "reservations", "devices"):
        value = value.get(key) if isinstance(value, Mapping) else None
    for device in value if isinstance(value, list) else ():
        if isinstance(device, Mapping) and isinstance(device.get("count"), int):
            return int(device["count"])
        if isinstance(device, Mapping) and isinstance(device.get("device_ids"), list):
            return len(device["device_ids"])
    return None
