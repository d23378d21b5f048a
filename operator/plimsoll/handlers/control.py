"""Makes the control loop and its source of metrics, as the admin's file says: a Prometheus with its credentials, or the pods themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from plimsoll.api.config import OperatorConfig
from plimsoll.prometheus.client import Prometheus
from plimsoll.prometheus.fleet import FleetMetrics
from plimsoll.prometheus.queries import Selector
from plimsoll.prometheus.vocabulary import Vocabulary
from plimsoll.prometheus.wakes import WakeQueries
from plimsoll.reconcile.loop.controlling import Control
from plimsoll.reconcile.loop.sources import ByPods, ByPrometheus, Source
from plimsoll.reconcile.world import World


def control_of(world: World, wake: Callable[[str], None], config: OperatorConfig) -> Control:
    return Control(world, source_of(config), wake, interval_s=float(config.control.interval_seconds))


def source_of(config: OperatorConfig) -> Source:
    if config.prometheus_url is None:
        return ByPods(defaults=bool(config.defaults or config.presets))
    control = config.control
    client = Prometheus(
        config.prometheus_url,
        headers=lambda: {**control.prometheus_headers, **_token(control.prometheus_token_file)},
        ca_file=control.prometheus_ca_file,
    )
    metrics = FleetMetrics(
        client,
        Vocabulary({}),
        interval_s=float(control.interval_seconds),
        select=Selector(control.prometheus_match_labels),
    )
    return ByPrometheus(metrics, WakeQueries(client), client)


def _token(file: str | None) -> Mapping[str, str]:
    """The token is read each time, as its file may be renewed while the program runs."""
    if file is None:
        return {}
    return {"Authorization": f"Bearer {Path(file).read_text('utf-8').strip()}"}
