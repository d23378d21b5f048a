"""GPUs of AMD's as the kernel shows them to a container, and what is certain not to work with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_runtime import nvml
from plimsoll_runtime.amd import amd_devices
from plimsoll_runtime.gpus import Devices, Gpu
from plimsoll_runtime.preflight import Need, Seen, misfits

GIB = 1 << 30


def machine(root: Path, here: tuple[str, ...], *, kfd: bool = True) -> None:
    """Two GPUs of AMD's and one of another vendor, of which a container has the files of `here`."""
    for name, vendor in (("renderD128", "0x1002"), ("renderD129", "0x1002"), ("renderD130", "0x10de")):
        folder = root / "sys/class/drm" / name / "device"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "mem_info_vram_total").write_text(f"{192 * GIB}\n")
        (folder / "mem_info_vram_used").write_text(f"{1 * GIB}\n")
    (root / "dev/dri").mkdir(parents=True)
    for name in here:
        (root / "dev/dri" / name).touch()
    if kfd:
        (root / "dev/kfd").touch()


def topology(root: Path, *minors: int | None, written: str = "drm_render_minor {}") -> None:
    """The compute driver's nodes: a CPU for None, a GPU by the number of its file, one that this container was not given for 0."""
    for number, minor in enumerate(minors):
        node = root / "sys/class/kfd/kfd/topology/nodes" / str(number)
        node.mkdir(parents=True)
        if minor == 0:
            continue  # the kernel refuses to have its files read
        (node / "gpu_id").write_text(f"{0 if minor is None else 40000 + minor}\n")
        line = written.format(0 if minor is None else minor)
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count 1216\n{line}\nnum_xcc 8\n")


def eight(root: Path) -> None:
    """GPUs of one machine, each of a size of its own by its place."""
    for place in range(8):
        folder = root / f"sys/class/drm/renderD{128 + place}/device"
        folder.mkdir(parents=True)
        (folder / "vendor").write_text("0x1002\n")
        (folder / "mem_info_vram_total").write_text(f"{place}\n")
        (folder / "mem_info_vram_used").write_text("0\n")
        (root / "dev/dri").mkdir(parents=True, exist_ok=True)
        (root / f"dev/dri/renderD{128 + place}").touch()
    (root / "dev/kfd").touch()


def places(found: Devices | None) -> list[int]:
    assert found is not None
    return [gpu.total for gpu in found.gpus]


def test_amds_are_those_whose_device_file_is_here(tmp_path: Path):
    machine(tmp_path, here=("renderD129", "renderD130"))
    assert amd_devices({}, tmp_path) == Devices((Gpu("AMD GPU", 192 * GIB, 191 * GIB),))
    assert amd_devices({}, tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("mode", "others", "known"),
    [("SPX", 0, True), ("CPX", 0, False), ("CPX", 3, False), (None, 1, False)],
    ids=["a whole one", "its first part", "several parts", "another part"],
)
def test_of_an_amd_that_is_cut_nothing_is_known(tmp_path: Path, mode: str | None, others: int, known: bool):
    """Its first part shows the memory of the whole; the others are no devices of a vendor, for the kernel."""
    (tmp_path / "dev/dri").mkdir(parents=True)
    for number in range(128, 129 + others):
        (tmp_path / f"sys/class/drm/renderD{number}/device").mkdir(parents=True)
        (tmp_path / f"dev/dri/renderD{number}").touch()
    if mode is not None:
        first = tmp_path / "sys/class/drm/renderD128/device"
        (first / "vendor").write_text("0x1002\n")
        (first / "mem_info_vram_total").write_text(f"{192 * GIB}\n")
        (first / "mem_info_vram_used").write_text("0\n")
        (first / "current_compute_partition").write_text(f"{mode}\n")
    assert (amd_devices({}, tmp_path) is not None) is known


@pytest.mark.parametrize(
    ("kfd", "closed", "shut"),
    [
        (True, "", ()),
        (False, "", ("/dev/kfd",)),
        (True, "kfd", ("/dev/kfd",)),
        (True, "renderD129", ("/dev/dri/renderD129",)),
        (False, "renderD128", ("/dev/kfd", "/dev/dri/renderD128")),
    ],
    ids=["all may be opened", "no kfd", "kfd of another group", "a GPU of another group", "both"],
)
def test_files_that_may_not_be_opened_end_a_start_that_needs_gpus(
    tmp_path: Path, kfd: bool, closed: str, shut: tuple[str, ...]
):
    """Whoever may open no /dev/kfd finds no GPU, with whatever word; the kernel's folders show them all the same."""
    machine(tmp_path, here=("renderD128", "renderD129"), kfd=kfd)
    found = amd_devices({}, tmp_path, lambda path: path.exists() and path.name != closed)
    assert found is not None
    assert found.shut == shut
    failures = misfits(Need(gpus=2), Seen(devices=found))
    assert [one.word for one in failures] == (["Driver"] if shut else [])
    if shut:
        assert ", ".join(shut) in failures[0].message
        assert "supplementalGroups" in failures[0].remedy
    assert misfits(Need(), Seen(devices=found)) == [], "an engine on CPUs needs none of them"
    enough = misfits(Need(gpus=1), Seen(devices=found))
    assert bool(enough) is ("/dev/kfd" in shut), "the other one is enough for an engine of one"


def test_a_file_of_nobody_s_is_there_for_whoever_may_read_and_write_it(tmp_path: Path):
    machine(tmp_path, here=("renderD128",))
    found = amd_devices({}, tmp_path)
    assert found is not None
    assert found.shut == ()


def test_gpus_are_those_that_the_compute_driver_knows_in_its_order(tmp_path: Path):
    """A file of the graphics driver's alone is no GPU to compute on, and a place among ten nodes is a number, not a word."""
    eight(tmp_path)
    topology(tmp_path, None, None, 135, 0, 129, *[None] * 5, 128, 200)
    assert places(amd_devices({}, tmp_path)) == [7, 1, 0]


@pytest.mark.parametrize(
    ("nodes", "written"),
    [
        ((None,), "drm_render_minor {}"),
        ((None, 0), "drm_render_minor {}"),
        ((None, 128), "location_id {}"),
        ((None, 1), "drm_render_minor {}"),
    ],
    ids=["CPUs alone", "none that may be read", "a kernel that names no file", "a file of another kind"],
)
def test_what_the_compute_driver_does_not_say_takes_no_gpu_away(
    tmp_path: Path, nodes: tuple[int | None, ...], written: str
):
    eight(tmp_path)
    topology(tmp_path, *nodes, written=written)
    assert places(amd_devices({}, tmp_path)) == list(range(8))


def test_of_gpus_that_the_compute_driver_has_not_heard_of_nothing_is_known(tmp_path: Path):
    machine(tmp_path, here=("renderD128",))
    topology(tmp_path, None, 129)
    assert amd_devices({}, tmp_path) is None


@pytest.mark.parametrize(
    ("environment", "left"),
    [
        ({"HIP_VISIBLE_DEVICES": "0,1"}, [0, 1]),
        ({"HIP_VISIBLE_DEVICES": " 3, 1 "}, [3, 1]),
        ({"CUDA_VISIBLE_DEVICES": "5"}, [5]),
        ({"HIP_VISIBLE_DEVICES": "2", "CUDA_VISIBLE_DEVICES": "5"}, [2]),
        ({"HIP_VISIBLE_DEVICES": "", "CUDA_VISIBLE_DEVICES": "5"}, [5]),
        ({"ROCR_VISIBLE_DEVICES": "4,5,6,7", "HIP_VISIBLE_DEVICES": "1,0"}, [5, 4]),
        ({"ROCR_VISIBLE_DEVICES": "4", "HIP_VISIBLE_DEVICES": "4"}, []),
        ({"ROCR_VISIBLE_DEVICES": ""}, []),
        ({"HIP_VISIBLE_DEVICES": "-1"}, []),
        ({"HIP_VISIBLE_DEVICES": "0,8,1"}, [0]),
        ({"HIP_VISIBLE_DEVICES": "0,0"}, [0]),
        ({"HIP_VISIBLE_DEVICES": "0,1,2,3,4,5,6,7"}, list(range(8))),
        ({"HIP_VISIBLE_DEVICES": ""}, list(range(8))),
        ({"GPU_DEVICE_ORDINAL": "0"}, list(range(8))),
    ],
    ids=str,
)
def test_variables_hide_gpus_as_rocm_reads_them(tmp_path: Path, environment: dict[str, str], left: list[int]):
    """HIP counts what ROCm's own list leaves; a number that is nobody's ends a list."""
    eight(tmp_path)
    found = amd_devices(environment, tmp_path)
    assert places(found) == left
    assert found is not None
    assert bool(found.hiding) is (len(left) < 8)


@pytest.mark.parametrize(
    "environment",
    [
        {"ROCR_VISIBLE_DEVICES": "0,GPU-4b2c1a9f8d3e6f7a"},
        {"ROCR_VISIBLE_DEVICES": "0x1"},
        {"ROCR_VISIBLE_DEVICES": "GPU-4b2c1a9f8d3e6f7a", "HIP_VISIBLE_DEVICES": "0"},
    ],
    ids=str,
)
def test_of_gpus_that_are_listed_by_other_names_than_numbers_nothing_is_known(
    tmp_path: Path, environment: dict[str, str]
):
    """The memory of another one would be judged in its place."""
    eight(tmp_path)
    assert amd_devices(environment, tmp_path) is None


def test_a_variable_that_hides_what_the_plan_needs_is_named_with_the_cure(tmp_path: Path):
    eight(tmp_path)
    environment = {"ROCR_VISIBLE_DEVICES": "0,1,2", "HIP_VISIBLE_DEVICES": "0"}
    found = Seen(devices=amd_devices(environment, tmp_path))
    (failure,) = misfits(Need(gpus=2), found)
    assert failure.word == "TooFewGpus"
    assert "sees 1, since it is told ROCR_VISIBLE_DEVICES=0,1,2 and HIP_VISIBLE_DEVICES=0" in failure.message
    assert "spec.engine.env" in failure.remedy
    assert misfits(Need(gpus=1), found) == []


def test_a_gpu_that_a_variable_hides_need_not_be_opened(tmp_path: Path):
    eight(tmp_path)
    shut = {"renderD130"}
    found = amd_devices({"HIP_VISIBLE_DEVICES": "0,1"}, tmp_path, lambda path: path.name not in shut)
    assert found is not None
    assert found.shut == ()


def test_without_a_library_of_nvidia_s_the_container_s_variables_are_asked_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    asked: list[object] = []
    monkeypatch.setattr(nvml, "LIBRARY", "libnobody-has-this.so")
    monkeypatch.setattr(nvml, "amd_devices", asked.append)
    nvml.devices({"HIP_VISIBLE_DEVICES": "0"})
    assert asked == [{"HIP_VISIBLE_DEVICES": "0"}]
