"""`python -m cluster`: a cluster for a person at a prompt, or for a demonstration."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Final

import yaml

from cluster.api import Api, ApiError
from cluster.binaries import PINS, STORES, BinariesMissing, Places, ensure
from cluster.binaries.progress import Progress
from cluster.cluster import PROGRAMS
from cluster.estate import estate, snapshot_of
from cluster.fleet import LABEL, read_fleet, ready_fleets
from cluster.node import nodes as node
from cluster.node import packages
from cluster.processes import ClusterFailed, memory_mb
from cluster.standing import Standing, Wanted
from plimsoll.api.problems import SpecError
from plimsoll.facts.snapshot import write_snapshot

DOWN: Final = 1
"""Exit code of `status` when no cluster stands."""


def main(args: list[str]) -> int:
    chosen = _parser().parse_args(args)
    places = Places.of(os.environ)  # noqa: TID251 - this is the entry point
    progress = Progress(sys.stderr)
    standing = Standing(places.cache / "clusters" / getattr(chosen, "name", "default"))
    try:
        match chosen.command:
            case "up":
                return _up(standing, places, progress, _wanted(chosen))
            case "down":
                print("down" if standing.down() else "no cluster was up")
            case "status":
                return _status(standing)
            case "programs":
                _programs(places, progress, simulated=chosen.simulated)
            case "fleets":
                _fleets()
            case "logs":
                return _logs(standing, chosen.program)
            case "snapshot":
                return _snapshot(chosen.nodes, chosen.out)
            case "hold":
                Standing(chosen.folder).hold(_wanted(chosen))
    except (BinariesMissing, ClusterFailed, LookupError, SpecError, packages.Unavailable) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    named = argparse.ArgumentParser(add_help=False)
    named.add_argument(
        "--name", default="default", help="which, where several stand at once (default: default)"
    )
    parts = argparse.ArgumentParser(add_help=False)
    parts.add_argument("--fleet", help="a ready fleet by name, or a fleet file")
    parts.add_argument("--real-node", action="store_true", help="a node whose pods run (root)")
    parts.add_argument("--prometheus", action="store_true", help="a Prometheus that discovers pods")
    parts.add_argument("--operator", action="store_true", help="Plimsoll's operator, out of this repository")
    commands.add_parser(
        "up",
        parents=[named, parts],
        help="start a control plane with Plimsoll's CRD, and what else is asked for",
    )
    commands.add_parser("down", parents=[named], help="end it, and leave nothing")
    commands.add_parser("status", parents=[named], help="what runs, where, and how to reach it")
    programs = commands.add_parser("programs", help="find or build all programs, and say where they are")
    programs.add_argument(
        "--simulated", action="store_true", help="without those of real nodes and the servers of models"
    )
    commands.add_parser("fleets", help="list the ready fleets")
    logs = commands.add_parser("logs", parents=[named], help="print the log of a program")
    logs.add_argument("program", nargs="?", help="absent: list them")
    snapshot = commands.add_parser(
        "snapshot", help="write a mixed estate of any size as a snapshot, without a cluster"
    )
    snapshot.add_argument("--nodes", type=int, default=10_000, help="how many (default: 10000)")
    snapshot.add_argument("--out", type=Path, required=True, help="the file; .json is read faster")
    hold = commands.add_parser("hold", parents=[parts])  # what `up` starts in the background
    hold.add_argument("folder", type=Path)
    return parser


def _wanted(chosen: argparse.Namespace) -> Wanted:
    fleet: str | None = chosen.fleet
    if fleet is not None:
        read_fleet(fleet)  # a mistake in it is told before anything is started
        fleet = fleet if fleet in ready_fleets() else str(Path(fleet).absolute())
    return Wanted(
        fleet=fleet, real_node=chosen.real_node, prometheus=chosen.prometheus, operator=chosen.operator
    )


def _up(standing: Standing, places: Places, progress: Progress, wanted: Wanted) -> int:
    # Here, where progress is seen; the holder in the background finds it all done.
    programs = [*PROGRAMS]
    if wanted.fleet:
        programs.append("kwok")
    if wanted.prometheus:
        programs.append("prometheus")
    if wanted.real_node:
        packages.require_root()
        packages.require(packages.NODE, progress)
        programs += node.PROGRAMS
    ensure(programs, places, progress)
    if standing.read() is None:
        with progress.step(" ".join(("starting the cluster", *wanted.args()))):
            standing.up(wanted)
    else:
        standing.up(wanted)  # says so if it is another
    return _status(standing)


def _status(standing: Standing) -> int:
    about = standing.read()
    if about is None:
        print("starting" if standing.is_held() else "no cluster is up")
        return DOWN
    print(f"API server  {about['server']}")
    if "prometheus" in about:
        print(f"Prometheus  {about['prometheus']}")
    print(f"folder      {standing.cluster_folder}")
    total = 0
    for name, pid in about["pids"].items():
        memory = memory_mb(pid)
        total += memory or 0
        print(f"  {name:<24} pid {pid:<8} {'?' if memory is None else memory:>5} MB")
    print(f"  {'together':<37} {total:>5} MB")
    for fleet, states in _nodes(Path(about["kubeconfig"])).items():
        print(
            f"fleet {fleet or '(none)'}: " + ", ".join(f"{count} {state}" for state, count in states.items())
        )
    if standing.config.exists():
        print(f"plan with   plimsoll plan --context --config {standing.config}")
    print(f"export KUBECONFIG={about['kubeconfig']}")
    return 0


def _nodes(kubeconfig: Path) -> dict[str, Counter[str]]:
    """How many nodes of each fleet are ready."""
    content = yaml.safe_load(kubeconfig.read_text())
    (at,), (user,) = content["clusters"], content["users"]
    api = Api(
        server=at["cluster"]["server"],
        token=user["user"]["token"],
        ca=Path(at["cluster"]["certificate-authority"]),
    )
    found: dict[str, Counter[str]] = {}
    try:
        nodes = api.items("/api/v1/nodes")
    except ApiError as error:
        raise ClusterFailed(f"the API server answers {error}") from None
    for shown in nodes:
        conditions = {one["type"]: one["status"] for one in shown["status"].get("conditions") or ()}
        state = "nodes ready" if conditions.get("Ready") == "True" else "not ready"
        found.setdefault(shown["metadata"]["labels"].get(LABEL, ""), Counter())[state] += 1
    return dict(sorted(found.items()))


def _programs(places: Places, progress: Progress, *, simulated: bool) -> None:
    names = [name for name in PINS if not (simulated and name in (*node.PROGRAMS, *STORES))]
    for name, file in ensure(names, places, progress).items():
        print(f"{PINS[name]!s:<32} {file}")


def _fleets() -> None:
    for name, file in ready_fleets().items():
        fleet = read_fleet(name)
        about = file.read_text().partition("\n")[0].removeprefix("# ")
        print(f"{name:<14} {len(fleet.nodes):>5} nodes  {about}")


def _snapshot(nodes: int, out: Path) -> int:
    taken = snapshot_of(estate(nodes))
    out.write_text(write_snapshot(taken, "json" if out.suffix == ".json" else "yaml"))
    print(f"{out}: {len(taken.nodes)} nodes, {len(taken.pods or ())} pods of others")
    return 0


def _logs(standing: Standing, program: str | None) -> int:
    about = standing.read() or {}
    folders = [Path(folder) for folder in about.get("logs", [str(standing.cluster_folder / "logs")])]
    files = {file.stem: file for folder in folders for file in sorted(folder.glob("*.log"))}
    if standing.holder_log.exists():
        files["holder"] = standing.holder_log
    if program is None:
        print("\n".join(files) or "there are no logs; no cluster is up")
        return 0
    if program not in files:
        print(f"no log of {program}; there are {', '.join(files) or 'none'}", file=sys.stderr)
        return 1
    with files[program].open(errors="replace") as log:
        sys.stdout.writelines(log)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except BrokenPipeError:  # `... logs etcd | head`
        sys.exit(0)
