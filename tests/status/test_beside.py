"""What is told of a container that is not the engine's: its own name and log, and no cure for an engine that has nothing."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll import names
from plimsoll.facts.serving import Beside, PodSeen, Stage
from plimsoll.kube.pod_seen import pod_seen
from plimsoll.render import wrapping
from plimsoll.status.pod_words import BROUGHT, words_of
from plimsoll.status.said import conditions_of
from tests.kube.test_pod_seen import LEFT, RUNNING, end, engine, pod, status, waiting
from tests.status.stories import pod as serves
from tests.status.stories import story

Object = dict[str, Any]
POD = "chat-0a1b2c3d-x"
BACK_OFF = waiting("CrashLoopBackOff", "back-off 5m0s restarting failed container")
ENGINE_REMEDIES = ("engine.image ", "kvOffload", "spec.model", "spec.storage", f"logs {POD} --previous")


def container(name: str, state: Object, *, last: Object | None = None, restarts: int = 0) -> Object:
    return engine(state, last=last, restarts=restarts) | {"name": name}


def with_sidecar(sidecar: Object, **of_engine: Any) -> PodSeen:
    """The engine is ready and the sidecar is not."""
    told = status(engine(RUNNING, ready=True, **of_engine))
    return pod_seen(pod(told | {"containerStatuses": [sidecar, *told["containerStatuses"]]}))


def with_init(first: Object) -> PodSeen:
    return pod_seen(pod(status(engine(waiting("PodInitializing")), initContainerStatuses=[first])))


def proxy(state: Object = BACK_OFF, last: Object | None = None) -> Object:
    return container("istio-proxy", state, last=last, restarts=9)


def prepare(last: Object, name: str = "prepare") -> Object:
    return container(name, BACK_OFF, last=last, restarts=4)


@pytest.mark.parametrize(
    ("seen", "reason", "message", "remedy"),
    [
        (
            with_sidecar(proxy(last=end(2))),
            "ContainerEnded", f"container istio-proxy of {POD} ended with exit code 2, 9 times: back-off",
            f"kubectl logs {POD} -c istio-proxy --previous",
        ),
        (
            with_sidecar(proxy(last=end(2, message="Network is unreachable"))),
            "ContainerEnded", "Network is unreachable", f"logs {POD} -c istio-proxy --previous",
        ),
        (
            with_sidecar(proxy(last=end(137, "OOMKilled"))),
            "HostOutOfMemory", f"container istio-proxy of {POD} was killed for host memory (exit code 137), 9 times",
            "a larger memory limit for it",
        ),
        (
            with_sidecar(proxy(waiting("ErrImagePull", "not found"))),
            "ImagePull", f"container istio-proxy of {POD} cannot pull its image (ErrImagePull): not found",
            "spec.podPatches, or a webhook",
        ),
        (
            with_sidecar(proxy(waiting("CreateContainerConfigError", 'secret "ca" not found'))),
            "ConfigError", f"container istio-proxy of {POD} cannot be made", "Secrets and ConfigMaps",
        ),
        (
            with_init(prepare(end(1))),
            "ContainerEnded", f"container prepare of {POD} ended with exit code 1, 4 times",
            f"kubectl logs {POD} -c prepare --previous",
        ),
        (
            with_init(container(BROUGHT, waiting("ImagePullBackOff"))),
            "ImagePull", f"container plimsoll of {POD} cannot pull its image", "registry.runtimeImage and registry.mirror",
        ),
    ],
    ids=["it crashes", "it reaches nothing", "it is killed for memory", "it is not pulled", "it is not made",
         "one before the engine ends", "the supervisor is not brought"],
)  # fmt: skip
def test_a_container_beside_the_engine_is_told_by_its_name_and_not_with_the_engine_s_cures(
    seen: PodSeen, reason: str, message: str, remedy: str
) -> None:
    words = words_of(seen)
    assert words is not None
    assert words.reason == reason
    assert message in words.message
    assert remedy in words.remedy
    assert "the engine of" not in words.message
    assert not [one for one in ENGINE_REMEDIES if one in words.remedy]


@pytest.mark.parametrize(
    ("said", "reason"),
    [("401 Client Error: gated repo", "HubRefused"), ("No space left on device", "DiskFull")],
)
def test_what_fetches_the_model_before_the_engine_is_told_by_what_it_lacks(said: str, reason: str) -> None:
    words = words_of(with_init(prepare(end(1, message=said), "fetch")))
    assert words is not None
    assert words.reason == reason
    assert f"container fetch of {POD} ended with exit code 1, 4 times: {said}" in words.message


def test_a_sidecar_among_the_init_containers_fetches_no_model() -> None:
    """As Istio's, which stays beside the engine."""
    ends = container("istio-proxy", BACK_OFF, last=end(2, message="Network is unreachable"), restarts=9)
    told = status(engine(waiting("PodInitializing")), initContainerStatuses=[ends])
    spec = {"initContainers": [{"name": "fetch"}, {"name": "istio-proxy", "restartPolicy": "Always"}]}
    words = words_of(pod_seen(pod(told, spec=spec)))
    assert words is not None
    assert (words.reason, words.remedy) == (
        "ContainerEnded",
        f"kubectl logs {POD} -c istio-proxy --previous says why",
    )


def test_how_the_engine_ended_once_is_not_why_a_container_beside_it_does_not_run() -> None:
    seen = with_sidecar(proxy(last=end(2)), last=end(1, message=LEFT), restarts=1)
    assert seen.failure is not None
    assert seen.beside == Beside(name="istio-proxy", restarts=9, exit_code=2)
    words = words_of(seen)
    assert words is not None
    assert words.reason == "ContainerEnded"


def test_an_engine_that_ends_is_told_first_and_as_such() -> None:
    ends = engine(BACK_OFF, last=end(1), restarts=2)
    told = status(ends)
    seen = pod_seen(pod(told | {"containerStatuses": [proxy(last=end(2)), ends]}))
    assert (seen.stage, seen.beside) == (Stage.FAILED, None)
    words = words_of(seen)
    assert words is not None
    assert (words.reason, words.remedy) == ("EngineEnded", f"kubectl logs {POD} --previous says why")


def test_a_replica_that_fails_beside_its_engine_is_no_engine_that_restarts() -> None:
    fails = with_sidecar(proxy(last=end(2)), last=end(1), restarts=1)
    told = {one.type: one for one in conditions_of(story(fails))}
    assert (told[names.READY].status, told[names.READY].reason) == ("False", "StartFailed")
    assert "container istio-proxy" in told[names.READY].message
    beyond = {one.type: one for one in conditions_of(story(serves(), fails, spec={"replicas": 1}))}
    assert (beyond[names.READY].reason, beyond[names.DEGRADED].reason) == ("Serving", "Healthy")


def test_the_container_that_brings_the_supervisor_is_known_by_its_name() -> None:
    assert wrapping.NAME == BROUGHT
