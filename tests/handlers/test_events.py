"""How kopf is logged in: with what the files say now, and again however often the server does not accept that."""

from __future__ import annotations

import asyncio
from itertools import pairwise

from kubernetes.client import Configuration

from plimsoll.handlers.events import Logins
from plimsoll.kube.credentials import RENEW_SECONDS
from plimsoll.kube.pace import Pace


def test_no_login_equals_one_before_it_as_kopf_would_not_take_it_and_end() -> None:
    now, tokens, asked_at = [100.0], iter(["one", "one", "one", "one", "two"]), list[float]()

    async def sleep(seconds: float) -> None:
        now[0] += seconds

    def load() -> Configuration:
        asked_at.append(now[0])
        found = Configuration(host="https://server")
        found.api_key["BearerToken"] = f"Bearer {next(tokens)}"
        return found

    async def does() -> None:
        logins = Logins(load, Pace(now=lambda: now[0], sleep=sleep))
        first = await logins.next()
        now[0] += 3600.0
        found = [first, *[await logins.next() for _ in range(4)]]
        assert [(one.scheme, one.token) for one in found] == [("Bearer", "one")] * 4 + [("Bearer", "two")]
        assert not any(one == other for at, one in enumerate(found) for other in found[:at])

    asyncio.run(does())
    # At once where the last one held for long, and then not so often that a plugin runs all the time.
    assert [after - before for before, after in pairwise(asked_at)] == [3600.0, *[RENEW_SECONDS] * 3]
