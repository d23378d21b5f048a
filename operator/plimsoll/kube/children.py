"""The index of the children that each deployment has in the cluster, kept up to date by watches.

There are many children, so only their metadata is watched; those that make pods are read whole, for their replicas. A change of a child
wakes its deployment, unless it is our own write that comes back as an event. To tell these apart the index takes over the answer to a write
before it looks at its event, and events that come while a write is under way wait for its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from plimsoll.kube.child import Child, read_child
from plimsoll.kube.door import Door, Object
from plimsoll.kube.kinds import CHILDREN, OURS, WORKLOADS, Kind, kind_of
from plimsoll.kube.pace import Pace
from plimsoll.kube.watchers import Watched
from plimsoll.kube.watching import Source
from plimsoll.objects import Ref

NONE: Final[Mapping[Ref, Child]] = {}

Wake = Callable[[str], None]
"""Called with the namespace/name of a deployment that is to have a turn."""


class Children(Watched):
    def __init__(
        self, door: Door, wake: Wake, *, pace: Pace | None = None, namespaces: Iterable[str] = ()
    ) -> None:
        self._wake = wake
        super().__init__(door, pace, namespaces)
        self._known: dict[str, dict[Ref, Child]] = {kind.name: {} for kind in CHILDREN}
        self._by_owner: dict[str, dict[Ref, Child]] = {}
        self._writing: dict[Ref, _Write] = {}
        self._our_deletions: set[str] = set()
        """Uids of children that we deleted, until they are seen to be gone."""

    def start(self, served: Iterable[Kind] = ()) -> None:
        """Watches all kinds of children, of the optional ones only those that are served."""
        chosen = set(served)
        for kind in CHILDREN:
            if not kind.optional or kind in chosen:
                for source in self._sources(kind):
                    self._watchers.start(source, _ChildrenSink(self, kind, source.namespace))

    async def serve(self, served: Iterable[Kind]) -> None:
        """Watches these optional kinds and no others from now on, as no others are served."""
        chosen = set(served)
        for kind in CHILDREN:
            if kind.optional and kind not in chosen:
                await self._watchers.stop(self._sources(kind))
                for child in list(self._known[kind.name].values()):
                    self.gone(child)
        self.start(chosen)

    def __len__(self) -> int:
        return sum(len(mine) for mine in self._known.values())

    def of(self, owner: str) -> Mapping[Ref, Child]:
        """The children of a deployment (namespace/name). Copy it to keep it over an await."""
        return self._by_owner.get(owner, NONE)

    def known(self, kind: str) -> Mapping[Ref, Child]:
        """All children of one kind."""
        return self._known[kind]

    def writing(self, ref: Ref) -> None:
        """A write of this object begins. What is seen of it from now on wakes nobody until the answer is known."""
        known = self._known[ref.kind].get(ref)
        self._writing[ref] = _Write(known.refused if known else "")

    def wrote(self, ref: Ref, answer: Object | None) -> None:
        """The write has ended with this answer. Where there is none, whatever was seen meanwhile counts as a change."""
        write = self._writing.pop(ref, _NO_WRITE)
        child = read_child(kind_of(ref), answer, clean=True) if answer is not None else None
        later = write.seen
        if child is None:
            if later is not None:
                self._wake(later.owner)
            return
        if later is not None and _older(child, later):
            if write.gone or later.uid != child.uid or later.mark != child.mark:
                # Somebody else wrote it after us, or deleted it.
                self._wake(child.owner)
                return
            # Only its status moved, before the answer to our write had arrived.
            child = later._replace(clean=True)
        known = self._known[ref.kind].get(ref)
        if child.workload is None and known is not None:
            child = child._replace(workload=known.workload)
        self._keep(child)
        if child.refused != write.refused:
            # The turn that wrote it does not know this yet, and the event of this version will not wake anybody.
            self._wake(child.owner)

    def deleting(self, ref: Ref) -> None:
        """A deletion of ours begins. What is seen of the object from now on wakes nobody."""
        known = self._known[ref.kind].get(ref)
        if known is not None:
            self._our_deletions.add(known.uid)

    def deleted(self, ref: Ref, *, done: bool) -> None:
        """The deletion has ended. If it was accepted the child counts as leaving until it is seen to be gone."""
        known = self._known[ref.kind].get(ref)
        if known is not None and known.uid in self._our_deletions:
            if done:
                self._keep(known._replace(leaving=True))
            else:
                self._our_deletions.discard(known.uid)

    def awaited(self, ref: Ref) -> None:
        """The owner wants the name again of a child that is leaving, even if we have deleted that: its end wakes."""
        known = self._known[ref.kind].get(ref)
        if known is not None:
            self._our_deletions.discard(known.uid)

    def seen(self, child: Child, *, as_of: int | None, first: bool) -> None:
        """A child was seen in a list of version `as_of`, or in an event where that is None. `first`: no list of its kind is complete yet."""
        known = self._known[child.ref.kind].get(child.ref)
        if known is not None and _newer(known, child, as_of):
            return
        if known is None or known.uid != child.uid:
            if known is not None:
                self._our_deletions.discard(known.uid)
            # At the start of the operator every deployment gets a turn anyway, as it is listed.
            quiet = first and known is None
        else:
            again = known.version == child.version
            same = again or known.mark == child.mark
            quiet = again or (same and known.refused == child.refused)
            # Nothing takes a deletion back.
            child = child._replace(clean=known.clean and same, leaving=known.leaving or child.leaving)
        self._keep(child)
        self._tell(child, quiet=quiet or child.uid in self._our_deletions)

    def gone(self, child: Child) -> None:
        """A child was seen to be gone at the version that it is given with."""
        known = self._known[child.ref.kind].get(child.ref)
        if known is None or known.uid != child.uid or _older(child, known):
            # Only our label was gone, and we have written it again since.
            return
        del self._known[child.ref.kind][child.ref]
        self._leave(known)
        ours = known.uid in self._our_deletions
        self._our_deletions.discard(known.uid)
        self._tell(child, quiet=ours, gone=True)

    def _tell(self, child: Child, *, quiet: bool, gone: bool = False) -> None:
        if child.ref in self._writing:
            self._writing[child.ref] = self._writing[child.ref]._replace(seen=child, gone=gone)
        elif not quiet:
            self._wake(child.owner)

    def _keep(self, child: Child) -> None:
        known = self._known[child.ref.kind].get(child.ref)
        if known is not None and known.owner != child.owner:
            self._leave(known)
        self._known[child.ref.kind][child.ref] = child
        self._by_owner.setdefault(child.owner, {})[child.ref] = child

    def _leave(self, child: Child) -> None:
        mine = self._by_owner[child.owner]
        del mine[child.ref]
        if not mine:
            del self._by_owner[child.owner]

    def _sources(self, kind: Kind) -> list[Source]:
        return self._watchers.sources(kind, selector=OURS, metadata=kind not in WORKLOADS)


class _Write(NamedTuple):
    """A write whose answer is not known yet."""

    refused: str
    """Why the API server refused the object's pods when the write began."""
    seen: Child | None = None
    """What was seen of the object last, since then."""
    gone: bool = False
    """Whether it was seen to be gone."""


_NO_WRITE: Final = _Write("")


class _ChildrenSink:
    """The sink of one watcher."""

    def __init__(self, children: Children, kind: Kind, namespace: str) -> None:
        self._children = children
        self._kind = kind
        self._namespace = namespace
        self._listed = False

    def put(self, item: Object, *, as_of: int | None) -> None:
        child = read_child(self._kind, item)
        if child is not None:
            self._children.seen(child, as_of=as_of, first=not self._listed)

    def remove(self, item: Object) -> None:
        child = read_child(self._kind, item)
        if child is not None:
            self._children.gone(child)

    def keep_only(self, keys: set[str], *, as_of: int) -> None:
        self._listed = True
        for ref, child in list(self._children.known(self._kind.name).items()):
            ours = self._namespace in ("", ref.namespace)
            # The list does not have what we have written since it was made.
            if ours and f"{ref.namespace}/{ref.name}" not in keys and int(child.version) <= as_of:
                self._children.gone(child._replace(version=str(as_of)))


def _newer(known: Child, child: Child, as_of: int | None) -> bool:
    """Whether the index has a newer version than what is told now, as from the answer to a write of ours."""
    return _older(child, known) if as_of is None else int(known.version) > as_of


def _older(one: Child, other: Child) -> bool:
    """By resourceVersion, which the API promises to be comparable within a kind."""
    return int(one.version) < int(other.version)
