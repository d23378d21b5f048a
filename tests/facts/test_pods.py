import pytest

from plimsoll.facts.pods import parse_pod
from tests.facts.cluster import pod

GPU = "nvidia.com/gpu"


def container(requests=None, limits=None, **more):
    return {"name": "c", "resources": {"requests": requests or {}, "limits": limits or {}}, **more}


def use_of(spec, phase="Running"):
    made = {"metadata": {"name": "p", "namespace": "team"}, "spec": {"nodeName": "n1", **spec}}
    return parse_pod(made | {"status": {"phase": phase}})


@pytest.mark.parametrize(
    ("spec", "devices", "cpu", "memory"),
    [
        (
            {"containers": [container({GPU: "2", "cpu": "500m"}), container({GPU: "1", "cpu": "2"})]},
            3,
            2500,
            0,
        ),
        ({"containers": [container(limits={GPU: "4", "memory": "1Gi"})]}, 4, 0, 2**30),
        ({"containers": [container({"cpu": "1"}, {"cpu": "4"})]}, 0, 1000, 0),
        (
            {
                "containers": [container({GPU: "1"})],
                "initContainers": [container({GPU: "4"}), container({GPU: "2"})],
            },
            4,
            0,
            0,
        ),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [
                    container({"cpu": "2"}, restartPolicy="Always"),
                    container({"cpu": "5"}),
                ],
            },
            0,
            7000,
            0,
        ),
        (
            {
                "containers": [container({"cpu": "1"})],
                "initContainers": [
                    container({"cpu": "2"}),
                    container({"cpu": "3"}, restartPolicy="Always"),
                ],
            },
            0,
            4000,
            0,
        ),
        (
            {"containers": [container({"cpu": "1"})], "overhead": {"cpu": "250m", "memory": "128Mi"}},
            0,
            1250,
            2**27,
        ),
        ({"containers": []}, 0, 0, 0),
    ],
    ids=[
        "containers add up",
        "a limit alone is a request",
        "the request wins over the limit",
        "the largest init container counts where it asks for more",
        "a sidecar runs beside later init containers",
        "a sidecar runs beside the containers",
        "overhead comes on top",
        "nothing asked",
    ],
)
def test_a_pod_takes_what_the_scheduler_counts(spec, devices, cpu, memory):
    use = use_of(spec)
    assert use is not None
    assert dict(use.devices).get(GPU, 0) == devices
    assert (use.cpu_millis, use.memory_bytes) == (cpu, memory)


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_takes_nothing(phase):
    assert parse_pod(pod(phase=phase)) is None


def test_a_pod_that_is_on_no_node_takes_nothing():
    assert parse_pod(pod(on=None)) is None


def test_a_pod_of_ours_is_known_by_its_deployment():
    use = parse_pod(pod(deployment="chat"))
    assert use is not None
    assert use.deployment == "team/chat"
    others = parse_pod(pod())
    assert others is not None
    assert others.deployment is None
