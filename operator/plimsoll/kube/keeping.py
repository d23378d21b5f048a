"""Keeps the webhook's certificate in its Secret. Every operator pod reads it there; the one that leads renews it and tells the API server.

The first certificate is made by whichever pod comes first: the leading one may be of a release without a webhook, and leaves only once
another pod is ready. So this needs a door that writes without the Lease, and each write names the version that it changes. Where others keep
the Secret (cert-manager, an admin), it is only read. Whatever fails is tried again at the next look, and until then the server goes on with
the certificate that it has.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from plimsoll import names
from plimsoll.kube.certificates import CERTIFICATE, KEY, Kept, Pair, renewed
from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Conflict, KubeError, NotFound
from plimsoll.kube.kinds import SECRET, WEBHOOKS

LOG: Final = logging.getLogger(__name__)
STRATEGIC: Final = "application/strategic-merge-patch+json"
LOOK_SECONDS: Final = 60.0
FIRST_SECONDS: Final = 2.0
"""Between two looks as long as there is no certificate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where the certificate is kept, and for whom it is."""

    namespace: str
    secret: str
    hosts: tuple[str, ...]
    """Names and addresses under which the API server calls the webhook."""
    configuration: str | None
    """The webhook configuration whose caBundle is kept up to date; None where somebody else keeps Secret and bundle."""


class Keeper:
    def __init__(
        self,
        door: Door,
        place: Place,
        show: Callable[[Pair], None],
        *,
        leads: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        """`show` makes the server use a pair. It is called once for each pair, and raises OSError where it cannot be used. `now` gives
        seconds since the epoch."""
        self._door = door
        self._place = place
        self._show = show
        self._leads = leads
        self._now = now
        self._told = ""
        self.shown: Pair | None = None

    async def look(self) -> float:
        """Looks once. Returns in how many seconds to look again."""
        try:
            await self._look()
        except Conflict:
            return FIRST_SECONDS
        except (KubeError, ValueError) as error:
            self._complain(str(error))
        else:
            self._told = ""
        return LOOK_SECONDS if self.shown is not None else FIRST_SECONDS

    async def _look(self) -> None:
        place = self._place
        path = SECRET.path(place.namespace, place.secret)
        try:
            body = await self._door.get(path)
        except NotFound:
            made_by = (
                "the chart makes an empty one" if place.configuration else "whoever keeps it must make it"
            )
            raise ValueError(
                f"there is no Secret {place.secret} in {place.namespace} for the webhook's certificate; {made_by}"
            ) from None
        kept = Kept.read(_text(body.get("data") or {}))
        if place.configuration is not None and (kept is None or self._leads()):
            try:
                kept = await self._renew(path, body, kept, place.configuration)
            except (KubeError, ValueError):
                # Other pods use the same certificate, and the API server may trust it already, so it is shown all the same. Of two
                # errors the first one is told.
                with contextlib.suppress(ValueError):
                    self._present(kept)
                raise
        self._present(kept)
        if kept is None and place.configuration is None:
            raise ValueError(
                f"Secret {place.secret} in {place.namespace} holds no {CERTIFICATE} with its {KEY}"
            )

    def _present(self, kept: Kept | None) -> None:
        if kept is None or kept.shown == self.shown:
            return
        try:
            self._show(kept.shown)
        except OSError as error:
            place = self._place
            raise ValueError(
                f"{CERTIFICATE} and {KEY} of Secret {place.secret} in {place.namespace} cannot be shown: {error}"
            ) from None
        self.shown = kept.shown

    async def _renew(self, path: str, body: Object, kept: Kept | None, configuration: str) -> Kept:
        if kept is not None and kept.next is not None and await self._tell(configuration, kept.authorities):
            return (
                kept  # the API server has been told of the next one only now, so it is shown at a later look
            )
        wanted = renewed(kept, self._place.hosts, datetime.fromtimestamp(self._now(), UTC))
        if wanted != kept:
            await self._door.replace(path, _secret(body, wanted), manager=names.MANAGER_CHILDREN)
            LOG.info("wrote the webhook's certificate to Secret %s", self._place.secret)
        await self._tell(configuration, wanted.authorities)
        return wanted

    async def _tell(self, name: str, authorities: str) -> bool:
        """Puts the bundle into the webhook configuration. Returns whether it was not there yet."""
        path = WEBHOOKS.path("", name)
        body = await self._door.get(path)
        bundle = base64.b64encode(authorities.encode()).decode()
        stale = [
            {"name": one["name"], "clientConfig": {"caBundle": bundle}}
            for one in body.get("webhooks") or ()
            if (one.get("clientConfig") or {}).get("caBundle") != bundle
        ]
        if stale:
            change = {"metadata": {"resourceVersion": body["metadata"]["resourceVersion"]}, "webhooks": stale}
            await self._door.patch(path, change, manager=names.MANAGER_CHILDREN, content=STRATEGIC)
            LOG.info("told %s whom to trust", name)
        return bool(stale)

    def _complain(self, text: str) -> None:
        """Logs a problem once for as long as it stays the same."""
        if text != self._told:
            self._told = text
            LOG.warning("the webhook's certificate: %s", text)


def _text(data: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {key: base64.b64decode(value).decode() for key, value in data.items()}
    except (binascii.Error, ValueError) as error:
        raise ValueError(f"the Secret holds what is no text: {error}") from None


def _secret(body: Object, kept: Kept) -> Object:
    data = {key: base64.b64encode(value.encode()).decode() for key, value in kept.data().items()}
    about = {key: value for key, value in body["metadata"].items() if key != "managedFields"}
    return {
        "apiVersion": SECRET.api_version,
        "kind": SECRET.name,
        "metadata": about,
        "type": body.get("type"),
        "data": data,
    }
