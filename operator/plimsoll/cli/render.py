"""`plimsoll render`: the objects that the operator would apply, without a cluster and byte for byte."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click
import yaml

from plimsoll import names
from plimsoll.api.defaults import effective
from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.cli import asking, inputs
from plimsoll.cli.errors import BadInput, note
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.facts.capabilities import Capabilities
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.snapshot import Snapshot
from plimsoll.objects import Manifest
from plimsoll.planning.plan import Plan, Severity
from plimsoll.render.revision import Revision, RevisionUnreadable
from plimsoll.render.routing import GROUPS, MONITOR, POOL, ROUTE, unserved
from plimsoll.render.whole import whole

APIS = {kind: (group, kind) for group, kind in (ROUTE, POOL, MONITOR, GROUPS)}
ALWAYS = (ROUTE, GROUPS)
"""Made where they are asked for; of the others a cluster decides, so they are named."""


@click.command("render")
@inputs.files_option
@fleet_options
@inputs.config_option
@click.option(
    "--api",
    "apis",
    multiple=True,
    type=click.Choice(sorted(APIS)),
    help="An optional API that the cluster serves; may be given more than once.",
)
@inputs.online_option
def render_command(
    *,
    files: tuple[str, ...],
    snapshot_file: str | None,
    nodes_file: str | None,
    context: str | None,
    fleet: str | None,
    config_file: str | None,
    apis: tuple[str, ...],
    online: bool,
) -> None:
    """Print the objects of one or several LLMDeployments as YAML.

    With a snapshot these are byte for byte what the operator applies there. Without the resource's uid (one that no
    cluster holds yet) objects name no owner. Exit code: 0 all are printed, 2 one does not fit, 3 something is wrong.

    \b
    Examples:
      plimsoll render -f llm.yaml --snapshot prod.yaml
      plimsoll render -f llm.yaml --fleet 8xH100 --api PodMonitor | kubectl diff -f -
    """
    choice = FleetChoice(snapshot_file=snapshot_file, nodes_file=nodes_file, context=context, fleet=fleet)
    question = asking.ask(files, choice, config_file, online=online)
    inventory = question.inventory()
    asking.tell_problems(inventory)
    plans = asking.answer(question, inventory)
    made = {(plan.namespace, plan.name): plan for plan in plans.plans}
    held = _identities(question.snapshot)
    capabilities: Capabilities = frozenset({*ALWAYS, *(APIS[kind] for kind in apis)})
    for deployment in question.deployments:
        plan = made[deployment.namespace, deployment.name]
        _tell(deployment, plan)
        known = deployment if deployment.metadata.uid else held.get((plan.namespace, plan.name), deployment)
        model = asking.facts_of(deployment, question).model
        objects = rendered(
            _with_identity(deployment, known),
            plan,
            model,
            snapshot=question.snapshot,
            capabilities=capabilities,
        )
        for one in objects:
            click.echo(text_of(one), nl=False)
    raise SystemExit(asking.exit_code(plans.plans))


def rendered(
    deployment: LLMDeployment,
    plan: Plan,
    model: ModelFacts | None,
    *,
    snapshot: Snapshot,
    capabilities: Capabilities,
) -> tuple[Manifest, ...]:
    """All objects of one resource; none where nothing can run."""
    if not plan.sets:
        return ()
    config, facts = snapshot.config, engine_facts(plan.engine, plan.engine_version)
    known = _revisions(snapshot, deployment)
    try:
        objects = whole(
            deployment,
            plan,
            facts=facts,
            config=config,
            model=model,
            capabilities=capabilities,
            known=known,
        )
    except SpecError as error:
        raise BadInput(
            *(f"{deployment.namespace}/{deployment.name}: {one}" for one in error.problems)
        ) from None
    spec = effective(deployment.spec, deployment.namespace, config).spec
    note(str(problem) for problem in unserved(spec, (), capabilities))
    return objects


def text_of(one: Manifest) -> str:
    """One document of a YAML stream."""
    text: str = yaml.dump(
        one.body, Dumper=_Dumper, sort_keys=False, width=110, allow_unicode=True, explicit_start=True
    )
    return text


class _Dumper(yaml.SafeDumper):
    """Every value written out where it stands: manifests with anchors are hard to read and to edit."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature is yaml's
        return True


def _tell(deployment: LLMDeployment, plan: Plan) -> None:
    name = f"{deployment.namespace}/{deployment.name}"
    worst = [one.message for one in plan.findings if one.severity is Severity.ERROR]
    if not plan.sets:
        note([f"{name}: nothing to render: {message}" for message in worst or [str(plan.outcome)]])


def _identities(snapshot: Snapshot) -> Mapping[tuple[str, str], LLMDeployment]:
    """The resources as the cluster holds them."""
    found = (LLMDeployment.observed(dict(body)) for body in snapshot.deployments)
    return {(one.namespace, one.name): one for one in found}


def _with_identity(deployment: LLMDeployment, held: LLMDeployment) -> LLMDeployment:
    metadata = deployment.metadata.model_copy(update={"uid": held.metadata.uid})
    return deployment.model_copy(update={"metadata": metadata})


def _revisions(snapshot: Snapshot, deployment: LLMDeployment) -> Mapping[str, Revision]:
    """The sets that serve already; they are not rendered anew."""
    found: dict[str, Revision] = {}
    for body in _of(snapshot.sets, deployment):
        try:
            revision = Revision.read(body)
        except RevisionUnreadable as error:
            note([f"{error}; it counts as absent"])
        else:
            found[revision.name] = revision
    return found


def _of(bodies: Iterable[Mapping[str, object]], deployment: LLMDeployment) -> Iterable[Mapping[str, object]]:
    for body in bodies:
        metadata = body.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("namespace") == deployment.namespace:
            labels = metadata.get("labels") or {}
            if isinstance(labels, Mapping) and labels.get(names.LABEL_DEPLOYMENT) == deployment.name:
                yield body
