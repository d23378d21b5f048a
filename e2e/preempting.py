"""A resource whose real engine runs short of its pool, and the users who bring it there.

The pool is made small by an override that only a test would want, so that a model of a few megabytes fills it; everything else is as
a user has it. Requests are those by which the engine's behaviour was measured: prompts of 100 to 400 tokens, answers around 500.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pytest
from urllib3.exceptions import HTTPError

import models
from cluster import Cluster
from cluster.images import VLLM_CPU, VLLM_CPU_VERSION
from cluster.metrics import Prometheus, Target
from cluster.processes import free_port
from hearing import hearing, shipped
from plimsoll import names
from plimsoll.load.bench import session
from plimsoll.load.client import Api, Endpoint
from plimsoll.load.drive import Limits
from plimsoll.load.lengths import Lengths, LogNormal, Uniform
from plimsoll.load.workload import ClosedLoop, Pattern, Workload
from real import Namespace
from turns.running import Desk, Operator

BLOCKS: Final = 64
"""Of 128 tokens: some twelve requests."""
SEQUENCES: Final = 32
USERS: Final = 32
START_SECONDS: Final = 900.0
MODEL: Final = "tiny"
PROMPTS: Final = Uniform(100, 400)
ANSWERS: Final = LogNormal(400, 1100, 0.95)
SLO: Final = {"ttftP99Ms": 15000, "itlP99Ms": 200}
ALERT: Final = "PlimsollPreemption"
SELDOM_S: Final = 60
"""From look to look, where nobody alerts; for who does it is a fifth of that."""
AGAIN_S: Final = 11
PATCHES: Final = ["/spec/*", "/spec/containers/*"]
"""Of a pod, that the admin has to allow."""


def spec(replicas: int, tuning: dict[str, Any], *, stubborn: bool = False) -> dict[str, Any]:
    """As a user writes it, with the model as a volume and the small pool as patches of the pod.

    `stubborn`: a patch says again how many requests may run, and an engine goes by what it is told last: no retune changes that.
    """
    words = [f"--num-gpu-blocks-override={BLOCKS}", *([f"--max-num-seqs={SEQUENCES}"] if stubborn else [])]
    architecture = models.dense().files["config.json"].decode()
    return {
        "model": {"source": "/model", "servedNames": [MODEL], "loadFormat": "dummy", "architecture": {"config": architecture}},
        "replicas": replicas,
        "engine": {
            "version": VLLM_CPU_VERSION,
            "maxSequences": SEQUENCES,
            # Threads that wait by running in circles take the cores from those they wait for.
            "env": [{"name": "OMP_WAIT_POLICY", "value": "PASSIVE"}],
        },
        "workload": {"contextTokens": 4096},
        "slo": SLO,
        "topology": {"cpu": {"cores": 1, "memory": "5Gi", "kvCacheSize": "1Gi"}},
        "tuning": tuning,
        "podPatches": [
            *(_patch("/spec/containers/0/args/-", word) for word in words),
            _patch("/spec/volumes/-", {"name": MODEL, "configMap": {"name": "model-dense"}}),
            _patch("/spec/containers/0/volumeMounts/-", {"name": MODEL, "mountPath": "/model"}),
        ],
    }  # fmt: skip


def admin(prometheus_url: str, runtime_image: str, *, restarts: Mapping[str, int], interval: int = 1) -> str:
    """The admin's file beside it."""
    config = {
        "apiVersion": names.API_VERSION,
        "kind": names.CONFIG_KIND,
        "engines": {"versions": [{"version": VLLM_CPU_VERSION, "cpuImage": VLLM_CPU.reference}]},
        "runtime": {"enabled": True},
        "registry": {"runtimeImage": runtime_image},
        "network": {"offline": True},
        "trust": {"podPatches": {"allow": PATCHES}},
        "prometheusUrl": prometheus_url,
        "control": {"intervalSeconds": interval},
        "restarts": restarts,
    }
    return json.dumps(config)


@contextlib.contextmanager
def with_model(cluster: Cluster, name: str) -> Iterator[Namespace]:
    """A namespace with the model that engines here serve. One test at a time has it: beside two pairs of such engines, on two cores, API servers
    answer too late, and what is judged is the other test."""
    with (Path(tempfile.gettempdir()) / "plimsoll-preempting.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        made = Namespace.create(cluster, name)
        made.create_all(models.dense().config_map())
        yield made
        made.remove()


@contextlib.contextmanager
def alerted(
    cluster: Cluster,
    space: str,
    folder: Path,
    runtime_image: str,
    *,
    restarts: Mapping[str, int],
    drop: str = "",
) -> Iterator[tuple[Desk, Prometheus, Operator]]:
    """A Prometheus that scrapes the engines of a namespace and tells an Alertmanager, and the operator that both tell. It looks seldom by
    itself, and hears of preemptions alone: what comes of them comes of that alert, and of its being told again while it fires."""
    hears, webhook = hearing(folder, again_s=AGAIN_S)
    port, file = free_port(), folder / "admin.json"
    with cluster.prometheus(
        namespaces=[space],
        selector=f"{names.LABEL_LEADER}=true",
        port="http",
        interval_ms=1000,
        drop=drop,
        targets=[Target(address=f"127.0.0.1:{port}")],
        rules={"plimsoll": shipped("5s", alert=ALERT)},
        webhook=webhook,
    ) as prometheus:
        file.write_text(admin(prometheus.url, runtime_image, restarts=restarts, interval=SELDOM_S))
        args = ("--standalone", f"--lease-namespace={space}", f"--config={file}", "--log-level=debug", *hears)
        operator = Operator(cluster, folder, args=args)
        operator.port = port
        with operator:
            yield Desk(cluster, space), prometheus, operator


def _patch(path: str, value: Any) -> dict[str, str]:
    return {"op": "add", "path": path, "value": json.dumps(value)}


def workload(pattern: Pattern, seed: int, prompts: Lengths = PROMPTS, answers: Lengths = ANSWERS) -> Workload:
    return Workload(pattern=pattern, input_tokens=prompts, output_tokens=answers, seed=seed)


class Load:
    """Users who ask on and on, or what else asks, in a thread of its own, for the time of a `with`."""

    def __init__(self, url: str, users: int | Workload, *, seed: int = 1) -> None:
        self._endpoint = Endpoint(url=url, api=Api.COMPLETIONS, model=MODEL)
        self._workload = users if isinstance(users, Workload) else workload(ClosedLoop(users), seed)
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self.problem: BaseException | None = None
        """What ended it before its time."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        try:
            self._loop.run_until_complete(self._ask())
        except Exception as error:  # noqa: BLE001 - told by whoever waits for what it should have caused
            self.problem = error

    async def _ask(self) -> None:
        async with session(self._endpoint, self._workload.seed) as opened:
            await opened.measure(self._workload, Limits(), slo=None, stop=self._stop)


def under(load: Load, desk: Desk, wanted: Callable[[], object]) -> None:
    """Waits for what comes while requests run, and fails at once with what went wrong for a client."""
    until(desk, lambda: load.problem or wanted())
    assert load.problem is None


def retunes(desk: Desk) -> list[dict[str, Any]]:
    """What a dry run would have changed, until it is tried."""
    return list(desk.get()["status"].get("tuningHistory") or ())


def state(desk: Desk) -> str:
    return str((desk.get()["status"].get("tuning") or {}).get("state", ""))


def arguments(desk: Desk) -> list[list[str]]:
    """Of the engine in each pod."""
    return [list(pod["spec"]["containers"][0]["args"]) for pod in desk.pods()]


def until(desk: Desk, holds: Any) -> None:
    """Beside two engines that fill all cores an API server may answer too late: it is asked again."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(HTTPError):
            if holds():
                return
        time.sleep(0.5)
    pytest.fail(json.dumps(desk.get().get("status"), indent=1))
