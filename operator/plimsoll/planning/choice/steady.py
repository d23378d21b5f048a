"""The load that a candidate can go on with when requests come by themselves, as users send them: what a declared rate is shared out by."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, floor, inf, log10
from typing import Final

from plimsoll.planning.ask.task import Task
from plimsoll.planning.choice.candidate import Candidate, cache_of, replica_of
from plimsoll.planning.load import Performance
from plimsoll.planning.speed.open_loop import LATE, Pace, Steady, Traffic, at, share_of_all, steady
from plimsoll.planning.speed.rates import committed_rates
from plimsoll.planning.speed.roofline import decode_step, launch, prompt, request

STAND_FOR: Final = 32
"""How many lengths stand for all."""
WORTH: Final = 0.25
"""Share of what a replica can answer below which a target is not worth keeping: four replicas would do the work of one."""
ELSE_AT: Final = 0.5
"""At what share a replica is planned then. Where long prompts alone nearly take the whole time to the first token, every further replica
makes fewer of those late that come behind one, but ever fewer."""
LEAST_FIRST_S: Final = 0.001
DOUBLINGS: Final = 22
HALVINGS: Final = 7
LIKELY_SIGMAS: Final = 1.2816 / 1.645
"""To where a prediction lies 9 times of 10, as a part of the way to the end of its interval."""


def steady_of(task: Task, candidate: Candidate, wanted: float = inf) -> Steady | None:
    """Of one replica, where so many requests a second are wanted of all; None where nothing can be predicted, or nothing is carried within
    the target."""
    performance = candidate.at_most
    if performance is None or not candidate.most:
        return None
    traffic, pace = queues_of(task, candidate, performance)
    found = steady(traffic, pace, float(candidate.most), worth=WORTH, else_at=ELSE_AT, wanted=wanted)
    # Of requests that are all typical it can never carry more.
    most = performance.requests_per_second / task.intent.lengths.stretch
    if found.per_second <= most:
        return found
    return replace(at(traffic, pace, found.in_flight * most / found.per_second), kept=found.kept)


def queues_of(
    task: Task, candidate: Candidate, performance: Performance, *, promised: bool = False
) -> tuple[Traffic, Pace]:
    """Who comes, and how fast a replica is; where a target is to be kept, as slow as it is likely to be at most. `promised`: one is, though
    the task has none."""
    traffic = _traffic(task, cached=candidate.settings.prefix_caching)
    return traffic, _pace(task, candidate, performance, traffic, promised=promised or task.intent.has_target)


def _traffic(task: Task, *, cached: bool) -> Traffic:
    """The requests that are declared; whether a beginning that they share is kept in the cache."""
    intent, context = task.intent, float(task.context.tokens)
    lengths = intent.lengths
    shared = int(lengths.inputs.median * (intent.shared_prefix or 0.0)) if cached else 0
    answers = lengths.outputs.evenly(STAND_FOR) if intent.generates else (1.0,)
    return Traffic(
        prompts=tuple(min(context, max(1.0, one)) for one in lengths.inputs.less(shared).evenly(STAND_FOR)),
        answers=tuple(min(context, max(1.0, one)) for one in answers),
        shared=float(shared),
        first_s=None if intent.ttft_ms is None else intent.ttft_ms / 1000,
    )


def _pace(
    task: Task, candidate: Candidate, performance: Performance, traffic: Traffic, *, promised: bool
) -> Pace:
    settings, layout, capacity = candidate.settings, candidate.layout, cache_of(candidate.ledger)
    tokens = None if capacity is None else capacity.tokens.mid
    replica = replica_of(task, candidate.slot, layout, settings, tokens)
    work, rates, taught = replica.work, committed_rates(replica.classes), performance.learned
    slower = (performance.tpot_ms.high / performance.tpot_ms.mid) ** LIKELY_SIGMAS
    likely = slower if promised else 1.0
    steps, prompts = (likely, likely) if taught is None else (likely * taught.tpot, likely * taught.ttft)
    context, typical = traffic.held + traffic.shared, traffic.prompt

    def prefill(fresh: float, before: float = 0.0) -> float:
        return prompts * rates.of(prompt(work, fresh, before)) / layout.pipeline

    seen = (prefill(typical, typical) - prefill(typical)) / typical**2
    token = max(0.0, prefill(typical, traffic.shared) / typical - seen * typical / 2)
    places = float(settings.max_num_seqs * layout.data)
    if tokens is not None:
        places = min(places, layout.data * max(0.0, tokens - traffic.shared) / traffic.held)
    return Pace(
        decode=lambda running: steps * rates.of(decode_step(work, max(1.0, running), context)),
        token=token,
        seen=seen,
        launch=prompts * rates.of(launch(work)) / layout.pipeline,
        # The stages of a pipeline work on different prompts, but a prompt has to pass all of them.
        outside=lambda fresh, beside: (
            prompts * rates.of(request(fresh, beside)) + (layout.pipeline - 1) * prefill(fresh)
        ),
        step_tokens=float(max(settings.max_num_batched_tokens, settings.max_num_seqs) * layout.data),
        places=max(1.0, places),
    )


def least_first_ms(traffic: Traffic, pace: Pace, in_flight: float) -> int | None:
    """Milliseconds in which 99 of 100 have their first token, in two figures; None where none is long enough."""

    def kept(seconds: float) -> bool:
        return at(replace(traffic, first_s=seconds), pace, in_flight).late <= LATE

    lengths = (LEAST_FIRST_S * 2.0**place for place in range(DOUBLINGS))
    high = next((one for one in lengths if kept(one)), None)
    if high is None:
        return None
    low = high / 2
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if kept(middle) else (middle, high)
    places = max(0, floor(log10(1000 * high)) - 1)
    figure = round(10.0**places)
    return ceil(1000 * high / figure) * figure


def least_promise_ms(task: Task, candidate: Candidate) -> int | None:
    """The least target of first tokens that it keeps for 99 of 100 requests as users send them, at the load that it is planned for otherwise."""
    performance = candidate.at_most
    if performance is None or not candidate.most:
        return None
    traffic, pace = queues_of(task, candidate, performance, promised=True)
    return least_first_ms(
        traffic, pace, share_of_all(traffic, pace, float(candidate.most), ELSE_AT).in_flight
    )
