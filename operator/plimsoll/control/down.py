"""May replicas go, and how many: only after a whole window that never asked for them, and only if those left stay calm.

Each check answers why not; the first that objects is what the user is told.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from plimsoll.control import prompts
from plimsoll.control.demand import Load
from plimsoll.control.law import Law
from plimsoll.control.memory import RoleMemory
from plimsoll.control.need import Asked, unsaid, whole_replicas
from plimsoll.control.pools import shrunk, spare
from plimsoll.control.situation import ServingSet, Situation
from plimsoll.control.telling import long, not_over
from plimsoll.control.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    replicas: Mapping[str, int]
    """By set."""
    why_not: str | None = None
    """One clause; None where replicas may go."""
    early: bool = False
    """Whether it is only too early for them to go."""
    passed: str | None = None
    """One clause: a limit that is not kept, and that no number of replicas would keep, so that it holds none of them."""


def window_s(
    situation: Situation, memory: RoleMemory, lead: float, law: Law, *, spent: float, now: float
) -> float:
    """How long less must have been wanted before replicas go. As the user has set it; else shorter where fewer first tokens were late than
    are allowed to be, and longer where earlier steps down were soon taken back."""
    if situation.down_window_s is not None:
        return situation.down_window_s
    eased = 1 - law.down_eased * max(0.0, 1 - spent)
    regrets = min(law.regrets_most, memory.regrets_at(now, law.regret_s))
    return max(law.down_window_s, law.down_starts * lead) * eased * (1 + law.regret_windows * regrets)


def down(turn: Turn, asked: Asked, load: Load, window: float) -> Down:
    """`window`: for how long less must have been wanted, as `window_s` has it."""
    role, law, there = turn.role, turn.law, turn.there
    # The last replica never goes for a small load: with a wake signal it goes by idleness alone.
    least = max(1, role.bounds.min)
    # Replicas that do not serve yet cost nobody an answer when they go.
    idle = sum(max(0, each.told - each.ready) for each in role.sets)
    peak = whole_replicas(asked.memory.most_wished)
    enough = spare(role, load.weight, asked.memory.most_wished)
    step = max(1, idle, math.ceil(law.down_share * enough))
    count = min(step, enough, there - least)
    if count <= 0:
        some = f"up to {peak}" if peak <= there else f"all {there}"
        silent = ", those among them that do not say how many requests they have" if load.missing else ""
        wanted = f"{some} were wanted in the last {long(window)}{silent}"
        more = there > least
        return Down(replicas=turn.told, why_not=wanted if more else f"{least} is the least", early=more)
    fewer = shrunk(role, load.weight, count, least).replicas
    after = sum(_serving(each, fewer[each.name], load) * load.weight[each.name] for each in role.sets)
    latencies = _latencies(turn, asked.memory, load.holds.longest_s)
    early = _timing(turn, asked.memory, window, asked.need.lead_s)
    objection = (
        early or _missing(turn) or _alarm(turn, latencies) or _calm(latencies, load, after=after, law=law)
    )
    passed = next((each.said for each in latencies if each.passed and each.lasting), None)
    return Down(
        replicas=turn.told if objection else fewer, why_not=objection, early=early is not None, passed=passed
    )


def _serving(each: ServingSet, left: int, load: Load) -> int:
    """How many of those that are left serve. Where some that do, do not say how full they are, nobody knows whether those that start are needed
    beside them, so these count too."""
    return left if load.missing else min(left, each.ready)


def _timing(turn: Turn, memory: RoleMemory, window: float, lead: float) -> str | None:
    if turn.situation.busy is not None and not turn.situation.lets_go:
        return turn.situation.busy
    stays = window if turn.situation.down_window_s is not None else max(window, turn.law.up_starts * lead)
    for at, least, since in (
        (memory.begun, window, "of watching"),
        (memory.up_at, stays, "since the last step up"),
        (memory.down_at, min(window, turn.law.down_again_s), "since the last step down"),
    ):
        if at is not None and turn.now - at < least:
            return f"{not_over(turn.now - at, least)} {since}"
    return None


def _missing(turn: Turn) -> str | None:
    """Why nothing may go: a figure that the engine exports has no value, though there was something to count.

    Some counters appear only with the first request that they count, and an empty histogram has no quantiles. So where nothing has run
    for as long as latencies look back, or too little has ended for a p99, none of them counts as missing.
    """
    role, signals = turn.role, turn.role.signals
    if 0 < (spoke := signals.live - signals.silent) < turn.law.coverage_least * signals.live:
        return f"only {spoke} of {signals.live} ready replicas say how many requests they have"
    worked = bool(signals.most("inflight_most"))
    for figure, said, expected, what in (
        (
            "kv_fraction",
            signals.mean("kv_fraction"),
            any(each.capacity.kv_tokens for each in role.sets),
            "how much of its pool is in use",
        ),
        ("finished", signals.sum("finished"), worked, "how many requests end"),
        ("preemptions", signals.sum("preemptions"), worked, "whether requests are preempted"),
    ):
        if said is None and expected and figure in role.exports:
            return f"no replica says {what}"
    latency = unsaid(role, turn.situation.slo)
    return None if latency is None else f"no replica says {latency}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Latency:
    """A 99th percentile that something is promised of."""

    what: str
    p99: float
    limit: float
    least: float | None = None
    """What it is expected to be beside only a few requests; None where that is not known."""
    most: float = math.inf
    """The longest that it can become, however few replicas there are."""
    lasting: bool = False
    """Whether it would break its limit beside a few requests too, and is no longer now: more replicas would not make it better, nor fewer
    make it worse."""

    @property
    def share(self) -> float:
        return self.p99 / self.limit

    @property
    def passed(self) -> bool:
        return self.p99 > self.limit

    @property
    def said(self) -> str:
        said = f"p99 {self.what} is {self.p99 * 1000:,.0f} ms, above the {self.limit * 1000:,.0f} promised"
        if not self.lasting or self.least is None:
            return said
        return f"{said}, but beside a few requests it would be about {self.least * 1000:,.0f} ms too"


def _latencies(turn: Turn, memory: RoleMemory, longest_s: float) -> tuple[Latency, ...]:
    role, slo = turn.role, turn.situation.slo
    found = tuple(
        Latency(what=what, p99=seen.p99_of(limit, most), limit=limit, most=most)
        for what, seen, limit, most in (
            ("of the first token", role.signals.latencies.ttft, slo.ttft_p99_s, math.inf),
            ("between tokens", role.signals.latencies.itl, slo.itl_p99_s, longest_s),
        )
        if seen is not None and seen.trusted and limit
    )
    if not any(each.passed for each in found):
        return found
    first = role.sets[0]
    steps = memory.learnt_of(first).steps
    unloaded = prompts.unloaded(steps, role.signals, first.capacity)
    if unloaded is None:
        return found
    least = {"of the first token": unloaded.ttft_s, "between tokens": unloaded.itl_s}
    return tuple(
        replace(
            each,
            least=least[each.what],
            lasting=each.limit < min(each.p99, least[each.what])
            and each.p99 <= turn.law.lasting_most * least[each.what],
        )
        for each in found
    )


def _alarm(turn: Turn, latencies: Iterable[Latency]) -> str | None:
    """Why nothing may go: by these figures an alert about the load would fire, whether or not there is an Alertmanager.

    Replicas that do not serve yet stay then too. A latency limit that would be broken without load as well holds none of them.
    """
    signals, law = turn.role.signals, turn.law
    if (signals.preempted_share or 0.0) > law.healthy_preempted:
        return "requests are preempted"
    if (kv := signals.mean("kv_fraction") or 0.0) > law.alert_kv:
        return f"{kv:.0%} of the pool is in use, above {law.alert_kv:.0%}"
    waiting, running = signals.sum("waiting") or 0.0, signals.sum("running") or 0.0
    if law.is_alarming(waiting, running):
        return f"{waiting:.0f} requests wait"
    return next((each.said for each in latencies if each.passed and not each.lasting), None)


def _calm(latencies: Iterable[Latency], load: Load, *, after: float, law: Law) -> str | None:
    """Why nothing may go: the `after` replicas that are left would be too full, too busy or too slow; None where they would be calm."""
    if after >= load.supply.ready and not load.missing:
        return None
    full = _full(load, after)
    if full is None:
        return "no replica says how full it is"
    if (busy := _busy(load, after, law)) > law.down_busy:
        return f"a burst would keep the {after:g} left {min(busy, 9.99):.0%} busy, above {law.down_busy:.0%}"
    if (computing := _computing(load, after, law)) > 1:
        return f"prompts would keep the {after:g} left {min(computing, 9.99):.0%} as busy as first tokens in time allow"
    if full > law.down_target:
        share = "more than 100%" if full > 1 else f"{full:.0%}"
        return f"the {after:g} left would be {share} full, above {law.down_target:.0%}"
    if load.demand.waiting >= max(1.0, after):
        return "requests wait"
    slow = max((each.share for each in latencies if not each.lasting and each.most > each.limit), default=0.0)
    if slow > law.down_latency:
        return f"p99 latency is at {slow:.0%} of its limit, above {law.down_latency:.0%}"
    return None


def _full(load: Load, after: float) -> float | None:
    """How full `after` replicas would be; None where no replica says how many requests it has. Those that do not say it count as full."""
    demand, holds, free = load.demand, load.holds, after - load.missing
    if demand.inflight is None:
        return None
    if free <= 0:
        return float("inf")
    each, heard = demand.inflight / free, after - load.unheard
    if demand.arrivals is not None and holds.curve is not None:
        each = max(each, holds.curve.inflight(demand.arrivals / heard) if heard > 0 else math.inf)
    elif load.supply.ready:
        # Without a learned line, a request is taken to take longer in proportion to the requests beside it.
        each *= load.supply.ready / free
    return each / holds.least


def _computing(load: Load, after: float, law: Law) -> float:
    """Share of the prompts that `after` replicas could compute with first tokens in time, with the gap between the two targets kept; 0
    where nothing is known."""
    rate, free = load.demand.arrivals, after - load.unheard
    if rate is None or load.holds.prompt is None:
        return 0.0
    return rate * law.target / law.down_target / (free * load.holds.prompt) if free > 0 else math.inf


def _busy(load: Load, after: float, law: Law) -> float:
    """Share of their highest rate that a burst would ask of `after` replicas; 0 where no rate is known."""
    rate, free = load.demand.arrivals, after - load.unheard
    if rate is None or load.holds.curve is None:
        return 0.0
    crest = load.demand.crest(rate, law.burst_sigmas)
    return crest / (free * load.holds.rate(load.holds.least)) if free > 0 else math.inf
