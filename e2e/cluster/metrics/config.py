"""What Prometheus and Alertmanager are told: where to look, how often, and whom to tell. Starting them is `prometheus`'s.

Both read YAML; what is written here is JSON, which is YAML too.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

Settings = dict[str, Any]
NEVER_AGAIN: Final = "4d"
"""Alertmanager forgets after five days, and says so when told a longer time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One place to scrape, by a list in a file."""

    address: str
    path: str = "/metrics"
    labels: Mapping[str, str] = field(default_factory=dict)
    """Those of a discovered pod (namespace, pod, uid, node, container) make it look like one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PodDiscovery:
    """Pods found through the API server; finished ones are left out."""

    kubeconfig: Path
    selector: str = ""
    """A label selector of Kubernetes."""
    namespaces: Sequence[str] = ()
    """Empty: all."""
    port: str = ""
    """The name of a container's port; empty: every port, and a pod without ports at its address."""
    stand_in: str = ""
    """Scrape this address instead, at /NAMESPACE/POD: simulated pods have addresses where nobody answers."""
    drop: str = ""
    """A regular expression of metrics that are not kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """Where Alertmanager sends alerts."""

    url: str
    token: str = ""
    ca_file: Path | None = None
    """Who signed the certificate there, where it speaks TLS."""
    group_by: Sequence[str] = ("...",)
    """As in Alertmanager: by default no alert waits for another."""
    wait_ms: int = 100
    """Before the first message of a group, and between two about its changes."""
    again_s: int | None = None
    """After so long what fires still is told again; None: never."""


def prometheus(
    *,
    interval_ms: int,
    targets: Path,
    rules: Path,
    pods: PodDiscovery | None = None,
    alertmanager: str | None = None,
) -> Settings:
    """`targets` is the file that lists what to scrape, `rules` the folder of rule files."""
    interval = f"{interval_ms}ms"
    scrapes: list[Settings] = [
        {"job_name": "targets", "file_sd_configs": [{"files": [str(targets)], "refresh_interval": "1s"}]}
    ]
    if pods is not None:
        scrapes.append(_discover(pods))
    settings: Settings = {
        "global": {"scrape_interval": interval, "scrape_timeout": interval, "evaluation_interval": interval},
        "rule_files": [str(rules / "*.json")],
        "scrape_configs": scrapes,
    }
    if alertmanager is not None:
        where = {"static_configs": [{"targets": [alertmanager]}]}
        settings["alerting"] = {"alertmanagers": [where]}
    return settings


def target_list(targets: Sequence[Target]) -> str:
    """The file that a running Prometheus reads again whenever it changes."""
    return json.dumps(
        [
            {"targets": [one.address], "labels": {"__metrics_path__": one.path, **one.labels}}
            for one in targets
        ],
        indent=1,
    )


def alertmanager(webhook: Webhook) -> Settings:
    told: Settings = {"url": webhook.url, "send_resolved": True}
    http: Settings = {}
    if webhook.token:
        http["authorization"] = {"type": "Bearer", "credentials": webhook.token}
    if webhook.ca_file is not None:
        http["tls_config"] = {"ca_file": str(webhook.ca_file)}
    if http:
        told["http_config"] = http
    return {
        "route": {
            "receiver": "webhook",
            "group_by": list(webhook.group_by),
            "group_wait": f"{webhook.wait_ms}ms",
            "group_interval": f"{webhook.wait_ms}ms",
            "repeat_interval": NEVER_AGAIN if webhook.again_s is None else f"{webhook.again_s}s",
        },
        "receivers": [{"name": "webhook", "webhook_configs": [told]}],
    }


def _discover(pods: PodDiscovery) -> Settings:
    found: Settings = {"role": "pod", "kubeconfig_file": str(pods.kubeconfig)}
    if pods.namespaces:
        found["namespaces"] = {"names": list(pods.namespaces)}
    if pods.selector:
        found["selectors"] = [{"role": "pod", "label": pods.selector}]
    about = "__meta_kubernetes_"
    relabel: list[Settings] = [
        {"action": "drop", "source_labels": [f"{about}pod_phase"], "regex": "Succeeded|Failed"}
    ]
    if pods.port:
        port = {"source_labels": [f"{about}pod_container_port_name"], "regex": pods.port}
        relabel.append({"action": "keep", **port})
    named = {
        "namespace": "namespace",
        "pod": "pod_name",
        "uid": "pod_uid",
        "node": "pod_node_name",
        "container": "pod_container_name",
    }
    relabel += [{"source_labels": [about + source], "target_label": label} for label, source in named.items()]
    if pods.stand_in:
        whose = [f"{about}namespace", f"{about}pod_name"]
        relabel += [
            {
                "source_labels": whose,
                "separator": "/",
                "target_label": "__metrics_path__",
                "replacement": "/$1",
            },
            {"target_label": "__address__", "replacement": pods.stand_in},
            {"source_labels": [f"{about}pod_ip"], "target_label": "instance"},
        ]
    job: Settings = {"job_name": "pods", "kubernetes_sd_configs": [found], "relabel_configs": relabel}
    if pods.drop:
        job["metric_relabel_configs"] = [
            {"action": "drop", "source_labels": ["__name__"], "regex": pods.drop}
        ]
    return job
