"""From options to plans: puts together the resources, the fleet and the models' facts, and calls the planner once.
`plan`, `explain` and what-ifs all go through here, so that they can never speak of different plans.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import Problem, problems_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.model import ModelSpec
from plimsoll.cli import inputs
from plimsoll.cli.errors import BAD_INPUT, DOES_NOT_FIT, FITS, BadInput, note
from plimsoll.cli.fleets import FleetChoice
from plimsoll.facts.inventory import Inventory
from plimsoll.facts.labels import ProblemReason
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.model_codec import ModelCodecError, import_model
from plimsoll.facts.snapshot import Snapshot
from plimsoll.planning import codec
from plimsoll.planning.fleet import Request, plan_fleet
from plimsoll.planning.plan import FleetPlan, Outcome, Plan
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.models import DRAFT, MODEL, Found, Missing, plan_facts

_CODES = {Outcome.FITS: FITS, Outcome.TIGHT: FITS, Outcome.INVALID: BAD_INPUT}
FEW = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Everything that plans are made from."""

    deployments: tuple[LLMDeployment, ...]
    snapshot: Snapshot
    online: bool
    read: dict[str, ModelFacts | str] = field(default_factory=dict, repr=False, compare=False)
    """What is known of models so far, so that a hub is asked only once about each."""

    def model(self, spec: ModelSpec) -> ModelFacts | str:
        key = spec.model_dump_json()
        if key not in self.read:
            self.read[key] = inputs.model_of(spec, self.snapshot.config, online=self.online)
        return self.read[key]

    @property
    def admin(self) -> OperatorConfig | None:
        """The admin's config; None where it says nothing, as where none was given."""
        return None if self.snapshot.config == OperatorConfig() else self.snapshot.config

    def inventory(self) -> Inventory:
        config = self.snapshot.config
        selectors = [one.spec.topology.node_selector for one in self.deployments]
        selectors += [one.spec.topology.node_selector for one in config.defaults]
        selectors += [one.spec.topology.node_selector for one in config.presets]
        return self.snapshot.inventory(selectors=selectors)


def check_stdin(*files: str | None) -> None:
    if files.count("-") > 1:
        raise BadInput(
            "- is given more than once, and stdin can be read only once; name a file for the others"
        )


def ask(
    files: Sequence[str],
    fleet: FleetChoice,
    config_file: str | None,
    *,
    online: bool,
    besides: Sequence[str] = (),
) -> Question:
    """The question of a command: the resources of the files, else those of the snapshot. All problems of files, config and fleet are told at
    once, and with them what is wrong `besides`."""
    check_stdin(*files, fleet.snapshot_file, fleet.nodes_file, config_file)
    wrong: list[str] = []
    deployments: list[LLMDeployment] = []
    snapshot, config, read = Snapshot(), None, True
    try:
        deployments = inputs.deployments(files)
    except BadInput as error:
        wrong += error.lines
    try:
        config = None if config_file is None else inputs.config(config_file)
    except BadInput as error:
        wrong += error.lines
        read = fleet.context is None  # a cluster is not asked for an answer that nobody gets
    try:
        snapshot = fleet.snapshot(config) if read else snapshot
        deployments = deployments if files else _stored(snapshot)
    except BadInput as error:
        wrong += error.lines
    unread = bool(wrong) and (fleet.snapshot_file, fleet.context) != (None, None)  # it may hold some
    if not files and not deployments and not unread:
        wrong.append("no resource is named: give -f FILE, or a snapshot that holds LLMDeployments")
    if wrong or besides:
        raise BadInput(*wrong, *besides)
    return Question(deployments=tuple(deployments), snapshot=snapshot, online=online)


def answer(question: Question, inventory: Inventory | None = None) -> FleetPlan:
    """All plans together. In a what-if `inventory` takes the place of the snapshot's own."""
    snapshot = question.snapshot
    pinned = pinned_plans(snapshot)
    requests = [
        Request(
            deployment=one, facts=facts_of(one, question), pinned=pinned.get(f"{one.namespace}/{one.name}")
        )
        for one in question.deployments
    ]
    found = inventory or question.inventory()
    return plan_fleet(requests, found, learned=snapshot.learned, config=question.admin)


def exit_code(plans: Iterable[Plan]) -> int:
    """The exit code by the worst plan: 3 where one is invalid, 2 where one does not fit, else 0."""
    return max((_CODES.get(one.outcome, DOES_NOT_FIT) for one in plans), default=FITS)


def tell_problems(inventory: Inventory) -> None:
    """Tells of nodes some of whose devices planning cannot count, once for all nodes with the same problem."""
    alike: dict[tuple[str, str], list[str]] = {}
    for problem in inventory.problems:
        alike.setdefault((problem.reason, problem.message), []).append(problem.node)
    lines = []
    for (reason, message), nodes in alike.items():
        which = nodes[0] if len(nodes) == 1 else f"{nodes[0]} and {len(nodes) - 1} more"
        counted = "no GPUs counted of" if reason == ProblemReason.NO_DRIVER else "left out"
        lines.append(f"{counted} {which}: {reason}: {message}")
    more = len(lines) - FEW
    note(lines[:FEW] + ([f"nodes left out for other reasons: {more} more"] if more > 0 else []))


def _stored(snapshot: Snapshot) -> list[LLMDeployment]:
    found: list[LLMDeployment] = []
    problems: list[Problem] = []
    for body in snapshot.deployments:
        try:
            found.append(LLMDeployment.observed(dict(body)))
        except ValidationError as error:
            problems += problems_of(error, LLMDeployment)
    if problems:
        raise BadInput(*problems)
    return found


def facts_of(deployment: LLMDeployment, question: Question) -> PlanFacts:
    """What is known of a deployment's models. Where nothing is known, the plan says why."""
    asked, admin = deployment.spec.speculative, question.snapshot.config
    kept = _kept_models(question.snapshot).get((deployment.spec.model.source, deployment.spec.model.revision))
    model = kept or question.model(deployment.spec.model)
    found: dict[str, Found] = {MODEL: _found(model)}
    if asked is not None and asked.model is not None:
        found[DRAFT] = _found(question.model(ModelSpec(source=asked.model)))
    beside = question.snapshot.beside.get(f"{deployment.namespace}/{deployment.name}", {})
    told = Kept.from_data(beside).models
    if not told:
        return plan_facts(found)
    from plimsoll.reconcile.known_models import known_models  # noqa: PLC0415 - the client loads for a second

    return known_models(deployment, found, told, admin)


def _found(known: ModelFacts | str) -> Found:
    return Missing(known) if isinstance(known, str) else known


def _kept_models(snapshot: Snapshot) -> Mapping[tuple[str, str | None], ModelFacts]:
    """Facts that were read in the cluster and kept there, by source and revision as the resource names them."""
    found = {}
    for body in snapshot.models:
        try:
            facts = import_model(json.dumps(body))
        except ModelCodecError as error:
            note([f"facts of a model in the snapshot cannot be read and count as absent: {error}"])
        else:
            found[facts.source, facts.revision] = facts
    return found


def pinned_plans(snapshot: Snapshot) -> Mapping[str, Plan]:
    """The pinned plans of the snapshot's resources."""
    found = {}
    for name, body in snapshot.plans.items():
        try:
            found[name] = Plan.from_data(body)
        except codec.CodecError as error:
            note([f"the pinned plan of {name} cannot be read and counts as absent: {error}"])
    return found
