"""GPUs of AMD's as the kernel shows them to a container, and what is certain not to work with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll_runtime.nvml import Devices, Gpu, amd_devices
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


def test_amds_are_those_whose_device_file_is_here(tmp_path: Path):
    machine(tmp_path, here=("renderD129", "renderD130"))
    assert amd_devices(tmp_path) == Devices((Gpu("AMD GPU", 192 * GIB, 191 * GIB),))
    assert amd_devices(tmp_path / "nowhere") is None


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
    assert (amd_devices(tmp_path) is not None) is known


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
    found = amd_devices(tmp_path, lambda path: path.exists() and path.name != closed)
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
    found = amd_devices(tmp_path)
    assert found is not None
    assert found.shut == ()
