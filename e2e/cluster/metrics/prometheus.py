"""A Prometheus of one's own, with an Alertmanager where it has somebody to tell, for the time of a `with`.

Both run on free ports in a folder that is gone afterwards. What they are told is `config`'s.
"""

from __future__ import annotations

import json
import math
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import urllib3

from cluster.binaries import Places, ensure
from cluster.binaries.progress import Progress
from cluster.metrics import config
from cluster.metrics.config import PodDiscovery, Target, Webhook
from cluster.owner import Owner

READY_SECONDS: Final = 120.0
QUERY_SECONDS: Final = 30.0
PATIENCE_SECONDS: Final = 90.0
POLL_SECONDS: Final = 0.05


class QueryRefused(RuntimeError):
    """In Prometheus' own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One series at one time."""

    labels: Mapping[str, str]
    value: float
    at: float


class Prometheus(Owner):
    """Scrapes the targets it is given and the pods it discovers; `interval_ms` is also how often rules are looked at."""

    called = "prometheus"

    def __init__(
        self,
        *,
        interval_ms: int = 200,
        targets: Sequence[Target] = (),
        pods: PodDiscovery | None = None,
        rules: Mapping[str, Mapping[str, Any]] | None = None,
        webhook: Webhook | None = None,
        places: Places | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._interval_ms = interval_ms
        self._given_targets = targets
        self._pods = pods
        self._given_rules = rules or {}
        self._webhook = webhook
        self._places = places or Places.of(os.environ)  # noqa: TID251 - the default of an entry point
        self._progress = progress or Progress(sys.stderr)
        self._http = urllib3.PoolManager(retries=False, timeout=QUERY_SECONDS)
        self.url = self.alertmanager_url = ""

    def query(self, promql: str, *, at: float | None = None) -> list[Sample]:
        """An instant vector, or a scalar as one sample without labels."""
        asked = {"query": promql} | ({} if at is None else {"time": repr(at)})
        data = self._ask("query", asked)
        if data["resultType"] == "scalar":
            moment, value = data["result"]
            return [Sample(labels={}, value=float(value), at=float(moment))]
        if data["resultType"] != "vector":
            raise QueryRefused(
                f"{promql!r} gives a {data['resultType']}; ask for an instant vector or a scalar"
            )
        return [
            Sample(labels=one["metric"], value=float(one["value"][1]), at=float(one["value"][0]))
            for one in data["result"]
        ]

    def wait_for(
        self, promql: str, holds: Callable[[list[Sample]], bool] = bool, seconds: float = PATIENCE_SECONDS
    ) -> list[Sample]:
        """Ask until it holds of the answer, by default until there is one."""
        deadline = time.monotonic() + seconds
        while not holds(found := self.query(promql)):
            self.processes.check()
            if time.monotonic() > deadline:
                ailing = [one for one in self.targets() if one["health"] != "up"]
                raise TimeoutError(
                    f"{promql!r} is still {found} after {seconds:.0f} s; targets that are not up: {ailing}"
                )
            time.sleep(POLL_SECONDS)
        return found

    def targets(self) -> list[dict[str, Any]]:
        """What it scrapes: labels, health, and the last error."""
        active = self._ask("targets", {"state": "active"})["activeTargets"]
        return [
            {"labels": one["labels"], "health": one["health"], "error": one["lastError"]} for one in active
        ]

    def scrape(self, targets: Sequence[Target]) -> None:
        """From now on these, and no others but discovered pods. Prometheus takes up to 5 s to notice."""
        _write(self.folder / "targets.json", config.target_list(targets))

    def load_rules(self, name: str, rules: Mapping[str, Any]) -> None:
        """A rule file, or the spec of a PrometheusRule; one of that name is replaced. QueryRefused if they cannot be read."""
        file = self.folder / "rules" / f"{name}.json"
        before = file.read_bytes() if file.exists() else None
        _write(file, json.dumps(rules))
        answer = self._http.request("POST", f"{self.url}/-/reload")
        if answer.status != 200:
            file.unlink() if before is None else file.write_bytes(before)
            raise QueryRefused(answer.data.decode().strip() + self.processes.tail("prometheus", 3))

    def alerts(self) -> list[dict[str, Any]]:
        """Those that are pending or firing, with labels, annotations and state."""
        found: list[dict[str, Any]] = self._ask("alerts", {})["alerts"]
        return found

    def raise_alerts(self, alerts: Sequence[Mapping[str, Any]]) -> None:
        """Tell Alertmanager without a rule that would fire, as a storm of them does. Each has labels, and maybe annotations."""
        where = f"{self.alertmanager_url}/api/v2/alerts"
        answer = self._http.request("POST", where, json=[dict(one) for one in alerts])
        if answer.status != 200:
            raise QueryRefused(f"{answer.status}: {answer.data.decode(errors='replace')}")

    def stop(self) -> None:
        super().stop()
        self._http.clear()

    def _start(self) -> None:
        needed = ["prometheus", *(["alertmanager"] if self._webhook else [])]
        programs = ensure(needed, self._places, self._progress)
        at = self.folder
        (at / "rules").mkdir()
        for name, rules in sorted(self._given_rules.items()):
            _write(at / "rules" / f"{name}.json", json.dumps(rules))
        self.scrape(self._given_targets)
        told = None
        if self._webhook is not None:
            _write(at / "alertmanager.json", json.dumps(config.alertmanager(self._webhook), indent=1))
            program = programs["alertmanager"]
            told = self._listening("alertmanager", program, self._alertmanager, self._is_ready, READY_SECONDS)
            self.alertmanager_url = f"http://{told}"
        settings = config.prometheus(
            interval_ms=self._interval_ms,
            targets=at / "targets.json",
            rules=at / "rules",
            pods=self._pods,
            alertmanager=told,
        )
        _write(at / "prometheus.json", json.dumps(settings, indent=1))
        program = programs["prometheus"]
        listens = self._listening("prometheus", program, self._prometheus, self._is_ready, READY_SECONDS)
        self.url = f"http://{listens}"

    def _prometheus(self, address: str) -> list[str]:
        return [
            f"--config.file={self.folder / 'prometheus.json'}",
            f"--storage.tsdb.path={self.folder / 'data'}",
            f"--web.listen-address={address}",
            "--web.enable-lifecycle",
            "--scrape.discovery-reload-interval=100ms",
            "--log.level=warn",
        ]

    def _alertmanager(self, address: str) -> list[str]:
        return [
            f"--config.file={self.folder / 'alertmanager.json'}",
            f"--storage.path={self.folder / 'alerts'}",
            f"--web.listen-address={address}",
            "--cluster.listen-address=",  # alone
            "--log.level=warn",
        ]

    def _is_ready(self, address: str) -> bool:
        try:
            return self._http.request("GET", f"http://{address}/-/ready", timeout=1.0).status == 200
        except urllib3.exceptions.HTTPError:
            return False

    def _ask(self, what: str, fields: Mapping[str, str]) -> Any:
        answer = self._http.request("GET", f"{self.url}/api/v1/{what}", fields=dict(fields))
        try:
            said = json.loads(answer.data)
        except ValueError:
            raise QueryRefused(f"{answer.status}: {answer.data.decode(errors='replace')}") from None
        if said["status"] != "success":
            raise QueryRefused(f"{said['errorType']}: {said['error']}")
        return said["data"]


def value_of(samples: Sequence[Sample]) -> float:
    """The only sample's; NaN where there is none or several, which equals nothing."""
    return samples[0].value if len(samples) == 1 else math.nan


def _write(file: Path, text: str) -> None:
    """Whole or not at all: it may be read at any moment."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.replace(file)
