"""Events that tell of decisions: one that cannot be sent is tried again, and keeps no other from being told."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import NotLeading, Unreachable, refusal
from plimsoll.kube.events import TRIES, Event, Events
from plimsoll.kube.pace import Pace
from plimsoll.objects import Owner


class Failing:
    """A door that fails so many times with this."""

    def __init__(self, error: Exception, times: int) -> None:
        self._errors = [error] * times
        self.sent: list[str] = []

    async def create(self, _: str, body: Object, **__: Any) -> Object:
        if self._errors:
            raise self._errors.pop()
        self.sent.append(body["reason"])
        return {}


REFUSED = refusal(403, {"reason": "Forbidden", "message": "the namespace is being terminated"})


@pytest.mark.parametrize(
    ("error", "times"),
    [
        (Unreachable("no route"), TRIES),
        (REFUSED, 1),
        (NotLeading("another process does"), 1),
        (TypeError("credentials of an odd shape"), 1),
    ],
)
def test_an_event_that_cannot_be_sent_is_counted_and_the_next_one_is_sent(
    error: Exception, times: int
) -> None:
    assert told_by(Failing(error, times)) == (["Second"], 1)


@pytest.mark.parametrize("error", [Unreachable("timed out"), refusal(503, {"reason": "ServiceUnavailable"})])
def test_an_event_is_told_late_and_in_order_where_the_server_could_not_take_it_at_first(
    error: Exception,
) -> None:
    assert told_by(Failing(error, TRIES - 1)) == (["First", "Second"], 0)


def told_by(door: Failing) -> tuple[list[str], int]:
    """The reasons of two events that were sent, and how many were not."""

    async def main() -> int:
        events = Events(cast(Door, door), "here", pace=Pace(sleep=at_once))
        sending = asyncio.create_task(events.run())
        for reason in ("First", "Second"):
            events.tell(Event(Owner("team", "chat", "u1"), reason=reason, note="", action="Scale"))
        async with asyncio.timeout(5):
            await events.flush()
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending
        return events.dropped

    dropped = asyncio.run(main())
    return door.sent, dropped


async def at_once(_: float) -> None:
    await asyncio.sleep(0)
