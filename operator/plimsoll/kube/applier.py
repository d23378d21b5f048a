"""Makes a deployment's children what they should be: writes what differs, deletes what is ours and not wanted, nothing else.

Server-side apply throughout. A first write says resourceVersion 1, which no object is at, so that it makes the object or fails,
in one call, and a foreign object of the same name is never adopted; a later one says the uid, so that it meets the child that
was seen or none. An apply leaves keys that a hand has added beside ours, as in a selector: a patch takes them away. What
workloads need is written before them (a set's frozen template and the pinned plan above all), and a route only once there is
what it leads to. What is not wanted goes last, that by which traffic comes first of it, and what a route has led to until now
a turn later, when gateways have heard of it. One object's refusal stops no other's write; but while what was decided cannot be
stored nothing goes.
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
from plimsoll.kube.kinds import WORKLOADS, kind_of, path_of
from plimsoll.objects import Manifest, Owner, Ref

NO_VERSION: Final = "1"
"""Of no object: etcd counts from 1, and the API server's first write of any object comes later."""
_WORKLOADS: Final = frozenset(kind.name for kind in WORKLOADS)
_NEEDED: Final = frozenset({"ServiceAccount", "ConfigMap", "ControllerRevision", "Service", "NetworkPolicy"})
"""What pods must not start without."""
_POOL: Final = frozenset({"InferencePool"})
_NEEDS: Final = {**dict.fromkeys(_WORKLOADS, _NEEDED), "HTTPRoute": _POOL}
"""What is written after others, and which of them."""
_WAYS: Final = frozenset({"HTTPRoute", "Ingress"})
_LED_TO: Final = _POOL | {"Service"}
_ROUTES: Final = _WAYS | _LED_TO


@dataclass(frozen=True, slots=True)
class Refusal:
    """One object that could not be written or deleted, and why."""

    ref: Ref
    error: KubeError

    def __str__(self) -> str:
        return f"{self.ref}: {self.error}"


@dataclass(frozen=True, slots=True)
class Taken:
    """An object of a child's name that is somebody else's; it was left as it is."""

    ref: Ref
    by: str
    """Its controller as Kind name, or who wrote it."""

    def __str__(self) -> str:
        return f"{self.ref} is there already and belongs to {self.by}"


@dataclass(slots=True)
class Applied:
    """What one turn has written. Nothing in it means that all is as wanted."""

    written: list[Ref] = field(default_factory=list)
    deleted: list[Ref] = field(default_factory=list)
    taken: list[Taken] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
    waiting: list[Ref] = field(default_factory=list)
    """Objects of these names are being deleted, or were replaced just now; when that is seen it wakes the owner."""
    held: list[Ref] = field(default_factory=list)
    """Workloads and routes that were not written, since something that they need could not be."""

    def sort(self) -> None:
        """Calls end in any order; what is told of them must not."""
        for refs in (self.written, self.deleted, self.waiting, self.held):
            refs.sort()
        self.taken.sort(key=lambda one: one.ref)
        self.refused.sort(key=lambda one: one.ref)

    @property
    def complete(self) -> bool:
        return not (self.taken or self.refused or self.waiting or self.held)

    @property
    def lasts(self) -> bool:
        """Whether the same would meet the same again: all is as wanted, or what is missing was refused for what it is."""
        invalid = all(isinstance(refusal.error, Invalid) for refusal in self.refused)
        return invalid and not (self.taken or self.waiting or (self.held and not self.refused))

    @property
    def passing(self) -> bool:
        """Whether trying again may help though nobody does anything."""
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
        """Raises nothing for what one object meets; the children's index knows of each write when this returns.

        Without `prune` nothing is deleted; objects of sets that are `spared`, by their label, never are.
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
            stay = {one.ref for one in wanted} | {
                ref for ref, child in have.items() if child.set in spared or kind_of(ref).lasts
            }
            if applied.held:
                # A route leads to where it led; nothing else waits for that, as replicas that hold GPUs end here too.
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
            # The second was a resource's that had this name before: the garbage collector is on its way.
            applied.waiting.append(ref)
            return
        try:
            if child is None:
                await self._make(owner, wanted, applied)
            elif child.holder:
                applied.taken.append(Taken(ref, child.holder))
            else:
                done = await self._change(wanted, child)
                (applied.written if done else applied.waiting).append(ref)
        except KubeError as error:
            if is_another(error):
                # The index is behind: what tells it of the change wakes the owner.
                applied.waiting.append(ref)
            else:
                applied.refused.append(Refusal(ref, error))

    async def _change(self, wanted: Manifest, child: Child) -> bool:
        """Whether it is as wanted; else it went meanwhile, and the next turn makes it anew."""
        try:
            await self._send(wanted, uid=child.uid)
        except Invalid as error:
            if child.clean or is_another(error):
                raise
            # What somebody added (a second port, a budget's other bound) stays beside ours when we apply, and the two may not
            # go together: a merge patch puts our lists in the place of those that are there, and takes their fields away.
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
        ref = wanted.ref
        try:
            await self._send(wanted, resourceVersion=NO_VERSION)
        except Conflict:
            # It is there, though the index does not have it: ours whose labels were taken away, or somebody else's.
            try:
                found = await self._door.get(path_of(ref), metadata=True)
            except NotFound:
                # It went in between, or it was a quota whose count another write has changed: the next turn makes it.
                applied.waiting.append(ref)
                return
            metadata = found["metadata"]
            if "deletionTimestamp" in metadata:
                applied.waiting.append(ref)
                return
            if not _ours(owner, metadata):
                applied.taken.append(Taken(ref, _holder(metadata)))
                return
            await self._send(wanted, uid=metadata["uid"])
        applied.written.append(ref)

    async def _send(self, wanted: Manifest, **metadata: str) -> None:
        ref = wanted.ref
        path, seen_whole = path_of(ref), ref.kind in _WORKLOADS
        body = {**wanted.body, "metadata": {**wanted.body["metadata"], **metadata}}
        answer = await self._noted(
            ref, self._door.apply(path, body, manager=names.MANAGER_CHILDREN, metadata=not seen_whole)
        )
        for over in added_by_others(answer["metadata"], wanted.body):
            over["metadata"] = {"uid": answer["metadata"]["uid"]}
            with suppress(Invalid, NotFound):  # some fields stay as they were set once; or it went meanwhile
                await self._noted(
                    ref, self._door.patch(path, over, manager=names.MANAGER_CHILDREN, metadata=not seen_whole)
                )

    async def _noted(self, ref: Ref, write: Awaitable[Object]) -> Object:
        """What a write of ours answers, of which the children's index is told."""
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
        if any(ref.kind in _WAYS for ref in applied.written):
            applied.waiting += [ref for ref in unwanted if ref.kind in _LED_TO]
            unwanted = [ref for ref in unwanted if ref.kind not in _LED_TO]
        for step in range(3):
            now = [ref for ref in unwanted if _step(ref) == step]
            await asyncio.gather(*(self._delete(ref, have[ref], applied) for ref in now))
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
    """Of what was decided, by which the next operator goes on: nothing goes for a decision that is not in it."""
    return names.PLAN_KEY in (wanted.body.get("data") or {})


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
    """Whether it is the owner's to end: its own, or of a set whose owner was taken away, as by a deletion that leaves orphans. Their
    pods hold GPUs, and nobody else looks after them."""
    left = not (child.owner_uid or child.holder) and child.set and child.hash
    return child.owner_uid == owner.uid or bool(left)


def _step(ref: Ref) -> int:
    """Routes go before workloads, so that nothing is sent to what goes; what pods were started with goes last."""
    if ref.kind in _ROUTES:
        return 0
    return 1 if ref.kind in _WORKLOADS else 2


def _ours(owner: Owner, metadata: Object) -> bool:
    """Controlled by the owner; or by nobody, but written by us before, as when someone took the owner away."""
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
