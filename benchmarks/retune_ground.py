"""A real engine that runs short of its pool, on a real node, below an operator that may retune it: what stands there, and what it says.

Windows are shortened through the admin's settings. What is looked for, and what is made of it, is `retune`'s.
"""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import models
from cluster import Cluster
from cluster.api import Unanswered
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.images import TOOLS, VLLM_CPU, supervisor
from cluster.metrics import Prometheus
from preempting import Load, alerted
from turns.running import Desk, Operator

ROOT: Final = Path(__file__).parent.parent
SPACE: Final = "retune"
CHAT: Final = "chat"
FLOOR: Final = 0.05
"""Preemptions for each finished request from which something is done."""
PATIENCE_SECONDS: Final = 2400.0
WINDOWS: Final = {
    "canarySeconds": 24,
    "canaryRequests": 50,
    "canaryLimitSeconds": 1200,
    "retryAfterSeconds": 1,
    "reverseAfterSeconds": 1,
    "retunesPerDay": 10,
}


@dataclass(slots=True)
class Ground:
    cluster: Cluster
    desk: Desk
    prometheus: Prometheus
    operator: Operator
    watched: Load | None = None
    """Who asks; what ended them ends the wait for what they cause."""
    began: float = field(default_factory=time.monotonic)

    def say(self, text: str) -> None:
        print(f"{time.monotonic() - self.began:5.0f} s  {text}", file=sys.stderr, flush=True)

    def until(self, what: str, holds: Callable[[], Any], seconds: float = PATIENCE_SECONDS) -> Any:
        """What it says once it says anything; the state of the resource where it does not in time."""
        deadline = time.monotonic() + seconds

        def said() -> Any:
            # Two engines and all of a cluster on two cores: who does not answer in time is asked again.
            with contextlib.suppress(Unanswered):
                return holds()

        while not (found := said()):
            self.cluster.processes.check()
            if self.watched is not None and self.watched.problem is not None:
                raise self.watched.problem
            if time.monotonic() > deadline:
                status = json.dumps(self.status(), indent=1)
                raise SystemExit(f"not {what} after {seconds:.0f} s:\n{status}\n{self.operator.tail()}")
            time.sleep(0.5)
        return found

    def serving(self) -> str:
        """The one set that serves, once it does."""
        self.until("ready", lambda: self.desk.condition("Ready", CHAT) == ("True", "Serving"))
        (name,) = self.desk.deployments()
        self.say(f"{name} serves: {' '.join(self.argv(name))}")
        return name

    def preempts(self, load: Load) -> None:
        self.watched = load
        self.until("preempting", lambda: self.preempted() > FLOOR)
        self.say(f"{self.preempted():.0%} of requests are preempted")

    def ended(self, state: str) -> None:
        """Follow the first retune, phase by phase, to the end that it must have."""
        said: list[str] = []

        def over() -> dict[str, Any] | None:
            status = self.status()
            step, past = status.get("tuning") or {}, status.get("tuningHistory") or []
            now = f"{step.get('state', 'Idle')} {self.desk.deployments()}"
            if now not in said[-1:]:
                said.append(now)
                self.say(f"{now} {step.get('reason', '')}")
            return past[0] if past and not step else None

        found: dict[str, Any] = self.until("over", over)
        self.say("{state}: {setting} {before} to {after}: {reason}".format(**found))
        if found["state"] != state:
            raise SystemExit(f"it should have ended as {state}")

    def rungs(self) -> list[dict[str, Any]]:
        wanted = ("setting", "before", "after", "state", "reason")
        return [{name: one[name] for name in wanted} for one in self.status()["tuningHistory"]][::-1]

    def preempted(self) -> float:
        """For each finished request of the last minutes."""
        found = self.prometheus.query(f'llm:preempted:ratio5m{{llm="{CHAT}"}}')
        return found[0].value if found else 0.0

    def shares(self, *sets: str) -> list[float]:
        """Preemptions for each request that pods of each set have finished since they are there."""
        counted = []
        for name in sets:
            both = [
                self.prometheus.query(f'sum(last_over_time({metric}{{pod=~"{name}-.*"}}[1h]))')
                for metric in ("vllm:num_preemptions_total", "vllm:request_success_total")
            ]
            counted.append(round(both[0][0].value / max(1.0, both[1][0].value), 4))
        return counted

    def heard(self, alert: str) -> bool:
        """Whether it fires and the operator was told of it."""
        firing = any(one["labels"]["alertname"] == alert for one in self.prometheus.alerts())
        return firing and self.operator.metric("plimsoll_alerts_received_total") > 0

    def status(self) -> dict[str, Any]:
        return dict(self.desk.get(CHAT).get("status") or {})

    def url(self) -> str:
        path = f"/api/v1/namespaces/{self.desk.namespace}/services/{CHAT}"
        return f"http://{self.cluster.api.get(path)['spec']['clusterIP']}"

    def argv(self, name: str) -> list[str]:
        """Of the engine that a set starts."""
        path = f"/apis/apps/v1/namespaces/{self.desk.namespace}/deployments/{name}"
        container = self.cluster.api.get(path)["spec"]["template"]["spec"]["containers"][0]
        return [*container.get("command", ()), *container.get("args", ())]


@contextmanager
def ground(folder: Path, places: Places, progress: Progress) -> Iterator[Ground]:
    """A cluster of two real nodes, a Prometheus that scrapes the engines and tells an Alertmanager, and the operator that both tell."""
    making = folder / "supervisor"
    making.mkdir()
    image = supervisor(making)
    with ExitStack() as held:
        cluster = held.enter_context(
            Cluster(places=places, progress=progress, real_nodes=2, images=[TOOLS, VLLM_CPU, image])
        )
        cluster.install(ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml")
        cluster.api.create("/api/v1/namespaces", {"metadata": {"name": SPACE}})
        cluster.token_of(SPACE, "default")
        cluster.api.create(f"/api/v1/namespaces/{SPACE}/configmaps", models.dense().config_map())
        desk, prometheus, operator = held.enter_context(
            alerted(cluster, SPACE, folder, image.reference, restarts=WINDOWS)
        )
        yield Ground(cluster, desk, prometheus, operator)
