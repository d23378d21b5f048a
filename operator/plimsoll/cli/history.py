"""`plimsoll history`: shows what was decided on live traffic for a deployment, when and why, from what the operator keeps of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import click
from rich.console import RenderableType

from plimsoll import names
from plimsoll.api.base import DNS_LABEL
from plimsoll.cli.drawing import facts, show, table
from plimsoll.cli.errors import BadInput, note, printable
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.reaching import context_option, namespace_option, reaching
from plimsoll.control.record import Act, Record
from plimsoll.reconcile.kept import CONTROL_KEY, Kept
from plimsoll.status.live import retunes_of, step_of, timestamp


@click.command("history")
@click.argument("name")
@namespace_option("Only this namespace. Default: all of them.")
@context_option
@output_option
def history_command(*, name: str, namespace: str | None, context: str, output: str) -> None:
    """Decisions on live traffic for the LLMDeployment NAME, newest first: replicas and settings, each with its reason.

    From what the operator keeps beside the pinned plan: the last 50, and the last 25 about
    settings in any case. Needs the right to list ConfigMaps.

    \b
    Examples:
      plimsoll history chat -n team-a
      kubectl plimsoll history chat -o json
    """
    if len(name) > names.LABEL_MAX or not re.fullmatch(DNS_LABEL, name):
        raise BadInput(
            f"NAME: {name!r} is no name of an {names.KIND}, which is up to {names.LABEL_MAX} small letters, digits and '-'; "
            "its namespace is named by -n NAMESPACE"
        )
    from plimsoll.kube.remembered import read_kept  # noqa: PLC0415 - the client loads for a second

    with reaching(context):
        found = read_kept(context or None, namespace, name)
    if not found:
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        raise BadInput(f"NAME: no plan of an {names.KIND} {name!r} is kept {where}")
    records = {key: Kept.from_data(data).control for key, data in found.items()}
    torn = [key for key, record in records.items() if record is None and found[key].get(CONTROL_KEY)]
    said = [f"{key}: what was decided is kept there, and this release cannot read it" for key in torn]
    if len(torn) == len(records):
        raise BadInput("; ".join(said))
    note(said)
    for key in torn:
        del records[key]
    if output == "text":
        for key, record in records.items():
            show(_parts(key, record))
    else:
        print_data({key: _data(record) for key, record in records.items()}, output)


def _parts(key: str, record: Record | None) -> Iterator[RenderableType]:
    if record is None:
        click.echo(f"{key}: nothing was decided on live traffic yet")
        return
    click.echo(key)
    step = record.retune.step
    now = []
    if record.replicas is not None:
        now.append(("replicas", str(record.replicas)))
    if step is not None:
        what = f"{step.setting} on {record.about}" if record.about else step.setting
        now.append(("retune", printable(f"{what} {step.before} to {step.after}, {step.phase.value}")))
    if record.retune.paused_at is not None:
        since = timestamp(record.retune.paused_at)
        cure = f"a new value of the annotation {names.ANNOTATION_RESET} lets it try again"
        now.append(("paused", f"since {since}: retunes failed repeatedly; {cure}"))
    if now:
        yield facts(now)
    if not record.acts:
        click.echo("  nothing was decided on live traffic yet")
        return
    rows = [
        (
            timestamp(act.at),
            printable(act.what),
            printable(f"{act.before} → {act.after}"),
            act.reason,
            printable(act.message),
        )
        for act in record.acts
    ]
    yield table(("when", "what", "change", "reason", "why"), rows, left=(0, 1, 2, 3, 4), fold=4)


def _data(record: Record | None) -> dict[str, Any]:
    if record is None:
        return {"replicas": None, "pausedAt": None, "decisions": [], "retune": None, "retunes": []}
    step, paused_at = record.retune.step, record.retune.paused_at
    return {
        "replicas": record.replicas,
        "pausedAt": None if paused_at is None else timestamp(paused_at),
        "decisions": [_act(act) for act in record.acts],
        "retune": None if step is None else step_of(step).to_dict(),
        "retunes": [one.to_dict() for one in retunes_of(record.retune)],
    }


def _act(act: Act) -> dict[str, str]:
    return {
        "at": timestamp(act.at),
        "what": act.what,
        "before": act.before,
        "after": act.after,
        "reason": act.reason,
        "message": act.message,
    }
