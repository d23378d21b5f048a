"""The webhook's server together with its certificate. It listens from when it has a certificate until the process ends.

A renewed certificate is used for new connections; open ones stay. An error that keeps it from listening is logged and ends nothing, and
listening is tried again.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aiohttp import web

from plimsoll.handlers import tls
from plimsoll.handlers.admission import Admission, WebhookOptions, serve_admission
from plimsoll.kube.certificates import Pair
from plimsoll.kube.door import Door
from plimsoll.kube.keeping import Keeper, Place

LOG: Final = logging.getLogger(__name__)
AGAIN_SECONDS: Final = 5.0
"""Between two attempts to listen."""


class Webhook:
    def __init__(
        self,
        admission: Admission,
        door: Door,
        options: WebhookOptions,
        *,
        namespace: str,
        host: str,
        leads: Callable[[], bool],
        now: Callable[[], float],
    ) -> None:
        self._admission = admission
        self._host = host
        self._port = options.port
        self._context = tls.context()
        place = Place(
            namespace=namespace,
            secret=options.secret,
            hosts=options.hosts,
            configuration=options.configuration,
        )
        self._keeper = Keeper(door, place, self._show, leads=leads, now=now)
        self.unheard: str | None = "it has no certificate yet"
        """Why it does not listen; None once it does."""
        self._runner: web.AppRunner | None = None

    async def run(self) -> None:
        """Runs until cancelled. It warms up before it listens, so that nobody has to wait for that."""
        try:
            await self._admission.warm()
            while True:
                await asyncio.sleep(await self.look())
        finally:
            await self.close()

    async def look(self) -> float:
        """Looks after the certificate, and begins to listen once there is one. Returns in how many seconds to look again."""
        pause = await self._keeper.look()
        if self._runner is not None or self._keeper.shown is None:
            return pause
        try:
            self._runner = await serve_admission(self._admission, self._host, self._port, self._context)
        except OSError as error:
            self._complain(str(error))
            return min(pause, AGAIN_SECONDS)
        self.unheard = None
        LOG.info("the webhook listens on port %s", self._port)
        return pause

    def _complain(self, why: str) -> None:
        """Logs a problem once for as long as it stays the same."""
        if why != self.unheard:
            self.unheard = why
            LOG.warning("the webhook does not listen, tried again every %.0f s: %s", AGAIN_SECONDS, why)

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()
        self._admission.close()

    def _show(self, pair: Pair) -> None:
        # The library only reads files, so there is a folder for a moment that nobody else may enter.
        with tempfile.TemporaryDirectory(prefix="plimsoll-") as folder:
            certificate, key = Path(folder, "crt"), Path(folder, "key")
            certificate.write_text(pair.certificate)
            key.touch(mode=0o600)
            key.write_text(pair.key)
            tls.present(self._context, certificate, key)
