"""What kopf is used for: raw events of our own resources, and nothing else.

No change handlers, daemons or timers, so no finalizer, no annotation and no write of kopf's on any resource. Its sign-in is
given the same configuration as our own door.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

import kopf

from plimsoll import names
from plimsoll.kube.door import SILENCE_SECONDS, WHOLE_PAGE

IDLE_SECONDS: Final = 0.1
"""A worker of kopf's keeps its last object for so long. At a start objects come by thousands a second: 3,000 of them take 10 MB so,
and 61 with a whole second; a new worker, should the next event come later, costs nothing that can be measured."""

Seen = Callable[[str, str, Mapping[str, Any] | None], None]
"""Is told a resource by namespace/name and uid: its object, or None when it is gone. Events of one come in their order; those of
two that bear one name after another may not, as kopf keeps a queue for each uid."""


def registry_of(seen: Seen, load: Callable[[], Any]) -> kopf.OperatorRegistry:
    registry = kopf.OperatorRegistry()

    @kopf.on.event(names.GROUP, names.VERSION, names.PLURAL, registry=registry)
    async def changed(event: kopf.RawEvent, **_: Any) -> None:
        body: Mapping[str, Any] = event["object"]
        metadata = body["metadata"]
        key = f"{metadata['namespace']}/{metadata['name']}"
        seen(key, metadata["uid"], None if event["type"] == "DELETED" else body)

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        return connection(load())

    return registry


def connection(configuration: Any) -> kopf.ConnectionInfo:
    """The client library's configuration, whose type only `kube` may name, in kopf's words."""
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
    """Nothing is compared with what it was, as nothing here asks for changes. kopf would copy each object for each event: 1 ms
    of the 31 that an edit took."""

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
