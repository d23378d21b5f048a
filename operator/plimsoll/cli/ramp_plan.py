"""The plan that a ramp is compared with: from a file that `plimsoll plan` wrote, from a cluster, or planned anew."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.cli import asking
from plimsoll.cli.errors import BadInput
from plimsoll.cli.fleets import FleetChoice
from plimsoll.cli.inputs import read_text
from plimsoll.load.compare import Expected, Range
from plimsoll.load.slo import Slo
from plimsoll.planning import codec
from plimsoll.planning.interval import Interval
from plimsoll.planning.plan import FleetPlan, Plan, PlanSet


@dataclass(frozen=True, slots=True)
class Held:
    """A plan's figures, and the targets of its resource. A field is None where the plan predicts nothing, or only the plan is known."""

    expected: Expected | None
    slo: Slo | None
    lengths: tuple[int, int]
    """Lengths of prompts and answers that the plan assumes."""


def from_file(file: str, name: str | None) -> Held:
    """The plan in a file that `plimsoll plan -o json` (or yaml) wrote, alone or among others."""
    try:
        data = yaml.safe_load(read_text(file))
        plans = _plans(data)
    except (yaml.YAMLError, codec.CodecError, UnicodeDecodeError) as error:
        raise BadInput(
            f"--plan {file}: is no plan: {error}; write one with `plimsoll plan ... -o json`"
        ) from None
    plan = _one(plans, name, f"--plan {file}")
    return Held(expected(plan), None, _lengths(plan))


def from_resource(
    files: Sequence[str], fleet: FleetChoice, config_file: str | None, name: str | None, *, online: bool
) -> Held:
    """The plan of a resource on a fleet, with the resource's own targets."""
    question = asking.ask(files, fleet, config_file, online=online)
    plan = _one(asking.answer(question).plans, name, "-f")
    deployment = next(
        one for one in question.deployments if (one.namespace, one.name) == (plan.namespace, plan.name)
    )
    return Held(expected(plan), _slo(deployment), _lengths(plan))


def from_cluster(text: str | None, deployment: Mapping[str, Any]) -> tuple[Held | None, str | None]:
    """The pinned plan of a deployment in a cluster, and a note where it cannot be compared with."""
    if text is None:
        return None, "the deployment has no pinned plan, so there is nothing to compare with"
    try:
        plan = Plan.from_bytes(text.encode())
    except (codec.CodecError, ValueError) as error:
        return None, f"the pinned plan cannot be read, so there is nothing to compare with: {error}"
    if not plan.sets:
        return None, "the pinned plan runs nothing, so there is nothing to compare with"
    slo = _slo(LLMDeployment.observed(dict(deployment)))
    try:
        return Held(expected(plan), slo, _lengths(plan)), None
    except BadInput as why:
        return Held(None, slo, _lengths(plan)), str(why)


def _lengths(plan: Plan) -> tuple[int, int]:
    load = plan.sets[0].load
    return load.input_tokens, load.output_tokens


def expected(plan: Plan) -> Expected:
    """A plan's figures for all of its replicas together."""
    title = f"{plan.namespace}/{plan.name}"
    sets = [one for one in plan.sets if one.replicas > 0]
    if not sets or any(one.performance is None for one in sets):
        why = "plans nothing that runs" if not sets else "predicts no latency on its hardware"
        raise BadInput(f"the plan of {title} {why}, so there is nothing to compare with")
    leading = sets[0]
    return Expected(
        plan=title,
        replicas=plan.replicas,
        input_tokens=leading.load.input_tokens,
        output_tokens=leading.load.output_tokens,
        in_flight=sum(one.load.concurrency * one.replicas for one in sets),
        ttft_ms=_weighed(sets, [one.performance.ttft_ms for one in sets if one.performance]),
        tpot_ms=_weighed(sets, [one.performance.tpot_ms for one in sets if one.performance]),
        requests_per_second=round(sum(_rate(one) for one in sets), 3),
        output_tokens_per_second=round(
            sum(one.performance.output_tokens_per_second * one.replicas for one in sets if one.performance), 1
        ),
        most_in_flight=sum(one.max_concurrency * one.replicas for one in sets),
        seats=sum(one.settings.max_num_seqs * one.layout.data * one.replicas for one in sets),
        bound=leading.performance.bound if leading.performance else "",
    )


def _rate(chosen: PlanSet) -> float:
    return chosen.performance.requests_per_second * chosen.replicas if chosen.performance else 0.0


def _weighed(sets: Sequence[PlanSet], intervals: Sequence[Interval]) -> Range:
    """The mean over sets, each weighted by the share of requests that it answers."""
    total = sum(map(_rate, sets))
    shares = [_rate(one) / total for one in sets]

    def mean(bounds: Sequence[float]) -> float:
        return round(sum(share * bound for share, bound in zip(shares, bounds, strict=True)), 3)

    return Range(
        mean([one.low for one in intervals]),
        mean([one.mid for one in intervals]),
        mean([one.high for one in intervals]),
    )


def _plans(data: Any) -> tuple[Plan, ...]:
    if isinstance(data, dict) and "plans" in data:
        fleet = codec.decode(FleetPlan, {key: value for key, value in data.items() if key != "whatIf"})
        return fleet.plans
    return (Plan.from_data(data),)


def _one(plans: Sequence[Plan], name: str | None, where: str) -> Plan:
    found = [one for one in plans if name in (None, one.name, f"{one.namespace}/{one.name}")]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"{one.namespace}/{one.name}" for one in plans)
    if name is None:
        raise BadInput(
            f"{where}: holds {names or 'no plan'}; say with --name which of them the endpoint serves"
        )
    raise BadInput(f"--name {name}: {where} holds {names or 'no plan'}")


def _slo(deployment: LLMDeployment) -> Slo | None:
    slo = deployment.spec.slo
    if slo.ttft_p99_ms is None and slo.itl_p99_ms is None:
        return None
    return Slo(ttft=slo.ttft_p99_ms, itl=slo.itl_p99_ms)
