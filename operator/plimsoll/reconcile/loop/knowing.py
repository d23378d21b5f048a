"""What the control loop knows of each deployment from tick to tick.

One that asks for nothing live is not read at all, and one of which nothing has changed is not read again, nor one that could not be read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, Final

from pydantic import ValidationError

from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.control.copying import replace
from plimsoll.control.decision import Told
from plimsoll.control.law import Law
from plimsoll.control.record import Record
from plimsoll.control.rollout.failing import steady
from plimsoll.facts.serving import Serving
from plimsoll.kube.errors import KubeError
from plimsoll.planning.placing.budgets import claim_of
from plimsoll.reconcile.direction import Direction
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.loop.patience import Patience
from plimsoll.reconcile.loop.retuning import untried
from plimsoll.reconcile.loop.sources import Source
from plimsoll.reconcile.loop.storing import STORE_S, first_due, matters, taught
from plimsoll.reconcile.loop.subject import Subject, subject_of
from plimsoll.reconcile.loop.tick import UNREAD, Case
from plimsoll.reconcile.world import World
from plimsoll.render.shared import plan_ref
from plimsoll.status.told import LIVE

LOG: Final = logging.getLogger(__name__)
AT_A_TIME: Final = 64
"""Deployments that are looked at before turns get the loop again."""

Mark = tuple[int | None, str, str]
"""What tells that a deployment is as it was when it was last read: the mark of its resource, and the pinned plan's uid and version."""


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Nothing could be made of a deployment. It is not read again before it changes."""

    mark: Mark
    """Of what it was then."""
    retuning: float
    """GPUs of its sets where it is in a retune, else 0."""


@dataclass(slots=True)
class Known:
    """One deployment, as the loop knows it from tick to tick."""

    subject: Subject
    mark: Mark
    """Of what the subject was made from."""
    record: Record
    """What control remembers now."""
    stored: Record
    """What of it was handed to turns, which keep it in the cluster."""
    due: float
    """When the record may be stored for what was only learned."""
    patience: Patience = field(default_factory=Patience)
    case: Case | None = None
    """As the last tick found it."""
    reads: bool = True
    """Whether the spec, as it is now, can be planned; where not, the subject is that of an earlier one."""

    def seen(self, serving: Serving) -> Case:
        """As this tick finds it. Where its pods are as they were, they are not looked through again."""
        last = self.case
        ready = last.ready if last is not None and last.serving is serving else UNREAD
        return Case(subject=self.subject, record=self.record, serving=serving, ready=ready)

    def stores(self, now: float) -> bool:
        """Whether the record is worth a write now; if so it counts as stored. What was decided always is, and what was only learned is
        once in STORE_S."""
        store = matters(self.record, self.stored)
        self.due = min(self.due, now + STORE_S)
        if store or now >= self.due:
            self.due = now + STORE_S
            store = store or taught(self.record, self.stored)
        if store:
            self.stored = self.record
        return store


class Knowing:
    """`wake` is called with a deployment of which something is to be taken back, as nobody looks at it any more."""

    def __init__(self, world: World, source: Source, wake: Callable[[str], None], law: Law) -> None:
        self._world = world
        self._source = source
        self._wake = wake
        self._law = law
        self.known: dict[str, Known] = {}
        self.retuning: dict[str, float] = {}
        """GPUs of sets in retunes of deployments of which nothing can be decided at this tick, as they cannot be read. Infinite where it
        cannot be read either whether they are in one."""
        self._unreadable: dict[str, Unreadable] = {}
        self._passed: dict[str, int | None] = {}
        """Deployments that ask for nothing live, with the mark that their resource had when that was found."""

    async def cases(self, now: float) -> dict[str, Case]:
        """The deployments that this tick looks at, as it finds them."""
        world, found = self._world, {}
        self.retuning = {}
        keys = list(world.resources)
        for start in range(0, len(keys), AT_A_TIME):
            chunk = keys[start : start + AT_A_TIME]
            # Nearly all are as they were, and to see that takes no task each.
            marks = {key: mark for key in chunk if (mark := self._changed(key)) is not None}
            read = await asyncio.gather(*(self._current(key, mark, now) for key, mark in marks.items()))
            current = dict(zip(marks, read, strict=True))
            for key in chunk:
                known = current[key] if key in current else self.known.get(key)
                if known is not None and known.reads and self._source.covers(known.subject):
                    serving, _ = steady(world.serving(key), now)
                    found[key] = known.case = known.seen(serving)
                else:
                    self._count(key, known)
                    self._leave(key, known)
            await asyncio.sleep(0)
        await self._read_budgets(found)
        for key in (self.known.keys() | self._passed.keys() | self._unreadable.keys()) - set(keys):
            self.known.pop(key, None)
            self._unreadable.pop(key, None)
            self._passed.pop(key, None)
            world.directions.pop(key, None)
        return found

    async def _read_budgets(self, keys: Iterable[str]) -> None:
        """What budgets are used up by, as it is kept: a program that has just begun has decided none of it, and turns with nothing to do do
        not decide anew. What cannot be read is asked for again at the next tick, and until then no retune has room beside."""
        # One of each namespace: it reads what all of them take.
        unknown = {key.partition("/")[0]: key for key in keys if not self._world.knows_budget(key)}
        for key in unknown.values():
            try:
                await self._world.read_budget(key)
            except KubeError:
                pass  # its turns meet the same, and tell of it
            except Exception:
                LOG.exception("a namespace's budget cannot be read", extra={"deployment": key})

    def _leave(self, key: str, known: Known | None) -> None:
        """What is left of a deployment that control no longer looks at: the conditions that it told are taken back, and a retune under way
        is undone, as nobody would judge it. Where only its spec cannot be read now, the retune goes on once it can."""
        world = self._world
        before, bearer = world.direction(key), world.resources.bearer(key)
        if before is not None:
            told = bool(before.told or before.awake)
        else:
            # By a program before this one.
            told = known is not None and any(one.type in LIVE for one in known.subject.told)
        if known is not None and not known.reads:
            if before is not None and told:
                world.directions[key] = replace(before, told=(), awake="")
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

    async def _pass(self, key: str, body: Mapping[str, Any]) -> None:
        """A deployment that asks for nothing live is not read, unless it has two sets: one of them may be a retune's that was begun
        before this program was, and has to be undone. Or its status has what control told then, which is taken back."""
        world = self._world
        bearer, told = world.resources.bearer(key), _told(body)
        if (
            bearer is None
            or world.direction(key) is not None
            or (len(world.serving(key).sets) < 2 and not told)
        ):
            return
        try:
            record = (await world.kept(key)).control
        except KubeError:
            del self._passed[key]  # so that the next tick tries again
            return
        if record is not None and (told or record.retune.step is not None):
            world.directions[key] = Direction(uid=bearer.uid, record=record, told=told)

    def _changed(self, key: str) -> Mark | None:
        """The mark of what has to be read now; None where it was read already, or nothing is planned yet."""
        child = self._world.cluster.children(key).get(plan_ref(*key.split("/", 1)))
        if child is None:
            self._unreadable.pop(key, None)
            return None
        mark = (self._world.resources.mark(key), child.uid, child.version)
        read = (self.known.get(key), self._unreadable.get(key))
        return None if any(one is not None and one.mark == mark for one in read) else mark

    async def _current(self, key: str, mark: Mark, now: float) -> Known | None:
        """What is known of it, made anew from what it is now; what was known before where it cannot be read now."""
        world = self._world
        if self._passed.get(key) == mark[0]:
            return None
        self._unreadable.pop(key, None)
        body = world.resources.get(key)
        if body is None:
            return None
        if body["metadata"].get("deletionTimestamp"):
            # Its turn takes it down, and forgets all that is said of it.
            self._passed[key] = mark[0]
            self.known.pop(key, None)
            world.directions.pop(key, None)
            return None
        if not self._source.wants(body.get("spec") or {}):
            self._passed[key] = mark[0]
            self.known.pop(key, None)
            await self._pass(key, body)
            return None
        self._passed.pop(key, None)
        return await self._made(key, body, mark, now)

    async def _made(self, key: str, body: Mapping[str, Any], mark: Mark, now: float) -> Known | None:
        world, known = self._world, self.known.get(key)
        kept: Kept | None = None
        try:
            kept, revisions = await world.left(key)
            # In a large fleet it is no longer at hand once all others were read.
            world.note_spent(key, kept)
            deployment = LLMDeployment.observed(body)
            subject = subject_of(deployment, kept, world.config, revisions)
        except (ValidationError, KubeError):
            self._unread(key, mark, kept)
            return known  # its turns meet the same, and tell of it
        except Exception:
            # What is odd about one deployment, as a plan that somebody has edited, harms no other.
            LOG.exception("a deployment's plan cannot be read", extra={"deployment": key})
            self._unread(key, mark, kept)
            return known
        if subject is None:
            self._unread(key, mark, kept)
            return known
        if known is None or known.subject.metadata.uid != subject.metadata.uid:
            known = Known(subject, mark, subject.record.read(now), subject.record, first_due(key, now))
            known.patience = Patience.of(deployment)
            self.known[key] = known
        if not known.reads:
            known.record = known.record.unwatched(now, self._law.jump_s)
        if known.mark[0] != mark[0]:
            known.patience.asked_anew()
        known.subject, known.mark, known.reads = subject, mark, True
        return known

    def _unread(self, key: str, mark: Mark, kept: Kept | None) -> None:
        """Note that nothing can be made of it as it is, nor done for it by its turns. Where not even what it had left could be read, the next
        tick asks for that again."""
        if kept is not None:
            self._unreadable[key] = Unreadable(mark, _retuning(kept))
            if (known := self.known.get(key)) is not None:
                known.reads, known.mark = False, mark
        elif key not in self.known and len(self._world.serving(key).sets) > 1:
            self.retuning[key] = inf

    def _count(self, key: str, known: Known | None) -> None:
        """Count a retune of a deployment of which nothing can be decided now: what it tries is there all the same."""
        if known is not None:
            if not known.reads and known.record.retune.step is not None:
                self.retuning[key] = known.subject.gpus
        elif (unreadable := self._unreadable.get(key)) is not None and unreadable.retuning:
            self.retuning[key] = unreadable.retuning


def _told(body: Mapping[str, Any]) -> tuple[Told, ...]:
    """What control alone tells, as a resource has it in its status."""
    said = (body.get("status") or {}).get("conditions") or ()
    return tuple(
        Told(type=one["type"], status=one["status"], reason=one["reason"], message=one["message"])
        for one in said
        if one["type"] in LIVE
    )


def _retuning(kept: Kept) -> float:
    """GPUs of sets that are in a retune by what was left of a deployment."""
    if kept.plan is None or kept.control is None or kept.control.retune.step is None:
        return 0.0
    return sum(float(claim_of(one).gpus) * one.replicas for one in kept.plan.sets)
