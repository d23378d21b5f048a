"""Receives alerts from Alertmanager. An alert makes the operator look at its deployment at once, and does nothing else: no figure in it is
used.

It listens with TLS while the process leads. Senders need a token, and the size of a message is bounded. An alert that comes again at once,
as two Alertmanagers send each twice, wakes nobody; one that is repeated later still fires, and what lasts may need several looks before
anything is done about it. Without alerts the control loop finds the same a little later.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import ssl
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any, Final

from aiohttp import web

from plimsoll.api.plainjson import parsed
from plimsoll.handlers import tls
from plimsoll.handlers.serving import runner_of

LOG: Final = logging.getLogger(__name__)
PATH: Final = "/alerts"
LONGEST_BODY: Final = 2**20
BODY_SECONDS: Final = 10.0
"""Within which a body has to come."""
MOST_ALERTS: Final = 500
AGAIN_SECONDS: Final = 10.0
"""Within which an alert that comes again wakes nobody: less than a group of alerts waits at least, as the docs have its route."""
MOST_SEEN: Final = 10_000
"""Alerts that are remembered, so that copies of them wake nobody; those that woke longest ago are forgotten first."""
RENEWED_SECONDS: Final = 60.0
"""Between two looks for a renewed certificate, and between two attempts to listen."""
SHORTEST_TOKEN: Final = 16
LONGEST_NAME: Final = 200
LONGEST_FINGERPRINT: Final = 2000
LONGEST_TIME: Final = 64
"""Characters that are kept of texts in an alert."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertsOptions:
    port: int
    certificate: Path
    """Folder with tls.crt and tls.key, as a Secret of type kubernetes.io/tls is mounted."""
    token: Path
    """File with the bearer token."""


class Refused(ValueError):
    """A message that is refused, with the HTTP status of the answer."""

    def __init__(self, status: int, why: str) -> None:
        self.status = status
        super().__init__(why)


class Alerted:
    """`known` says whether there is a deployment of this namespace/name; `wake` is called with the one to look at."""

    def __init__(
        self, options: AlertsOptions, *, known: Callable[[str], bool], wake: Callable[[str], None]
    ) -> None:
        self._options, self._known, self._wake = options, known, wake
        self._seen: OrderedDict[tuple[str, str], float] = OrderedDict()
        """When each woke last."""
        self.results: Counter[str] = Counter()
        """What became of alerts, for the operator's own metrics."""
        self.port = 0
        """The port on which it listens."""

    async def run(self, host: str) -> None:
        """Runs until cancelled. As alerts only save time, an error ends nothing: it is logged, and listening is tried again."""
        while True:
            try:
                await self._listen(host)
            except (OSError, ValueError) as error:
                LOG.warning("no alerts are heard, tried again in %.0f s: %s", RENEWED_SECONDS, error)
                await asyncio.sleep(RENEWED_SECONDS)

    async def _listen(self, host: str) -> None:
        """Listens. When the certificate's files are renewed, new connections get the new certificate."""
        context = tls.context()
        shown = self._show(context)
        self._token()
        app = web.Application(client_max_size=LONGEST_BODY)
        app.add_routes([web.post(PATH, self._answer)])
        runner = runner_of(app)
        await runner.setup()
        try:
            site = web.TCPSite(runner, host, self._options.port, ssl_context=context)
            await site.start()
            self.port = runner.addresses[0][1]
            LOG.info("alerts are heard on port %s", self.port)
            while True:
                await asyncio.sleep(RENEWED_SECONDS)
                try:
                    shown = self._show(context, shown)
                except OSError as error:
                    LOG.warning("the renewed certificate cannot be shown, the one before is: %s", error)
        finally:
            await runner.cleanup()

    def _show(self, context: ssl.SSLContext, shown: bytes = b"") -> bytes:
        certificate, key = (self._options.certificate / name for name in ("tls.crt", "tls.key"))
        there = certificate.read_bytes()
        if there != shown:
            try:
                tls.present(context, certificate, key)
            except ssl.SSLError as error:
                raise OSError(
                    f"{certificate} and {key} are no pair of certificate and key: {error}"
                ) from None
        return there

    def _token(self) -> bytes:
        """The token, which is read each time, since its file may be renewed."""
        token = self._options.token.read_bytes().strip()
        if len(token) < SHORTEST_TOKEN:
            raise ValueError(f"{self._options.token}: a token has {SHORTEST_TOKEN} characters or more")
        return token

    async def _answer(self, request: web.Request) -> web.Response:
        try:
            self._check(request)
            found = Counter(self._heard(alert) for alert in _alerts(await _body(request)))
        except Refused as why:
            self.results["refused"] += 1
            LOG.warning("a message about alerts is refused: %s", why)
            return web.json_response({"error": str(why)}, status=why.status)
        self.results.update(found)
        return web.json_response(dict(sorted(found.items())))

    def _check(self, request: web.Request) -> None:
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        try:
            token = self._token()
        except (OSError, ValueError):
            LOG.exception("the token cannot be read")
            raise Refused(503, "no token can be compared with now") from None
        # Bytes that are no UTF-8 are surrogates in the header's text.
        same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token)
        if scheme.lower() != "bearer" or not same:
            raise Refused(401, "the bearer token is missing or wrong")

    def _heard(self, alert: Alert) -> str:
        """Handles an alert, and returns what became of it."""
        key = alert.fingerprint, alert.starts_at
        if alert.resolved:
            self._seen.pop(key, None)
            return "resolved"
        now = asyncio.get_running_loop().time()
        if now - self._seen.get(key, -inf) < AGAIN_SECONDS:
            return "repeated"
        if not self._known(alert.deployment):
            return "unknown"
        self._seen[key] = now
        self._seen.move_to_end(key)
        while len(self._seen) > MOST_SEEN:
            self._seen.popitem(last=False)
        LOG.info("%s: looking at once", alert.name, extra={"deployment": alert.deployment})
        self._wake(alert.deployment)
        return "woke"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """What is read of an alert."""

    name: str
    deployment: str
    """namespace/name of the deployment that it is about; empty where it is about none."""
    fingerprint: str
    starts_at: str
    resolved: bool


async def _body(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise Refused(413, f"more than {LONGEST_BODY} bytes") from None
    except TimeoutError:
        raise Refused(408, f"the body did not come within {BODY_SECONDS:g} s") from None
    except ConnectionResetError:
        raise Refused(400, "the sender left before its body had come") from None
    except web.RequestPayloadError as error:
        raise Refused(400, f"the body cannot be read: {' '.join(str(error).split())}") from None


def _alerts(body: bytes) -> Iterator[Alert]:
    """The alerts of a message. Raises Refused before the first alert where any is malformed, so that a message is handled as a whole."""
    try:
        message = parsed(body)
    except ValueError:
        raise Refused(400, "the body is no JSON") from None
    listed = message.get("alerts") if isinstance(message, dict) else None
    if not isinstance(listed, list):
        raise Refused(400, "the body has no list `alerts`: it should be a message of Alertmanager's webhook")
    if len(listed) > MOST_ALERTS:
        raise Refused(
            413, f"{len(listed)} alerts are more than {MOST_ALERTS}; set max_alerts of the receiver"
        )
    return iter([_alert(one) for one in listed])


def _alert(given: Any) -> Alert:
    labels = given.get("labels") if isinstance(given, dict) else None
    if not isinstance(labels, dict):
        raise Refused(400, "an alert has no labels")
    texts = {name: value for name, value in labels.items() if isinstance(value, str)}
    namespace, llm = texts.get("namespace", ""), texts.get("llm", "")
    starts_at = str(given.get("startsAt"))
    return Alert(
        name=texts.get("alertname", "an alert")[:LONGEST_NAME],
        deployment=f"{namespace}/{llm}" if namespace and llm else "",
        fingerprint=str(given.get("fingerprint") or sorted(texts.items()))[:LONGEST_FINGERPRINT],
        starts_at=starts_at[:LONGEST_TIME],
        resolved=given.get("status") == "resolved",
    )
