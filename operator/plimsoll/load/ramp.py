"""Raises the load on an endpoint step by step until the knee is found.

Loads double until the knee shows. One step beyond confirms it, and two between narrow it down. Each step first runs for as long as answers
take before it is measured, so that a queue that is only filling up is not taken for one that grows.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from math import floor, log2, sqrt
from typing import Final

from plimsoll.load.bench import Session, Watch, unless
from plimsoll.load.compare import Expected
from plimsoll.load.conclusions import Asked, Ramp, Step, conclude, knee_of
from plimsoll.load.drive import Limits
from plimsoll.load.engine import Look, PodName, look, window
from plimsoll.load.knee import Knee, Sign
from plimsoll.load.problems import EndpointError, Stopped
from plimsoll.load.slo import Slo
from plimsoll.load.workload import ClosedLoop, OpenLoop, Workload

NARROWED: Final = 2
"""How many steps there are between the last good load and the first bad one."""
STRETCHED: Final = 16
"""How many times longer than asked for a step may become where no request falls into it."""
HOPELESS: Final = 0.5
"""Share of failed requests above which no higher load is tried."""
_SETTLE_S: Final = 3.0
_LONGEST_SETTLE_S: Final = 120.0
_ANSWERS_TO_SETTLE: Final = 1.5
_DRAIN_S: Final = 30.0
_LOOK_EVERY_S: Final = 1.0

Looked = Callable[[], Awaitable[Look]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RampPlan:
    """How the load rises."""

    closed_loop: bool = False
    """Whether loads are requests at once, and not requests a second."""
    start: float = 1.0
    most: float = 256.0
    step_s: float = 30.0
    in_flight: int = 4096
    """Requests in flight that this client can hold."""


async def ramp(
    session: Session,
    shape: Workload,
    rising: RampPlan,
    *,
    slo: Slo | None = None,
    metrics: Sequence[str] = (),
    pods: Collection[PodName] = (),
    expected: Expected | None = None,
    stop: asyncio.Event,
    watch: Watch | None = None,
    before: Callable[[float], None] | None = None,
) -> Ramp:
    """Runs the steps. `metrics` are pages of the engines and of GPU exporters; of the latter only GPUs of `pods` count. `before` is called
    with the load of each step before it."""
    steps: list[Step] = []
    longest = STRETCHED * rising.step_s
    settle = _SETTLE_S

    async def looked() -> Look:
        return look(await asyncio.gather(*map(session.client.text, metrics)), pods)

    while not stop.is_set():
        knee = knee_of(steps, closed_loop=rising.closed_loop)
        at_its_end = _hopeless(steps) or any(one.held for one in steps)
        load = next_load([one.load for one in steps], knee, rising, hopeless=at_its_end)
        if load is None:
            break
        if before is not None:
            before(load)
        made = await _step(
            session,
            shape,
            rising,
            load,
            settle,
            slo=slo,
            looked=looked if metrics else None,
            stop=stop,
            watch=watch,
        )
        needed = _settle([*steps, made])
        if not steps and settle == _SETTLE_S < needed and _falls_behind(made, closed_loop=rising.closed_loop):
            # Nobody knew how long answers take, and until the first of them end they are behind requests however little there is to do.
            settle = needed
            continue
        settle = max(settle, needed)
        if _hopeless([made]) and (away := await _away(session, stop)):
            steps.append(replace(made, away=away))
            break
        if made.result.counts.sent:
            steps.append(made)
        elif rising.step_s < longest:
            # In a closed loop a user sends the next request only after an answer, so the step has to be longer than an answer.
            rising = replace(rising, step_s=2 * rising.step_s)
        else:
            break
    asked = Asked(
        url=session.client.endpoint.url,
        model=session.known.model,
        closed_loop=rising.closed_loop,
        input_tokens=str(shape.input_tokens),
        output_tokens=str(shape.output_tokens),
        seed=shape.seed,
        slo=slo,
        expected=expected,
    )
    return conclude(asked, steps, interrupted=stop.is_set())


async def _away(session: Session, stop: asyncio.Event) -> str | None:
    """What keeps the server from answering at all; None where it answers, and where Ctrl-C comes before that is known."""
    with suppress(Stopped):
        return await unless(stop, session.client.is_away())
    return None


def next_load(
    done: Sequence[float], knee: Knee | None, rising: RampPlan, *, hopeless: bool = False
) -> float | None:
    """The load of the next step; None where no further step would show anything."""
    if not done:
        return rising.start
    further = 2 * max(done)
    if knee is None or not knee.confirmed:
        return further if further <= rising.most and not hopeless else None
    if knee.load is None:
        return None
    # The knee is narrowed down by steps in the middle, on a logarithmic scale.
    between = [load for load in done if not _doubled(load, rising)]
    middle = sqrt(knee.load * knee.beyond)
    middle = float(round(middle)) if rising.closed_loop else float(f"{middle:.3g}")
    if len(between) >= NARROWED or middle in done or not knee.load < middle < knee.beyond:
        return None
    return middle


def at_most(rising: RampPlan) -> tuple[int, float]:
    """How many loads there may be, and the seconds of each without what its answers take."""
    doubled = floor(log2(rising.most / rising.start)) + 1
    return doubled + (NARROWED if doubled > 1 else 0), _SETTLE_S + rising.step_s


def _doubled(load: float, rising: RampPlan) -> bool:
    ratio = load / rising.start
    while ratio > 1:
        ratio /= 2
    return ratio == 1


def _hopeless(steps: Sequence[Step]) -> bool:
    return bool(steps) and steps[-1].point().bad_share > HOPELESS


def _settle(steps: Sequence[Step]) -> float:
    """How long a step runs before it is measured: the time of one and a half answers, by the longest mean of the steps so far."""
    longest = max((one.result.e2e_ms.mean for one in steps if one.result.e2e_ms), default=0.0) / 1000
    if not longest and any(one.result.ttft_ms for one in steps):
        # Answers began, and none of them ended.
        return _LONGEST_SETTLE_S
    return min(_LONGEST_SETTLE_S, max(_SETTLE_S, _ANSWERS_TO_SETTLE * longest))


def _falls_behind(made: Step, *, closed_loop: bool) -> bool:
    knee = knee_of([made], closed_loop=closed_loop)
    return knee is not None and Sign.ERRORS not in knee.signs


async def _step(
    session: Session,
    shape: Workload,
    rising: RampPlan,
    load: float,
    settle: float,
    *,
    slo: Slo | None,
    looked: Looked | None,
    stop: asyncio.Event,
    watch: Watch | None,
) -> Step:
    pattern = ClosedLoop(int(load)) if rising.closed_loop else OpenLoop(load)
    limits = Limits(
        seconds=settle + rising.step_s, warmup_s=settle, drain_s=_DRAIN_S, in_flight=rising.in_flight
    )
    looks: list[Look] = []
    async with _looking(looked, looks, settle, rising.step_s):
        result = await session.measure(
            replace(shape, pattern=pattern), limits, slo=slo, stop=stop, watch=watch
        )
    return Step(load=load, result=result, engine=window(looks))


@asynccontextmanager
async def _looking(
    looked: Looked | None, looks: list[Look], settle: float, seconds: float
) -> AsyncIterator[None]:
    """Looks at the engines once a second while the step is measured. A look that gets no answer is left out."""

    async def looking(looked: Looked) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(settle)
        until = loop.time() + seconds
        while loop.time() <= until:
            with suppress(EndpointError):
                looks.append(await looked())
            await asyncio.sleep(_LOOK_EVERY_S)

    task = asyncio.create_task(looking(looked)) if looked else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
