"""The webhook's certificate in its Secret: who writes, who only reads, and in which order the API server hears of it."""

from __future__ import annotations

import asyncio
import base64
import copy
import ssl
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.kube.certificates import RENEW_AFTER, SETTLE, Kept, Pair, made, renewed
from plimsoll.kube.errors import Conflict, NotFound, Refused
from plimsoll.kube.keeping import FIRST_SECONDS, LOOK_SECONDS, Keeper, Place

HOSTS = ("webhook.plimsoll.svc",)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "/api/v1/namespaces/plimsoll/secrets/webhook"
HOOK = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/hook"


class Server:
    """An API server with one Secret and one configuration, that writes down what is written."""

    def __init__(self) -> None:
        self.objects: dict[str, Any] = {
            SECRET: {"metadata": {"name": "webhook", "resourceVersion": "1"}, "type": "Opaque"},
            HOOK: {
                "metadata": {"resourceVersion": "1"},
                "webhooks": [{"name": "a", "clientConfig": {"service": {"name": "webhook"}}}],
            },
        }
        self.wrote: list[str] = []
        self.fails: dict[str, Exception] = {}
        self.between: Callable[[], Awaitable[Any]] | None = None
        """What another does between a look and what is written after it."""

    async def get(self, path: str) -> Any:
        if path not in self.objects:
            raise NotFound(404, {})
        return copy.deepcopy(self.objects[path])

    async def replace(self, path: str, body: Any, *, manager: str) -> None:
        await self._meets("replace", path, body)
        self.wrote.append("secret")
        self.objects[path] = body
        self._changed(path)

    async def patch(self, path: str, body: Any, *, manager: str, content: str) -> None:
        await self._meets("patch", path, body)
        assert content == "application/strategic-merge-patch+json"
        self.wrote.append("hook")
        for hook in self.objects[path]["webhooks"]:
            for new in body["webhooks"]:
                if new["name"] == hook["name"]:
                    hook["clientConfig"].update(new["clientConfig"])
        self._changed(path)

    async def _meets(self, verb: str, path: str, body: Any) -> None:
        between, self.between = self.between, None
        if between is not None:
            await between()
        if verb in self.fails:
            raise self.fails[verb]
        if body["metadata"]["resourceVersion"] != self.objects[path]["metadata"]["resourceVersion"]:
            raise Conflict(409, {})

    def _changed(self, path: str) -> None:
        about = self.objects[path]["metadata"]
        about["resourceVersion"] = str(int(about["resourceVersion"]) + 1)

    @property
    def bundle(self) -> str:
        return base64.b64decode(
            self.objects[HOOK]["webhooks"][0]["clientConfig"].get("caBundle", "")
        ).decode()

    @property
    def kept(self) -> Kept | None:
        return Kept.read(
            {
                key: base64.b64decode(value).decode()
                for key, value in self.objects[SECRET].get("data", {}).items()
            }
        )

    def keep(self, kept: Kept) -> None:
        encoded = {key: base64.b64encode(value.encode()).decode() for key, value in kept.data().items()}
        self.objects[SECRET]["data"] = encoded


class Stand:
    """A keeper, its clock, and what it had shown."""

    def __init__(
        self,
        server: Server,
        *,
        leads: bool = True,
        configuration: str | None = "hook",
        unshowable: str | None = None,
    ) -> None:
        self.now = NOW
        self.shown: list[Pair] = []
        self._unshowable = unshowable
        place = Place(namespace="plimsoll", secret="webhook", hosts=HOSTS, configuration=configuration)
        self._keeper = Keeper(
            server,  # type: ignore[arg-type]
            place,
            self._show,
            leads=lambda: leads,
            now=self._seconds,
        )

    def _seconds(self) -> float:
        return self.now.timestamp()

    def _show(self, pair: Pair) -> None:
        if pair.certificate == self._unshowable:
            raise ssl.SSLError("no start line")
        self.shown.append(pair)

    def look(self) -> float:
        return asyncio.run(self.looks())

    async def looks(self) -> float:
        return await self._keeper.look()


def test_who_leads_makes_it_tells_it_and_shows_it_once() -> None:
    server = Server()
    first = Stand(server)
    assert first.look() == LOOK_SECONDS
    assert server.wrote == ["secret", "hook"]
    assert server.kept is not None
    assert first.shown == [server.kept.shown]
    assert server.bundle == server.kept.authorities
    assert server.objects[SECRET]["type"] == "Opaque"
    first.look()
    assert server.wrote == ["secret", "hook"]
    assert len(first.shown) == 1


def test_who_does_not_lead_makes_only_the_first() -> None:
    """The one that leads may be of a release that knows no webhook, and stays until this one is ready."""
    server = Server()
    standby = Stand(server, leads=False)
    assert standby.look() == LOOK_SECONDS
    assert server.wrote == ["secret", "hook"]
    assert server.kept is not None
    assert server.bundle == server.kept.authorities
    standby.now += 2 * RENEW_AFTER
    standby.look()
    leader = Stand(server)
    leader.look()
    assert server.wrote == ["secret", "hook"]
    assert leader.shown == standby.shown == [server.kept.shown]


def test_of_two_that_make_the_first_one_is_heard_and_both_show_the_same() -> None:
    server = Server()
    late, early = Stand(server, leads=False), Stand(server, leads=False)
    server.between = early.looks
    assert late.look() == FIRST_SECONDS
    assert late.look() == LOOK_SECONDS
    assert server.wrote == ["secret", "hook"]
    assert server.kept is not None
    assert late.shown == early.shown == [server.kept.shown]


def test_nobody_is_told_of_a_bundle_over_one_that_came_meanwhile() -> None:
    server = Server()
    before = renewed(None, HOSTS, NOW)
    server.keep(before)
    leader = Stand(server)

    async def another() -> None:
        hook = server.objects[HOOK]
        hook["metadata"]["resourceVersion"] = "7"

    server.between = another
    assert leader.look() == FIRST_SECONDS
    assert server.wrote == []
    leader.look()
    assert server.bundle == before.authorities


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """By us: asyncio tells there of what an earlier test left."""
    return [line.message for line in caplog.records if line.name.startswith("plimsoll")]


@pytest.mark.parametrize("leads", [True, False])
def test_what_is_kept_is_shown_though_nobody_can_be_told(
    leads: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server = Server()
    kept = renewed(None, HOSTS, NOW)
    server.keep(kept)
    del server.objects[HOOK]
    one = Stand(server, leads=leads)
    assert one.look() == LOOK_SECONDS
    assert one.shown == [kept.shown]
    assert ("404" in caplog.text) is leads


def test_of_two_faults_the_first_is_said(caplog: pytest.LogCaptureFixture) -> None:
    server = Server()
    server.keep(Kept(shown=Pair("no certificate", "no key"), authorities=""))
    server.fails["replace"] = Refused(403, {"message": "not yours"})
    leader = Stand(server, unshowable="no certificate")
    assert leader.look() == FIRST_SECONDS
    assert leader.shown == []
    assert ["not yours" in text for text in told(caplog)] == [True]


def test_a_new_one_is_shown_only_after_the_api_server_knew_its_authority_for_a_while() -> None:
    server = Server()
    leader = Stand(server)
    leader.look()
    leader.now += RENEW_AFTER
    server.fails["patch"] = Refused(403, {"message": "no"})
    leader.look()  # made, but nobody could be told
    leader.now += 2 * SETTLE
    leader.look()
    assert len(leader.shown) == 1
    server.fails.clear()
    leader.look()  # told only now
    assert len(leader.shown) == 1
    leader.look()
    assert len(leader.shown) == 2
    assert server.kept is not None
    assert server.bundle == server.kept.authorities


def test_another_writer_is_met_at_the_next_look() -> None:
    server = Server()
    leader = Stand(server)
    server.fails["replace"] = Conflict(409, {})
    assert leader.look() == FIRST_SECONDS
    assert leader.shown == []
    server.fails.clear()
    leader.look()
    assert len(leader.shown) == 1


def test_what_others_keep_is_only_read() -> None:
    server = Server()
    pair, authority = made(HOSTS, NOW)
    server.keep(Kept(shown=pair, authorities=authority))
    reader = Stand(server, configuration=None)
    reader.now += RENEW_AFTER
    assert reader.look() == LOOK_SECONDS
    assert reader.shown == [pair]
    assert server.wrote == []


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda server: server.objects.pop(SECRET), "there is no Secret webhook in plimsoll"),
        (lambda server: None, "holds no tls.crt with its tls.key"),
    ],
    ids=["no Secret", "an empty one"],
)
def test_what_is_missing_is_said_once(caplog: pytest.LogCaptureFixture, change: Any, words: str) -> None:
    server = Server()
    change(server)
    reader = Stand(server, configuration=None)
    assert reader.look() == FIRST_SECONDS
    reader.look()
    assert [words in text for text in told(caplog)] == [True]


def test_what_was_shown_stays_shown_while_the_server_does_not_answer() -> None:
    server = Server()
    leader = Stand(server)
    leader.look()
    server.objects.clear()
    assert leader.look() == LOOK_SECONDS
    assert len(leader.shown) == 1


def test_a_secret_that_was_emptied_is_filled_again() -> None:
    server = Server()
    leader = Stand(server)
    leader.look()
    server.keep(renewed(None, HOSTS, NOW))
    server.objects[SECRET].pop("data")
    leader.look()
    assert server.kept is not None
    assert leader.shown[-1] == server.kept.shown
    assert server.bundle == server.kept.authorities
