"""GPUs, of whichever vendor, as this container sees them."""

from __future__ import annotations

from typing import NamedTuple


class Gpu(NamedTuple):
    name: str
    total: int
    free: int
    capability: tuple[int, int] | None = None
    """CUDA's compute capability; None for other vendors."""

    def told(self) -> dict[str, object]:
        capability = None if self.capability is None else "{}.{}".format(*self.capability)
        return {
            "name": self.name,
            "totalBytes": self.total,
            "freeBytes": self.free,
            "capability": capability,
        }


class Devices(NamedTuple):
    gpus: tuple[Gpu, ...]
    driver: str | None = None
    nvlink: bool | None = None
    """Whether all GPUs reach one another by NVLink; None where that is not known or there is only one."""
    cuda: tuple[int, int] | None = None
    """The newest CUDA that the driver runs."""
    shut: tuple[str, ...] = ()
    """Device files of GPUs that are missing or that this user may not open."""
    hiding: str = ""
    """Variables that hide GPUs which are here, as NAME=VALUE."""
    failed: tuple[str, ...] = ()
    """A sentence for each GPU that is here and broken."""
    unknown: int = 0
    """GPUs that are here and of which the driver does not say what they are."""

    def told(self) -> dict[str, object]:
        return {
            "gpus": [gpu.told() for gpu in self.gpus],
            "failed": list(self.failed),
            "unknown": self.unknown,
            "driver": self.driver,
            "nvlink": self.nvlink,
        }
