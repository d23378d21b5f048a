"""Brings a model from where it is to a folder of this machine, once for all that share the folder.

A revision that was asked for before and is whole is not asked for again: it was resolved once, and all replicas on one volume
load the same. Otherwise one of them fetches and the others wait and tell how far it is.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

from plimsoll_runtime.failure import Failure
from plimsoll_runtime.sources.bucket import Bucket
from plimsoll_runtime.sources.choice import chosen
from plimsoll_runtime.sources.download import Download, Told, of_disk
from plimsoll_runtime.sources.hub import Hub
from plimsoll_runtime.sources.lease import Lease
from plimsoll_runtime.sources.listing import File, Listing, Source
from plimsoll_runtime.sources.modelscope import ModelScope
from plimsoll_runtime.sources.registry import ARCHIVES, Registry
from plimsoll_runtime.sources.stores import HubStore, Store, folder_store
from plimsoll_runtime.sources.trouble import (
    ANEW,
    FetchFailed,
    Patience,
    Refused,
    Stopped,
    failed,
    patiently,
)
from plimsoll_runtime.sources.unpacking import unpack
from plimsoll_runtime.sources.web import Web

_T = TypeVar("_T")
MOST_SMALL = 64 << 20
"""Of an index."""
BRIEF_SECONDS = 5.0
"""How long a server may say nothing where a model is here already, but for parts of it."""


Judge = Callable[[Path], "Failure | None"]
"""Of the model's folder."""


class Fetched(NamedTuple):
    path: Path
    """The model's folder."""
    revision: str
    """A commit, or a digest of what is there."""


def scheme_of(source: str) -> str:
    if source.startswith(("/", ".", "~")):
        return "path"
    scheme, separator, _ = source.partition("://")
    return scheme if separator else "hf"


def location_of(source: str) -> str:
    return source.partition("://")[2] or source


def source_of(source: str, revision: str | None, web: Web) -> Source:
    """The client for a source. It asks nothing before it is used."""
    scheme, location = scheme_of(source), location_of(source)
    if scheme == "hf":
        return Hub(location, revision, web)
    if scheme == "s3":
        return Bucket(location, web)
    if scheme == "modelscope":
        return ModelScope(location, revision, web)
    if scheme == "oci":
        return Registry(location, web)
    raise failed("ModelNotFound", f"nobody here fetches from {scheme}://", "correct spec.model.source")


def store_of(source: str, into: Path) -> Store:
    """Where a model is kept. For a repository of the hub `into` is the hub's cache, for all others the folder below which models are kept."""
    scheme, location = scheme_of(source), location_of(source)
    return HubStore(into, location) if scheme == "hf" else folder_store(into, scheme, location)


def fetch(
    source: str,
    revision: str | None,
    into: Path,
    told: Told,
    environment: Mapping[str, str],
    *,
    load_format: str | None = None,
    asks: bool = False,
    judge: Judge = lambda _: None,
    patience: Patience | None = None,
) -> Fetched:
    """Brings a model and says where it lies; raises FetchFailed with what to tell, or Stopped. `asks`: the engine will ask the hub too. A
    model that `judge` refuses is asked for anew the next time."""
    patience = patience or Patience()
    one = _Fetch(source, revision, told, Web(environment, patience), load_format, asks, judge)
    store = store_of(source, into)
    older = None if one.kept(store) is not None else one.kept(store, doubtful=True)
    if older is None:
        return _brought(one, store)
    # It served until now, so that a hub that does not answer or a disk that takes no more is no reason to serve no longer.
    brief = patience._replace(
        attempts=min(2, patience.attempts), timeout=min(BRIEF_SECONDS, patience.timeout)
    )
    web = Web(environment, brief)
    try:
        return _brought(one._replace(web=web, older=older.revision), store)
    except FetchFailed as error:
        told.says(f"{error}: goes on with {source} as an earlier release brought it, maybe without its parts")
        one.judged(older.path)
        return older


def _brought(one: _Fetch, store: Store) -> Fetched:
    with Lease(store.lock) as lease:
        try:
            waited = False
            while (found := one.kept(store)) is None and not lease.take():
                _wait(lease, one.told)
                waited = True
            # Whoever had the place before may have left it whole.
            found = found or one.kept(store)
            if found is None and waited and one.older is not None:
                # Each would else fail in turn, and those behind them start late.
                raise failed("Download", f"another pod did not complete {one.source}", ANEW)
            if found is not None:
                one.judged(found.path)
            return found or one.into(store, lease)
        except OSError as error:
            raise of_disk(error, store.root) from error


def _wait(lease: Lease, told: Told) -> None:
    try:
        owner = lease.owner()
    except OSError:  # it tells no progress for now
        owner = None
    if owner is not None and owner.done is not None and owner.of:
        told.progress(owner.done, owner.of)
    if pause(told, 1.0):
        raise Stopped


def pause(told: Told, seconds: float) -> bool:
    """Waits for so many seconds; true, and at once, where the fetch is to end."""
    until = time.monotonic() + seconds
    while not told.stopped():
        left = until - time.monotonic()
        if left <= 0:
            return False
        time.sleep(min(0.2, left))
    return True


class _Shared(NamedTuple):
    """Tells of the progress as asked, and through the lease also those who wait for this fetch."""

    told: Told
    lease: Lease

    def progress(self, done: int, of: int) -> None:
        self.lease.tells(done, of)
        self.told.progress(done, of)

    def says(self, text: str) -> None:
        self.told.says(text)

    def waits(self, text: str | None) -> None:
        self.told.waits(text)

    def stopped(self) -> bool:
        return self.told.stopped()


class _Fetch(NamedTuple):
    source: str
    revision: str | None
    told: Told
    web: Web
    load_format: str | None
    asks: bool
    judge: Judge
    older: str | None = None
    """The revision that is here and may lack weights of parts, if one is."""

    def kept(self, store: Store, *, doubtful: bool = False) -> Fetched | None:
        doubtful = doubtful or scheme_of(self.source) == "oci"  # layers come with all that is in them
        revision = store.revision_of(self.revision)
        folder = None if revision is None else store.whole(revision, self.load_format, doubtful=doubtful)
        return None if folder is None or revision is None else Fetched(folder, revision)

    def into(self, store: Store, lease: Lease) -> Fetched:
        known = self.older if scheme_of(self.source) == "hf" else None
        client = source_of(self.source, known or self.revision, self.web)
        listing = self._patiently(client.listing)
        if self.older not in (None, listing.revision):
            raise failed("ModelNotFound", f"{client.name} holds another revision by now", ANEW)
        if not listing.files:
            raise failed("ModelNotFound", f"{client.name} holds no files", ANEW)
        self.told.says(f"fetches {self.source} at {listing.revision} into {store.root}")
        archives = [file for file in listing.files if file.path.startswith(ARCHIVES)]
        plain = [file for file in listing.files if not file.path.startswith(ARCHIVES)]
        indexed = partial(self._named_by, client=client, listing=listing)
        files = (*archives, *chosen(plain, self.load_format, indexed, asks=self.asks))
        wanted = Listing(
            listing.revision, tuple(self._patiently(partial(client.with_sums, file)) for file in files)
        )
        download = Download(client, store.jobs(wanted), self.web.patience)
        download.run(_Shared(self.told, lease))
        if archives:
            self.told.says(f"unpacks {len(archives)} layers")
            folder = store.folder(listing.revision)
            wanted = wanted._replace(files=unpack(folder / ARCHIVES, folder, self.told.stopped))
        folder = store.link(wanted)
        self.judged(folder)
        store.keep(self.revision, wanted, self.load_format)
        return Fetched(folder, listing.revision)

    def judged(self, folder: Path) -> None:
        failure = self.judge(folder)
        if failure is not None:
            raise FetchFailed(failure)

    def _named_by(self, index: str, client: Source, listing: Listing) -> Sequence[str]:
        file = next(file for file in listing.files if file.path == index)
        body = self._patiently(lambda: small(client, file))
        try:
            return sorted({str(name) for name in json.loads(body)["weight_map"].values()})
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise failed("BadCheckpoint", f"{index} of {client.name} is no index of weights", ANEW) from error

    def _patiently(self, call: Callable[[], _T]) -> _T:
        def wait(seconds: float, why: str) -> bool:
            self.told.waits(f"{why}: asks again in {seconds:.0f} s")
            stopped = pause(self.told, seconds)
            self.told.waits(None)
            return stopped

        return patiently(call, self.web.patience, wait)


def small(client: Source, file: File) -> bytes:
    """The bytes of a small file, whole."""
    if file.size > MOST_SMALL:
        raise failed("BadCheckpoint", f"{file.path} of {client.name} has {file.size} bytes", ANEW)
    try:
        with client.open(file, 0, file.size) as answer:
            return answer.text()
    except Refused as refused:
        raise failed("Download", f"{client.name}: {refused} for {file.path}", ANEW) from refused
