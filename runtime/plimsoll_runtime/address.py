"""The address at which the engine answers, and other values of its arguments, read from its argv."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_NOWHERE = ("", "0.0.0.0", "::")  # noqa: S104 - what an engine may listen on, not what we do
_SECRETS = ("--api-key", "--hf-token", "--ssl-keyfile-password")
HIDDEN = "***"


class Address(NamedTuple):
    host: str
    port: int
    tls: bool

    def get(self, path: str, timeout: float) -> tuple[int, str] | None:
        """Status and text of an answer; None where there is none."""
        return self.ask("GET", path, timeout)

    def ask(
        self,
        method: str,
        path: str,
        timeout: float,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str] | None:
        connection = self._connection(timeout)
        try:
            connection.request(method, path, body, dict(headers or {}))
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException, ValueError):
            return None
        finally:
            connection.close()

    def _connection(self, timeout: float) -> http.client.HTTPConnection:
        if not self.tls:
            return http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        # The engine's certificate is for its Service and not for this host, and the connection does not leave the pod.
        unverified = ssl._create_unverified_context()  # noqa: S323, SLF001
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout, context=unverified)


def value_of(argv: Sequence[str], *flags: str) -> str | None:
    """The value of a flag. Where it is given several times the last one counts, as for the engine."""
    found = None
    for place, word in enumerate(argv):
        name, equals, value = word.partition("=")
        if name.replace("_", "-") in flags:
            if equals:
                found = value
            elif place + 1 < len(argv):
                found = argv[place + 1]
    return found


def number_of(argv: Sequence[str], *flags: str) -> int | None:
    text = value_of(argv, *flags)
    return int(text) if text is not None and text.isdecimal() else None


def has(argv: Sequence[str], flag: str) -> bool:
    return any(word.partition("=")[0].replace("_", "-") == flag for word in argv)


def address_of(argv: Sequence[str]) -> Address | None:
    """The engine's address; None where it answers no requests over the network: a headless rank, a Ray worker, one that listens on a file."""
    if has(argv, "--headless") or has(argv, "--uds") or not is_server(argv):
        return None
    host = value_of(argv, "--host") or ""
    return Address(
        host="127.0.0.1" if host in _NOWHERE else host,
        port=number_of(argv, "--port") or 8000,
        tls=has(argv, "--ssl-certfile"),
    )


def is_server(argv: Sequence[str]) -> bool:
    if any(word.endswith("api_server") for word in argv[:5]) or "serve" in argv[:5]:
        return True
    # The server's command may come after another program's.
    return any(one.endswith("vllm") and other == "serve" for one, other in zip(argv, argv[1:]))


def without_secrets(argv: Sequence[str]) -> list[str]:
    """The arguments as they may be shown. A key may be several words, so all up to the next flag are hidden."""
    shown, hiding = [], False
    for word in argv:
        name, equals, _ = word.partition("=")
        if word.startswith("--"):
            hiding = name.replace("_", "-") in _SECRETS
            shown.append(f"{name}={HIDDEN}" if hiding and equals else word)
        else:
            shown.append(HIDDEN if hiding else word)
    return shown
