"""What tests on real nodes share: a restricted namespace, and the few things that are done to pods in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

import pytest

from cluster import Cluster
from cluster.api import Object
from cluster.images import TOOLS, VLLM_CPU_VERSION, Recipe
from common import is_ready
from plimsoll import __version__

KINDS: Final = {"Pod": "pods", "Service": "services", "ConfigMap": "configmaps"}
ENDED: Final = ("Succeeded", "Failed")
PATIENCE_SECONDS: Final = 300.0


def bundled_engine(image: Recipe) -> dict[str, Any]:
    """`engines` of an admin's file that names the image which has its supervisor with it."""
    version = {"version": VLLM_CPU_VERSION, "cpuImage": image.reference, "supervisor": __version__}
    return {"versions": [version]}


@dataclass(frozen=True, slots=True)
class Namespace:
    """One that admits only pods without rights."""

    cluster: Cluster
    name: str

    @classmethod
    def create(cls, cluster: Cluster, prefix: str) -> Namespace:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"}
        return cls(cluster, cluster.new_namespace(prefix, **labels))

    def remove(self) -> None:
        """Pods end at once, and their names are free for the next test's."""
        self.cluster.api.delete(f"/api/v1/namespaces/{self.name}")
        while self.cluster.api.items(self._path("Pod")):
            self.cluster.api.delete(f"{self._path('Pod')}?gracePeriodSeconds=0")
            time.sleep(0.2)

    def create_all(self, *objects: Object) -> list[Object]:
        return [self.cluster.api.create(self._path(one["kind"]), one) for one in objects]

    def delete_all(self, *objects: Object) -> None:
        """Returns when pods among them are gone."""
        for one in objects:
            path = f"{self._path(one['kind'])}/{one['metadata']['name']}"
            self.cluster.api.delete(f"{path}?gracePeriodSeconds=0")
        names = {one["metadata"]["name"] for one in objects if one["kind"] == "Pod"}
        while any(pod["metadata"]["name"] in names for pod in self.cluster.api.items(self._path("Pod"))):
            time.sleep(0.1)

    def pod(self, name: str) -> Object:
        return self.cluster.api.get(f"{self._path('Pod')}/{name}")

    def ready(self, name: str, patience: float = PATIENCE_SECONDS) -> Object:
        """The pod, once it is."""
        return self._until(name, is_ready, patience)

    def ended(self, name: str, patience: float = PATIENCE_SECONDS) -> Object:
        """The pod, once it is."""
        return self._until(name, lambda pod: pod["status"].get("phase") in ENDED, patience)

    def said(self, name: str) -> str:
        """What a pod printed, once it has ended."""
        self.ended(name)
        return self.log(name)

    def log(self, name: str, *args: str) -> str:
        done = self.cluster.kubectl("logs", f"--namespace={self.name}", name, *args)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _until(self, name: str, holds: Callable[[Object], bool], patience: float) -> Object:
        deadline = time.monotonic() + patience
        while not holds(pod := self.pod(name)):
            self.cluster.processes.check()
            if time.monotonic() > deadline:
                raise AssertionError(f"{name} after {patience:.0f} s: {pod['status']}\n{self._last(name)}")
            time.sleep(0.1)
        return pod

    def _last(self, name: str) -> str:
        done = self.cluster.kubectl("logs", f"--namespace={self.name}", name, "--tail=60")
        return done.stdout or done.stderr

    def _path(self, kind: str) -> str:
        return f"/api/v1/namespaces/{self.name}/{KINDS[kind]}"


def python_pod(
    name: str,
    *args: str,
    node: str | None = None,
    limits: dict[str, str] | None = None,
    account: bool = False,
    **container: Any,
) -> Object:
    """A pod without rights that runs Python, once."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Never",
            "automountServiceAccountToken": account,
            "terminationGracePeriodSeconds": 1,
            "nodeSelector": {"kubernetes.io/hostname": node} if node else {},
            "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [
                {
                    "name": "main",
                    "image": TOOLS.reference,
                    "args": list(args),
                    "resources": {"limits": limits or {}},
                    "securityContext": {
                        "allowPrivilegeEscalation": False,
                        "readOnlyRootFilesystem": True,
                        "capabilities": {"drop": ["ALL"]},
                    },
                    **container,
                }
            ],
        },
    }


def service(name: str, port: int) -> Object:
    """In front of the pod of that name."""
    spec = {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": port}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": spec}


def left_out(why: str) -> NoReturn:
    """End a test that this machine cannot run; badly, where none may be left out."""
    if os.environ.get("REQUIRE_REAL_NODE") == "1":  # noqa: TID251 - tests are an entry point
        pytest.fail(f"REQUIRE_REAL_NODE=1, but {why}")
    pytest.skip(why)
