import pytest

from plimsoll.facts.gpus import GIB
from plimsoll.facts.labels import cpu


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ({}, "CPU-AVX2"),
        ({"kubernetes.io/arch": "amd64"}, "CPU-AVX2"),
        ({"kubernetes.io/arch": "arm64"}, "CPU-ARM"),
        ({"feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true"}, "CPU-AVX512"),
        (
            {
                "feature.node.kubernetes.io/cpu-cpuid.AVX512F": "true",
                "feature.node.kubernetes.io/cpu-cpuid.AMXBF16": "true",
            },
            "CPU-AMX",
        ),
    ],
)
def test_a_host_is_the_best_kind_of_cpu_its_labels_vouch_for(labels, kind):
    device = cpu.host(labels, 64 * GIB)
    assert device is not None
    assert (device.gpu.name, device.memory_bytes, device.resource, device.count) == (kind, 64 * GIB, "cpu", 1)


def test_a_host_of_unknown_memory_is_no_device():
    assert cpu.host({}, None) is None


def test_a_host_is_pinned_by_what_vouches_for_its_kind():
    amx = {"kubernetes.io/arch": "amd64", "feature.node.kubernetes.io/cpu-cpuid.AMXBF16": "true"}
    device = cpu.host(amx, GIB)
    assert device is not None
    assert dict(device.pins) == amx
