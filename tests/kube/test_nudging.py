"""What is written to pods that others make: one call a pod, of that very pod, and an answer that says what is left to do."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from plimsoll import names
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.kube.door import Door
from plimsoll.kube.errors import KubeError, Unreachable, refusal
from plimsoll.kube.nudging import set_free, take_away

PODS = tuple(PodSeen(name=name, uid=f"uid of {name}", stage=Stage.READY) for name in ("a", "b"))


class Calls:
    """A door that remembers what it was asked, and fails for pod b where it should."""

    def __init__(self, error: KubeError | None = None) -> None:
        self.asked: list[tuple[str, Any]] = []
        self._error = error

    async def delete(self, path: str, *, uid: str) -> None:
        self._asked(path, uid)

    async def patch(self, path: str, body: Any, *, manager: str) -> None:
        assert manager == names.MANAGER_CHILDREN
        self._asked(path, body)

    def _asked(self, path: str, what: Any) -> None:
        self.asked.append((path, what))
        if self._error is not None and path.endswith("/b"):
            raise self._error


def test_a_pod_is_taken_away_by_its_uid() -> None:
    door = Calls()
    assert asyncio.run(take_away(cast(Door, door), "team", PODS)) == ()
    assert door.asked == [(f"/api/v1/namespaces/team/pods/{name}", f"uid of {name}") for name in ("a", "b")]


def test_a_pod_that_is_set_free_keeps_all_but_what_we_asked_of_autoscalers() -> None:
    door = Calls()
    assert asyncio.run(set_free(cast(Door, door), "team", PODS[:1])) == ()
    ((path, body),) = door.asked
    assert path == "/api/v1/namespaces/team/pods/a"
    assert body["metadata"] == {
        "uid": "uid of a",
        "annotations": {
            "plimsoll.dev/until-ready": None,
            "cluster-autoscaler.kubernetes.io/safe-to-evict": None,
            "karpenter.sh/do-not-disrupt": None,
        },
    }


BOTH = (take_away, set_free)


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (refusal(404, {"message": "not found"}), ()),
        (refusal(409, {"message": "Precondition failed: UID in precondition"}), (set_free,)),
        (refusal(409, {"message": "the object has been modified"}), (set_free,)),
        (refusal(422, {"details": {"causes": [{"field": "metadata.uid"}]}}), ()),
        (refusal(403, {"message": "may not"}), BOTH),
        (Unreachable("connection reset"), BOTH),
    ],
    ids=[
        "it is gone",
        "another took its name",
        "somebody writes it all the time",
        "another's, of a patch",
        "forbidden",
        "away",
    ],
)
def test_only_what_may_still_be_done_is_left(error: KubeError, left: tuple[object, ...]) -> None:
    """A deletion names a uid alone, so that a conflict is another pod's; a patch meets one where others write the same pod."""
    for call in BOTH:
        door = Calls(error)
        assert asyncio.run(call(cast(Door, door), "team", PODS)) == ((error,) if call in left else ())
        assert len(door.asked) == len(PODS)
