"""One request over http or https: through proxies, with the cluster's own certificates, following only where it may.

Credentials are given apart from other headers, since they stay with the host that they are for.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple
from urllib.parse import SplitResult, quote, unquote, urljoin

from plimsoll_runtime import VERSION
from plimsoll_runtime.sources.guard import (
    address_of,
    check_address,
    check_name,
    depth,
    parts_of,
    same_origin,
)
from plimsoll_runtime.sources.proxies import CONFIGURED, Proxy, proxy_of
from plimsoll_runtime.sources.trouble import ANEW, Patience, Refused, Transient, asked_to_wait, failed

MOST_HOPS = 6
MOST_TEXT = 64 << 20
_PASSING = (408, 425, 429, 500, 502, 503, 504, 520, 521, 522, 523, 524)
"""The last five are of Cloudflare, for a server behind it."""
_NO_SUCH_RANGE = 416
_PROXY_REFUSES = 407
_TUNNEL_REFUSED = f"Tunnel connection failed: {_PROXY_REFUSES}"
"""As the library says it, which keeps the answer to itself."""
_ELSEWHERE = (301, 302, 303, 307, 308)
_AGENT = f"plimsoll-runtime/{VERSION}"
NOTHING: Mapping[str, str] = {}


class Answer:
    """A server's answer. It stays open until it is closed, and its body may be read in part."""

    def __init__(
        self,
        connection: http.client.HTTPConnection,
        response: http.client.HTTPResponse,
        sock: socket.socket,
        url: str,
        begin: tuple[Mapping[str, str], ...],
    ) -> None:
        self._connection, self._response = connection, response
        self._socket = sock
        self.status, self.url = response.status, url
        # Of several with one name all count, as if they were one.
        self.headers = {name.lower(): response.getheader(name, "") for name in response.headers}
        self.hops = begin
        """The headers of the answers that sent us here."""

    def read(self, size: int) -> bytes:
        """The next bytes of the body, as they come; none at its end."""
        try:
            return self._response.read1(size)
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Transient(f"{_host(self.url)} cut the answer: {_short(error)}") from error

    def text(self) -> bytes:
        """The whole body; raises FetchFailed where it is larger than any list should be."""
        found = b""
        while piece := self.read(1 << 20):
            found += piece
            if len(found) > MOST_TEXT:
                raise failed(
                    "Download",
                    f"{_host(self.url)} answers more than {MOST_TEXT >> 20} MiB",
                    "check the mirror",
                )
        expected = self.headers.get("content-length", "")
        if expected.isdecimal() and len(found) < int(expected):
            raise Transient(f"{_host(self.url)} cut the answer")
        return found

    def abort(self) -> None:
        """Ends the connection, from another thread: whoever reads from it is told at once."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._response.close()
        self._connection.close()

    def __enter__(self) -> Answer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class _Way(NamedTuple):
    """One step of the way to an answer: where we were sent, and from where."""

    url: SplitResult
    before: SplitResult | None
    first: int | None
    """How far inside the address of the first step was."""
    near: bool = False


class Web:
    def __init__(self, environment: Mapping[str, str], patience: Patience | None = None) -> None:
        self.environment, self.patience = environment, patience or Patience()
        self._tls: ssl.SSLContext | None = None

    def open(
        self,
        url: str,
        headers: Mapping[str, str] = NOTHING,
        secret: Mapping[str, str] = NOTHING,
        *,
        method: str = "GET",
        body: bytes | None = None,
        follow: bool = True,
        near: bool = False,
    ) -> Answer:
        """Sends a request and returns an answer below 400. Redirects are followed, unless `follow` is false; headers in `secret` go to the
        first host alone. `near`: the pod was told to ask there, at its own node, so no proxy and no guard stands between."""
        first = parts_of(url)
        way, passed = _Way(first, None, None, near), ()  # type: tuple[_Way, tuple[Mapping[str, str], ...]]
        for _ in range(MOST_HOPS):
            given = {**headers, **(secret if same_origin(first, way.url) else NOTHING)}
            answer, inside = self._once(way, method, given, body, passed)
            location = answer.headers.get("location")
            if answer.status not in _ELSEWHERE or not follow or not location:
                return _checked(answer)
            answer.close()
            passed = (*passed, answer.headers)
            onward = parts_of(urljoin(answer.url, _escaped(location)))
            way = _Way(onward, way.url, inside if way.first is None else way.first)
        raise failed(
            "Download", f"{first.hostname} sends a download on and on", "check the mirror and the proxy"
        )

    def json(
        self, url: str, secret: Mapping[str, str] = NOTHING, headers: Mapping[str, str] = NOTHING
    ) -> Any:
        with self.open(url, {"Accept": "application/json", **headers}, secret) as answer:
            text = answer.text()
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Transient(f"{_host(url)} answers what is no JSON") from error

    def _once(
        self,
        way: _Way,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
        passed: tuple[Mapping[str, str], ...],
    ) -> tuple[Answer, int | None]:
        """The answer to one step, and how far inside the other end is, where that can be seen."""
        if not way.near:
            check_name(way.url, way.before)
        url = way.url
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        proxy = None if way.near else proxy_of(url, self.environment)
        connection, inside = self._connection(url, proxy), None
        told = {
            "Host": url.netloc.rpartition("@")[2],
            "User-Agent": _AGENT,
            "Accept-Encoding": "identity",
            **headers,
        }
        if proxy is not None and url.scheme == "http":
            target, told = f"http://{told['Host']}{target}", {**told, **proxy.headers}
        _check_headers(headers, url.hostname or "")
        try:
            connection.connect()
            if proxy is None and not way.near:
                address = address_of(connection.sock.getpeername()[0])
                if address is not None:
                    check_address(address, url, way.before, way.first)
                    inside = depth(address)
            sock = connection.sock
            connection.request(method, target, body=body, headers=told)
            response = connection.getresponse()
        except ssl.SSLCertVerificationError as error:
            connection.close()
            message = f"{url.hostname} shows a certificate that is not trusted here: {error.verify_message}"
            raise failed(
                "Download", message, "network.caBundle of the operator's config, for an authority of your own"
            ) from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            connection.close()
            if proxy is not None and str(error).startswith(_TUNNEL_REFUSED):
                raise _unknown_to(proxy) from error
            by = "" if proxy is None else f" by the proxy {proxy.host}:{proxy.port}"
            raise Transient(f"{url.hostname} cannot be reached{by}: {_short(error)}") from error
        except BaseException:
            connection.close()
            raise
        if proxy is not None and response.status == _PROXY_REFUSES:
            connection.close()
            raise _unknown_to(proxy)
        return Answer(connection, response, sock, url.geturl(), passed), inside

    def _connection(self, url: SplitResult, proxy: Proxy | None) -> http.client.HTTPConnection:
        timeout, host = self.patience.timeout, url.hostname or ""
        if url.scheme == "http":
            host, port = (host, url.port or 80) if proxy is None else (proxy.host, proxy.port)
            return http.client.HTTPConnection(host, port, timeout=timeout)
        if self._tls is None:
            self._tls = trusted(self.environment)
        if proxy is None:
            return http.client.HTTPSConnection(host, url.port or 443, timeout=timeout, context=self._tls)
        connection = http.client.HTTPSConnection(proxy.host, proxy.port, timeout=timeout, context=self._tls)
        connection.set_tunnel(host, url.port or 443, headers=dict(proxy.headers))
        return connection


def _unknown_to(proxy: Proxy) -> Exception:
    """The error for a proxy that wants to know who we are, as it would answer the same if it were asked again."""
    message = (
        f"the proxy {proxy.host}:{proxy.port} does not know who asks, or does not let them ({_PROXY_REFUSES})"
    )
    return failed("Download", message, f"{CONFIGURED}, with USER:PASSWORD@ before the proxy's host")


def trusted(environment: Mapping[str, str]) -> ssl.SSLContext:
    """Whom to trust: the system's authorities and the cluster's own. Images without the former often have them in a Python package."""
    context = ssl.create_default_context()
    for name in ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        file = environment.get(name)
        if file and Path(file).is_file():
            try:
                context.load_verify_locations(cafile=file)
            except OSError as error:  # an SSLError is one, and would be told as a disk's
                message = f"{name}: {file} holds no certificates that can be read"
                remedy = "correct network.caBundle of the operator's config (key ca.crt)"
                raise failed("Download", message, remedy) from error
    paths = ssl.get_default_verify_paths()
    folder = Path(paths.capath) if paths.capath else None
    if not context.cert_store_stats()["x509_ca"] and not (
        folder and folder.is_dir() and any(folder.iterdir())
    ):
        for bundle in sorted(Path(sys.prefix).glob("lib/python*/*-packages/certifi/cacert.pem"))[:1]:
            with contextlib.suppress(OSError):
                context.load_verify_locations(cafile=str(bundle))
    return context


def _checked(answer: Answer) -> Answer:
    if answer.status < 400:
        return answer
    with answer:
        where, status = _host(answer.url), answer.status
        if status in _PASSING:
            raise Transient(f"{where} answers {status}", asked_to_wait(answer.headers))
        if status == _NO_SUCH_RANGE:
            name = unquote(parts_of(answer.url).path).rpartition("/")[2]
            raise failed("BadCheckpoint", f"{where} has less of {name[:200]} than it announced", ANEW)
        try:
            body = answer.read(4096).decode("utf-8", "replace")
        except Transient:
            body = ""
        refused = Refused(status, answer.headers, body, where)
        refused.elsewhere = bool(answer.hops)
        raise refused


def _check_headers(headers: Mapping[str, str], host: str) -> None:
    """Refuses headers that cannot be sent. The library would refuse them too, but its message quotes the value, which may be a secret."""
    for name, value in headers.items():
        if not (value.isascii() and value.isprintable()):
            message = f"what is kept secret for {host} has a line break in it, or another character that {name} cannot hold"
            raise failed("GatedModel", message, "make that Secret anew, of one line: spec.model.tokenSecret")


def _escaped(location: str) -> str:
    """A location without the characters that no request may hold, as spaces; what is escaped in it stays so. Headers are read as Latin-1."""
    return quote(location.strip(), "!#$%&'()*+,/:;=?@[]~", encoding="latin-1")


def _host(url: str) -> str:
    return parts_of(url).hostname or url


def _short(error: BaseException) -> str:
    quotes = isinstance(error, (ValueError, http.client.InvalidURL))  # what was sent
    return getattr(error, "strerror", None) or ("" if quotes else str(error)) or type(error).__name__
