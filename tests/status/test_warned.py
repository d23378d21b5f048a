"""What engines warn of: a line beside the set, one event, and no condition, since they serve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plimsoll.api.v1alpha1.status import LLMDeploymentStatus, SetStatus
from plimsoll.facts.report import Report, Warned
from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.status.told import status_after, warning_news
from plimsoll.status.warned import are_told
from tests.status.stories import NOW, pod, story

SLOW = Warned(word="NoNvlink", message="not all GPUs reach one another by it", remedy="other nodes")
WARNS, CALM = Report(state="serving", warnings=(SLOW,)), Report(state="serving")
SAID = "chat-aaaa-0: NoNvlink: not all GPUs reach one another by it. Remedy: other nodes"
BEFORE = LLMDeploymentStatus()


def serving(number: int = 0, stage: Stage = Stage.READY) -> PodSeen:
    return pod(stage, number, runtime_port=8079)


def status(*pods: PodSeen, before: LLMDeploymentStatus = BEFORE, **reports: Report) -> LLMDeploymentStatus:
    heard = {name.removeprefix("u"): report for name, report in reports.items()}
    return status_after(replace(story(*pods, spec={"replicas": len(pods)}), reports=heard), before, NOW)


def warning(found: LLMDeploymentStatus) -> str | None:
    (one,) = found.sets
    return one.warning


def test_a_warning_stands_beside_its_set_and_changes_no_condition() -> None:
    warned, calm = status(serving(), u0=WARNS), status(serving(), u0=CALM)
    assert (warning(warned), warning(calm)) == (SAID, None)
    assert warned.conditions == calm.conditions


def test_of_several_pods_the_first_is_told_with_how_many_warn_as_it_does() -> None:
    found = status(serving(), serving(1), serving(2), u0=CALM, u1=WARNS, u2=WARNS)
    assert (warning(found) or "").startswith("chat-aaaa-1 and 1 more: NoNvlink")


def test_it_is_an_event_once_whoever_warns_next_and_whoever_asks_again() -> None:
    first = status(serving(), serving(1), u0=WARNS, u1=CALM)
    again = status(serving(), serving(1), before=first, u0=WARNS, u1=WARNS)
    (event,) = warning_news(BEFORE.sets, first.sets)
    assert (event.type, event.about, event.reason, event.message) == (
        "Warning",
        "Engine",
        "EngineWarns",
        SAID,
    )
    assert warning(again) != warning(first)
    assert warning_news(first.sets, again.sets) == ()


@pytest.mark.parametrize(
    ("pods", "reports", "stays"),
    [
        ((serving(),), {}, True),
        ((serving(), serving(1)), {"u1": CALM}, True),
        ((serving(),), {"u0": CALM}, False),
        ((serving(stage=Stage.LOADING),), {}, False),
    ],
    ids=["nobody was heard", "one was not heard", "all were heard", "another pod starts in its place"],
)
def test_what_was_told_stays_until_all_that_serve_were_heard_again(
    pods: tuple[PodSeen, ...], reports: dict[str, Report], stays: bool
) -> None:
    before = status(serving(), u0=WARNS)
    found = status(*pods, before=before, **reports)
    assert warning(found) == (SAID if stays else None)
    assert warning_news(before.sets, found.sets) == ()


def test_a_status_without_the_warning_has_not_told_it() -> None:
    beside = (SetStatus(name="chat-aaaa", warning=SAID),)
    assert are_told({"0": WARNS}, beside)
    assert not are_told({"0": WARNS}, (SetStatus(name="chat-aaaa"),))
    assert are_told({"0": CALM}, (SetStatus(name="chat-aaaa"),))
    assert are_told({}, ())
