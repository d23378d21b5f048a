"""All of the operator's calls to the API server: JSON by path, on the event loop.

Every call has a timeout, and at most 60 run at once (watches not counted). Reads and writes have bounds of their own, so that a burst of
writes never holds up the lists that a turn waits for. After status 429 a call is repeated later. A failed read is repeated too, as a list of
many pages might otherwise never be complete; what to do about a failed write is left to the caller.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from plimsoll.kube.credentials import Access
from plimsoll.kube.errors import Gone, KubeError, NotFound, NotLeading, Refused, Unreachable, refusal
from plimsoll.kube.pace import Pace
from plimsoll.kube.transport import JSON, Calls, Request, Transport

Object = dict[str, Any]

READS: Final = 16
WRITES: Final = 44
"""Calls of each sort that may run at once. On a real API server 32 and 64 writers took equally long for a burst."""
METADATA_PAGE: Final = 200
"""Objects on a page whose metadata alone is read. Each takes 5 KB for a moment: with pages of 500 the seven kinds that are read at the
start took 20 MB."""
WHOLE_PAGE: Final = 100
"""Objects on a page that are read whole: 500 Deployments take 26 MB for a moment, and block the event loop while they are parsed."""
CALL_SECONDS: Final = 20.0
TRIES: Final = 5
"""How often a read that fails is tried, and any call that is answered with 429."""
LONGEST_WAIT_SECONDS: Final = 30.0
"""How long Retry-After is obeyed at most."""
WATCH_SECONDS: Final = 300
SILENCE_SECONDS: Final = 70.0
"""How long a watch may be silent. Bookmarks come about once a minute, so such a watch is dead, or of a kind that has no bookmarks."""

APPLY: Final = "application/apply-patch+yaml"
MERGE: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
_METADATA: Final = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_METADATA_LIST: Final = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list."""

    items: list[Object]
    version: str
    """Version of the whole list, from which a watch goes on."""


class Door:
    """Use it with `async with`. `may_write` is asked before each write: a process that lost its Lease writes no more."""

    def __init__(
        self,
        access: Access,
        *,
        pace: Pace | None = None,
        may_write: Callable[[], bool] = lambda: True,
        reads: int = READS,
        writes: int = WRITES,
        seconds: float = CALL_SECONDS,
        silence_seconds: float = SILENCE_SECONDS,
    ) -> None:
        """`seconds` is how long a call may take at most, `silence_seconds` how long a watch may be silent."""
        self._pace = pace or Pace()
        self._transport = Transport(access, self._pace)
        self._may_write = may_write
        self._seconds = seconds
        self._silence_seconds = silence_seconds
        self._reads = asyncio.Semaphore(reads)
        self._writes = asyncio.Semaphore(writes)

    async def __aenter__(self) -> Self:
        await self._transport.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._transport.close()

    @property
    def calls(self) -> Calls:
        return self._transport.calls

    async def get(self, path: str, *, metadata: bool = False) -> Object:
        """An object, or whatever else the path answers."""
        return await self._read("get", path, {}, _METADATA if metadata else JSON)

    async def pages(
        self,
        path: str,
        *,
        selector: str = "",
        fields: str = "",
        metadata: bool = False,
        size: int = METADATA_PAGE,
    ) -> AsyncGenerator[Page, None]:
        """A list in parts. Raises Gone where the server forgot the list before its end, so that it has to be started again."""
        query = _query(limit=str(size), labelSelector=selector, fieldSelector=fields)
        more = ""
        while True:
            continued = {**query, "continue": more} if more else query
            page = await self._read("list", path, continued, _METADATA_LIST if metadata else JSON)
            about = page.get("metadata") or {}
            more = about.get("continue") or ""
            # An empty page may say null instead of an empty list.
            yield Page(page.get("items") or [], str(about.get("resourceVersion", "")))
            if not more:
                return

    async def watch(
        self,
        path: str,
        version: str,
        *,
        selector: str = "",
        fields: str = "",
        metadata: bool = False,
    ) -> AsyncGenerator[tuple[str, Object], None]:
        """Changes since a version, as (type, object), until the server ends the stream. The first type is OPENED, once the server answers;
        the others are Kubernetes' own. Raises Silent where the stream falls silent, and Gone where the version is too old."""
        request = Request(
            verb="watch",
            method="GET",
            path=path,
            query=_query(
                watch="1",
                allowWatchBookmarks="true",
                resourceVersion=version,
                timeoutSeconds=str(WATCH_SECONDS),
                labelSelector=selector,
                fieldSelector=fields,
            ),
            accept=_METADATA if metadata else JSON,
            seconds=None,
            silence_seconds=self._silence_seconds,
        )
        async with aclosing(self._transport.lines(request)) as lines:
            async for line in lines:
                if not line:
                    yield "OPENED", {}
                    continue
                event = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    raise refusal(int(status.get("code") or 500), status)
                yield event["type"], event["object"]

    async def apply(
        self, path: str, body: Mapping[str, Any], *, manager: str, force: bool = True, metadata: bool = True
    ) -> Object:
        """Server-side apply, which makes the object where there is none. Answers with its metadata, unless told otherwise."""
        query = {"fieldManager": manager, "force": "true" if force else "false"}
        return await self._write("apply", path, body, query, content=APPLY, metadata=metadata)

    async def create(
        self, path: str, body: Mapping[str, Any], *, manager: str, metadata: bool = True
    ) -> Object:
        """Makes a new object in a collection. Raises Conflict where its name is taken."""
        return await self._write("create", path, body, {"fieldManager": manager}, metadata=metadata)

    async def replace(self, path: str, body: Mapping[str, Any], *, manager: str) -> Object:
        """Replaces the whole object. Raises Conflict where it no longer has the resourceVersion in the body."""
        return await self._write("update", path, body, {"fieldManager": manager})

    async def patch(
        self, path: str, body: Any, *, manager: str, content: str = MERGE, metadata: bool = True
    ) -> Object:
        """Patches an existing object, by a merge patch or a JSON patch."""
        query = {"fieldManager": manager}
        return await self._write("patch", path, body, query, content=content, metadata=metadata)

    async def delete(
        self, path: str, *, uid: str = "", version: str = "", propagation: str = "Background"
    ) -> None:
        """Deletes an object; one that is gone already is no error. Raises Conflict where another object has the name now, or another version."""
        options: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": propagation}
        if preconditions := _query(uid=uid, resourceVersion=version):
            options["preconditions"] = preconditions
        try:
            await self._write("delete", path, options, {})
        except NotFound:
            return

    async def _read(self, verb: str, path: str, query: Mapping[str, str], accept: str) -> Object:
        request = Request(
            verb=verb, method="GET", path=path, query=query, accept=accept, seconds=self._seconds
        )
        failures = 0
        while True:
            try:
                async with self._reads:
                    return await self._transport.call(request)
            except (Refused, Unreachable) as error:
                failures += 1
                if not error.passes or isinstance(error, Gone) or failures == TRIES:
                    raise
                wait = self._wait(error, failures)
            await self._pace.sleep(wait)

    async def _write(
        self,
        verb: str,
        path: str,
        body: Any,
        query: Mapping[str, str],
        *,
        content: str = JSON,
        metadata: bool = False,
    ) -> Object:
        request = Request(
            verb=verb,
            method=_METHODS[verb],
            path=path,
            query=query,
            accept=_METADATA if metadata else JSON,
            seconds=self._seconds,
            data=json.dumps(body, separators=(",", ":")).encode(),
            content=content,
        )
        failures = 0
        async with self._writes:
            while True:
                if not self._may_write():
                    raise NotLeading(f"{verb} {path} was not sent: this process does not lead")
                try:
                    return await self._transport.call(request)
                except Refused as error:
                    failures += 1
                    if error.status != 429 or failures == TRIES:
                        raise
                    wait = self._wait(error, failures)
                # The call keeps its place while it waits, so that a server with too much to do is sent less.
                await self._pace.sleep(wait)

    def _wait(self, error: KubeError, failures: int) -> float:
        named = error.retry_after if isinstance(error, Refused) else None
        return min(LONGEST_WAIT_SECONDS, named or 0.0) + self._pace.backoff(failures, first=0.2, most=5.0)


_METHODS: Final = {"apply": "PATCH", "patch": "PATCH", "create": "POST", "update": "PUT", "delete": "DELETE"}


def _query(**given: str) -> dict[str, str]:
    return {key: value for key, value in given.items() if value}
