"""The command line: `serve` for a container, and what a person or a facts pod asks."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from plimsoll_runtime import VERSION
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.group import Members, place_of
from plimsoll_runtime.model import ModelUnreadable, model_of
from plimsoll_runtime.model import told as describe
from plimsoll_runtime.nvml import devices
from plimsoll_runtime.preflight import Need, PlanUnreadable, need_of, see, settled, with_argv
from plimsoll_runtime.said import Said
from plimsoll_runtime.side import Side
from plimsoll_runtime.supervisor import Options, Supervisor
from plimsoll_runtime.words import leave, tell

TERMINATION_LOG = "/dev/termination-log"
MEMORY_SECONDS = 20.0
"""Until the driver has taken back what an engine before this one had."""


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    own, argv = _cut(words)
    told = _parser().parse_args(own)
    if told.command == "serve":
        if not argv:
            tell("serve: the engine's words are missing; they follow `--`")
            return 2
        return _serve(told, tuple(argv), environment)
    if told.command == "facts":
        return _facts(told)
    return 2


def _cut(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Ours, and after the first `--` the engine's."""
    if "--" not in words:
        return list(words), []
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="plimsoll-runtime", description="Starts an engine and says how it fares.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the engine whose words follow `--`", allow_abbrev=False)
    facts = commands.add_parser("facts", help="say what a model is, within 4 KiB", allow_abbrev=False)
    facts.add_argument("folder", type=Path, help="where its config.json and safetensors files are")
    for command in (serve, facts):
        command.add_argument(
            "--termination-log",
            type=Path,
            default=Path(TERMINATION_LOG),
            help="what is left for the kubelet: the reason of a failure, or a model's facts",
        )
    serve.add_argument("--port", type=int, default=8079, help="where /facts and /metrics are (default 8079)")
    serve.add_argument(
        "--leader-port", type=int, help="the same of the leader of a group, where it is not --port"
    )
    serve.add_argument(
        "--port-file", type=Path, help="write the port there, which is chosen freely for --port 0"
    )
    serve.add_argument(
        "--plan", type=Path, help="a JSON file that says what the plan counts on: GPUs, memory, disks"
    )
    serve.add_argument(
        "--grace",
        type=float,
        default=20.0,
        help="seconds that running answers get once all is to end (default 20); the engine gets up to 10 more to end",
    )
    serve.add_argument(
        "--hang-seconds",
        type=float,
        default=600.0,
        help="requests run and no token moves for so long: the engine is ended (default 600; 0 never)",
    )
    return parser


def _facts(told: argparse.Namespace) -> int:
    try:
        text = describe(model_of(told.folder))
    except ModelUnreadable as unreadable:
        tell(f"{unreadable.failure.word}: {unreadable.failure.message}")
        leave(told.termination_log, unreadable.failure)
        return 1
    told.termination_log.write_text(text, encoding="ascii")
    return 0


def _serve(told: argparse.Namespace, argv: tuple[str, ...], environment: Mapping[str, str]) -> int:
    said = Said(argv, time.monotonic())
    place = place_of(argv, told.leader_port or told.port)
    members = Members(place.size) if place is not None and place.leads else None
    options = Options(
        argv=argv,
        environment=environment,
        grace=told.grace,
        hang=told.hang_seconds,
        message=told.termination_log,
        place=place,
    )
    try:
        need = with_argv(_plan(told.plan), argv, environment)
    except (OSError, ValueError) as error:
        tell(f"--plan {told.plan}: {error}")
        return 2
    try:
        side = Side(said, told.port, members)
    except OSError as error:  # an engine that nobody can ask about is better than none
        tell(f"port {told.port} is not to be had ({error.strerror}): no facts will be told")
        return _run(options, said, members, need)
    if told.port_file is not None:
        told.port_file.write_text(f"{side.port}", encoding="ascii")
    try:
        return _run(options, said, members, need)
    finally:
        side.close()


def _run(options: Options, said: Said, members: Members | None, need: Need) -> int:
    """What does not fit is said before an engine is started that would find it out minutes later."""
    supervisor = Supervisor(options, said, members)
    supervisor.listen()
    found = _look(need, said, supervisor)
    return supervisor.refuse(found[0]) if found and not supervisor.told_to_end() else supervisor.run()


def _look(need: Need, said: Said, supervisor: Supervisor) -> list[Failure]:
    until = time.monotonic() + MEMORY_SECONDS

    def wait() -> bool:
        time.sleep(1.0)
        return time.monotonic() < until and not supervisor.told_to_end()

    seen, found = settled(need, lambda: see(need, devices()), wait)
    said.sees(seen.devices)
    return found


def _plan(file: Path | None) -> Need:
    if file is None:
        return Need()
    body = json.loads(file.read_text(encoding="utf-8"))
    if not isinstance(body, dict):
        raise PlanUnreadable("it must be a JSON object")
    return need_of(body)
