"""The catalogue of accelerators that planning works with. The entries are in data/gpus.yaml.

Memory is the total that the runtime reports, and not the size in the name: an "80 GB" H100 shows 79.2 GiB, and every share that the
engine takes is a share of that. `labels` reads node labels, `inventory` has pools of devices.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from functools import cache
from typing import Any

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.own_data import own_data

MIB = 1 << 20
GIB = 1 << 30
_GIGA = 10**9
_TERA = 10**12


class Vendor(StrEnum):
    NVIDIA = "nvidia"
    AMD = "amd"
    INTEL = "intel"
    HABANA = "habana"
    CPU = "cpu"


class LinkKind(StrEnum):
    NVLINK = "nvlink"
    XGMI = "xgmi"
    XELINK = "xelink"
    ROCE = "roce"
    PCIE = "pcie"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """How devices of one node (or one NVLink domain) reach each other."""

    kind: LinkKind
    bytes_per_second: int
    """Of one device in one direction."""
    domain: int
    """The most devices that one fabric joins: 8 for an HGX board, 72 for NVL72, 2 for a bridge, 1 for PCIe only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One accelerator of the catalogue, or a part of one; CPUs are entries too."""

    name: str
    """The catalogue's key, e.g. H100-SXM-80GB; users may write it in topology.gpuProducts and --gpu."""
    vendor: Vendor
    architecture: str
    """hopper, blackwell, ampere, cdna3, gaudi3, ...; hardware classes of fitted constants go by this and by the link."""
    compute: str
    """The vendor's name of the instruction level: 9.0, gfx942, ..."""
    memory_bytes: int
    memory_measured: bool
    bandwidth: int
    flops: Mapping[Dtype, int]
    """Dense operations a second by format of the operands. A format that is absent is not native."""
    link: Link
    pcie_bytes_per_second: int
    unified_memory: bool = False
    aliases: tuple[str, ...] = ()
    """Label values and everyday names that mean this entry."""
    mig_slices: int = 0
    """Compute slices that a card can be cut into: 7 (with 8 of memory) or 4 (with 4); 0 where it cannot be cut."""
    bridge: Link | None = None
    """The link in machines that have the optional bridge, which no label shows."""
    dies: int = 1
    """Compute dies, each of which a partition mode can make a device of its own (AMD's CPX)."""

    def __hash__(self) -> int:
        """A hash without the mapping, which has none. Name and size differ between nearly all entries."""
        return hash((self.name, self.memory_bytes, self.bandwidth))


class UnknownGpu(LookupError):
    """A name that means no single entry. `near` are entries that may have been meant; with `shared`, all that have the name in common."""

    def __init__(self, name: str, near: tuple[str, ...], *, shared: bool = False) -> None:
        self.name = name
        self.near = near
        self.shared = shared
        if shared:
            super().__init__(f"{name!r} is the name of several GPU products; write one of {', '.join(near)}")
            return
        hint = f"did you mean {', '.join(near)}?" if near else f"known are, e.g., {', '.join(_EXAMPLES)}"
        super().__init__(f"unknown GPU product {name!r}: {hint}")


_EXAMPLES = ("H100-SXM-80GB", "L40S-48GB", "MI300X", "Gaudi3", "RTX-4090")


def runtime_total(driver_mib: int) -> int:
    """Bytes that the CUDA runtime shows where the driver (and the node label) says `driver_mib`.

    The difference is what the driver keeps for itself: 0.46 GiB of an H100 (81,559 MiB, of which 79.19 GiB are shown), 0.59 of an H200,
    0.57 of an L40S, 0.62 of an RTX PRO 6000, 0.42 of an RTX 3090. It is taken as a constant and a thousandth of the size.
    """
    return driver_mib * MIB - int(0.43 * GIB) - driver_mib * MIB // 1000


def all_gpus() -> tuple[Gpu, ...]:
    """Every accelerator of the catalogue in the order of the file; CPUs are `cpu_kinds`."""
    return tuple(gpu for gpu in _catalogue() if gpu.vendor is not Vendor.CPU)


def cpu_kinds() -> tuple[Gpu, ...]:
    return tuple(gpu for gpu in _catalogue() if gpu.vendor is Vendor.CPU)


def gpu_named(name: str) -> Gpu:
    """The entry that a key, a label value or an everyday name means; case and punctuation do not matter.

    A name that several products share ("A100") is no name: the error lists them.
    """
    index = _index()
    plain = normal_name(name)
    if plain in index:
        return index[plain]
    family = tuple(gpu.name for gpu in _catalogue() if plain and _is_of(gpu, plain))
    if len(family) > 1:
        raise UnknownGpu(name, family, shared=True)
    near = [gpu.name for gpu in _catalogue() if plain and normal_name(gpu.name).startswith(plain)]
    close = difflib.get_close_matches(plain, list(index), n=5, cutoff=0.6)
    near += [index[match].name for match in close]
    raise UnknownGpu(name, tuple(dict.fromkeys(near))[:5])


def _is_of(gpu: Gpu, plain: str) -> bool:
    """Whether a name is the model of an entry without its form and size: A100 is of A100-SXM-80GB, but not of A1000. A mere line of
    products such as RTX is no model."""
    return any(char.isdigit() for char in plain) and any(
        normal_name("-".join(parts[:count])) == plain
        for parts in [gpu.name.split("-")]
        for count in range(1, len(parts))
    )


def normal_name(name: str) -> str:
    """The name in lower case without vendor and punctuation, so that labels, data sheets and people's spellings are equal."""
    words = (word for word in re.split(r"[^a-z0-9]+", name.casefold()) if word not in _VENDOR_WORDS)
    return "".join("sxm" if re.fullmatch(r"sxm\d", word) else word for word in words)


_VENDOR_WORDS = frozenset({"nvidia", "geforce", "amd", "instinct", "radeon", "intel"})


@cache
def _catalogue() -> tuple[Gpu, ...]:
    return tuple(_parse(entry) for entry in own_data("plimsoll.facts", "data/gpus.yaml")["gpus"])


@cache
def _index() -> Mapping[str, Gpu]:
    return {normal_name(name): gpu for gpu in _catalogue() for name in (gpu.name, *gpu.aliases)}


def _parse(entry: Mapping[str, Any]) -> Gpu:
    """An entry of the data file. Tests check the file against a schema, so nothing is checked here."""
    vendor = Vendor(entry["vendor"])
    return Gpu(
        name=entry["name"],
        vendor=vendor,
        architecture=entry["architecture"],
        compute=entry["compute"],
        memory_bytes=_memory(entry["memory"], vendor),
        memory_measured="measured_gib" in entry["memory"],
        bandwidth=entry["gb_s"] * _GIGA,
        flops={Dtype(dtype): value * _TERA for dtype, value in entry["tflops"].items()},
        link=_link(entry["link"]),
        bridge=_link(entry["bridge"]) if "bridge" in entry else None,
        pcie_bytes_per_second=entry["pcie_gb_s"] * _GIGA,
        unified_memory=entry.get("unified", False),
        aliases=tuple(entry["names"]),
        mig_slices=entry.get("mig", 0),
        dies=entry.get("dies", 1),
    )


def _link(link: Mapping[str, Any]) -> Link:
    return Link(kind=LinkKind(link["kind"]), bytes_per_second=link["gb_s"] * _GIGA, domain=link["domain"])


def _memory(memory: Mapping[str, Any], vendor: Vendor) -> int:
    if "measured_gib" in memory:
        return int(Decimal(memory["measured_gib"]) * GIB)
    if "driver_mib" in memory:
        return runtime_total(memory["driver_mib"])
    sticker = memory["datasheet_gib"]
    return runtime_total(sticker * 1024) if vendor is Vendor.NVIDIA else sticker * GIB
