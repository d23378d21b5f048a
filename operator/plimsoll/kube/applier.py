"""Makes a deployment's children what they should be: writes those that differ, and deletes those that are ours and not wanted.

Objects are written by server-side apply. The first write of an object gives resourceVersion 1, which no object has, so that one call either
makes the object or fails, and somebody else's object of the same name is never adopted. Later writes give the uid, so that they change the
child that was seen or nothing. An apply leaves keys that people have added to maps of ours, as to a selector; a patch removes those.

The order matters. What workloads need is written before them (above all a set's frozen template and the pinned plan), and a route only
after what it leads to. Deletions come last, those of routes first among them; what a route has led to until now is deleted a turn later,
when gateways know the new route. What the template of a set that is to exist names is not deleted, though the spec may have no word of it
any more: an old set starts pods until it goes. If one object is refused the others are still written, but nothing is deleted while the
plan cannot be stored.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from plimsoll import names
from plimsoll.kube.child import Child, added_by_others, controller_of, written_by_others
from plimsoll.kube.children import Children
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Conflict, Invalid, KubeError, NotFound, is_another
from plimsoll.kube.growing import CLAIM, no_smaller
from plimsoll.kube.kinds import CONTROLLER_REVISION, WORKLOADS, kind_of, path_of
from plimsoll.kube.named import NAMED, named
from plimsoll.objects import Manifest, Owner, Ref

NO_VERSION: Final = "1"
"""A resourceVersion that no object has: etcd counts from 1, and the API server writes other things before any object."""
_WORKLOADS: Final = frozenset(kind.name for kind in WORKLOADS)
_NEEDED_BY_PODS: Final = frozenset(
    {"ServiceAccount", "ConfigMap", "ControllerRevision", "Service", "NetworkPolicy"}
)
"""Kinds without whose objects pods must not start."""
_POOL: Final = frozenset({"InferencePool"})
_NEEDS: Final = {**dict.fromkeys(_WORKLOADS, _NEEDED_BY_PODS), "HTTPRoute": _POOL}
"""Kinds that are written after others, each with those others."""
_ROUTES: Final = frozenset({"HTTPRoute", "Ingress"})
_LED_TO: Final = _POOL | {"Service"}
"""Kinds that routes lead to."""
_TRAFFIC: Final = _ROUTES | _LED_TO


@dataclass(frozen=True, slots=True)
class Refusal:
    """One object that could not be written or deleted, and why."""

    ref: Ref
    error: KubeError

    def __str__(self) -> str:
        return f"{self.ref}: {self.error}"


@dataclass(frozen=True, slots=True)
class Taken:
    """Somebody else's object that has the name of a child; it was left as it is."""

    ref: Ref
    by: str
    """Kind and name of its controller, or who wrote it."""

    def __str__(self) -> str:
        return f"{self.ref} is there already and belongs to {self.by}"


@dataclass(slots=True)
class Applied:
    """What a turn has written. It is empty where everything was as wanted."""

    written: list[Ref] = field(default_factory=list)
    deleted: list[Ref] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    waiting: list[Ref] = field(default_factory=list)
    """Names whose objects are being deleted or were just replaced. The owner gets another turn when that is seen."""
    held: list[Ref] = field(default_factory=list)
    """Workloads and routes that were not written, since something that they need could not be written."""

    def sort(self) -> None:
        """Makes the order independent of that in which calls ended."""
        for refs in (self.written, self.deleted, self.waiting, self.held):
            refs.sort()
        self.taken.sort(key=lambda one: one.ref)
        self.refused.sort(key=lambda one: one.ref)

    @property
    def complete(self) -> bool:
        return not (self.taken or self.refused or self.waiting or self.held)

    @property
    def lasts(self) -> bool:
        """Whether applying the same objects again would change nothing: everything is as wanted, or the objects themselves are invalid."""
        invalid = all(isinstance(refusal.error, Invalid) for refusal in self.refused)
        return invalid and not (self.taken or self.waiting or (self.held and not self.refused))

    @property
    def passing(self) -> bool:
        """Whether a refusal may pass without anybody doing anything."""
        return any(refusal.error.passes for refusal in self.refused)


class Applier:
    def __init__(self, door: Door, children: Children) -> None:
        self._door = door
        self._children = children

    async def apply(
        self,
        owner: Owner,
        wanted: Sequence[Manifest],
        *,
        prune: bool = True,
        spared: frozenset[str] = frozenset(),
    ) -> Applied:
        """Errors of single objects are in the result and are not raised. When this returns, the children's index knows of each write.

        Without `prune` nothing is deleted. Objects of the `spared` sets (by their label's value) are never deleted, nor is what they may
        name: nobody can read their templates.
        """
        have = dict(self._children.of(owner.key))
        applied = Applied()
        await self._write_all(owner, (one for one in wanted if one.ref.kind not in _NEEDS), have, applied)
        missing = {refusal.ref for refusal in applied.refused} | {taken.ref for taken in applied.taken}
        missing |= set(applied.waiting)
        on_record = not any(one.ref in missing and _is_record(one) for one in wanted)
        unmet = {ref.kind for ref in missing}
        after = [one for one in wanted if one.ref.kind in _NEEDS]
        held = {one.ref for one in after if unmet & _NEEDS[one.ref.kind]}
        applied.held = [
            one.ref for one in after if one.ref in held and _differs(owner, one, have.get(one.ref))
        ]
        await self._write_all(owner, (one for one in after if one.ref not in held), have, applied)
        prune = prune and on_record and not applied.passing
        if prune and not any(ref.kind in _WORKLOADS for ref in applied.held):
            stay = {one.ref for one in wanted} | _named(wanted)
            stay |= {ref for ref, child in have.items() if kind_of(ref).lasts or _is_spared(child, spared)}
            if applied.held:
                # The old route stays, so what it leads to stays too. Everything else is deleted, as replicas there may hold GPUs.
                stay |= {ref for ref in have if ref.kind in _LED_TO}
            await self._prune(owner, stay, have, applied)
        applied.sort()
        return applied

    async def _write_all(
        self, owner: Owner, wanted: Iterable[Manifest], have: Mapping[Ref, Child], applied: Applied
    ) -> None:
        changed = [one for one in wanted if _differs(owner, one, have.get(one.ref))]
        await asyncio.gather(*(self._write(owner, one, have.get(one.ref), applied) for one in changed))

    async def _write(self, owner: Owner, wanted: Manifest, child: Child | None, applied: Applied) -> None:
        ref = wanted.ref
        if child is not None and (child.leaving or child.owner_uid not in (owner.uid, "")):
            # A child of another uid belongs to a resource that had this name before; the garbage collector will delete it.
            self._children.awaited(ref)
            applied.waiting.append(ref)
            return
        try:
            if child is None:
                await self._make(owner, wanted, applied)
            elif child.holder:
                applied.taken.append(Taken(ref, child.holder))
            elif not (child.owner_uid or child.hash):
                # All that says it is ours are labels, which anybody may write.
                await self._take(owner, wanted, applied)
            else:
                done = await self._change(wanted, child)
                (applied.written if done else applied.waiting).append(ref)
        except KubeError as error:
            if is_another(error):
                # The index is out of date. The event that brings it up to date gives the owner another turn.
                applied.waiting.append(ref)
            else:
                applied.refused.append(Refusal(ref, error))

    async def _change(self, wanted: Manifest, child: Child) -> bool:
        """True once the child is as wanted; False where it was deleted meanwhile, so that the next turn makes it again."""
        wanted = await self._no_smaller(wanted)
        try:
            await self._send(wanted, uid=child.uid)
        except Invalid as error:
            if child.clean or is_another(error):
                raise
            # What somebody has added (a second port, a budget's other bound) stays when we apply, and may be invalid together with our
            # fields. A merge patch replaces whole lists by ours and removes the fields that others have added.
            path = path_of(wanted.ref)
            try:
                found = await self._door.get(path, metadata=True)
            except NotFound:
                return False
            content = {key: value for key, value in wanted.body.items() if key != "metadata"}
            if isinstance(spec := content.get("spec"), dict):
                theirs = written_by_others(found["metadata"], "spec") - spec.keys()
                content["spec"] = {**spec, **dict.fromkeys(theirs)}
            over = {**content, "metadata": {"uid": child.uid}}
            await self._door.patch(path, over, manager=names.MANAGER_CHILDREN)
            await self._send(wanted, uid=child.uid)
        return True

    async def _make(self, owner: Owner, wanted: Manifest, applied: Applied) -> None:
        try:
            await self._send(wanted, resourceVersion=NO_VERSION)
        except Conflict:
            # The object exists though the index does not have it: either it is ours and lost its labels, or it is somebody else's.
            await self._take(owner, wanted, applied)
            return
        applied.written.append(wanted.ref)

    async def _take(self, owner: Owner, wanted: Manifest, applied: Applied) -> None:
        """Makes an object as wanted that is there under its name, where it is the owner's."""
        ref = wanted.ref
        try:
            found = await self._door.get(path_of(ref), metadata=True)
        except NotFound:
            # It was deleted in between, or the conflict was about a quota that another write has just changed.
            applied.waiting.append(ref)
            return
        metadata = found["metadata"]
        if "deletionTimestamp" in metadata:
            applied.waiting.append(ref)
            return
        if not _ours(owner, metadata):
            applied.taken.append(Taken(ref, _holder(metadata)))
            return
        await self._send(await self._no_smaller(wanted), uid=metadata["uid"])
        applied.written.append(ref)

    async def _no_smaller(self, wanted: Manifest) -> Manifest:
        if wanted.ref.kind != CLAIM:
            return wanted
        try:
            return no_smaller(wanted, await self._door.get(path_of(wanted.ref)))
        except NotFound:
            return wanted  # the write will find no object of its uid

    async def _send(self, wanted: Manifest, **metadata: str) -> None:
        ref = wanted.ref
        path, seen_whole = path_of(ref), ref.kind in _WORKLOADS
        body = {**wanted.body, "metadata": {**wanted.body["metadata"], **metadata}}
        answer = await self._noted(
            ref, self._door.apply(path, body, manager=names.MANAGER_CHILDREN, metadata=not seen_whole)
        )
        for over in added_by_others(answer["metadata"], wanted.body):
            over["metadata"] = {"uid": answer["metadata"]["uid"]}
            with suppress(
                Invalid, NotFound
            ):  # the field cannot be changed, or the object was deleted meanwhile
                await self._noted(
                    ref, self._door.patch(path, over, manager=names.MANAGER_CHILDREN, metadata=not seen_whole)
                )

    async def _noted(self, ref: Ref, write: Awaitable[Object]) -> Object:
        """The answer to a write of ours, which the children's index is told of."""
        self._children.writing(ref)
        answer: Object | None = None
        try:
            answer = await write
        finally:
            self._children.wrote(ref, answer)
        return answer

    async def _prune(
        self, owner: Owner, wanted: set[Ref], have: Mapping[Ref, Child], applied: Applied
    ) -> None:
        unwanted = sorted(
            ref
            for ref, child in have.items()
            if ref not in wanted and not child.leaving and _ends(owner, child)
        )
        if any(ref.kind in _ROUTES for ref in applied.written):
            applied.waiting += [ref for ref in unwanted if ref.kind in _LED_TO]
            unwanted = [ref for ref in unwanted if ref.kind not in _LED_TO]
        for step in _STEPS:
            due = [ref for ref in unwanted if _step(ref) == step]
            await asyncio.gather(*(self._delete(ref, have[ref], applied) for ref in due))
            if applied.passing:
                return

    async def _delete(self, ref: Ref, child: Child, applied: Applied) -> None:
        self._children.deleting(ref)
        done = False
        try:
            await self._door.delete(path_of(ref), uid=child.uid)
            done = True
            applied.deleted.append(ref)
        except KubeError as error:
            applied.refused.append(Refusal(ref, error))
        finally:
            self._children.deleted(ref, done=done)


def _is_record(wanted: Manifest) -> bool:
    """Whether an object is the record of what was decided. Nothing is deleted for a decision that is not on record."""
    return names.PLAN_KEY in (wanted.body.get("data") or {})


def _named(wanted: Iterable[Manifest]) -> set[Ref]:
    """What sets that are to exist name in their frozen templates."""
    frozen = (one for one in wanted if one.ref.kind == CONTROLLER_REVISION.name)
    return {ref for one in frozen for ref in named(one.body.get("data"), one.ref.namespace)}


def _is_spared(child: Child, spared: frozenset[str]) -> bool:
    return child.set in spared or bool(spared and not child.set and child.ref.kind in NAMED)


def _differs(owner: Owner, wanted: Manifest, child: Child | None) -> bool:
    digest = wanted.body["metadata"]["annotations"][names.ANNOTATION_HASH]
    return (
        child is None
        or child.leaving
        or not child.clean
        or child.hash != digest
        or child.owner_uid != owner.uid
    )


def _ends(owner: Owner, child: Child) -> bool:
    """Whether a child may be deleted for the owner: it is the owner's, or an orphaned object of a set (as a deletion with orphaning leaves
    them), since its pods hold GPUs and nobody else looks after them."""
    left = not (child.owner_uid or child.holder) and child.set and child.hash
    return child.owner_uid == owner.uid or bool(left)


def _step(ref: Ref) -> int:
    """The step in which a kind is deleted: routes before workloads, so that no request goes to pods that end; what pods were started with
    comes last."""
    if ref.kind in _TRAFFIC:
        return 0
    return 1 if ref.kind in _WORKLOADS else 2


_STEPS: Final = range(3)


def _ours(owner: Owner, metadata: Object) -> bool:
    """Whether an object is the owner's: it is controlled by the owner, or by nobody but was written by us, as after somebody removed its
    owner reference."""
    controller = controller_of(metadata)
    if controller is not None:
        return bool(controller["uid"] == owner.uid)
    return names.ANNOTATION_HASH in (
        metadata.get("annotations") or {}
    ) and names.MANAGER_CHILDREN in _managers(metadata)


def _holder(metadata: Object) -> str:
    controller = controller_of(metadata)
    if controller is not None:
        return f"{controller['kind']} {controller['name']}"
    return f"whoever made it with {', '.join(_managers(metadata)) or 'a client that gave no name'}"


def _managers(metadata: Object) -> list[str]:
    return sorted({str(one.get("manager")) for one in metadata.get("managedFields") or ()})
