"""The command line: `serve` for a container, and what a person or a facts pod asks."""

from __future__ import annotations

import argparse
import json
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from plimsoll_runtime import VERSION, closing, listening
from plimsoll_runtime.adapter_source import fetching
from plimsoll_runtime.adapters import Adapters, Engine, key_of, max_rank_of
from plimsoll_runtime.address import address_of
from plimsoll_runtime.bringing import Words, bring, missing, wish_of
from plimsoll_runtime.failure import Failure, unforeseen
from plimsoll_runtime.group import UNANSWERED_SECONDS, Members, Place, place_of, place_told
from plimsoll_runtime.judging import Judgement
from plimsoll_runtime.lora_base import base_of
from plimsoll_runtime.nvml import devices
from plimsoll_runtime.preflight import Need, PlanUnreadable, need_of, see, settled, warnings, with_argv
from plimsoll_runtime.said import Said
from plimsoll_runtime.side import Side
from plimsoll_runtime.sources.trouble import FetchFailed, Stopped
from plimsoll_runtime.supervisor import Options, Supervisor
from plimsoll_runtime.told_model import leave_facts
from plimsoll_runtime.words import leave, tell

TERMINATION_LOG = "/dev/termination-log"
ADAPTERS = "/tmp/adapters"  # noqa: S108 - of a container, or of whoever tries it by hand
MISLED = 2
"""The exit code where our own arguments are wrong, as argparse has it."""
OWN_WORDS = (
    "write it anew, or let operator and supervisor be of one release (registry.runtimeImage of its config, and "
    "supervisor of engines.versions)"
)
MEMORY_SECONDS = 20.0
"""How long it is waited for the driver to free the memory of an earlier engine."""


def main(words: Sequence[str], environment: Mapping[str, str]) -> int:
    own, argv = _cut(words)
    try:
        told = _parser().parse_args(own)
    except _Misread as error:
        return _misread(own, str(error))
    if told.command == "serve":
        if not argv:
            tell("serve: the engine's words are missing; they follow `--`")
            return MISLED
        return _serve(told, tuple(argv), environment)
    if told.command == "facts":
        return leave_facts(told.source, told.revision, told.termination_log, environment)
    return MISLED


def _cut(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Our own arguments, and the engine's, which come after the first `--`."""
    if "--" not in words:
        return list(words), []
    place = list(words).index("--")
    return list(words[:place]), list(words[place + 1 :])


class _Misread(Exception):
    """Our own arguments cannot be read."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise _Misread(message)


def _misread(own: Sequence[str], why: str) -> int:
    """Reports arguments of our own that cannot be read, as an operator of another release may have written them. It is also told where pods
    show it, as nobody may read the log."""
    message = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    message.add_argument("--termination-log", type=Path, default=Path(TERMINATION_LOG))
    known, _ = message.parse_known_args(own)
    tell(f"{why} (plimsoll-runtime {VERSION}; --help lists what it knows)")
    if list(own[:1]) == ["serve"]:
        leave(known.termination_log, Failure("BadSetting", f"plimsoll-runtime {VERSION}: {why}", OWN_WORDS))
    return MISLED


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="plimsoll-runtime", description="Starts an engine and says how it fares.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    serve = commands.add_parser("serve", help="run the engine whose words follow `--`", allow_abbrev=False)
    facts = commands.add_parser("facts", help="say what a model is, within 4 KiB", allow_abbrev=False)
    facts.add_argument(
        "source", help="a folder with its config.json and safetensors files, or hf://, s3://, ..."
    )
    facts.add_argument("--revision", help="branch, tag or commit")
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
        "--member",
        nargs=3,
        metavar=("RANK", "SIZE", "LEADER"),
        help="which pod of a replica over several this is, where the engine's words do not say it (Ray)",
    )
    serve.add_argument(
        "--port-file", type=Path, help="write the port there, which is chosen freely for --port 0"
    )
    serve.add_argument(
        "--plan", metavar="JSON", help="what the plan counts on: GPUs, memory, disks; or a file that says it"
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
    serve.add_argument(
        "--fetch",
        action="append",
        type=wish_of,
        default=[],
        metavar="SOURCE[#REVISION]",
        help="a model that is brought first, or a tokenizer: hf://, s3://, oci:// or modelscope://; several may be given",
    )
    serve.add_argument(
        "--adapters",
        type=Path,
        help="a JSON file that lists LoRA adapters, which are kept loaded as it says for as long as the engine serves",
    )
    serve.add_argument(
        "--adapters-into",
        type=Path,
        default=Path(ADAPTERS),
        help=f"where adapters are fetched to (default {ADAPTERS})",
    )
    serve.add_argument(
        "--close-connections",
        action="store_true",
        help="have vLLM close the connection after each answer, so that a Service chooses a replica for each request",
    )
    return parser


def _serve(told: argparse.Namespace, argv: tuple[str, ...], environment: Mapping[str, str]) -> int:
    # What is looked at is judged by the words and variables that the pod has: those for the middleware and the address change nothing of it.
    told_argv, told_environment = listening.told(argv), environment
    if told.close_connections:
        told_argv, told_environment = closing.told(told_argv, environment)
    said = Said(told_argv, time.monotonic())
    options = Options(
        argv=told_argv,
        environment=told_environment,
        grace=told.grace,
        hang=told.hang_seconds,
        message=told.termination_log,
        wishes=tuple(told.fetch),
    )
    try:
        place = _place(told, argv)
    except ValueError as error:
        return _misled(options, said, f"--member {' '.join(told.member)}: {error}")
    try:
        need = with_argv(_plan(told.plan), argv, environment)
    except (OSError, ValueError) as error:
        return _misled(options, said, f"--plan {told.plan}: {error}")
    options = options._replace(place=place, unanswered=need.start_seconds or UNANSWERED_SECONDS)
    members = Members(place.size) if place is not None and place.leads else None
    kept = _adapters(told, argv, environment, said, members)
    try:
        side = Side(said, told.port, members)
    except OSError as error:  # an engine that nobody can ask about is better than none
        tell(f"port {told.port} is not to be had ({error.strerror}): no facts will be told")
        return _run(options, said, members, need, kept)
    if told.port_file is not None:
        told.port_file.write_text(f"{side.port}", encoding="ascii")
    try:
        return _run(options, said, members, need, kept)
    finally:
        side.close()


def _misled(options: Options, said: Said, why: str) -> int:
    """Ends for arguments of our own that cannot be read, and says so where pods show it, as nobody may read the log."""
    Supervisor(options, said).refuse(Failure("BadSetting", why, OWN_WORDS))
    return MISLED


def _place(told: argparse.Namespace, argv: Sequence[str]) -> Place | None:
    port = told.leader_port or told.port
    if told.member is None:
        return place_of(argv, port)
    rank, size, leader = told.member
    return place_told(int(rank), int(size), leader, port)


def _run(
    options: Options, said: Said, members: Members | None, need: Need, kept: Adapters | None = None
) -> int:
    """Runs the engine. What does not fit is found before that, as the engine would find it out only after minutes."""
    supervisor = Supervisor(options, said, members)
    supervisor.listen()
    found = _look(need, options.environment, said, supervisor)
    if found and not supervisor.told_to_end():
        return supervisor.refuse(found[0])
    if not supervisor.finds_leader():
        return 0 if said.failure is None else 1
    try:
        supervisor.options = _with_model(options, said, supervisor)
    except FetchFailed as error:
        return supervisor.refuse(error.failure)
    except Stopped:
        return 0
    except Exception as error:  # noqa: BLE001 - a pod that ends says why
        return supervisor.refuse(unforeseen(error, "bringing the model"))
    if kept is not None:
        words = supervisor.options
        kept.base = lambda: base_of(words.argv, words.environment)
        kept.start()
    try:
        return supervisor.run()
    finally:
        if kept is not None:
            kept.end()


def _with_model(options: Options, said: Said, supervisor: Supervisor) -> Options:
    """The options with the engine's arguments as they are once the model is here."""
    lacking = missing(options.argv)
    if lacking is not None:
        raise FetchFailed(lacking)
    if not options.wishes:
        return options
    said.begins_to_fetch(time.monotonic())
    judgement = Judgement(options.argv, options.environment)

    def stopped() -> bool:
        return supervisor.told_to_end() or judgement.refused()

    try:
        words = bring(options.wishes, Words(options.argv, options.environment), said, stopped)
    except Stopped:
        if judgement.refusal is None or supervisor.told_to_end():
            raise
    finally:
        judgement.end()
    if judgement.refusal is not None:
        raise FetchFailed(judgement.refusal)
    return options._replace(argv=words.argv, environment=words.environment)


def _adapters(
    told: argparse.Namespace,
    argv: tuple[str, ...],
    environment: Mapping[str, str],
    said: Said,
    members: Members | None,
) -> Adapters | None:
    if told.adapters is None:
        return None
    address, ended = address_of(argv), threading.Event()
    return Adapters(
        told.adapters,
        told.adapters_into,
        None if address is None else Engine(address, key_of(argv, environment)),
        said,
        fetch=fetching(environment, ended.is_set),
        max_rank=max_rank_of(argv),
        lacking=None if members is None else members.lacking,
        ended=ended,
        environment=environment,
    )


def _look(need: Need, environment: Mapping[str, str], said: Said, supervisor: Supervisor) -> list[Failure]:
    until = time.monotonic() + MEMORY_SECONDS

    def wait() -> bool:
        time.sleep(1.0)
        return time.monotonic() < until and not supervisor.told_to_end()

    try:
        seen, found = settled(need, lambda: see(need, devices(environment)), wait)
    except Exception as error:  # noqa: BLE001 - what cannot be seen from here is left to the engine
        tell(unforeseen(error, "the look at this machine").message)
        return []
    warned = warnings(need, seen)
    for warning in warned:
        tell(f"{warning.word}: {warning.message}. Remedy: {warning.remedy}")
    said.sees(seen.devices, warned)
    return found


def _plan(said: str | None) -> Need:
    if said is None:
        return Need()
    body = json.loads(said if said.startswith("{") else Path(said).read_text(encoding="utf-8"))
    if not isinstance(body, dict):
        raise PlanUnreadable("it must be a JSON object")
    return need_of(body)
