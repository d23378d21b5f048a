"""Events of pods that were not made: whose they are, whom they wake, and for how long they count."""

from __future__ import annotations

from typing import Any, cast

from plimsoll.kube.door import Door
from plimsoll.kube.refusals import Refusals, _RefusalsSink
from plimsoll.kube.times import seconds

FIRST, LATER = "2026-01-01T00:00:00Z", "2026-01-01T00:10:00Z"
NOTE = 'create Pod chat-1a2b3c4d-0-0 in StatefulSet chat-1a2b3c4d-0 failed error: pods "chat-1a2b3c4d-0-0" is forbidden: exceeded quota: gpus'


def event(
    note: str = NOTE, *, about: str = "chat-1a2b3c4d-0", name: str = "e1", at: str = FIRST
) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "team", "creationTimestamp": FIRST},
        "regarding": {"kind": "StatefulSet", "namespace": "team", "name": about},
        "note": note,
        "deprecatedLastTimestamp": at,
    }


class Index:
    def __init__(self) -> None:
        self.woken: list[str] = []
        self.refusals = Refusals(cast("Door", None), self.woken.append)
        self.sink = _RefusalsSink(self.refusals, "")

    def sees(self, item: dict[str, Any]) -> None:
        self.sink.put(item, as_of=None)

    def says(self, since: str = FIRST) -> str:
        return self.refusals.of("team/chat-1a2b3c4d-0", seconds(since))


def test_a_refusal_is_of_the_set_that_it_names_and_wakes_its_deployment_once() -> None:
    index = Index()
    index.sees(event())
    index.sees(event(at=LATER))
    assert index.says() == "exceeded quota: gpus"
    assert index.woken == ["team/chat"]


def test_of_several_the_last_words_count() -> None:
    index = Index()
    index.sees(event())
    index.sees(event('pods "x" is forbidden: maximum', name="e2", at=LATER))
    assert index.says() == "maximum"
    assert index.woken == ["team/chat", "team/chat"]


def test_what_was_said_of_an_earlier_object_of_that_name_does_not_count() -> None:
    index = Index()
    index.sees(event())
    assert index.says(since=LATER) == ""


def test_events_that_expire_or_are_listed_no_more_are_forgotten() -> None:
    index = Index()
    index.sees(event())
    index.sink.remove(event())
    assert index.says() == ""
    index.sees(event())
    index.sink.keep_only(set(), as_of=1)
    assert index.says() == ""


def test_statefulsets_of_others_are_nobodys() -> None:
    index = Index()
    index.sees(event(about="postgres"))
    assert index.woken == []
    assert index.refusals.known() == ()
