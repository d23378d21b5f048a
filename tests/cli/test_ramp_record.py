"""`plimsoll ramp NAME --record`: what is handed in, and what the operator's answer looks like to whoever waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from plimsoll import names
from plimsoll.cli import ramp_record
from plimsoll.cli.errors import BadInput
from plimsoll.cli.ramp_record import Recorder, recorder_of
from plimsoll.facts.ramp_record import MOST_POINTS, RampRecord, read_record, record_digest
from plimsoll.load.conclusions import Asked, Ramp, Step, conclude
from plimsoll.load.knee import Knee, Sign
from tests.cli.running import plimsoll
from tests.kube.api_server import Api, serving
from tests.load.results import result, spread

PATH = "/apis/plimsoll.dev/v1alpha1/namespaces/team/llmdeployments/chat"


def deployment(*sets: tuple[str, int]) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "team", "name": "chat"},
        "status": {"sets": [{"name": name, "ready": ready} for name, ready in sets]},
    }


def ramp(*steps: Step, knee: Knee | None = None, interrupted: bool = False) -> Ramp:
    asked = Asked(url="u", model="m", closed_loop=False, input_tokens="512", output_tokens="128", seed=0)
    return replace(conclude(asked, steps, interrupted=interrupted), knee=knee)


def step(load: float, **changes: Any) -> Step:
    return Step(load=load, result=result(per_second=load, **changes), engine=None)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    monkeypatch.setattr(ramp_record, "LOOK_SECONDS", 0.01)
    with serving(tmp_path) as api:
        api.objects[PATH] = deployment(("chat-1234abcd", 2), ("chat-old", 0))
        yield api


def recorder(api: Api) -> Recorder:
    return recorder_of(api.objects[PATH], None, elsewhere=False)


def answers(api: Api, *, taken: bool, message: str) -> None:
    """The operator judges what it finds."""

    def judge(body: dict[str, Any]) -> None:
        text = body["metadata"]["annotations"][names.ANNOTATION_RAMP]
        said = {"record": record_digest(text), "taken": taken, "message": message}
        api.objects[PATH]["status"] = {**api.objects[PATH]["status"], "ramp": said}

    api.patched = judge


def handed_in(api: Api) -> RampRecord:
    ((path, body),) = api.written
    assert path == PATH
    metadata: Any = body["metadata"]
    return read_record(metadata["annotations"][names.ANNOTATION_RAMP])


def test_what_was_measured_is_handed_in_and_the_operator_s_word_is_told(
    cluster: Api, capsys: pytest.CaptureFixture[str]
):
    answers(cluster, taken=True, message="it taught this")
    recorder(cluster).record(ramp(step(1), step(2)), 64)
    record = handed_in(cluster)
    assert (record.set, record.replicas, record.prefix_tokens) == ("chat-1234abcd", 2, 64)
    assert [point.load for point in record.points] == [1, 2]
    first = record.points[0]
    assert (first.ttft_ms, first.tpot_ms, first.in_flight, first.requests) == (200, 20, 3, 30)
    assert (first.input_tokens, first.output_tokens, first.tokens_per_second) == (512, 128, 128)
    assert "recorded: it taught this" in capsys.readouterr().err


def test_an_answer_to_an_older_record_is_not_taken_for_this_one_s(
    cluster: Api, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(ramp_record, "PATIENCE_SECONDS", 0.1)
    cluster.objects[PATH]["status"]["ramp"] = {"record": "0" * 16, "taken": True, "message": "old"}
    with pytest.raises(BadInput, match=r"has not answered within 0.1 s; status.ramp will say"):
        recorder(cluster).record(ramp(step(1)), 0)


OUTAGE = [0, 503, 429, 0, 500]


@pytest.mark.parametrize(
    ("before", "what"), [(0, "is looked at"), (1, "is written to"), (2, "is waited for")]
)
def test_an_outage_that_passes_costs_no_ramp(
    cluster: Api, capsys: pytest.CaptureFixture[str], before: int, what: str
):
    answers(cluster, taken=True, message="it taught this")
    asking = recorder(cluster)
    cluster.away = [200] * before + OUTAGE
    asking.record(ramp(step(1)), 0)
    assert not cluster.away, f"it begins when the deployment {what}"
    assert handed_in(cluster).set == "chat-1234abcd"
    assert "recorded: it taught this" in capsys.readouterr().err


def test_an_outage_that_does_not_pass_is_told_as_the_cluster_s(cluster: Api, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ramp_record, "PATIENCE_SECONDS", 0.1)
    asking = recorder(cluster)
    cluster.away = [503] * 1000
    with pytest.raises(BadInput, match=r"^--context: .*: 503 Service Unavailable$"):
        asking.record(ramp(step(1)), 0)
    assert not cluster.written


def test_a_refusal_is_an_error_with_the_operator_s_reason(cluster: Api):
    answers(cluster, taken=False, message="the ramp was refused: why")
    with pytest.raises(BadInput, match="--record: the ramp was refused: why"):
        recorder(cluster).record(ramp(step(1)), 0)


def test_loads_past_the_knee_and_with_few_answers_are_left_out(cluster: Api):
    answers(cluster, taken=True, message="")
    knee = Knee(load=2.0, beyond=4.0, signs=(Sign.ITL,), confirmed=True, explanation="")
    recorder(cluster).record(ramp(step(0.1), step(1), step(2), step(4), knee=knee), 0)
    assert [point.load for point in handed_in(cluster).points] == [1, 2]
    assert handed_in(cluster).knee == 2.0


def test_a_long_ramp_is_cut_to_what_is_read(cluster: Api):
    answers(cluster, taken=True, message="")
    recorder(cluster).record(ramp(*(step(1 + n / 8) for n in range(2 * MOST_POINTS))), 0)
    assert len(handed_in(cluster).points) == MOST_POINTS


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (ramp(step(1), interrupted=True), "it was interrupted; nothing was recorded"),
        (ramp(), "no load went well for 10 answers"),
        (ramp(step(1, tpot_ms=None)), "no load went well"),
        (ramp(step(1, ttft_ms=spread(0.0))), "no load went well"),
    ],
)
def test_what_says_nothing_is_not_handed_in(cluster: Api, measured: Ramp, said: str):
    with pytest.raises(BadInput, match=said):
        recorder(cluster).record(measured, 0)
    assert not cluster.written


def test_other_replicas_than_were_measured_are_seen(cluster: Api):
    before = recorder(cluster)
    for now in (deployment(("chat-1234abcd", 3)), deployment(("chat-99999999", 2)), deployment()):
        cluster.objects[PATH] = now
        with pytest.raises(BadInput, match="other replicas serve now than when it began"):
            before.record(ramp(step(1)), 0)
    assert not cluster.written


def test_who_may_not_edit_the_deployment_is_told_so(cluster: Api):
    cluster.write_status = 403
    with pytest.raises(BadInput, match=r"403 Forbidden; patch must be allowed$"):
        recorder(cluster).record(ramp(step(1)), 0)
    cluster.write_status = 409
    with pytest.raises(BadInput, match=r"409 Conflict$"):
        recorder(cluster).record(ramp(step(1)), 0)


@pytest.mark.parametrize(
    ("found", "elsewhere", "said"),
    [
        (deployment(), False, "not exactly one set of the deployment serves"),
        (deployment(("a", 1), ("b", 1)), False, "not exactly one set of the deployment serves"),
        ({"metadata": {"namespace": "team", "name": "chat"}}, False, "not exactly one set"),
        (deployment(("a", 2)), True, "2 replicas serve, and nobody knows how many of them answer at --url"),
    ],
)
def test_what_cannot_be_recorded_is_said_before_the_minutes_of_a_ramp(found: Any, elsewhere: bool, said: str):
    with pytest.raises(BadInput, match=said):
        recorder_of(found, None, elsewhere=elsewhere)


def test_one_replica_may_be_measured_at_another_address():
    assert recorder_of(deployment(("a", 1)), None, elsewhere=True).replicas == 1


def test_an_address_alone_has_nothing_to_record_for():
    ran = plimsoll("ramp", "http://127.0.0.1:1", "--record")
    assert (ran.code, ran.out) == (3, "")
    assert "--record: an address says nothing of the model and the GPUs behind it" in ran.err
