"""Sets kopf up, which is used for raw events of LLMDeployments and for nothing else.

There are no change handlers, daemons or timers, so kopf writes no finalizer, no annotation and nothing else to any resource. It gets the
same credentials as our own door.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, Final

import kopf

from plimsoll import names
from plimsoll.kube.credentials import RENEW_SECONDS
from plimsoll.kube.door import SILENCE_SECONDS, WHOLE_PAGE
from plimsoll.kube.pace import Pace

IDLE_SECONDS: Final = 0.1
"""How long one of kopf's workers waits for a further event of its resource, keeping the last one in memory. At the start objects come by
thousands a second: 3,000 of them take 10 MB with this value, and 61 MB with one second. A new worker costs nothing that can be measured."""

Seen = Callable[[str, str, Mapping[str, Any] | None], None]
"""Called with namespace/name and uid of a resource, and its object, or None when it is gone. Events of one resource come in order. Those of
two resources that have the same name in turn may not, as kopf has a queue for each uid."""


def registry_of(seen: Seen, load: Callable[[], Any], pace: Pace) -> kopf.OperatorRegistry:
    registry, logins = kopf.OperatorRegistry(), Logins(load, pace)

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        body: Mapping[str, Any] = event["object"]
        metadata = body["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        seen(key, metadata["uid"], None if event["type"] == "DELETED" else body)

    @kopf.on.login(registry=registry, backoff=RENEW_SECONDS)
    async def login(**_: Any) -> kopf.ConnectionInfo:
        return await logins.next()

    return registry


class Logins:
    """Reads the credentials anew each time that the server has not accepted kopf's.

    A server answers 401 in passing too, as while it cannot look a token up, and then there are no others to be had. But kopf accepts none that
    equal one of the last three that failed, and ends where it has none. So no two are equal here: each has a priority of its own, which
    says nothing where there is one login.
    """

    def __init__(self, load: Callable[[], Any], pace: Pace) -> None:
        self._load = load
        self._pace = pace
        self._count = 0
        self._due = pace.now()

    async def next(self) -> kopf.ConnectionInfo:
        await self._pace.sleep(max(0.0, self._due - self._pace.now()))
        self._due = self._pace.now() + RENEW_SECONDS
        self._count += 1
        return replace(connection(await asyncio.to_thread(self._load)), priority=self._count)


def connection(configuration: Any) -> kopf.ConnectionInfo:
    """The client library's configuration in kopf's form. Its type is Any, as only `kube` may import the library."""
    scheme, _, token = (configuration.api_key.get("BearerToken") or "").partition(" ")
    return kopf.ConnectionInfo(
        server=configuration.host,
        ca_path=configuration.ssl_ca_cert,
        insecure=not configuration.verify_ssl,
        username=configuration.username or None,
        password=configuration.password or None,
        scheme=scheme if token else None,
        token=token or scheme or None,
        certificate_path=configuration.cert_file,
        private_key_path=configuration.key_file,
    )


class _NoDiffs(kopf.DiffBaseStorage):
    """Makes kopf keep no earlier state of resources, as no handler asks for changes. It would copy the object at each event, which took
    1 ms of the 31 ms of an edit."""

    def build(self, **_: Any) -> kopf.BodyEssence:
        return kopf.BodyEssence()

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


def settings_of(namespaces: Collection[str]) -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.peering.standalone = True
    settings.posting.enabled = False
    settings.persistence.diffbase_storage = _NoDiffs()
    settings.scanning.disabled = bool(namespaces)
    settings.queueing.idle_timeout = IDLE_SECONDS
    settings.watching.chunk_size = WHOLE_PAGE
    settings.watching.server_timeout = 300
    settings.watching.connect_timeout = 5
    settings.watching.inactivity_timeout = SILENCE_SECONDS
    settings.networking.request_timeout = 20
    settings.networking.connect_timeout = 5
    settings.process.ultimate_exiting_timeout = None
    return settings
