"""What to declare for the traffic of a trace, and how the plan that would follow stands beside what was played."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import add
from typing import Final

from plimsoll.api.v1alpha1.workload import Workload
from plimsoll.control.signals import RATE_S
from plimsoll.control.workload import MOST_TOKENS, QUIET_S, Lengths, Observed, better_declaration
from plimsoll.planning.ask.values import counted
from plimsoll.planning.choice.outcomes import TOO_FEW
from plimsoll.planning.plan import Plan, Severity
from plimsoll.simulate.arrivals import Arrivals
from plimsoll.simulate.compare import Result
from plimsoll.simulate.scenario import Scenario
from plimsoll.status.findings import sentence

UNJUDGED: Final = "workload.concurrency is not judged by a trace, which knows when requests come and not how long they are in flight"


@dataclass(frozen=True, slots=True, kw_only=True)
class Better:
    """Another plan that would follow."""

    message: str
    """As the operator says it of BetterPlanAvailable; it says nothing where nothing would fit, and a trace that is replayed is asked about."""
    replicas: int | None = None
    """That it would have; None where there is no such plan."""
    enough: bool = True
    """Whether these are as many as it needs by its own formulas."""


def better_plan(
    arrivals: Arrivals,
    declared: Workload,
    plan: Plan,
    replan: Callable[[Workload], Plan],
    *,
    ceiling: int = MOST_TOKENS,
) -> Better | None:
    """What the operator would say, had it watched this traffic for as long as it wants to; None where nothing else is to be declared.

    Only a declared number of requests in flight it judges by what the engines have, which is said. `ceiling`: tokens that the model
    is made for.
    """
    context = _context(arrivals, declared.context_tokens, ceiling)
    found = _found(arrivals, declared, plan, replan, context)
    if declared.concurrency is None:
        return found
    return (
        Better(message=UNJUDGED) if found is None else replace(found, message=f"{found.message}; {UNJUDGED}")
    )


def _context(arrivals: Arrivals, declared: int | None, ceiling: int) -> int | None:
    """A context that takes all requests whole, where of the declared one more than one in 100 is refused or cut; else that one.

    Not one for 99 of 100: who is refused misses slo, and nobody else might. Of a few that are longer than the model is made for nothing
    is lost by a context up to there; where they are many, that nothing serves them is what is to be told.
    """
    wholes = sorted(map(add, arrivals.inputs, arrivals.outputs))
    if declared is None or not wholes:
        return declared
    most, longest = wholes[int(0.99 * (len(wholes) - 1))], wholes[-1]
    if most <= declared:
        return declared
    return longest if longest <= ceiling or most > ceiling else ceiling


def _found(
    arrivals: Arrivals,
    declared: Workload,
    plan: Plan,
    replan: Callable[[Workload], Plan],
    context: int | None,
) -> Better | None:
    asked: list[Workload] = []
    made: list[Plan] = []

    def again(workload: Workload) -> Plan:
        asked.append(workload)
        made.append(replan(workload))
        return made[-1]

    told = better_declaration(_seen(arrivals), declared, plan, again, context=context)
    if told is not None:
        enough = all(one.reason not in TOO_FEW for one in made[-1].findings)
        return Better(message=told.message, replicas=made[-1].replicas, enough=enough)
    if not made or made[-1].sets:
        return None
    why = next((sentence(one) for one in made[-1].findings if one.severity is Severity.ERROR), "")
    return Better(
        message=f"the traffic is not the declared one, and with {', '.join(_changes(asked[-1], declared))} in spec.workload nothing would "
        f"run{f': {why}' if why else ''}"
    )


def _changes(asked: Workload, declared: Workload) -> Iterator[str]:
    """What another declaration says otherwise, in words."""
    before = declared.to_dict()
    for field, value in asked.to_dict().items():
        if value == before.get(field):
            continue
        if isinstance(value, dict):
            yield f"{field} {', '.join(f'{key} {one}' for key, one in value.items())}"
        else:
            yield f'{field} "{value}"' if isinstance(value, str) else f"{field} {value}"


def _seen(arrivals: Arrivals) -> Observed:
    def lengths(tokens: Sequence[int]) -> Lengths:
        ordered = sorted(tokens)
        p50, p95, p99 = (float(ordered[int(share * (len(ordered) - 1))]) for share in (0.50, 0.95, 0.99))
        return Lengths(p50=p50, p95=p95, p99=p99)

    return Observed(
        since=0.0,
        at=max(arrivals.span_s, QUIET_S),
        prompt=lengths(arrivals.inputs),
        output=lengths(arrivals.outputs),
        requests=float(len(arrivals)),
        peak_rate=arrivals.busiest(RATE_S),
    )


def beside(better: Better, scenario: Scenario, results: Sequence[Result]) -> str:
    """What is to be declared, with where the plan's number of replicas comes from: formulas know no bursts, and a number that was found on
    the trace would be read as contradicting it."""
    if better.replicas is None or scenario.fixed:
        return better.message
    found = next((one for one in results if one.policy == "static_peak"), None)
    whose = "by formulas, for that load without its bursts"
    if not better.enough:
        whose = "all that there may be, and that load needs more by formulas, even without its bursts"
    parts = [
        better.message,
        f"its {counted(better.replicas, 'replica')} {_are(better.replicas)} {whose}",
    ]
    if found is not None and found.keeps and found.outcome.figures.slo_pct is not None:
        number = round(found.parameter)
        parts.append(
            f"the {counted(number, 'replica')} of static_peak {_are(number)} the present plan's, on this trace with its bursts"
        )
    if not scenario.bounded:
        parts.append("without scaling.max the number of the plan stays")
    return "; ".join(parts)


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
