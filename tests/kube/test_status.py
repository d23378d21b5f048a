"""When a status is written, where its answer and what is seen of the resource come in another order than things happened."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import pytest

from plimsoll.kube.door import Door, Object
from plimsoll.kube.errors import Invalid, Unreachable, refusal
from plimsoll.kube.status import LACKING_SECONDS, StatusWriter
from plimsoll.objects import Owner

OWNER = Owner("team", "chat", "u1")


class Server:
    """Keeps one status; where it is `cut` off nobody hears that it does."""

    def __init__(self) -> None:
        self.status: Mapping[str, Any] = {}
        self.version = 5
        self.cut = False

    async def apply(self, _: str, body: Object, **__: Any) -> Object:
        self.status, self.version = body["status"], self.version + 1
        if self.cut:
            raise Unreachable("the connection was cut")
        return {"metadata": {"resourceVersion": str(self.version)}}

    def seen(self) -> Object:
        return {"metadata": {"resourceVersion": str(self.version)}, "status": self.status}


@pytest.mark.parametrize("edited", [False, True], ids=["", "and somebody edits the resource meanwhile"])
def test_a_status_is_written_again_after_one_of_which_nobody_knows_whether_it_was(*, edited: bool) -> None:
    async def main() -> None:
        server = Server()
        writer = StatusWriter(cast(Door, server))
        assert await writer.write(OWNER, {"ready": "1/1"}, server.seen())
        if edited:
            server.version += 1
        before = server.seen()
        server.cut = True
        with pytest.raises(Unreachable):
            await writer.write(OWNER, {"ready": "0/1"}, before)
        server.cut = False
        assert await writer.write(OWNER, {"ready": "1/1"}, before)
        assert server.status == {"ready": "1/1"}
        assert not await writer.write(OWNER, {"ready": "1/1"}, before)

    asyncio.run(main())


def test_a_status_is_written_again_after_the_data_of_the_cluster_were_restored() -> None:
    """Versions have gone back, so what is seen from now on looks older than our own write."""

    async def main() -> None:
        server = Server()
        writer = StatusWriter(cast(Door, server))
        await writer.write(OWNER, {"ready": "1/1"}, server.seen())
        server.status, server.version = {"ready": "0/1"}, 2
        writer.restored(OWNER.uid)
        assert await writer.write(OWNER, {"ready": "1/1"}, server.seen()) == 3
        assert server.status == {"ready": "1/1"}
        assert not await writer.write(OWNER, {"ready": "1/1"}, server.seen())

    asyncio.run(main())


def test_a_write_says_which_version_has_the_status() -> None:
    async def main() -> None:
        server = Server()
        writer = StatusWriter(cast(Door, server))
        before = server.seen()
        assert await writer.write(OWNER, {"ready": "1/1"}, before) == 6
        assert not await writer.write(OWNER, {"ready": "1/1"}, before)

    asyncio.run(main())


FULL = {
    "ready": "1/1",
    "plan": {"layout": "tp1", "kvTokens": 5},
    "sets": [{"name": "a", "warning": "w"}, {"name": "b"}],
}
KNOWN = {"ready": "1/1", "plan": {"layout": "tp1"}, "sets": [{"name": "a"}, {"name": "b"}]}


class Older(Server):
    """Its CRD lacks fields, and it names them as an API server does: those of lists only once the others are gone."""

    lacks = True
    applies = 0

    async def apply(self, _: str, body: Object, **__: Any) -> Object:
        self.applies += 1
        await asyncio.sleep(0)
        status = body["status"]
        found = [".status.plan.kvTokens"] if "kvTokens" in status["plan"] else []
        found = found or [
            f'.status.sets[name="{one["name"]}"].warning' for one in status["sets"] if "warning" in one
        ]
        if found and self.lacks:
            named = "\n  ".join(f"{one}: field not declared in schema" for one in found)
            said = f"failed to create typed patch object (team/chat; plimsoll.dev/v1alpha1, Kind=LLMDeployment): errors:\n  {named}"
            raise refusal(500, {"message": said})
        return await super().apply(_, body, **__)


def test_fields_that_an_older_crd_lacks_are_left_out_and_all_the_rest_is_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def main() -> None:
        server, now = Older(), [0.0]
        writer = StatusWriter(cast(Door, server), clock=lambda: now[0])
        assert await writer.write(OWNER, FULL, server.seen())
        assert (server.status, server.applies) == (KNOWN, 3)
        assert {"status.plan.kvTokens", "status.sets.warning"} == {
            word.strip(",:") for word in caplog.text.split() if word.startswith("status.")
        }
        server.version += 1
        assert not await writer.write(OWNER, FULL, server.seen()), "what can be told stands there"
        other = Owner("team", "other", "u2")
        assert await writer.write(other, {**FULL, "ready": "0/1"}, {"metadata": {"resourceVersion": "5"}})
        assert server.applies == 4
        server.lacks = False
        now[0] += LACKING_SECONDS
        assert await writer.write(OWNER, FULL, server.seen()), "the CRD may have been brought meanwhile"
        assert server.status == FULL

    asyncio.run(main())


def test_of_writes_at_the_same_time_none_fails_for_what_another_has_learned() -> None:
    async def main() -> None:
        server = Older()
        writer = StatusWriter(cast(Door, server))
        owners = [Owner("team", f"chat-{n}", f"u{n}") for n in range(3)]
        assert all(await asyncio.gather(*(writer.write(one, FULL, server.seen()) for one in owners)))

    asyncio.run(main())


@pytest.mark.parametrize("said", ["nobody knows why", ".status.nothing: field not declared in schema"])
def test_what_leaving_fields_out_does_not_mend_is_raised(said: str) -> None:
    class Refusing(Server):
        async def apply(self, _: str, body: Object, **__: Any) -> Object:
            raise refusal(500 if "declared" in said else 422, {"message": said})

    writer = StatusWriter(cast(Door, Refusing()))
    with pytest.raises(Invalid):
        asyncio.run(writer.write(OWNER, FULL, Server().seen()))
