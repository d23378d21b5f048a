"""The operator as a process beside the cluster, and the resources that tests give it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from chart import NAMESPACE
from cluster import Cluster
from cluster.api import Object
from cluster.processes import free_port
from common import PATIENCE_SECONDS, ROOT, eventually
from plimsoll import names
from rights import shipped

RESOURCES: Final = f"/apis/{names.API_VERSION}"
SMALL: Final = "hf://Qwen/Qwen3-8B"
READS: Final = ("get", "list")
OWN: Final = "--lease-namespace="
PLIMSOLL: Final = ("-m", "plimsoll")
AGAIN: Final = ("Unreachable", "Silent", "409", "429", "503", "504")


class Operator:
    """`python -m plimsoll` for the time of a `with`, with the rights that the chart gives it unless others are brought."""

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        *,
        kubeconfig: Path | None = None,
        args: tuple[str, ...] = (),
        program: tuple[str, ...] = PLIMSOLL,
    ):
        own = next((one.removeprefix(OWN) for one in args if one.startswith(OWN)), NAMESPACE)
        self._kubeconfig = kubeconfig or shipped(cluster, own)
        self._args = args
        self._program = program
        self.log = folder / "operator.log"
        self.port = free_port()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def start(self) -> None:
        # So that a log goes on where a restarted operator's ended.
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable, *self._program, "--offline", "--port", str(self.port), "--log-format=text",
                    *(self._args or ("--standalone",)),
                ],
                cwd=ROOT,
                env={**os.environ, "KUBECONFIG": str(self._kubeconfig)},  # noqa: TID251 - a process of its own
                stdout=log,
                stderr=log,
            )  # fmt: skip

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """How it ended."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            return self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()  # so that it outlives no test that fails for it
            raise

    def restart(self) -> None:
        self.stop()
        self.start()

    def metric(self, name: str) -> float:
        """The sum of a metric's samples; 0 before it listens."""
        try:
            return sum(float(line.split()[-1]) for line in self._samples(name))
        except OSError:
            return 0.0

    def turns_failed(self) -> float:
        """But for those that the API server of a busy machine did not answer, or answered with a wish to be asked again; 0 before it
        listens."""
        try:
            lines = self._samples("plimsoll_turns_failed_total")
        except OSError:
            return 0.0
        return sum(
            float(line.split()[-1]) for line in lines if not any(f'reason="{one}"' in line for one in AGAIN)
        )

    def writes(self) -> int:
        """Calls that changed something, or tried to; Leases aside."""
        return self._calls(lambda verb: verb not in READS and verb != "watch")

    def reads(self) -> int:
        """Calls for an object or a list; Leases and watches aside."""
        return self._calls(lambda verb: verb in READS)

    def _calls(self, counts: Callable[[str], bool]) -> int:
        return sum(
            int(float(line.split()[-1]))
            for line in self._samples("plimsoll_api_calls_total")
            if counts(line.partition('verb="')[2].partition('"')[0]) and 'resource="leases"' not in line
        )

    def _samples(self, name: str) -> list[str]:
        """Of this metric alone: to write down those of ten thousand deployments takes an operator longer than to look at them. An
        older release tells all of them."""
        url = f"http://127.0.0.1:{self.port}/metrics?name[]={name}"
        with urllib.request.urlopen(url, timeout=PATIENCE_SECONDS) as answer:
            lines = answer.read().decode().splitlines()
        return [line for line in lines if line.partition("{")[0].split()[0] == name]

    def rests(self, seconds: float = 3.0) -> bool:
        """Whether it comes to write nothing for so long."""

        def still() -> bool:
            try:
                before = self.writes()
                time.sleep(seconds)
                return self.writes() == before
            except OSError:
                return False  # it does not listen yet

        return eventually(still)

    def tail(self) -> str:
        return self.log.read_text()[-8000:] if self.log.exists() else ""


class Desk:
    """What a person does with resources in one namespace."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def path(self, name: str = "chat") -> str:
        return f"{RESOURCES}/namespaces/{self.namespace}/{names.PLURAL}/{name}"

    def apply(self, name: str = "chat", **spec: Any) -> Object:
        body = {
            "apiVersion": names.API_VERSION,
            "kind": names.KIND,
            "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"model": {"source": SMALL}, **spec},
        }
        return self.cluster.api.apply(self.path(name), body, force=True)

    def get(self, name: str = "chat") -> Object:
        return self.cluster.api.get(self.path(name))

    def condition(self, kind: str, name: str = "chat") -> tuple[str, str]:
        """Status and reason; of the spec as it is now."""
        found = self.get(name)
        for one in (found.get("status") or {}).get("conditions") or ():
            if one["type"] == kind and one.get("observedGeneration") == found["metadata"]["generation"]:
                return one["status"], one["reason"]
        return "", ""

    def says(
        self, kind: str, status: str, reason: str, name: str = "chat", *, patience: float = PATIENCE_SECONDS
    ) -> bool:
        return eventually(lambda: self.condition(kind, name) == (status, reason), patience)

    def message(self, kind: str, name: str = "chat") -> str:
        conditions = self.get(name)["status"]["conditions"]
        return next(str(one["message"]) for one in conditions if one["type"] == kind)

    def items(self, path: str) -> list[Object]:
        """Of a collection in the namespace, as `apps/v1/deployments`."""
        group, plural = path.rsplit("/", 1)
        root = f"/api/{group}" if group == "v1" else f"/apis/{group}"
        return list(self.cluster.api.items(f"{root}/namespaces/{self.namespace}/{plural}"))

    def deployments(self) -> dict[str, int]:
        return {one["metadata"]["name"]: one["spec"]["replicas"] for one in self.items("apps/v1/deployments")}

    def pods(self) -> list[Object]:
        return [one for one in self.items("v1/pods") if "deletionTimestamp" not in one["metadata"]]

    def children(self) -> dict[str, str]:
        """Every object that the operator wrote here, with its resourceVersion."""
        kinds = (
            "apps/v1/deployments", "apps/v1/statefulsets", "apps/v1/controllerrevisions", "v1/services", "v1/configmaps",
            "v1/serviceaccounts", "policy/v1/poddisruptionbudgets",
        )  # fmt: skip
        return {
            f"{kind} {one['metadata']['name']}": json.dumps(
                [one["metadata"]["uid"], one["metadata"].get("generation")]
            )
            for kind in kinds
            for one in self.items(kind)
            if (one["metadata"].get("labels") or {}).get(names.LABEL_MANAGED_BY) == names.MANAGED_BY
            and not any(
                owner["kind"] == "StatefulSet" for owner in one["metadata"].get("ownerReferences") or ()
            )
        }
