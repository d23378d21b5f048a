"""The address of the API server and our credentials: the client library's configuration, kept fresh for requests of our own.

The library handles contexts, certificates, exec plugins and the pod's token. It blocks (on files and on plugins' processes), so it is called
in a thread, at most twice a minute, and additionally when the server does not accept our token.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from typing import Any, Final

from kubernetes.client import Configuration
from kubernetes.client.rest import should_bypass_proxies
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config

from plimsoll.kube.errors import KubeError
from plimsoll.kube.pace import Pace

LOG: Final = logging.getLogger(__name__)
FRESH_SECONDS: Final = 30.0
"""How long credentials are used before they are read again. Tokens are renewed when about twelve minutes of them are left, and the library
itself re-reads a pod's token once a minute, so this is often enough."""
RENEW_SECONDS: Final = 5.0
"""Between two attempts to get a new token after one was not accepted, so that a revoked token does not run a plugin for each request."""


class NoCluster(KubeError):
    """There is no usable configuration. The message says what was tried."""

    passes = False


def configuration(context: str | None = None, file: str | None = None) -> Configuration:
    """The pod's own configuration where there is one and no file or context is named, else that of a kubeconfig's context. Blocks."""
    found = Configuration()
    if context is None and file is None:
        try:
            load_incluster_config(found)  # type: ignore[no-untyped-call]
        except ConfigException:
            pass
        else:
            return found
    try:
        load_kube_config(config_file=file, context=context, client_configuration=found)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError) as error:
        raise NoCluster(
            f"{error}; outside a pod, KUBECONFIG must name a file that has the context "
            f"{context or 'that is current in it'}"
        ) from None
    return found


class Access:
    """Gives credentials for each request. It answers at once, unless something has to be read again."""

    def __init__(self, load: Callable[[], Configuration], pace: Pace) -> None:
        self._load = load
        self._pace = pace
        self._lock = asyncio.Lock()
        self._configuration = load()
        self._files: tuple[str | None, ...] | None = None
        self._checked = self._renewed = pace.now()
        self._take()

    @classmethod
    async def find(
        cls, context: str | None = None, *, file: str | None = None, pace: Pace | None = None
    ) -> Access:
        """Access by a kubeconfig (KUBECONFIG, or this file), or by the account of the pod that this runs in."""
        return await asyncio.to_thread(cls, lambda: configuration(context, file), pace or Pace())

    @property
    def server(self) -> str:
        return str(self._configuration.host).rstrip("/")

    @property
    def ssl(self) -> ssl.SSLContext:
        return self._ssl

    @property
    def server_name(self) -> str | None:
        """The name that the server's certificate is for, where it differs from the address."""
        return self._configuration.tls_server_name or None

    @property
    def proxy(self) -> str | None:
        configured = self._configuration
        if not configured.proxy or should_bypass_proxies(str(configured.host), configured.no_proxy or ""):
            return None
        return str(configured.proxy)

    @property
    def token(self) -> str | None:
        """The Authorization header as it was last read."""
        found = self._configuration.api_key.get("BearerToken")
        return None if found is None else str(found).strip()

    async def authorization(self) -> str | None:
        """The Authorization header, read again where it may have changed."""
        if self._pace.now() - self._checked > FRESH_SECONDS:
            async with self._lock:
                if self._pace.now() - self._checked > FRESH_SECONDS:
                    await asyncio.to_thread(self._refresh)
                    self._checked = self._pace.now()
        return self.token

    async def unknown(self, token: str | None) -> bool:
        """The server did not accept this token. Whether there is another one now."""
        async with self._lock:
            if self.token == token and self._pace.now() - self._renewed > RENEW_SECONDS:
                self._renewed = self._pace.now()
                await asyncio.to_thread(self._reload)
        return self.token != token

    def _refresh(self) -> None:
        hook: Any = self._configuration.refresh_api_key_hook
        try:
            if hook is not None:
                hook(self._configuration)
            self._take()
        except (ConfigException, OSError, ValueError) as error:
            # A file may be in the middle of being replaced, or a plugin fail; the credentials that we have may still be good.
            LOG.warning("credentials could not be read again: %s", error)

    def _reload(self) -> None:
        try:
            self._configuration = self._load()
            self._take()
        except (NoCluster, OSError, ValueError) as error:
            LOG.warning("credentials that the server does not know could not be read again: %s", error)

    def _take(self) -> None:
        """Loads the certificates, where their files are other ones than before."""
        found = self._configuration
        files = (found.ssl_ca_cert, found.cert_file, found.key_file)
        if files == self._files:
            return
        context = ssl.create_default_context(cafile=found.ssl_ca_cert)
        if not found.verify_ssl:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if found.cert_file:
            context.load_cert_chain(found.cert_file, found.key_file)
        self._ssl, self._files = context, files
