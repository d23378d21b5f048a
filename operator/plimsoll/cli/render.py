"""`plimsoll render`: prints the objects that the operator would apply, byte for byte, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import click
import yaml

from plimsoll import __version__, names
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.cli import asking, inputs
from plimsoll.cli.errors import BAD_INPUT, note
from plimsoll.cli.fleets import FleetChoice, fleet_options
from plimsoll.facts.capabilities import Capabilities
from plimsoll.facts.snapshot import Snapshot
from plimsoll.objects import Manifest
from plimsoll.planning.plan import Outcome, Plan, Severity
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.token import mark_of
from plimsoll.render.gateway import Planned, litellm
from plimsoll.render.revision import Revision, RevisionUnreadable
from plimsoll.render.routing import LEADER_WORKER_SETS, MONITOR, POOL, ROUTE
from plimsoll.status.findings import sentence

APIS = {kind: (group, kind) for group, kind in (ROUTE, POOL, MONITOR, LEADER_WORKER_SETS)}
ALWAYS = (ROUTE, LEADER_WORKER_SETS)
"""Optional APIs that are taken to be served where there is no snapshot. Objects of them are only made where the resource asks for them; those
of other APIs are made wherever these are served, so they have to be named."""


@click.command("render", cls=inputs.OfFiles)
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
@click.option(
    "--gateway",
    type=click.Choice(["litellm"]),
    help="Instead of the objects: what this gateway must be told, lengths and rates from the plans.",
)
@inputs.online_option
def render_command(
    *,
    files: tuple[str, ...],
    fleet: FleetChoice,
    config_file: str | None,
    apis: tuple[str, ...],
    gateway: str | None,
    online: bool,
) -> None:
    """Print the objects of one or several LLMDeployments as YAML.

    With a snapshot these are byte for byte what the operator applies there. Without the resource's uid (one that no
    cluster holds yet) objects name no owner. Exit code: 0 all are printed, 2 one does not fit, 3 something is wrong.

    \b
    Examples:
      plimsoll render -f llm.yaml --snapshot prod.yaml
      plimsoll render -f llm.yaml --fleet 8xH100 --api PodMonitor | kubectl diff -f -
      plimsoll render -f llm.yaml --snapshot prod.yaml --gateway litellm > config.yaml
    """
    question = asking.ask(files, fleet, config_file, online=online)
    inventory = question.inventory()
    asking.tell_problems(inventory)
    plans = asking.answer(question, inventory)
    made = {(plan.namespace, plan.name): plan for plan in plans.plans}
    if gateway is not None:
        _print_gateway(question, made)
        raise SystemExit(asking.exit_code(plans.plans))
    held = _held(question.snapshot)
    served = question.snapshot.served
    capabilities: Capabilities = frozenset(
        {*(ALWAYS if served is None else served), *(APIS[kind] for kind in apis)}
    )
    for deployment in question.deployments:
        key = (deployment.namespace, deployment.name)
        kept = _kept(deployment, question)
        seen = Seen(
            deployment=_as_held(deployment, held.get(key)),
            inventory=inventory,
            facts=asking.facts_of(deployment, question),
            now=0.0,
            revisions=_revisions(question.snapshot, deployment),
            kept=kept,
            direction=_direction(deployment, kept),
            learned=question.snapshot.learned,
            config=question.snapshot.config,
            capabilities=capabilities,
            mark=mark_of(__version__, question.snapshot.config),
        )
        for one in rendered(seen, made[key]):
            click.echo(text_of(one), nl=False)
    raise SystemExit(asking.exit_code(plans.plans))


def _print_gateway(question: asking.Question, made: Mapping[tuple[str, str], Plan]) -> None:
    asked = [Planned(one, made[one.namespace, one.name]) for one in question.deployments]
    told, notes = litellm(asked, question.snapshot.config)
    for one in asked:
        if not one.plan.sets:
            _tell(one.plan)
    note(notes)
    click.echo(_yaml(told), nl=False)


def rendered(seen: Seen, plan: Plan) -> tuple[Manifest, ...]:
    """All objects of a resource; none where nothing can run. `plan` is what it gets together with the other resources in question."""
    if not plan.sets:
        _tell(plan)
        return ()
    decision = decide(seen)
    if decision.plan.digest != plan.digest and decision.plan.outcome is not Outcome.INVALID:
        # Planned alone it would get what others take.
        decision = decide(replace(seen, kept=replace(seen.kept, plan=plan)))
    if not decision.manifests:
        _tell(decision.plan)
        raise SystemExit(BAD_INPUT)
    note(map(str, decision.unserved))
    unsaid = dict.fromkeys(one for revision in decision.revisions.values() for one in revision.unsaid)
    note(f"the engine is not told {one}" for one in unsaid)
    return decision.manifests


def text_of(one: Manifest) -> str:
    """A manifest as a document of a YAML stream."""
    return _yaml(one.body, explicit_start=True)


def _yaml(body: object, *, explicit_start: bool = False) -> str:
    text: str = yaml.dump(
        body,
        Dumper=_Dumper,
        sort_keys=False,
        width=110,
        allow_unicode=True,
        explicit_start=explicit_start,
    )
    return text


class _Dumper(yaml.SafeDumper):
    """Writes every value in full, as manifests with anchors are hard to read and to edit."""

    def ignore_aliases(self, data: object) -> bool:  # noqa: ARG002 - the signature is yaml's
        return True


def _tell(plan: Plan) -> None:
    """Tells why there is nothing to print."""
    name = f"{plan.namespace}/{plan.name}"
    lines = [sentence(one) for one in plan.findings if one.severity is Severity.ERROR]
    note(f"{name}: nothing to render: {line}" for line in lines or [str(plan.outcome)])


def _held(snapshot: Snapshot) -> Mapping[tuple[str, str], LLMDeployment]:
    """The snapshot's resources as the cluster has them, by namespace and name."""
    found = (LLMDeployment.observed(dict(body)) for body in snapshot.deployments)
    return {(one.namespace, one.name): one for one in found}


def _as_held(deployment: LLMDeployment, held: LLMDeployment | None) -> LLMDeployment:
    """A resource of a file, with the identity of the object in the cluster that it would edit."""
    if held is None or deployment.metadata.uid is not None:
        return deployment
    known = {"uid": held.metadata.uid, "generation": held.metadata.generation}
    return deployment.model_copy(update={"metadata": deployment.metadata.model_copy(update=known)})


def _kept(deployment: LLMDeployment, question: asking.Question) -> Kept:
    """What the operator keeps of a deployment. A new plan that was asked for by annotation is not made here, as it is not known whether the
    operator has made it already."""
    asked = deployment.metadata.annotations.get(names.ANNOTATION_REPLAN, "")
    key = f"{deployment.namespace}/{deployment.name}"
    plan = asking.pinned_plans(question.snapshot).get(key)
    return replace(Kept.from_data(question.snapshot.beside.get(key, {})), plan=plan, asked=asked)


def _direction(deployment: LLMDeployment, kept: Kept) -> Direction | None:
    """The last decision on replicas, where live traffic decides their number, as there is no traffic here to decide anew."""
    record = kept.control
    if record is None or record.replicas is None or kept.plan is None or deployment.spec.replicas is not None:
        return None
    return Direction(record=record, reason=kept.plan.replicas_reason)


def _revisions(snapshot: Snapshot, deployment: LLMDeployment) -> Mapping[str, Revision]:
    """The sets that exist already, which are not rendered again."""
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
