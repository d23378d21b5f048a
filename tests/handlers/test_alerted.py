"""What Alertmanager's messages may do: make the operator look at a deployment once, and nothing else, whoever sends what."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from plimsoll.handlers import alerted, serving
from plimsoll.handlers.alerted import LONGEST_BODY, MOST_ALERTS, Alerted, AlertsOptions
from plimsoll.kube.certificates import made

NOW = datetime.now(UTC)  # noqa: TID251 - the handshake looks at the clock
OTHERS_KEY = made(["127.0.0.1"], NOW)[0].key
TOKEN = "a-token-of-some-length"
Send = Callable[..., Awaitable[int]]


def alert(llm: str = "chat", **more: str) -> dict[str, Any]:
    labels = {"alertname": "PlimsollKVPressure", "namespace": "team", "llm": llm, "severity": "warning"}
    return {"status": "firing", "labels": labels, "fingerprint": "f", "startsAt": "t", **more}


def message(*alerts: Any) -> bytes:
    return json.dumps({"version": "4", "alerts": list(alerts)}).encode()


class Place:
    """A webhook that knows team/chat and team/code, on a port of this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.show()
        (folder / "token").write_text(f"{TOKEN}\n")
        self.woken: list[str] = []
        self.webhook = Alerted(
            AlertsOptions(port=0, certificate=folder, token=folder / "token"),
            known={"team/chat", "team/code"}.__contains__,
            wake=self.woken.append,
        )

    def show(self) -> None:
        """Another certificate, as whoever keeps it renews it."""
        pair, authority = made(["127.0.0.1"], NOW)
        (self.folder / "tls.crt").write_text(pair.certificate)
        (self.folder / "tls.key").write_text(pair.key)
        (self.folder / "ca.crt").write_text(authority)

    async def send(self, body: bytes, token: str = f"Bearer {TOKEN}") -> int:
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"https://127.0.0.1:{self.webhook.port}/alerts",
                data=io.BytesIO(body),
                ssl=context,
                headers={"Authorization": token},
            ) as answer,
        ):
            await answer.read()
            return answer.status

    async def begin(self, rest: bytes) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection on which a message begins, or is, with these bytes after its first lines."""
        context = ssl.create_default_context(cafile=str(self.folder / "ca.crt"))
        reader, writer = await asyncio.open_connection("127.0.0.1", self.webhook.port, ssl=context)
        writer.write(b"POST /alerts HTTP/1.1\r\nHost: a\r\n" + rest)
        await writer.drain()
        return reader, writer

    def hears(self, rest: bytes) -> bytes:
        """The status of the answer to such a message."""
        statuses = []

        async def raw(_: Send) -> None:
            reader, writer = await self.begin(rest)
            statuses.append((await reader.readline()).split()[1])
            writer.close()

        self.during(raw)
        return statuses[0]

    def during(
        self,
        what: Callable[[Send], Awaitable[None]],
        meanwhile: Callable[[], Awaitable[None]] | None = None,
    ) -> Counter[str]:
        """What became of the alerts that it sends; `meanwhile` is what comes before it listens."""

        async def main() -> None:
            running = asyncio.create_task(self.webhook.run("127.0.0.1"))
            if meanwhile is not None:
                await meanwhile()
            while not self.webhook.port:
                await asyncio.sleep(0.005)
                if running.done():
                    running.result()
            try:
                await what(self.send)
            finally:
                running.cancel()
                await asyncio.gather(running, return_exceptions=True)

        asyncio.run(main())
        return self.webhook.results

    def sends(self, *bodies: bytes, token: str = f"Bearer {TOKEN}") -> list[int]:
        statuses = []

        async def all_of_them(send: Send) -> None:
            statuses.extend([await send(body, token) for body in bodies])

        self.during(all_of_them)
        return statuses


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_an_alert_wakes_the_deployment_that_it_names(place: Place) -> None:
    assert place.sends(message(alert(), alert("code", fingerprint="g"))) == [200]
    assert place.woken == ["team/chat", "team/code"]


def test_what_comes_again_at_once_wakes_nobody_until_it_begins_anew(place: Place) -> None:
    again = [alert(), alert(status="resolved"), alert(), alert(startsAt="later")]
    assert place.sends(message(alert()), *(message(one) for one in again)) == [200] * 5
    assert place.woken == ["team/chat"] * 3
    assert place.webhook.results == {"woke": 3, "repeated": 1, "resolved": 1}


def test_what_is_repeated_as_it_still_fires_wakes_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(alerted, "AGAIN_SECONDS", 0.0)
    assert place.sends(message(alert()), message(alert())) == [200, 200]
    assert place.woken == ["team/chat"] * 2
    assert place.webhook.results == {"woke": 2}


@pytest.mark.parametrize(
    "named",
    [
        alert("nobody"),
        {**alert(), "labels": {"alertname": "Watchdog"}},
        {**alert(), "labels": {"namespace": "team", "llm": 7}},
        {**alert(), "labels": {"namespace": "team/chat", "llm": ""}},
    ],
    ids=["gone", "about none", "no text", "two names in one"],
)
def test_an_alert_about_nothing_that_is_there_wakes_nobody(place: Place, named: Any) -> None:
    assert place.sends(message(named)) == [200]
    assert place.woken == []
    assert place.webhook.results == {"unknown": 1}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"alerts": {}}',
        b'{"alerts": [7]}',
        b'{"alerts": [{"labels": []}]}',
        b"[" * 100_000,
    ],
    ids=["empty", "cut", "a list", "no list", "a number", "no labels", "deep"],
)
def test_what_is_no_message_is_refused(place: Place, body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    assert place.sends(body) == [400]
    assert (place.woken, place.webhook.results) == ([], {"refused": 1})


def test_of_a_message_that_is_half_wrong_nothing_is_heard(place: Place) -> None:
    assert place.sends(message(alert(), 7)) == [400]
    assert place.woken == []


@pytest.mark.parametrize(
    "token", ["", "Bearer", f"Basic {TOKEN}", "Bearer wrong", f"Bearer {TOKEN}x", "Bearer ü"]
)
def test_nobody_is_heard_without_the_token(place: Place, token: str) -> None:
    assert place.sends(message(alert()), token=token) == [401]
    assert place.woken == []


def test_a_token_that_is_no_text_is_a_wrong_one(place: Place) -> None:
    assert place.hears(b"Content-Length: 0\r\nAuthorization: Bearer \xfc\r\n\r\n") == b"401"
    assert place.webhook.results == {"refused": 1}


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (b"Content-Length: 9\r\nContent-Encoding: gzip\r\n\r\nno gzip..", b"400"),
        (b"Content-Length: 9\r\n\r\nand", b"408"),
    ],
    ids=["packed in another way", "never whole"],
)
def test_a_body_that_cannot_be_had_is_refused(
    place: Place, monkeypatch: pytest.MonkeyPatch, rest: bytes, status: bytes
) -> None:
    monkeypatch.setattr(alerted, "BODY_SECONDS", 0.05)
    assert place.hears(b"Authorization: Bearer %s\r\n%s" % (TOKEN.encode(), rest)) == status
    assert place.webhook.results == {"refused": 1}


def test_a_sender_that_leaves_in_the_middle_is_no_error_of_ours(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    async def leave(send: Send) -> None:
        del send
        _, writer = await place.begin(
            b"Authorization: Bearer %s\r\nContent-Length: 9\r\n\r\nand" % TOKEN.encode()
        )
        writer.close()
        while not place.webhook.results:
            await asyncio.sleep(0.005)

    assert place.during(leave) == {"refused": 1}
    assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


def test_who_never_asks_to_the_end_does_not_keep_its_connection(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "IDLE_SECONDS", 0.05)

    async def dawdle(send: Send) -> None:
        del send
        reader, _ = await place.begin(b"Authorization:")
        assert await asyncio.wait_for(reader.read(), 60) == b""

    assert place.during(dawdle) == {}


def test_a_message_that_is_too_large_is_refused(place: Place) -> None:
    many = message(*(alert(fingerprint=str(n)) for n in range(MOST_ALERTS + 1)))
    assert len(many) < LONGEST_BODY
    assert place.sends(many, message(alert(about="x" * LONGEST_BODY))) == [413, 413]
    assert place.woken == []


def test_what_is_remembered_is_bounded(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerted, "MOST_SEEN", 2)
    assert place.sends(*(message(alert(fingerprint=name)) for name in "abcca")) == [200] * 5
    assert place.webhook.results == {"woke": 4, "repeated": 1}


def test_a_token_that_is_renewed_counts_at_once(place: Place) -> None:
    async def renew(send: Send) -> None:
        assert await send(message(alert())) == 200
        (place.folder / "token").write_text("another-token-as-long")
        assert await send(message(alert())) == 401
        (place.folder / "token").unlink()
        assert await send(message(alert())) == 503

    logging.disable()
    try:
        place.during(renew)
    finally:
        logging.disable(logging.NOTSET)


def test_a_certificate_that_is_renewed_is_shown(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(alerted, "RENEWED_SECONDS", 0.01)

    async def renew(send: Send) -> None:
        assert await send(message(alert())) == 200
        place.show()
        while True:
            try:
                assert await send(message(alert())) == 200
            except aiohttp.ClientConnectorCertificateError:
                await asyncio.sleep(0.01)
            else:
                return

    place.during(renew)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (("token", "short"), "token: a token has 16 characters or more"),
        (("token", None), "No such file"),
        (("tls.crt", None), "No such file"),
        (("tls.crt", "no certificate"), "are no pair of certificate and key"),
        (("tls.key", OTHERS_KEY), "are no pair of certificate and key"),
    ],
    ids=["a short token", "no token", "no certificate", "none that is one", "another's key"],
)
def test_it_waits_for_what_it_needs_and_says_what_that_is(
    place: Place,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    wrong: tuple[str, str | None],
    words: str,
) -> None:
    monkeypatch.setattr(alerted, "RENEWED_SECONDS", 0.01)
    file, text = wrong
    path = place.folder / file
    right = path.read_text()
    path.unlink()
    if text is not None:
        path.write_text(text)

    async def heal() -> None:
        while words not in caplog.text:
            await asyncio.sleep(0.005)
        assert place.webhook.port == 0
        path.write_text(right)

    async def send(send: Send) -> None:
        assert await send(message(alert())) == 200

    place.during(send, meanwhile=heal)


def test_what_was_shown_stays_shown_where_the_renewed_is_no_pair(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(alerted, "RENEWED_SECONDS", 0.01)

    async def spoil(send: Send) -> None:
        pair, _ = made(["127.0.0.1"], NOW)
        (place.folder / "tls.crt").write_text(pair.certificate)
        while "the one before is" not in caplog.text:
            await asyncio.sleep(0.005)
        assert await send(message(alert())) == 200

    place.during(spoil)
