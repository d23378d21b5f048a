"""Real vLLM as pods of a test: objects that a restricted namespace admits, for one engine and for one that spans nodes.

Written by hand and as short as can be, so that what the product renders has something independent to be compared with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from cluster.api import Object
from cluster.images import VLLM_CPU
from models import TinyModel

PORT: Final = 8000
MODEL_PATH: Final = "/model"
ADAPTER_PATH: Final = "/adapter"
ENVIRONMENT: Final = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    # On a machine of few cores, pods that each bind their threads to the same ones wait for each other.
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "2",
    # Threads that wait by running in circles take the cores from those they wait for.
    "OMP_WAIT_POLICY": "PASSIVE",
}
ARGS: Final = (MODEL_PATH, "--load-format=dummy", "--enforce-eager", "--max-model-len=4096")
RANK_PORT: Final = 29501


def engine(
    model: TinyModel,
    name: str,
    *args: str,
    adapter: TinyModel | None = None,
    limits: Mapping[str, str] | None = None,
) -> list[Object]:
    """One engine and its Service; the models' ConfigMaps are the caller's to apply, once a namespace."""
    told = [*ARGS, f"--served-model-name={model.name}", *args]
    pod = _pod(model, name, told, app=name, limits=limits)
    if adapter:
        _mount(pod, adapter, "adapter", ADAPTER_PATH)
    return [_service(name), pod]


def group(model: TinyModel, name: str, *args: str, size: int = 2) -> list[Object]:
    """One engine over as many nodes: a pod each, of which the first leads and serves."""
    about = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"{name}-ranks"}}
    ranks: Object = about | {
        "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"group": name}}
    }
    pods = []
    for rank in range(size):
        told = [*ARGS, f"--served-model-name={model.name}", f"--tensor-parallel-size={size}"]
        told += [f"--nnodes={size}", f"--node-rank={rank}", f"--master-addr={name}-0.{name}-ranks"]
        told += [f"--master-port={RANK_PORT}", "--distributed-executor-backend=mp", *args]
        if rank:
            told.append("--headless")
        pod = _pod(
            model,
            f"{name}-{rank}",
            told,
            app="" if rank else name,
            environment={"GLOO_SOCKET_IFNAME": "eth0"},
        )
        pod["metadata"]["labels"]["group"] = name
        pod["spec"] |= {"hostname": f"{name}-{rank}", "subdomain": f"{name}-ranks"}
        # Each on a node of its own, as they would be with GPUs.
        pod["spec"]["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"group": name}},
            }
        ]
        if rank:
            del pod["spec"]["containers"][0]["readinessProbe"]
        pods.append(pod)
    return [ranks, _service(name), *pods]


def _service(name: str) -> Object:
    ports = [{"name": "http", "port": PORT, "targetPort": PORT}]
    spec = {"selector": {"app": name}, "ports": ports}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def _pod(
    model: TinyModel,
    name: str,
    args: Sequence[str],
    *,
    app: str = "",
    environment: Mapping[str, str] = MappingProxyType({}),
    limits: Mapping[str, str] | None = None,
) -> Object:
    address = {"name": "VLLM_HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}
    fixed = [{"name": key, "value": value} for key, value in {**ENVIRONMENT, **environment}.items()]
    pod: Object = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": app} if app else {}},
        "spec": {
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": 1,
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "engine",
                    "image": VLLM_CPU.reference,
                    "args": list(args),
                    "env": [*fixed, address],
                    "ports": [{"name": "http", "containerPort": PORT}],
                    "readinessProbe": {
                        "httpGet": {"path": "/health", "port": PORT},
                        "periodSeconds": 1,
                        "failureThreshold": 600,
                    },
                    "resources": {"limits": dict(limits or {})},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    "volumeMounts": [
                        {"name": "tmp", "mountPath": "/tmp"},
                        {"name": "shm", "mountPath": "/dev/shm"},
                    ],
                }
            ],
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "shm", "emptyDir": {"medium": "Memory"}},
            ],
        },
    }
    _mount(pod, model, "model", MODEL_PATH)
    return pod


def _mount(pod: Object, model: TinyModel, volume: str, path: str) -> None:
    spec = pod["spec"]
    spec["volumes"].append({"name": volume, "configMap": {"name": f"model-{model.name}"}})
    spec["containers"][0]["volumeMounts"].append({"name": volume, "mountPath": path})
