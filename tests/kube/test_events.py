"""Events that tell of decisions: one that cannot be sent keeps no other from being told."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Unreachable
from plimsoll.kube.events import Event, Events
from plimsoll.objects import Owner


class Failing:
    """A door that fails once with this."""

    def __init__(self, error: Exception) -> None:
        self._errors = [error]
        self.sent: list[str] = []

    async def create(self, _: str, body: Object, **__: Any) -> Object:
        if self._errors:
            raise self._errors.pop()
        self.sent.append(body["reason"])
        return {}


@pytest.mark.parametrize("error", [Unreachable("no route"), TypeError("credentials of an odd shape")])
def test_an_event_that_cannot_be_sent_is_counted_and_the_next_one_is_sent(error: Exception) -> None:
    async def main() -> None:
        door = Failing(error)
        events = Events(cast(Door, door), "here")
        sending = asyncio.create_task(events.run())
        for reason in ("First", "Second"):
            events.tell(Event(Owner("team", "chat", "u1"), reason=reason, note="", action="Scale"))
        async with asyncio.timeout(5):
            await events.flush()
        assert (door.sent, events.dropped) == (["Second"], 1)
        sending.cancel()
        with suppress(asyncio.CancelledError):
            await sending

    asyncio.run(main())
