"""Tokens are read again where they may have changed, and never so often that a plugin runs for each request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from kubernetes.client import Configuration
from kubernetes.config import ConfigException

from plimsoll.kube.credentials import FRESH_SECONDS, Access, NoCluster
from plimsoll.kube.pace import Pace


class Source:
    """A configuration whose token is somebody else's to change."""

    def __init__(self) -> None:
        self.token = "one"
        self.trouble: Exception | None = None
        self.loads = self.refreshes = 0
        self.now = 1000.0

    def load(self) -> Configuration:
        self.loads += 1
        if self.trouble is not None:
            raise self.trouble
        found = Configuration(host="https://server/")
        found.api_key["BearerToken"] = f"Bearer {self.token}"
        found.refresh_api_key_hook = self._refresh  # type: ignore[assignment]
        return found

    def _refresh(self, configuration: Configuration) -> None:
        self.refreshes += 1
        if self.trouble is not None:
            raise self.trouble
        configuration.api_key["BearerToken"] = f"Bearer {self.token}"

    def access(self) -> Access:
        return Access(self.load, Pace(now=lambda: self.now))


def test_a_token_is_looked_at_again_once_in_a_while_however_many_ask() -> None:
    source = Source()

    async def does() -> None:
        access = source.access()
        assert access.server == "https://server"
        source.token = "two"
        assert await access.authorization() == "Bearer one"
        source.now += FRESH_SECONDS + 1
        assert set(await asyncio.gather(*(access.authorization() for _ in range(20)))) == {"Bearer two"}
        assert source.refreshes == 1

    asyncio.run(does())


def test_a_token_that_the_server_does_not_know_is_read_anew_once_for_all() -> None:
    source = Source()

    async def does() -> None:
        access = source.access()
        source.now += 10
        source.token = "two"
        assert all(await asyncio.gather(*(access.unknown("Bearer one") for _ in range(20))))
        assert await access.authorization() == "Bearer two"
        assert source.loads == 2
        # The new one is not known either: nothing is read before a while has passed.
        assert not await access.unknown("Bearer two")
        assert source.loads == 2

    asyncio.run(does())


@pytest.mark.parametrize(
    ("trouble", "ask"),
    [
        (ConfigException("Token file exists but empty."), Access.authorization),
        (FileNotFoundError("token"), Access.authorization),
        (NoCluster("no file"), lambda access: access.unknown("Bearer one")),
        (OSError("busy"), lambda access: access.unknown("Bearer one")),
    ],
)
def test_what_cannot_be_read_again_leaves_what_there_is(
    trouble: Exception, ask: Callable[[Access], object]
) -> None:
    source = Source()

    async def does() -> None:
        access = source.access()
        source.now += FRESH_SECONDS + 1
        source.trouble = trouble
        answer = ask(access)
        assert asyncio.iscoroutine(answer)
        await answer
        assert access.token == "Bearer one"
        source.trouble, source.token = None, "two"
        source.now += FRESH_SECONDS + 1
        assert await access.authorization() == "Bearer two"

    asyncio.run(does())


@pytest.mark.parametrize(
    ("proxy", "no_proxy", "used"),
    [(None, None, None), ("http://proxy:8", None, "http://proxy:8"), ("http://proxy:8", "server", None)],
)
def test_a_proxy_is_used_unless_it_is_to_be_passed_by(
    proxy: str | None, no_proxy: str | None, used: str | None
) -> None:
    access = Access(
        lambda: Configuration(host="https://server", proxy=proxy, no_proxy=no_proxy or ""), Pace()
    )
    assert access.proxy == used
