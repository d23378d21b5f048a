"""Reads the fleet from exactly one of four sources: a snapshot, a list of nodes, a cluster, or a line of text. Each becomes a `Snapshot`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Final, TypeVar, cast

import click

from plimsoll import names
from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import SpecError
from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.inputs import read_text
from plimsoll.cli.reaching import CURRENT, reaching
from plimsoll.facts.learned import NOTHING, Learned, import_learned, merged
from plimsoll.facts.learned_rows import LearnedError
from plimsoll.facts.snapshot import Snapshot, read_snapshot, take_snapshot

Command = TypeVar("Command", bound=Callable[..., Any])

NODE_GPUS: Final = 8
"""GPUs of a node where `--fleet` does not give their number."""
MOST_NODES: Final = 99_999
MOST_GPUS: Final = 999_999
_PART: Final = re.compile(r"^(?:(?P<nodes>[0-9]+)x)?(?P<gpus>[0-9]+)x(?P<product>[^x,][^,]*)$")
_NEARLY: Final = re.compile(
    r"^(?:(?P<before>[0-9]{1,6})[x:*]?)?(?P<product>[A-Za-z]+[0-9][^,:*]*?)(?:[x:*](?P<after>[0-9]{1,6}))?$"
)
"""A pool in other spellings, as 8H100, H100:8, H100x8, or the product alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChoice:
    """The source that the options named; `snapshot` reads it."""

    snapshot_file: str | None
    nodes_file: str | None
    context: str | None
    fleet: str | None

    def snapshot(self, config: OperatorConfig | None) -> Snapshot:
        """The fleet, with the admin's config of `--config` where that was given, else with its own."""
        found = self._found()
        if config is None:
            return found
        classes = {one.name: one for one in (*found.config.node_classes, *config.node_classes)}
        return replace(found, config=config.model_copy(update={"node_classes": tuple(classes.values())}))

    def _found(self) -> Snapshot:
        given = [
            value
            for value in (self.snapshot_file, self.nodes_file, self.context, self.fleet)
            if value is not None
        ]
        if len(given) != 1:
            said = "no fleet is named" if not given else "more than one fleet is named"
            raise BadInput(
                f"{said}: give one of --snapshot FILE, --nodes FILE (kubectl get nodes -o yaml), "
                "--context [KUBECONTEXT], --fleet 8xH100,16xL4"
            )
        if self.context is not None:
            return from_cluster(self.context or None, None)
        if self.fleet is not None:
            return _of_line(self.fleet)
        name = self.snapshot_file or self.nodes_file or "-"
        return _read(read_text(name), "stdin" if name == "-" else name)


def fleet_options(command: Command) -> Command:
    """Adds the four options that name a fleet. The command gets the choice as its parameter `fleet`."""

    @wraps(command)
    def chosen(
        *,
        snapshot_file: str | None,
        nodes_file: str | None,
        context: str | None,
        fleet: tuple[str, ...],
        **others: Any,
    ) -> Any:
        line = ",".join(fleet) if fleet else None
        choice = FleetChoice(snapshot_file=snapshot_file, nodes_file=nodes_file, context=context, fleet=line)
        return command(fleet=choice, **others)

    asked = cast("Command", chosen)
    for option in (
        click.option(
            "--fleet",
            multiple=True,
            metavar="GPUS",
            help=f"A fleet in a line: 8xH100,16xL4 ({NODE_GPUS} a node), or 4x2xL40S: 4 nodes of 2. Given more than once: all of it.",
        ),
        click.option(
            "--context",
            is_flag=False,
            flag_value=CURRENT,
            metavar="[KUBECONTEXT]",
            help="A cluster, by its context; alone: the current one.",
        ),
        click.option(
            "--nodes",
            "nodes_file",
            type=click.Path(),
            metavar="FILE",
            help="What `kubectl get nodes -o yaml` printed.",
        ),
        click.option(
            "--snapshot",
            "snapshot_file",
            type=click.Path(),
            metavar="FILE",
            help="What `plimsoll snapshot` wrote, or a fleet file.",
        ),
    ):
        asked = option(asked)
    return asked


def _of_line(text: str) -> Snapshot:
    document = json.dumps(fleet_document(text))
    try:
        return read_snapshot(document)
    except SpecError as error:  # its problems name fields of a file that does not exist
        raise BadInput(*dict.fromkeys(f"--fleet: {problem.message}" for problem in error.problems)) from None


def fleet_document(text: str) -> dict[str, object]:
    """A line such as 8xH100,4x2xL40S as the document of a fleet file."""
    pools: list[dict[str, object]] = []
    wrong = []
    for part in text.split(","):
        match = _PART.match(part.strip())
        if match is None or 0 in (int(match["gpus"]), int(match["nodes"] or 1)):
            wrong.append(f"--fleet: {part.strip()!r} is no pool; {_pool_meant(part.strip())}")
            continue
        if int(match["gpus"]) > MOST_GPUS or int(match["nodes"] or 0) > MOST_NODES:
            most = f"at most {MOST_NODES:,} nodes and at most {MOST_GPUS:,} GPUs"
            wrong.append(f"--fleet: {part.strip()!r} is more than a pool may hold, {most}")
            continue
        gpus, product = int(match["gpus"]), match["product"].strip()
        if match["nodes"] is not None:
            shapes = [(int(match["nodes"]), gpus)]
        else:
            shapes = [(gpus // NODE_GPUS, NODE_GPUS), (1, gpus % NODE_GPUS)]
        pools += [
            {"name": f"pool-{len(pools) + place}", "gpuProduct": product, "gpusPerNode": size, "nodes": nodes}
            for place, (nodes, size) in enumerate((s for s in shapes if s[0] and s[1]), start=1)
        ]
    if wrong:
        raise BadInput(*wrong)
    return {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": pools}


def _pool_meant(part: str) -> str:
    """How a pool in another spelling is written here."""
    form = "write GPUSxPRODUCT or NODESxGPUSxPRODUCT, as 16xH100 or 4x2xL40S"
    nearly = _NEARLY.match("".join(part.split()))
    if nearly is None:
        return form
    number = nearly["before"] or nearly["after"]
    if number and not int(number):
        return f"it has none; {form}"
    meant = " or ".join(f"{gpus}x{nearly['product']}" for gpus in ([number] if number else [1, NODE_GPUS]))
    return f"did you mean {meant}? ({form})"


def from_cluster(context: str | None, config: OperatorConfig | None) -> Snapshot:
    """Reads everything of a cluster that a plan needs."""
    from plimsoll.kube.reader import read_cluster  # noqa: PLC0415 - the client loads for a second

    with reaching(context):
        cluster = read_cluster(context)
    note(cluster.notes)
    kept = cluster.kept
    learned = merged(_learned(names.LEARNED, kept.learned), _learned(names.LEARNED_SEED, kept.seed))
    return take_snapshot(
        cluster.nodes,
        cluster.pods,
        slices=cluster.slices,
        claims=cluster.claims,
        config=config,
        learned=learned,
        deployments=cluster.deployments,
        plans=kept.plans,
        sets=cluster.sets,
        beside=kept.beside,
        served=cluster.served,
    )


def _learned(name: str, text: str | None) -> Learned:
    try:
        return import_learned(text) if text else NOTHING
    except LearnedError as error:
        note([f"ConfigMap {name} cannot be read and counts as empty: {error}"])
        return NOTHING


def _read(text: str | bytes, name: str) -> Snapshot:
    try:
        return read_snapshot(text)
    except SpecError as error:
        raise BadInput(*(f"{name}: {problem}" for problem in error.problems)) from None
