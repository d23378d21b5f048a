"""Why metrics are missing is told where a user looks for it, and in the log once while it stays."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from plimsoll import names
from plimsoll.facts.pod_sample import PodSample
from plimsoll.reconcile.loop.sources import Asked, Looked
from plimsoll.reconcile.loop.unanswered import Unanswered
from tests.reconcile.staging import KEY, Scene, conditions, staged

LIMIT = "HTTP 422: the query exceeds a limit"
SLOW = "no answer within 5 s"


def asks_in_vain(stage: Scene, errors: Mapping[str, str], silent: bool, seen: bool = True) -> None:
    """From now on; a replica that is silent is seen or not, and says nothing."""
    before = stage.look

    async def look(now: float, asked: list[Asked]) -> Looked:
        found = await before(now, asked)
        samples = (
            found.samples if not silent else tuple(PodSample(pod=one.pod, at=now) for one in found.samples)
        )
        return replace(found, samples=samples if seen else (), errors=errors)

    stage.look = look  # type: ignore[method-assign,assignment]


@pytest.mark.parametrize(
    ("errors", "silent", "said"),
    [
        ({"ages": LIMIT, "ttft": SLOW}, True, LIMIT),
        ({"load": LIMIT}, True, LIMIT),
        ({"ttft": LIMIT}, True, ""),
        ({"load": LIMIT}, False, ""),
        ({"team-b/other": SLOW}, True, ""),
    ],
    ids=["ages", "load", "what latencies need", "all is said", "another's pod"],
)
def test_the_condition_says_why_nobody_knows_how_loaded_the_replicas_are(
    errors: Mapping[str, str], silent: bool, said: str
) -> None:
    stage, world, control = staged()
    asks_in_vain(stage, errors, silent)
    stage.run(control, world, 12)
    (told,) = [one for one in world.directions[KEY].told if one.type == names.METRICS]
    assert (LIMIT in told.message, SLOW in told.message) == (said == LIMIT, said == SLOW), told.message


def test_of_pods_that_fail_the_condition_says_what_most_of_them_fail_of() -> None:
    stage, world, control = staged()
    stage.load = 200.0
    stage.run(control, world, 12)
    space = KEY.partition("/")[0]
    (key,) = {one.name for one in stage.serving().sets}
    pods = [f"{space}/{pod.name}" for pod in stage.pods(key, stage.replicas)]
    assert len(pods) > 2
    asks_in_vain(stage, {**dict.fromkeys(pods, SLOW), pods[0]: "status 404"}, silent=True, seen=False)
    for _ in range(8):
        stage.now += 30
        asyncio.run(control.tick())
    (told,) = [one for one in world.directions[KEY].told if one.type == names.METRICS]
    assert told.message.endswith(SLOW), (conditions(world.directions[KEY]), told.message)


def test_the_log_says_each_reason_once_while_it_stays(caplog: pytest.LogCaptureFixture) -> None:
    unanswered, lines = Unanswered(), []
    many = dict.fromkeys((f"team/chat-{n}" for n in range(9)), SLOW)
    for looked in (
        Looked(errors={"itl": LIMIT, "ttft": LIMIT}),
        Looked(errors={"itl": LIMIT, "ttft": LIMIT}),
        Looked(errors={"itl": LIMIT, "ttft": SLOW}),
        Looked(reachable=False, problem="no connection"),
        Looked(errors={"itl": LIMIT}),
        Looked(errors={}),
        Looked(errors={"itl": LIMIT}),
        Looked(errors={"itl": LIMIT, **many}),
    ):
        caplog.clear()
        unanswered.tell(looked)
        lines.append([record.getMessage() for record in caplog.records if record.levelname == "WARNING"])
    assert lines == [
        [f"metrics of itl, ttft cannot be read: {LIMIT}"],
        [],
        [f"metrics of ttft cannot be read: {SLOW}"],
        ["the source of metrics does not answer: no connection"],
        [],
        [],
        [f"metrics of itl cannot be read: {LIMIT}"],
        [f"metrics of team/chat-0, team/chat-1, team/chat-2 and 6 more cannot be read: {SLOW}"],
    ]
