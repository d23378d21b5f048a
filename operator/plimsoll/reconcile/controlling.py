"""The control loop: every few seconds one look at the whole fleet's metrics, one decision for each deployment, and a wake for
those whose decision changes something.

What is decided is remembered here and handed to turns, which do it and keep it. All of it can be lost at any time: a tick
after a restart goes on from what turns have kept.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from plimsoll import names
from plimsoll.api.conditions import get_condition
from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.control.copying import replace
from plimsoll.control.decision import Told
from plimsoll.control.gate import SILENT, lasting, lasting_since
from plimsoll.control.latencies import Spreads
from plimsoll.control.law import Law
from plimsoll.control.record import Record
from plimsoll.control.rollout.failing import steady
from plimsoll.control.samples import Window
from plimsoll.facts.serving import Serving
from plimsoll.kube.errors import KubeError
from plimsoll.kube.times import seconds
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.judging import judged
from plimsoll.reconcile.retuning import untried
from plimsoll.reconcile.situations import SetsSeen
from plimsoll.reconcile.sources import Asked, Looked, Source
from plimsoll.reconcile.storing import STORE_S, first_due, matters, taught
from plimsoll.reconcile.subject import Subject, subject_of
from plimsoll.reconcile.tick import UNREAD, Case, Judged, Tick
from plimsoll.reconcile.unanswered import Unanswered
from plimsoll.reconcile.world import World
from plimsoll.render.shared import plan_ref

LOG: Final = logging.getLogger(__name__)
PATIENCE_S: Final = 60.0
"""Metrics that have been missing for less are not told of: a replica that has just come is scraped a moment later."""
TICKS: Final = {"PrometheusUnreachable": 4.0}
"""Looks without an answer before that is told, where it is more than one."""
LIMITED_S: Final = 600.0
"""For so long it is still told that scaling is limited: what comes and goes with each tick would be a write each time."""
LEAST_PAUSE: Final = 0.2
"""Of the interval, between two looks: turns need the time too, and so does whoever answers."""
BUSY_MOST: Final = 0.2
"""Share of all time that looks may take which alerts ask for: a large fleet always has somebody who fires."""
AT_A_TIME: Final = 64
"""Deployments that are looked at before turns get the loop again."""
TELLS: Final = frozenset({names.METRICS, names.SCALING, names.SLO, names.AUTOTUNE_PAUSED})


Mark = tuple[int | None, str, str]


@dataclass(slots=True)
class _Known:
    subject: Subject
    mark: Mark
    """Of the resource and of the pinned plan that it was made from."""
    record: Record
    stored: Record
    due: float
    """When what was only learned may be stored."""
    missing_since: float | None = None
    dark_since: float | None = None
    """Since when nobody says how loaded the replicas are; before this program began, by what the status told then."""
    limited_at: float | None = None
    """When there was last less than is wanted."""
    case: Case | None = None
    """As the last tick found it."""
    reads: bool = True
    """Whether the spec can be what it is by now."""

    def seen(self, serving: Serving) -> Case:
        """As this tick finds it; whose pods are as they were is not looked through again."""
        last = self.case
        ready = last.ready if last is not None and last.serving is serving else UNREAD
        return Case(subject=self.subject, record=self.record, serving=serving, ready=ready)


class Control:
    def __init__(
        self, world: World, source: Source, wake: Callable[[str], None], *, interval_s: float
    ) -> None:
        self._world = world
        self._source = source
        self._wake = wake
        self._interval_s = interval_s
        self._law = Law(tick_s=interval_s)
        self._window = Window()
        self._spreads = Spreads()
        self._sets = SetsSeen()
        self._known: dict[str, _Known] = {}
        self._passed: dict[str, int | None] = {}
        """Resources that ask for nothing that is looked at, by the mark of what they say."""
        self.ticks = 0
        self.seconds = 0.0
        """That all ticks took."""
        self.reachable = True
        self._unanswered = Unanswered()
        self._asked = asyncio.Event()

    def soon(self) -> None:
        """Somebody says that there is something to see: the next look does not wait for its time."""
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
        cases = await self._cases(now)
        asked = [
            Asked(case.subject, tuple(pods[0] for pods in case.ready.values())) for case in cases.values()
        ]
        looked = await self._looked(now, asked)
        self._unanswered.tell(looked)
        self.reachable = looked.reachable
        self._window = await asyncio.to_thread(self._window.add, now, looked.samples)
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
        )
        self.ticks += 1
        found = await asyncio.to_thread(judged, tick, cases)
        self._spreads.over()
        self._sets.over()
        for place, (key, each) in enumerate(found.items(), 1):
            self._hand(key, each, now)
            if place % AT_A_TIME == 0:
                await asyncio.sleep(0)

    async def _looked(self, now: float, asked: list[Asked]) -> Looked:
        try:
            return await self._source.look(now, asked)
        except Exception:
            LOG.exception("metrics could not be read")
            return Looked(reachable=False)

    async def _cases(self, now: float) -> dict[str, Case]:
        world, found = self._world, {}
        keys = list(world.resources)
        for start in range(0, len(keys), AT_A_TIME):
            chunk = keys[start : start + AT_A_TIME]
            # Nearly all are as they were, and to see that takes no task each.
            marks = {key: mark for key in chunk if (mark := self._changed(key)) is not None}
            read = await asyncio.gather(*(self._current(key, mark, now) for key, mark in marks.items()))
            current = dict(zip(marks, read, strict=True))
            for key in chunk:
                known = current[key] if key in current else self._known.get(key)
                if known is not None and known.reads and self._source.covers(known.subject):
                    serving, _ = steady(world.serving(key), now)
                    found[key] = known.case = known.seen(serving)
                else:
                    self._leave(key, known)
            await asyncio.sleep(0)
        for key in (self._known.keys() | self._passed.keys()) - set(keys):
            self._known.pop(key, None)
            self._passed.pop(key, None)
            world.directions.pop(key, None)
        return found

    def _leave(self, key: str, known: _Known | None) -> None:
        """Nobody looks at it any more: what was told of it is taken back, and so is what was tried, which nobody judges. Where its spec
        cannot be read, what is tried goes on once it can."""
        world = self._world
        before, bearer = world.directions.get(key), world.resources.bearer(key)
        told = before is not None and bool(before.told)
        if known is not None and not known.reads:
            if before is not None and told:
                world.directions[key] = replace(before, told=())
                self._wake(key)
            return
        record = known.stored if known is not None else before.record if before is not None else None
        if record is None or bearer is None or not (told or record.retune.step is not None):
            return
        record, news = untried(record, world.now(), world.config.restarts.failures_until_pause)
        if news and (body := world.resources.get(key)) is not None:
            world.books.decided(news)
            world.cluster.announce(ObjectMeta.model_validate(body["metadata"]), news)
        if known is not None:
            known.record = known.stored = record
        world.directions[key] = Direction(uid=bearer.uid, record=replace(record, replicas=None))
        self._wake(key)

    async def _pass(self, key: str) -> None:
        """What asks for nothing is not read, unless it has two sets: the one may be tried since before this program began."""
        world = self._world
        bearer = world.resources.bearer(key)
        if bearer is None or key in world.directions or len(world.serving(key).sets) < 2:
            return
        try:
            record = (await world.kept(key)).control
        except KubeError:
            return
        if record is not None and record.retune.step is not None:
            world.directions[key] = Direction(uid=bearer.uid, record=record)

    def _changed(self, key: str) -> Mark | None:
        """The mark of what is to be read; None where it was read, or there is no plan."""
        known, child = (
            self._known.get(key),
            self._world.cluster.children(key).get(plan_ref(*key.split("/", 1))),
        )
        if child is None:
            return None
        mark = (self._world.resources.mark(key), child.uid, child.version)
        return None if known is not None and known.mark == mark else mark

    async def _current(self, key: str, mark: Mark, now: float) -> _Known | None:
        """What is known of it, made again; the last where it cannot be read now."""
        world = self._world
        if self._passed.get(key) == mark[0]:
            return None
        body = world.resources.get(key)
        if body is None:
            return None
        if body["metadata"].get("deletionTimestamp"):
            # Its turn takes it down, and forgets all that is said of it.
            self._passed[key] = mark[0]
            self._known.pop(key, None)
            world.directions.pop(key, None)
            return None
        if not self._source.wants(body.get("spec") or {}):
            self._passed[key] = mark[0]
            self._known.pop(key, None)
            await self._pass(key)
            return None
        self._passed.pop(key, None)
        return await self._made(key, body, mark, now)

    async def _made(self, key: str, body: Mapping[str, Any], mark: Mark, now: float) -> _Known | None:
        world, known = self._world, self._known.get(key)
        try:
            deployment = LLMDeployment.observed(body)
            kept, revisions = await world.left(key)
            subject = subject_of(deployment, kept, world.config, revisions)
        except (ValidationError, KubeError):
            return known
        except Exception:
            # What is odd about one deployment, as a plan that somebody has edited, harms no other.
            LOG.exception("a deployment's plan cannot be read", extra={"deployment": key})
            return known
        if subject is None:
            if known is not None:
                known.reads, known.mark = False, mark
            return known
        if known is None or known.subject.metadata.uid != subject.metadata.uid:
            known = _Known(subject, mark, subject.record.read(now), subject.record, first_due(key, now))
            known.dark_since = _dark_since(deployment)
            self._known[key] = known
        if not known.reads:
            known.record = known.record.unwatched(now, self._law.jump_s)
        if known.mark[0] != mark[0]:
            known.limited_at = None
        known.subject, known.mark, known.reads = subject, mark, True
        return known

    def _hand(self, key: str, found: Judged, now: float) -> None:
        known, bearer = self._known.get(key), self._world.resources.bearer(key)
        if known is None or bearer is None or bearer.uid != known.subject.metadata.uid:
            return  # it is gone, and another may bear its name
        known.record = found.record
        LOG.debug("%s", found.reason or "the plan decides", extra={"deployment": key})
        if found.why_not:
            LOG.debug("no retune: %s", found.why_not, extra={"deployment": key})
        before = self._world.direction(key)
        told = self._told(known, found, before, now)
        if found.news:
            self._world.books.decided(found.news)
            self._world.cluster.announce(known.subject.metadata, found.news)
        store = matters(found.record, known.stored)
        known.due = min(known.due, now + STORE_S)
        if store or now >= known.due:
            known.due = now + STORE_S
            store = store or taught(found.record, known.stored)
        if store:
            known.stored = found.record
        # What is learned in between is not handed on: each would be a write.
        record = replace(known.stored, replicas=found.record.replicas, shares=found.record.shares)
        moved = before is None or store or before.record.replicas != record.replicas
        after = Direction(
            uid=bearer.uid,
            record=record,
            reason=found.reason if moved else before.reason if before is not None else "",
            told=told,
        )
        if before is not None and not store and after.mark == before.mark:
            return
        self._world.directions[key] = after
        if before is None and not store and _as_told(after, known.subject):
            self._world.directed[key] = after
            return
        self._wake(key)

    def _told(self, known: _Known, found: Judged, before: Direction | None, now: float) -> tuple[Told, ...]:
        told = {one.type: one for one in found.told}
        last = {one.type: one for one in (known.subject.told if before is None else before.told)}
        metrics = told.get(names.METRICS)
        if metrics is None or metrics.status == "True":
            known.missing_since = known.dark_since = None
        else:
            # What is to come was seen before a clock was put back: it counts as of now.
            known.missing_since = now if known.missing_since is None else min(known.missing_since, now)
            if metrics.reason not in SILENT:
                known.dark_since = None
            else:
                known.dark_since = now if known.dark_since is None else min(known.dark_since, now)
            # A Prometheus that starts again would be two writes to every deployment of the fleet.
            patience = (
                PATIENCE_S
                if metrics.reason == "Missing"
                else TICKS.get(metrics.reason, 0.5) * self._interval_s
            )
            if now - known.missing_since < patience:
                del told[names.METRICS]
                told |= {kind: one for kind, one in last.items() if kind == names.METRICS}
            elif known.dark_since is not None:
                told[names.METRICS] = lasting(metrics, known.dark_since, now, self._law)
        if names.SCALING in told:
            known.limited_at = now
        elif known.limited_at is not None and before is not None and names.SCALING in last:
            # A load that wavers around the most that can be had is limited all the time.
            same = before.record.replicas == found.record.replicas
            if same and abs(now - known.limited_at) < LIMITED_S:
                told[names.SCALING] = last[names.SCALING]
        return tuple(told[kind] for kind in sorted(told))


def pauses(took: float, interval_s: float) -> tuple[float, float]:
    """Seconds until the next look where somebody asks for it, and where nobody does; `took` is how long this one was."""
    most = max(LEAST_PAUSE * interval_s, interval_s - took)
    return min(most, max(LEAST_PAUSE * interval_s, took / BUSY_MOST - took)), most


def _dark_since(deployment: LLMDeployment) -> float | None:
    """Since when its status says that metrics are missing; None: it does not."""
    said = get_condition(deployment.status.conditions, names.METRICS)
    if said is None or said.status != "False" or said.reason not in SILENT:
        return None
    told = lasting_since(said.message)
    return seconds(said.last_transition_time) if told is None else told


def _as_told(direction: Direction, subject: Subject) -> bool:
    """Whether cluster and status are already so, as an operator that starts finds them."""
    there = {(one.type, one.status, one.reason) for one in subject.told if one.type in TELLS}
    now = {(one.type, one.status, one.reason) for one in direction.told}
    wished = direction.record.replicas
    shares = {each.digest: each.replicas for each in subject.sets}
    same = wished is None or (wished == subject.replicas and direction.record.shares in ({}, shares))
    lost = {kind for kind, _, _ in there} - {kind for kind, _, _ in now} - {names.SLO, names.SCALING}
    return same and now <= there and not lost
