"""What NVIDIA's library says of a machine, on drivers that tests make up."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_runtime.gpus import Devices, Gpu
from plimsoll_runtime.nvml import NvmlError, nvidia_devices
from plimsoll_runtime.preflight import GIB, Need, Seen, misfits

H100 = Gpu("NVIDIA H100 80GB HBM3", 80 * GIB, 79 * GIB, (9, 0))


class Library:
    """NVML's calling convention: values by reference, 0 for well."""

    def __init__(self, gpus, *, parts=None, unlinked=(), link=5, cuda=13000, lost=None, mute=None):
        self.gpus, self.parts, self.unlinked, self.cuda = gpus, parts or {}, set(unlinked), cuda
        self.link = link  # 5 is none, 6 that it is not known
        self.lost, self.mute = lost or {}, mute or {}  # codes of those without a handle, and behind one
        self.open = 0

    def nvmlInit_v2(self):  # noqa: N802
        self.open += 1
        return 0

    def nvmlShutdown(self):  # noqa: N802
        self.open -= 1
        return 0

    def nvmlDeviceGetCount_v2(self, count):  # noqa: N802
        count._obj.value = len(self.gpus)
        return 0

    def nvmlDeviceGetHandleByIndex_v2(self, index, handle):  # noqa: N802
        handle._obj.value = index.value + 1
        return self.lost.get(index.value, 0)

    def nvmlSystemGetDriverVersion(self, buffer, size):  # noqa: N802
        buffer.value = b"580.65.06"
        return 0

    def nvmlSystemGetCudaDriverVersion_v2(self, version):  # noqa: N802
        version._obj.value = self.cuda or 0
        return 0 if self.cuda else 9  # driver not loaded

    def nvmlDeviceGetMigMode(self, handle, current, pending):  # noqa: N802
        current._obj.value = int(handle.value - 1 in self.parts)
        return 0

    def nvmlDeviceGetMaxMigDeviceCount(self, handle, most):  # noqa: N802
        most._obj.value = 7
        return 0

    def nvmlDeviceGetMigDeviceHandleByIndex(self, handle, index, part):  # noqa: N802
        if index.value >= self.parts[handle.value - 1]:
            return 6  # not found
        part._obj.value = handle.value
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):  # noqa: N802
        gpu = self.gpus[handle.value - 1]
        memory._obj.total, memory._obj.free = gpu.total, gpu.free
        return self.mute.get(handle.value - 1, 0)

    def nvmlDeviceGetCudaComputeCapability(self, handle, major, minor):  # noqa: N802
        major._obj.value, minor._obj.value = self.gpus[handle.value - 1].capability
        return 0

    def nvmlDeviceGetName(self, handle, buffer, size):  # noqa: N802
        buffer.value = self.gpus[handle.value - 1].name.encode()
        return 0

    def nvmlDeviceGetP2PStatus(self, one, other, kind, status):  # noqa: N802
        status._obj.value = self.link if (one.value - 1, other.value - 1) in self.unlinked else 0
        return 0


def test_the_drivers_library_says_what_there_is():
    library = Library([H100, H100])
    assert nvidia_devices(library) == Devices((H100, H100), "580.65.06", nvlink=True, cuda=(13, 0))
    assert library.open == 0


def test_a_pair_without_a_link_is_seen():
    assert nvidia_devices(Library([H100] * 3, unlinked=[(0, 2)])).nvlink is False


def test_a_pair_of_which_the_driver_knows_nothing_is_not_one_without_a_link():
    assert nvidia_devices(Library([H100] * 3, unlinked=[(0, 2)], link=6)).nvlink is None


def test_of_a_gpu_that_is_cut_the_parts_count():
    found = nvidia_devices(Library([H100], parts={0: 2}))
    assert len(found.gpus) == 2
    assert found.nvlink is None


def test_a_driver_that_does_not_answer_is_no_machine_without_gpus(monkeypatch):
    library = Library([])
    monkeypatch.setattr(library, "nvmlDeviceGetCount_v2", lambda count: 999)
    with pytest.raises(NvmlError, match="999"):
        nvidia_devices(library)
    assert library.open == 0


@pytest.mark.parametrize(
    ("said", "cuda"), [(12080, (12, 8)), (11040, (11, 4)), (13010, (13, 1)), (None, None)]
)
def test_the_driver_says_which_cuda_it_runs_or_that_is_not_known(said, cuda):
    assert nvidia_devices(Library([H100], cuda=said)).cuda == cuda


def test_a_driver_that_is_older_than_the_question_is_asked_all_else(monkeypatch):
    monkeypatch.delattr(Library, "nvmlSystemGetCudaDriverVersion_v2")
    assert nvidia_devices(Library([H100])) == Devices((H100,), "580.65.06")


def test_names_for_the_driver_are_those_of_the_real_library():
    named = {name for name in vars(Library) if name.startswith("nvml")}
    source = Path(nvidia_devices.__code__.co_filename).read_text()
    assert all(f"library.{name}" in source for name in named)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        (8, "INSUFFICIENT_POWER (8)"),
        (11, "IRQ_ISSUE (11)"),
        (15, "GPU_IS_LOST (15)"),
        (16, "RESET_REQUIRED (16)"),
        (999, "UNKNOWN (999)"),
    ],
)
@pytest.mark.parametrize("when", ["lost", "mute"])
def test_a_gpu_that_fell_off_is_told_and_hides_none_of_the_others(when, code, said):
    """Nothing was said of eight GPUs where one of them was lost."""
    found = nvidia_devices(Library([H100] * 8, **{when: {3: code}}))
    assert found.gpus == (H100,) * 7
    failures = misfits(Need(gpus=8, product="A100"), Seen(devices=found))
    assert [one.word for one in failures] == ["GpuFault", *["WrongGpu"] * 7]
    assert failures[0].message == f"GPU 3 does not answer: {said}"
    assert "cordon" in failures[0].remedy
    assert misfits(Need(gpus=7, product="H100"), Seen(devices=found)) == [], "the others are enough"


@pytest.mark.parametrize("code", [3, 4, 17, 19], ids=["shared memory", "of others", "blocked", "in use"])
@pytest.mark.parametrize("when", ["lost", "mute"])
def test_a_gpu_that_only_does_not_say_what_it_is_is_no_broken_one(when, code):
    found = nvidia_devices(Library([H100] * 2, **{when: {0: code}}))
    assert (found.gpus, found.failed, found.unknown) == ((H100,), (), 1)
    assert found.told()["unknown"] == 1
    assert misfits(Need(gpus=2, product="H100", utilization=0.9), Seen(devices=found)) == []
    assert misfits(Need(gpus=3), Seen(devices=found))[0].word == "TooFewGpus"


def test_parts_of_a_gpu_that_is_cut_are_told_of_when_they_are_lost():
    found = nvidia_devices(Library([H100] * 2, parts={0: 2, 1: 1}, mute={1: 15}))
    assert len(found.gpus) == 2
    assert found.failed == ("GPU 1 does not answer: GPU_IS_LOST (15)",)
