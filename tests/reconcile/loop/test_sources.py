"""Pods that are asked themselves where no Prometheus is configured: who is asked, at which address, and what one that fails costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from plimsoll.facts.serving import PodSeen, Stage
from plimsoll.reconcile.loop import sources
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.sources import Asked, ByPods, Looked
from plimsoll.reconcile.loop.subject import Asleep, Subject
from tests.prometheus.serving import server
from tests.reconcile.staging import KEY, TICK, Scene, conditions, staged

CALM, BUSY = 4.0, 63.0
Answer = Callable[[str], tuple[int, bytes]]


def page(running: float, finished: float) -> bytes:
    return (
        f'vllm:num_requests_running{{engine="0"}} {running}\n'
        'vllm:num_requests_waiting{engine="0"} 0\n'
        f'vllm:kv_cache_usage_perc{{engine="0"}} {running / 64}\n'
        'vllm:cache_config_info{engine="0",block_size="16",num_gpu_blocks="4096"} 1\n'
        'vllm:num_preemptions_total{engine="0"} 0\n'
        f'vllm:request_success_total{{engine="0",finished_reason="stop"}} {finished}\n'
    ).encode()


def pod(uid: str, address: str = "127.0.0.1") -> PodSeen:
    return PodSeen(name=uid, uid=uid, stage=Stage.READY, address=address)


@pytest.fixture
def subject() -> Subject:
    """As the loop makes it of a resource and its pinned plan."""
    stage, _, control = staged()
    found: list[Subject] = []

    async def look(now: float, asked: Sequence[Asked]) -> Looked:
        found.extend(one.subject for one in asked)
        return Looked()

    stage.look = look  # type: ignore[method-assign]
    asyncio.run(control.tick())
    return found[0]


def looked(monkeypatch: pytest.MonkeyPatch, asked: Sequence[Asked], answer: Answer) -> Looked:
    with server(answer) as url:
        monkeypatch.setattr(sources, "PORT", int(url.rpartition(":")[2]))
        return asyncio.run(ByPods(defaults=False).look(7.0, asked))


@pytest.mark.parametrize(
    ("engine", "tls", "address", "url"),
    [
        ("vllm", False, "10.0.0.7", "http://10.0.0.7:8000/metrics"),
        ("vllm", True, "10.0.0.7", "https://10.0.0.7:8000/metrics"),
        ("vllm", False, "fd00::7", "http://[fd00::7]:8000/metrics"),
        ("tensorrt-llm", False, "10.0.0.7", "http://10.0.0.7:8000/prometheus/metrics"),
    ],
)
def test_a_pod_is_asked_at_its_address_by_its_engines_path(
    subject: Subject, engine: str, tls: bool, address: str, url: str
) -> None:
    spoken = replace(subject, tls=tls, engine=replace(subject.engine, name=engine))
    found = sources._page(spoken, pod("a", address))
    assert (found.pod, found.url) == ("a", url)


def test_a_sample_is_of_the_pod_that_said_it_and_who_fails_or_has_no_address_has_none(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = iter([(200, page(3, 10)), (500, b"")])
    asked = [Asked(subject, (pod("a"), pod("b"), pod("nowhere", "")))]
    paths: list[str] = []

    def answer(path: str) -> tuple[int, bytes]:
        paths.append(path)
        return next(told)

    found = looked(monkeypatch, asked, answer)
    assert paths == ["/metrics"] * 2
    assert found.reachable
    (one,) = found.samples
    assert one.pod in {"a", "b"}
    assert (one.running, one.waiting, one.finished) == (3.0, 0.0, 10.0)
    assert found.histograms is None, "they are in the samples"
    assert list(found.errors.values()) == ["its metrics page answers HTTP 500"]
    assert found.errors.keys() < {"team-a/a", "team-a/b"}


def test_of_more_pods_than_one_program_should_ask_none_is_asked_and_it_is_said_what_to_do(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = [Asked(subject, tuple(pod(f"p{n}") for n in range(sources.MOST_PAGES + 1)))]
    paths: list[str] = []

    def answer(path: str) -> tuple[int, bytes]:
        paths.append(path)
        return 200, b""

    found = looked(monkeypatch, asked, answer)
    assert (found.samples, found.reachable, paths) == ((), False, [])
    assert "set prometheusUrl" in found.problem


class Engines:
    """The pages of a scene's replicas, which share its load; all of them listen at one address."""

    def __init__(self, stage: Scene) -> None:
        self.stage = stage
        self.says = True
        self.last, self.finished = stage.now, 0.0

    def answer(self, path: str) -> tuple[int, bytes]:
        del path
        each = self.stage.load / self.stage.replicas
        self.finished += (self.stage.now - self.last) * each / 2
        self.last = self.stage.now
        return (200, page(each, self.finished)) if self.says else (503, b"")


def at_home(stage: Scene) -> None:
    """Its pods listen on this machine."""
    pods = stage.pods
    stage.pods = lambda *asked: tuple(replace(one, address="127.0.0.1") for one in pods(*asked))  # type: ignore[method-assign]


def test_replicas_follow_what_pods_say_themselves_and_none_goes_while_they_are_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage, world, _ = staged()
    at_home(stage)
    engines = Engines(stage)
    control = Control(world, ByPods(defaults=False), stage.woken.append, interval_s=TICK)
    with server(engines.answer) as url:
        monkeypatch.setattr(sources, "PORT", int(url.rpartition(":")[2]))
        stage.load = CALM
        stage.run(control, world, 4)
        assert stage.replicas == 1
        stage.load = 3 * BUSY
        stage.run(control, world, 12)
        assert stage.replicas == 4
        assert conditions(world.directions[KEY])["MetricsAvailable"] == ("True", "Fresh")
        stage.load, engines.says = CALM, False
        stage.run(control, world, 60)
        assert stage.replicas == 4
        assert conditions(world.directions[KEY])["MetricsAvailable"] == ("False", "Missing")
        engines.says = True
        stage.run(control, world, 120)
        assert stage.replicas < 4
        assert conditions(world.directions[KEY])["MetricsAvailable"] == ("True", "Fresh")


def test_more_pods_than_are_asked_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MOST_PAGES", 0)
    stage, world, _ = staged()
    control = Control(world, ByPods(defaults=False), stage.woken.append, interval_s=TICK)
    stage.run(control, world, 8)
    told: dict[str, Any] = {one.type: one for one in world.directions[KEY].told}
    assert told["MetricsAvailable"].status == "False"
    assert "set prometheusUrl" in told["MetricsAvailable"].message


@pytest.mark.parametrize(("query", "refused"), [("sum(queue)", True), (None, False)])
def test_a_query_that_is_to_wake_it_and_that_nobody_can_be_asked_is_refused(
    subject: Subject, query: str | None, refused: bool
) -> None:
    sleeper = replace(subject, zero=Asleep(query=query, after_s=600.0))
    found = asyncio.run(ByPods(defaults=False).look(7.0, [Asked(sleeper)]))
    assert ("prometheusUrl" in found.woken.refused.get(KEY, "")) is refused
