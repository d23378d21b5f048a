"""What follows from a simulation: what the law costs beside a constant number, what held it back, and what a user may change.

Sentences on figures that stand in the report; nothing is simulated here. What to declare is `declared`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from plimsoll.load.slo import percent
from plimsoll.planning.ask.values import counted
from plimsoll.simulate.causes import Late
from plimsoll.simulate.compare import GOAL_PCT, Result, hours_said
from plimsoll.simulate.outcome import Sleep
from plimsoll.simulate.policies.registry import KINDS
from plimsoll.simulate.scenario import Scenario
from plimsoll.simulate.world import START_P90_S

REFUSED, ALONE, WAKING, BOUND, CRASHED, RETUNED = "refused", "alone", "waking", "bound", "crashed", "retuned"
STARTING, RISING, UNEVEN, OTHER = "starting", "rising", "uneven", "other"
SHORT_S: Final = 3600.0
"""A trace that is shorter holds few changes of the load, and a start-up is a good part of it."""
NO_SLO: Final = "who waited too long is not told, so neither is which is better: declare slo.ttftP99Ms"
CALM_LEAST: Final = 5
"""Minutes that say something of a plan that nothing is missing to."""
CALM_LATE: Final = 0.9
"""The share of them from which it is the plan that is late, and not single ones of them."""


def conclusions(
    scenario: Scenario,
    results: Sequence[Result],
    span_s: float,
    currency: str = "",
    pooled: Result | None = None,
    *,
    worlds: str | None = None,
) -> Iterator[str]:
    """Of the headline's router: the answer first, then what may be done about it. `pooled`: the law behind an InferencePool, where the
    headline is a Service. `worlds`: the answer over several, of which all else is the first's."""
    by_name: Mapping[str, Result] = {one.policy: one for one in results}
    ours, constant = by_name.get("plimsoll"), by_name.get("static_peak")
    if ours is not None:
        if constant is not None:
            yield _beside(scenario, ours, constant, currency)
        else:
            yield _alone(scenario, ours, results, currency)
    if worlds is not None:
        yield worlds
    if ours is not None and ours.outcome.sleep is not None:
        yield _slept(scenario, ours, ours.outcome.sleep, currency)
    if ours is not None and ours.outcome.acts:
        yield _retuned(scenario, ours)
    if ours is not None and ours.slo_pct < GOAL_PCT:
        yield from _held_back(scenario, ours)
        if pooled is not None and 100 - pooled.slo_pct <= (100 - ours.slo_pct) / 2:
            yield _spread(scenario, ours, pooled)
    if span_s < SHORT_S:
        yield (
            f"the trace lasts {span_s:,.0f} s and one start in ten takes longer than {START_P90_S:.0f} s: this shows how replicas "
            "that are there serve, and little of how their number follows the load; what is told a day is extrapolated from it; replay hours, "
            "better days"
        )


def _beside(scenario: Scenario, ours: Result, constant: Result, currency: str) -> str:
    mine, theirs = _share_and_price(scenario, ours, currency), _share_and_price(scenario, constant, currency)
    replicas = round(constant.parameter)
    if ours.outcome.figures.slo_pct is None:
        return f"plimsoll {_keeps(ours)} {mine}{_median(ours)}, and {counted(replicas, 'replica')} all the time {theirs}{_median(constant)}; {NO_SLO}"
    if constant.slo_pct < GOAL_PCT:
        if replicas < scenario.reachable:
            # Of several sets, slower ones beside it would only have made it worse.
            return f"plimsoll {_keeps(ours)} {mine}; no constant number keeps {GOAL_PCT:g}%, the nearest is {counted(replicas, 'replica')}, {theirs}"
        return f"plimsoll {_keeps(ours)} {mine}; even {counted(replicas, 'replica')} all the time, the most there may be, {theirs}"
    if scenario.fixed:
        # No other number may be, so none was looked for.
        return (
            f"plimsoll {_keeps(ours)} {mine}, {_cheaper(scenario, ours, constant)} the {counted(replicas, 'replica')} of spec.replicas all the "
            f"time, {theirs}"
        )
    within = "" if scenario.least <= 1 or replicas > scenario.least else " within scaling.min"
    return (
        f"plimsoll {_keeps(ours)} {mine}, {_cheaper(scenario, ours, constant)} the smallest constant number{within} that keeps "
        f"{GOAL_PCT:g}%, found in hindsight: {counted(replicas, 'replica')}, {theirs}"
    )


def _alone(scenario: Scenario, ours: Result, results: Sequence[Result], currency: str) -> str:
    """Without the constant number: beside the cheapest of the others that a person could run."""
    others = [one for one in results if one.policy != ours.policy and not KINDS[one.policy].hindsight]
    keeping = min((one for one in others if one.keeps), key=lambda one: one.gpu_hours, default=None)
    compared = ""
    if ours.outcome.figures.slo_pct is None:
        return (
            f"plimsoll {_keeps(ours)} {_share_and_price(scenario, ours, currency)}{_median(ours)}; {NO_SLO}"
        )
    if keeping is not None:
        compared = (
            f", {_cheaper(scenario, ours, keeping)} {keeping.policy}, the cheapest of the others here that keeps {GOAL_PCT:g}%: "
            f"{_share_and_price(scenario, keeping, currency)}"
        )
    elif others:
        compared = f"; none of the others here keeps {GOAL_PCT:g}%"
    return (
        f"plimsoll {_keeps(ours)} {_share_and_price(scenario, ours, currency)}{compared}; the smallest constant number that keeps "
        f"{GOAL_PCT:g}% was not played (--policy static_peak)"
    )


def _median(one: Result) -> str:
    half = one.outcome.figures.ttft_p50_ms
    return "" if half is None else f" and half of the first tokens within {half / 1000:,.1f} s"


def _keeps(ours: Result) -> str:
    return "keeps slo for" if ours.outcome.figures.slo_pct is not None else "answers"


def _share_and_price(scenario: Scenario, one: Result, currency: str) -> str:
    cost = _told(cost_of(scenario, one), currency)
    return f"{percent(one.slo_pct)}% with {hours_said(one.gpu_hours)} GPU-hours{cost}"


def _cheaper(scenario: Scenario, ours: Result, other: Result) -> str:
    mine, theirs = cost_of(scenario, ours), cost_of(scenario, other)
    if scenario.sets and mine is not None and theirs:
        # Hours of unlike GPUs cost unlike money.
        return _compared(mine, theirs, ("less money", "more money"))
    return _compared(ours.gpu_hours, other.gpu_hours, ("fewer", "more"))


def _compared(mine: float, theirs: float, words: tuple[str, str]) -> str:
    more = 100 * (mine / theirs - 1) if theirs else 0.0
    return "as many as" if abs(more) < 0.5 else f"{abs(more):.0f}% {words[more > 0]} than"


def cost_of(scenario: Scenario, one: Result) -> float | None:
    """In the admin's currency; None where a price of what was used is unknown."""
    if not one.outcome.sets:
        price = scenario.price_per_gpu_hour
        return None if price is None else one.outcome.figures.gpu_hours * price
    prices = [
        (each.gpu_hours, played.price_per_gpu_hour)
        for each, played in zip(one.outcome.sets, scenario.sets, strict=True)
        if each.gpu_hours
    ]
    costs = [hours * price for hours, price in prices if price is not None]
    return sum(costs) if len(costs) == len(prices) else None


def _told(cost: float | None, currency: str) -> str:
    return "" if cost is None else f", {cost:,.2f} {currency}".rstrip()


def _slept(scenario: Scenario, ours: Result, sleep: Sleep, currency: str) -> str:
    waited = "nobody waited for it to wake"
    if sleep.waited and sleep.wait_p50_s is not None and sleep.wait_most_s is not None:
        waited = (
            f"{sleep.waited:,} of {ours.outcome.figures.requests:,} requests waited for it to wake, {sleep.wait_p50_s:,.0f} s "
            f"(median), {sleep.wait_most_s:,.0f} s at most"
        )
    if not sleep.times:
        after = "" if scenario.zero is None else f" of {scenario.zero.after_s:,.0f} s"
        return f"it never slept: it sleeps once nobody asked for zero.afterSeconds{after}, and not before it was awake for as long and for three start-ups; {waited}"
    price = scenario.price_per_gpu_hour
    cost = None if price is None else sleep.gpu_hours_saved * price
    saved = f"{hours_said(sleep.gpu_hours_saved)} GPU-hours{_told(cost, currency)}"
    return (
        f"it slept {counted(sleep.times, 'time')}, {sleep.hours:,.1f} hours in all, which saved {saved} beside a replica that stays; "
        f"{waited}"
    )


def _retuned(scenario: Scenario, ours: Result) -> str:
    """What became of each; one that the trace's end cut off has its last step."""
    last = {(act.what, act.before, act.after): act for act in ours.outcome.acts}
    became = {
        "RetuneDone": "was kept",
        "RetuneFailed": "was taken back",
        "RetuneSuggested": "would have been tried, and is for a person",
    }
    said = (
        f"{act.what} {act.before} to {act.after} {became.get(act.reason, 'was not over at the end')}"
        for act in last.values()
    )
    most = ours.outcome.figures.replicas_most
    beside = (
        f"; to try them a replica came beside those that may be, so that there were up to {most}"
        if most > scenario.reachable
        else ""
    )
    return f"of the engines' settings, {'; '.join(said)}{beside} (tuning.mode 'off' leaves them as planned)"


def _held_back(scenario: Scenario, ours: Result) -> Iterator[str]:
    """When too few were in time: with nothing left to add, with replicas on their way, or what else the run itself shows."""
    late = ours.outcome.late
    if not late:
        return
    held = () if ours.outcome.sleep is None else ours.outcome.sleep.held
    counts = Counter(
        REFUSED
        if one.refused
        else ALONE
        if one.alone
        else WAKING
        if any(since < one.at + 60.0 and one.at < until for since, until in held)
        else _why(one, scenario.reachable)
        for one in late
    )
    sooner = (
        "a higher scaling.min has" if scenario.zero is None else "scaling.min in place of scaling.zero has"
    )
    if scenario.fixed:
        sooner = "a higher spec.replicas has"
    cures = {
        REFUSED: f"because prompts of {scenario.limits.max_model_len:,} tokens and more are refused, whatever the replicas: a larger "
        "workload.contextTokens takes them",
        ALONE: "because prompts are so long that their first token is late even alone on a replica, or are refused: a faster layout or GPU, or a "
        "longer slo.ttftP99Ms, helps them",
        WAKING: "while requests waited for it to wake: a longer zero.afterSeconds has it sleep less often, and without scaling.zero it never does",
        BOUND: f"with {'the one replica' if scenario.reachable == 1 else f'all {scenario.reachable} replicas'} that there may be: "
        f"{_more_room(scenario)}{_no_cure_alone(scenario, ours)}",
        CRASHED: f"while a replica started again after a crash: {sooner} another one there meanwhile",
        RETUNED: "while a replica started with other settings in place of one that served: with a free GPU another one comes first, and "
        "tuning.mode 'off' leaves settings as planned",
        STARTING: f"while replicas were starting: {sooner} them there before the load, and a faster start helps as much",
        UNEVEN: "while one replica had a queue and another had none: a router that knows queues (networking.gateway.endpointPicker) evens that "
        f"out{'' if scenario.closes else ', as do engines that close connections (runtime.closeConnections in the config of the admin)'}",
        RISING: f"while the load asked for more and scaling.upWindowSeconds ({scenario.up_window_s:,.0f}) was waited for: a shorter one "
        "has them come sooner",
        OTHER: "with every replica that was asked for ready: a lone long prompt, a burst of seconds, or a plan that is too slow for slo",
    }
    parts = [f"{100 * counts[why] / len(late):.0f}% {cures[why]}" for why in cures if counts[why]]
    if not scenario.attainable:
        parts.append(
            "whatever their number, no layout on these GPUs keeps all of slo even for a single request, as the plan warns"
        )
    yield f"of the time in which fewer than 99 of 100 were in time, {'; '.join(parts)}"


def _no_cure_alone(scenario: Scenario, ours: Result) -> str:
    """A word of caution where nearly every minute was late in which no more replicas were asked for than were there."""
    late = {round(one.at / 60) for one in ours.outcome.late if not (one.refused or one.alone)}
    calm = {
        int(point.at // 60)
        for point in ours.outcome.points
        if point.told < scenario.reachable and not point.starting and point.arrivals_per_s
    }
    if len(calm) < CALM_LEAST or len(calm & late) < CALM_LATE * len(calm):
        return ""
    return ", though minutes with fewer replicas and less to do were late too, so that more of them alone do not keep this slo"


def _spread(scenario: Scenario, ours: Result, pooled: Result) -> str:
    """Shown by the other run, which differs in nothing else."""
    unlike = len({one.gpu for one in scenario.sets}) > 1
    why = (
        "sends a slow GPU as many requests as a quick one"
        if unlike
        else "chooses by chance"
        if scenario.closes
        else "leaves connections with the replica they found"
    )
    return (
        f"the router is a part of it: a Service {why}; behind an InferencePool the same law comes to {percent(pooled.slo_pct)}% in "
        f"place of {percent(ours.slo_pct)}%, with {hours_said(pooled.gpu_hours)} GPU-hours"
    )


def _why(one: Late, most: int) -> str:
    if one.crashed:
        return CRASHED
    if one.retuned:
        return RETUNED
    if one.rising and one.told < most:
        return RISING
    if one.starting:
        return STARTING
    if one.uneven:
        return UNEVEN
    return BOUND if one.told >= most else OTHER


def _more_room(scenario: Scenario) -> str:
    if scenario.fixed:
        return "spec.replicas holds their number: raise it, or leave it out and set scaling.max"
    if scenario.reachable < scenario.devices_hold:
        held = scenario.budget_binds or scenario.room < scenario.most
        return (
            f"raise {'the budget' if held else 'scaling.max'}; the fleet has room for {scenario.devices_hold}"
        )
    return "the fleet has no room for more"
