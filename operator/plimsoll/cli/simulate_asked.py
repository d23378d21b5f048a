"""What `plimsoll simulate` is asked about: the one resource of those that are given, its plan, and what of it is played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import click

from plimsoll.api.config_fleet import provision_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.cli import asking
from plimsoll.cli.errors import DOES_NOT_FIT, BadInput, note
from plimsoll.cli.fleets import FleetChoice
from plimsoll.planning.ask.reading import read
from plimsoll.planning.placing.budgets import limits_of
from plimsoll.planning.plan import Plan
from plimsoll.render.spreading import closes
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.declared import Better, better_plan
from plimsoll.simulate.from_plan import CannotSimulate, NotPlayed, hindering, scenario_of
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.several import further
from plimsoll.status.findings import sentence

NAMED: Final = 12
"""Resources that are told by name where it is not said which is meant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The one resource that is simulated, and the plan that it gets."""

    question: asking.Question
    deployment: LLMDeployment
    declared: Workload
    """With what presets and defaults say."""
    plan: Plan
    scenario: Scenario

    def better(self, arrivals: Arrivals) -> Better | None:
        def replan(workload: Workload) -> Plan:
            spec = self.deployment.spec.model_copy(update={"workload": workload})
            deployment = self.deployment.model_copy(update={"spec": spec})
            return asking.answer(replace(self.question, deployments=(deployment,))).plans[0]

        return better_plan(arrivals, self.declared, self.plan, replan, ceiling=self.scenario.ceiling)


def asked_for(
    files: Sequence[str],
    fleet: FleetChoice,
    config_file: str | None,
    name: str | None,
    *,
    online: bool,
    besides: Sequence[str] = (),
) -> Asked:
    """Raises BadInput where it is not one resource that is meant, or one that is not simulated, and ends the command where nothing of it would
    run."""
    question = asking.ask(files, fleet, config_file, online=online, besides=besides)
    deployment = _one(question.deployments, name)
    # The others share no fleet with it, and their problems are not its own.
    question = replace(question, deployments=(deployment,))
    inventory = question.inventory()
    asking.tell_problems(inventory)
    plan = asking.answer(question, inventory).plans[0]
    snapshot = question.snapshot
    facts = asking.facts_of(deployment, question)
    reading = read(deployment, inventory, facts, snapshot.learned, snapshot.config)
    spec = deployment.spec if reading.task is None else reading.task.intent.spec
    try:
        scenario = scenario_of(
            plan,
            reading,
            limits_of(deployment.namespace, snapshot.config),
            lambda: further(
                deployment, inventory, facts, plan, learned=snapshot.learned, config=question.admin
            ),
            restarts=snapshot.config.restarts,
            provision=provision_of(snapshot.config.node_classes),
            interval_s=float(snapshot.config.control.interval_seconds),
            closes=closes(spec, snapshot.config),
        )
    except NotPlayed as error:
        raise BadInput(str(error)) from None
    except CannotSimulate as error:
        note(why for why in map(sentence, hindering(plan)) if why not in str(error))
        click.echo(f"{click.style('error:', bold=True)} {error}", err=True)
        raise SystemExit(asking.exit_code([plan]) or DOES_NOT_FIT) from None
    return Asked(
        question=question, deployment=deployment, declared=spec.workload, plan=plan, scenario=scenario
    )


def _one(given: Sequence[LLMDeployment], name: str | None) -> LLMDeployment:
    found = [one for one in given if name in (None, one.name, f"{one.namespace}/{one.name}")]
    if len(found) == 1:
        return found[0]
    held = [f"{one.namespace}/{one.name}" for one in (found or given)]
    told = ", ".join((*held[:NAMED], *([f"and {len(held) - NAMED} more"] if len(held) > NAMED else [])))
    if name is None:
        raise BadInput(
            f"{len(held)} resources are given ({told}), and one is simulated at a time: say with --name which"
        )
    if found:
        raise BadInput(f"--name {name}: {len(held)} are called that ({told}); give the namespace too")
    raise BadInput(
        f"--name {name}: no resource that is given is called that; there {'is' if len(held) == 1 else 'are'} {told}"
    )
