"""Kubernetes objects for tests, made by overriding what a case is about."""

from typing import Any

Object = dict[str, Any]

H100 = {
    "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
    "nvidia.com/gpu.count": "8",
    "nvidia.com/gpu.memory": "81559",
    "nvidia.com/gpu.compute.major": "9",
    "nvidia.com/gpu.compute.minor": "0",
    "nvidia.com/cuda.driver-version.full": "580.95.05",
}


def node(
    name: str = "n1",
    labels: dict[str, str] | None = None,
    devices: dict[str, str] | None = None,
    *,
    ready: bool = True,
    **spec: Any,
) -> Object:
    """A ready node with eight H100s, unless told otherwise."""
    labels = H100 if labels is None else labels
    devices = {"nvidia.com/gpu": "8"} if devices is None else devices
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": spec,
        "status": {
            "allocatable": {"cpu": "191450m", "memory": "2010Gi", **devices},
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }


def cpu_node(name: str = "c1", labels: dict[str, str] | None = None, *, memory: str = "64Gi") -> Object:
    made = node(name, labels or {}, {})
    made["status"]["allocatable"] = {"cpu": "16", "memory": memory}
    return made


def pod(
    name: str = "p1",
    on: str | None = "n1",
    requests: dict[str, str] | None = None,
    *,
    phase: str = "Running",
    deployment: str | None = None,
    namespace: str = "team",
) -> Object:
    """A running pod that asks for one NVIDIA GPU, unless told otherwise."""
    requests = {"nvidia.com/gpu": "1"} if requests is None else requests
    return {
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {"plimsoll.dev/deployment": deployment} if deployment else {},
        },
        "spec": {"nodeName": on, "containers": [{"name": "main", "resources": {"requests": requests}}]},
        "status": {"phase": phase},
    }


def resource_slice(
    devices: list[Object],
    *,
    on: str = "n1",
    driver: str = "gpu.nvidia.com",
    generation: int = 1,
    name: str = "",
) -> Object:
    return {
        "metadata": {"name": name or f"{on}-{driver}-{generation}"},
        "spec": {
            "driver": driver,
            "nodeName": on,
            "pool": {"name": on, "generation": generation, "resourceSliceCount": 1},
            "devices": devices,
        },
    }


def dra_gpu(
    name: str, product: str = "NVIDIA H100 80GB HBM3", memory: str = "81559Mi", **more: Any
) -> Object:
    """A device of resource.k8s.io/v1; further attributes by name."""
    attributes = {
        "type": {"string": "gpu"},
        "uuid": {"string": f"GPU-{name}"},
        "productName": {"string": product},
        "driverVersion": {"version": "580.95.5"},
        **more,
    }
    return {"name": name, "attributes": attributes, "capacity": {"memory": {"value": memory}}}


def claim(*devices: str, on: str = "n1", name: str = "c1", pods: tuple[str, ...] = ("p1",)) -> Object:
    results = [{"driver": "gpu.nvidia.com", "pool": on, "device": device} for device in devices]
    return {
        "metadata": {"name": name, "namespace": "team"},
        "status": {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": pod, "uid": "1"} for pod in pods],
        },
    }
