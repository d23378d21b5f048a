"""The catalogue: its file's form, its names, and figures that engines have reported."""

from importlib import resources
from typing import Annotated, Literal

import pytest
import yaml
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import (
    GIB,
    LinkKind,
    UnknownGpu,
    Vendor,
    all_gpus,
    cpu_kinds,
    gpu_named,
    normal_name,
    runtime_total,
)

Positive = Annotated[int, Field(gt=0)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Memory(Strict):
    measured_gib: Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")] | None = None
    driver_mib: Positive | None = None
    datasheet_gib: Positive | None = None

    @model_validator(mode="after")
    def one_source(self) -> "Memory":
        if len(self.model_fields_set) != 1:
            raise ValueError("give exactly one of measured_gib, driver_mib, datasheet_gib")
        return self


class LinkEntry(Strict):
    kind: LinkKind
    gb_s: Positive
    domain: Positive


class Entry(Strict):
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9-]*$", max_length=40)]
    vendor: Vendor
    architecture: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    compute: Annotated[str, Field(min_length=1)]
    memory: Memory
    gb_s: Positive
    tflops: Annotated[dict[Dtype, Positive], Field(min_length=1)]
    link: LinkEntry
    bridge: LinkEntry | None = None
    pcie_gb_s: Positive
    mig: Literal[4, 7] | None = None
    dies: Literal[4, 6, 8] | None = None
    unified: Literal[True] | None = None
    names: list[str]


def entries() -> list[Entry]:
    text = resources.files("plimsoll.facts").joinpath("data/gpus.yaml").read_text(encoding="utf-8")
    return TypeAdapter(list[Entry]).validate_python(yaml.safe_load(text)["gpus"])


def test_the_data_file_has_the_form_its_head_describes():
    assert len(entries()) == len(all_gpus()) + len(cpu_kinds())


def test_the_catalogue_knows_at_least_fifty_accelerators_of_every_vendor():
    assert len(all_gpus()) >= 50
    assert {gpu.vendor for gpu in all_gpus()} == set(Vendor) - {Vendor.CPU}


def test_no_name_means_two_entries():
    owners: dict[str, str] = {}
    for entry in entries():
        for name in {normal_name(name) for name in (entry.name, *entry.names)}:
            assert owners.setdefault(name, entry.name) == entry.name, name
            assert name


@pytest.mark.parametrize(
    ("name", "means"),
    [
        ("H100-SXM-80GB", "H100-SXM-80GB"),
        ("NVIDIA-H100-80GB-HBM3", "H100-SXM-80GB"),
        ("h100", "H100-SXM-80GB"),
        ("H100 SXM5 80GB", "H100-SXM-80GB"),
        ("h200_sxm", "H200-SXM-141GB"),
        ("A100 80GB", "A100-SXM-80GB"),
        ("NVIDIA A100-SXM4-40GB", "A100-SXM-40GB"),
        ("NVIDIA-GeForce-RTX-4090", "RTX-4090"),
        ("rtx 4090", "RTX-4090"),
        ("AMD Instinct MI300X", "MI300X"),
        ("AMD_Instinct_MI300X_OAM", "MI300X"),
        ("Max_1550", "Max-1550"),
        ("Intel Gaudi 3", "Gaudi3"),
        ("Tesla-T4", "T4-16GB"),
        ("nvidia-tesla-a100", "A100-SXM-40GB"),
        ("NVIDIA-GH200-120GB", "GH200-96GB"),
        ("rtx-pro-server-6000", "RTX-PRO-6000-Server"),
        ("CPU", "CPU-AVX2"),
    ],
)
def test_a_product_is_found_by_the_names_people_and_labels_use(name: str, means: str):
    assert gpu_named(name).name == means


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("A100", "A100-SXM-40GB"),
        ("V100", "V100-SXM-16GB"),
        ("H100-SXN", "H100-SXM-80GB"),
        ("MI300", "MI300X"),
        ("RTX 409", "RTX-4090"),
    ],
)
def test_a_name_that_means_nothing_or_several_products_lists_what_is_near(name: str, near: str):
    with pytest.raises(UnknownGpu) as raised:
        gpu_named(name)
    assert near in raised.value.near
    assert name in str(raised.value)
    assert near in str(raised.value)


@pytest.mark.parametrize(
    ("name", "several"),
    [
        ("A100", ("A100-SXM-80GB", "A100-SXM-40GB", "A100-PCIe-80GB", "A100-PCIe-40GB")),
        ("v100-sxm", ("V100-SXM-32GB", "V100-SXM-16GB")),
        ("A1000", None),
        ("RTX", None),
    ],
)
def test_a_name_that_several_products_share_lists_them_and_no_others(
    name: str, several: tuple[str, ...] | None
):
    with pytest.raises(UnknownGpu) as raised:
        gpu_named(name)
    assert raised.value.shared == (several is not None)
    assert several is None or raised.value.near == several


@pytest.mark.parametrize("name", ["", " ", "\u0000", "🚢", "NVIDIA", "x" * 5000, "../etc/passwd"])
def test_nonsense_is_unknown_and_says_what_is_known(name: str):
    with pytest.raises(UnknownGpu, match="H100-SXM-80GB"):
        gpu_named(name)


@pytest.mark.parametrize(
    ("driver_mib", "seen_gib"),
    [(81559, 79.19), (143771, 139.80), (46068, 44.42), (97887, 94.97), (24576, 23.58), (183359, 178.35)],
)
def test_what_the_runtime_shows_follows_from_what_the_driver_says(driver_mib: int, seen_gib: float):
    assert runtime_total(driver_mib) / GIB == pytest.approx(seen_gib, rel=0.007)


def test_bandwidth_and_arithmetic_are_of_one_device_and_dense():
    for gpu in all_gpus():
        assert 1e11 < gpu.bandwidth < 1e13, gpu.name
        ratio = gpu.flops[Dtype.FLOAT16] / gpu.bandwidth if Dtype.FLOAT16 in gpu.flops else 100
        assert 25 < ratio < 700, gpu.name
        if Dtype.FP8 in gpu.flops and gpu.vendor is not Vendor.HABANA:
            assert gpu.flops[Dtype.FP8] / gpu.flops[Dtype.BFLOAT16] == pytest.approx(2, rel=0.03), gpu.name


def test_a_link_is_at_least_as_fast_as_no_link_and_joins_the_devices_it_says():
    for gpu in all_gpus():
        assert gpu.link.domain >= 1
        if gpu.link.kind is LinkKind.PCIE:
            assert gpu.link.domain == 1, gpu.name
        else:
            assert gpu.link.bytes_per_second > gpu.pcie_bytes_per_second, gpu.name
