"""The control loop: every few seconds one look at the whole fleet's metrics, one decision for each deployment, and a wake for
those whose decision changes something.

What is decided is remembered here and handed to turns, which do it and keep it. All of it can be lost at any time: a tick
after a restart goes on from what turns have kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import chain
from typing import Final

from plimsoll import names
from plimsoll.control.copying import replace
from plimsoll.control.joining import Wholes
from plimsoll.control.latencies import Spreads
from plimsoll.control.law import Law
from plimsoll.control.samples import Window
from plimsoll.facts.pod_sample import PodSample
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.loop.judging import judged
from plimsoll.reconcile.loop.knowing import AT_A_TIME, Knowing
from plimsoll.reconcile.loop.situations import SetsSeen
from plimsoll.reconcile.loop.sources import Asked, Looked, Source
from plimsoll.reconcile.loop.subject import Subject
from plimsoll.reconcile.loop.tick import Judged, Tick
from plimsoll.reconcile.loop.unanswered import Unanswered
from plimsoll.reconcile.world import World

LOG: Final = logging.getLogger(__name__)
LEAST_PAUSE: Final = 0.2
"""Share of the interval that lies between two looks at least: turns need the time too, and so does whoever answers."""
BUSY_MOST: Final = 0.2
"""Share of all time that looks may take for which alerts ask: in a large fleet some alert always fires."""
TELLS: Final = frozenset({names.METRICS, names.SCALING, names.SLO, names.AUTOTUNE_PAUSED})
"""Conditions that control tells of."""


class Control:
    def __init__(
        self, world: World, source: Source, wake: Callable[[str], None], *, interval_s: float
    ) -> None:
        self._world = world
        self._source = source
        self._wake = wake
        self._interval_s = interval_s
        self._law = Law(tick_s=interval_s)
        self._wholes = Wholes()
        self._window = Window()
        self._spreads = Spreads()
        self._sets = SetsSeen()
        self._knows = Knowing(world, source, wake, self._law)
        self.ticks = 0
        self.seconds = 0.0
        """How long all ticks took together."""
        self.reachable = True
        self._unanswered = Unanswered()
        self._asked = asyncio.Event()

    def soon(self) -> None:
        """An alert says that there is something to see: the next look does not wait for its interval."""
        self._asked.set()

    async def run(self) -> None:
        """Until cancelled; a tick that fails is told and the next one comes."""
        clock = asyncio.get_running_loop().time
        try:
            while True:
                begun = clock()
                # What is said while it looks is not seen by this look.
                self._asked.clear()
                try:
                    await self.tick()
                except Exception:
                    LOG.exception("a tick of the control loop failed")
                took = clock() - begun
                self.seconds += took
                least, most = pauses(took, self._interval_s)
                await asyncio.sleep(least)
                with suppress(TimeoutError):
                    async with asyncio.timeout(most - least):
                        await self._asked.wait()
        finally:
            self._source.close()

    async def tick(self) -> None:
        world, now = self._world, self._world.now()
        cases = await self._knows.cases(now)
        asked = [
            Asked(case.subject, tuple(chain.from_iterable(case.ready.values()))) for case in cases.values()
        ]
        looked = await self._looked(now, asked)
        self._unanswered.tell(looked)
        self.reachable = looked.reachable
        several = [
            [pod.uid for pod in pods]
            for case in cases.values()
            for pods in case.ready.values()
            if len(pods) > 1
        ]
        self._window = await asyncio.to_thread(self._noted, now, looked.samples, several)
        tick = Tick(
            now=now,
            number=self.ticks,
            window=self._window,
            looked=looked,
            inventory=world.cluster.inventory(),
            config=world.config,
            law=self._law,
            spreads=self._spreads,
            sets=self._sets,
            spends=world.spends(),
            retuning=self._knows.retuning,
        )
        self.ticks += 1
        found = await asyncio.to_thread(judged, tick, cases)
        self._spreads.over()
        self._sets.over()
        for place, (key, each) in enumerate(found.items(), 1):
            self._hand(key, each, now)
            if place % AT_A_TIME == 0:
                await asyncio.sleep(0)

    def _noted(self, now: float, samples: tuple[PodSample, ...], several: Sequence[Sequence[str]]) -> Window:
        return self._window.add(now, self._wholes.of(now, samples, several))

    async def _looked(self, now: float, asked: list[Asked]) -> Looked:
        try:
            return await self._source.look(now, asked)
        except Exception:
            LOG.exception("metrics could not be read")
            return Looked(reachable=False)

    def _hand(self, key: str, found: Judged, now: float) -> None:
        known, bearer = self._knows.known.get(key), self._world.resources.bearer(key)
        if known is None or bearer is None or bearer.uid != known.subject.metadata.uid:
            return  # it is gone, and another may bear its name
        known.record = found.record
        LOG.debug("%s", found.reason or "the plan decides", extra={"deployment": key})
        if found.why_not:
            LOG.debug("no retune: %s", found.why_not, extra={"deployment": key})
        before = self._world.direction(key)
        told = known.patience.told(
            found.told,
            known.subject.told if before is None else before.told,
            now=now,
            law=self._law,
            same_number=before is not None and before.record.replicas == found.record.replicas,
        )
        awake_before = known.patience.awake.why
        awake = known.patience.told_awake(found.awake, now, told)
        if found.news:
            self._world.books.decided(found.news)
            self._world.cluster.announce(known.subject.metadata, found.news)
        store = known.stores(now)
        # What was only learned since the last store is not handed on: each tick would be a write.
        record = replace(known.stored, replicas=found.record.replicas, shares=found.record.shares)
        moved = before is None or store or before.record.replicas != record.replicas
        after = Direction(
            uid=bearer.uid,
            record=record,
            reason=found.reason if moved else before.reason if before is not None else "",
            told=told,
            awake=awake,
        )
        if before is not None and not store and after.mark == before.mark:
            return
        self._world.directions[key] = after
        if before is None and not store and awake == awake_before and _as_told(after, known.subject):
            self._world.directed[key] = after
            return
        self._wake(key)


def pauses(took: float, interval_s: float) -> tuple[float, float]:
    """Seconds until the next look: where an alert asks for one, and where nobody does. `took` is how long the last one was."""
    most = max(LEAST_PAUSE * interval_s, interval_s - took)
    return min(most, max(LEAST_PAUSE * interval_s, took / BUSY_MOST - took)), most


def _as_told(direction: Direction, subject: Subject) -> bool:
    """Whether cluster and status are already as the direction asks, as an operator that has just started mostly finds them. Further reasons a
    status has no place for; it takes a turn to leave them for metrics."""
    there = {(one.type, one.status, one.reason) for one in subject.told if one.type in TELLS}
    now = {(one.type, one.status, one.reason) for one in direction.told}
    wished = direction.record.replicas
    shares = {each.digest: each.replicas for each in subject.sets}
    same = wished is None or (wished == subject.replicas and direction.record.shares in ({}, shares))
    lost = {kind for kind, _, _ in there} - {kind for kind, _, _ in now} - {names.SLO, names.SCALING}
    besides = any(one.besides for one in direction.told)
    return same and now <= there and not lost and not besides
