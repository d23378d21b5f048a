"""`plimsoll doctor`: says what keeps deployments from serving, and the remedies. The checks are in `status.doctor`."""

from __future__ import annotations

import time
from dataclasses import replace
from difflib import get_close_matches

import click

from plimsoll import names
from plimsoll.cli import inputs
from plimsoll.cli.drawing import many
from plimsoll.cli.errors import DOES_NOT_FIT, FITS, BadInput, note, printable
from plimsoll.cli.output import output_option, print_data
from plimsoll.cli.reaching import context_option, namespace_option, reaching
from plimsoll.facts.examined import Examined
from plimsoll.status.doctor.cluster import BRINGS_CRD
from plimsoll.status.doctor.diagnosis import Diagnosis, diagnose
from plimsoll.status.doctor.found import Found, in_scope, name_of


@click.command("doctor")
@click.argument("name", required=False)
@namespace_option("Only this namespace. Default: all of them.")
@context_option
@inputs.config_option
@output_option
def doctor_command(
    *, name: str | None, namespace: str | None, context: str, config_file: str | None, output: str
) -> None:
    """Look at the cluster, its LLMDeployments and their pods, and say what is wrong and what cures it.

    With NAME only the deployments of that name; what is wrong with the cluster itself is said in any case. Reads only,
    with your own rights; what you may not read is named and left out.

    \b
    Examples:
      plimsoll doctor
      plimsoll doctor chat -n team-a
      kubectl plimsoll doctor -o json

    Exit codes: 0 nothing keeps anything from serving (there may be warnings), 2 something does, 3 it cannot be looked at:
    no cluster answers, it does not take your credentials, or you may list no LLMDeployments there.
    """
    from plimsoll.kube.examining import read_examined  # noqa: PLC0415 - the client loads for a second

    with reaching(context):
        examined = read_examined(context or None, namespace, time.time())
    if examined.blind("deployments"):
        raise _unlisted((examined.unseen or {})["deployments"], namespace)
    chosen = replace(_only(examined, name, namespace), config=inputs.config(config_file))
    diagnosis = diagnose(chosen)
    if output == "text":
        _print(diagnosis, chosen)
    else:
        print_data(diagnosis.to_dict(), output)
    raise SystemExit(DOES_NOT_FIT if diagnosis.errors else FITS)


def _unlisted(why: str, namespace: str | None) -> BadInput:
    """Without the deployments there is nothing to judge, and no clean bill."""
    cure = "list must be allowed" if namespace else "name a namespace that you may list: -n NAMESPACE"
    cures = {
        ": 403 ": cure,
        ": 404 ": f"the CRD is not there: {BRINGS_CRD}",
    }
    said = next((f"; {one}" for code, one in cures.items() if code in why), "")
    return BadInput(f"{names.KIND}s cannot be listed: {why}{said}")


def _only(examined: Examined, name: str | None, namespace: str | None) -> Examined:
    if name is None:
        if namespace and not examined.deployments:
            note([f"namespace {namespace} holds no {names.KIND}, if there is such a namespace at all"])
        return examined
    found = tuple(one for one in examined.deployments if name_of(one) == name)
    if not found:
        there = sorted({name_of(one) for one in examined.deployments})
        near = get_close_matches(name, there, n=1)
        where = f"in namespace {namespace}" if namespace else "in any namespace"
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(there) or 'none'}"
        raise BadInput(f"NAME: no {names.KIND} {name!r} {where}: {hint}")
    return replace(examined, deployments=found)


def _print(diagnosis: Diagnosis, examined: Examined) -> None:
    for one in diagnosis.found:
        _print_one(one)
    warnings = len(diagnosis.found) - diagnosis.errors
    looked = ", ".join(
        many(len(items), thing)
        for part, items, thing in (
            ("nodes", examined.nodes, "node"),
            ("deployments", examined.deployments, names.KIND),
            ("pods", tuple(in_scope(examined, examined.pods)), "serving pod"),
        )
        if not examined.blind(part)
    )
    if diagnosis.found:
        click.echo(f"{many(diagnosis.errors, 'error')}, {many(warnings, 'warning')} in {looked}")
    elif diagnosis.unseen:
        click.echo(f"nothing wrong was found in what could be seen: {looked}")
    else:
        click.echo(f"nothing is wrong with {looked}")
    note(f"not looked at: {one}" for one in diagnosis.unseen)


def _print_one(one: Found) -> None:
    mark = click.style(one.severity, bold=True)  # no colour: click knows nothing of NO_COLOR
    click.echo(f"{mark} {printable(one.about)}: {one.reason}")
    click.echo(f"  {printable(one.message)}")
    if one.remedy:
        click.echo(f"  cure: {printable(one.remedy)}")
    click.echo()
