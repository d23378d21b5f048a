"""An operator that scales and retunes by what a real Prometheus says of replicas that no engine serves."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from cluster import Cluster
from cluster.metrics import MetricsServer, Prometheus
from plimsoll import names
from turns.running import Desk, Operator
from turns.traffic import Traffic, stand_in

SCALED: Final[dict[str, Any]] = {
    "topology": {"gpuProducts": ["H100-SXM-80GB"]},
    "workload": {"contextTokens": 8192},
    "engine": {"maxSequences": 64},
    "scaling": {"min": 1, "max": 4, "upWindowSeconds": 1, "downWindowSeconds": 3},
}


ADMIN: Final = "admin.json"


@contextmanager
def operated(
    cluster: Cluster,
    folder: Path,
    namespaces: Sequence[str],
    *,
    kubeconfig: Path | None = None,
    **config: Any,
) -> Iterator[tuple[MetricsServer, Prometheus, Operator]]:
    """An operator that asks a Prometheus, which scrapes the pages that stand for the pods of some namespaces."""
    with (
        MetricsServer() as server,
        cluster.prometheus(
            namespaces=namespaces,
            selector=f"{names.LABEL_LEADER}=true",
            port="http",
            stand_in=server.address,
        ) as prom,
    ):
        file = folder / ADMIN
        said = {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND, "prometheusUrl": prom.url}
        file.write_text(json.dumps({**said, "control": {"intervalSeconds": 1}, **config}))
        # Why nothing is done stands in a line a tick.
        told = ("--standalone", "--config", str(file), "--log-level=debug")
        with Operator(cluster, folder, kubeconfig=kubeconfig, args=told) as operator:
            yield server, prom, operator


@contextmanager
def watched(place: Desk, folder: Path, **config: Any) -> Iterator[tuple[Traffic, Prometheus, Operator]]:
    """For the pods of one desk, with the load on them."""
    with (
        operated(place.cluster, folder, [place.namespace], **config) as (server, prom, operator),
        Traffic(stand_in(server), place.pods) as traffic,
    ):
        yield traffic, prom, operator


def configured(folder: Path, **config: Any) -> None:
    """What the admin says from the operator's next start on."""
    file = folder / ADMIN
    file.write_text(json.dumps({**json.loads(file.read_text()), **config}))


def reasons(desk: Desk) -> list[str]:
    """Of the last changes of the number of replicas, newest first."""
    return [one["reason"] for one in desk.get()["status"]["scalingHistory"]]


def wanted(desk: Desk, name: str = "chat") -> int:
    """Replicas of all sets of a deployment."""
    return sum(
        one["spec"]["replicas"]
        for one in desk.items("apps/v1/deployments")
        if one["metadata"]["ownerReferences"][0]["name"] == name
    )
