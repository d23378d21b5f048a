"""Where there is no node yet, but the admin's file declares a class of them, a deployment waits for the node and says so."""

from __future__ import annotations

import json
from pathlib import Path

from cluster import Cluster
from cluster.fleet import fleet_of
from common import LONG_SECONDS
from plimsoll import names
from turns.running import Desk, Operator

POOL = {
    "name": "made",
    "gpuProduct": "H100-SXM-80GB",
    "gpusPerNode": 8,
    "nodes": 0,
    "maxNodes": 1,
    "cpu": "192",
    "memory": "2Ti",
}


def test_a_replica_waits_for_a_node_of_a_declared_class_says_so_and_serves_once_it_is_made(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    fleet = fleet_of("made", {"apiVersion": names.API_VERSION, "kind": "Fleet", "pools": [POOL]})
    desk, file = Desk(cluster, namespace), tmp_path / "admin.json"
    file.write_text(json.dumps(fleet.config))
    with Operator(cluster, tmp_path, args=("--standalone", f"--config={file}")):
        desk.apply()
        assert desk.says("Ready", "False", "WaitingForNodes", patience=LONG_SECONDS)
        assert "1 replica of" in desk.message("Ready")
        assert "waits for nodes of class made to be made" in desk.message("Ready")
        assert desk.condition("Placed") == ("True", "NodeDeclared")
        assert waits(desk) == (1, 0), "for a node, not for a GPU of one that is there"
        (pod,) = desk.pods()
        assert "nodeName" not in pod["spec"]

        with cluster.growing(fleet, after_seconds=0.5) as growth:
            assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS)
            assert desk.says("Placed", "True", "Placed", patience=LONG_SECONDS)
            assert waits(desk) == (0, 0)
            (served,) = desk.pods()
            assert served["metadata"]["uid"] == pod["metadata"]["uid"], "the one that waited"
            assert [served["spec"]["nodeName"]] == growth.made


def waits(desk: Desk) -> tuple[int, int]:
    """Replicas that wait for a node to be made, and for a GPU."""
    counts = desk.get()["status"]["replicaStatus"]
    return counts.get("waitingForNodes", 0), counts.get("waitingForGpus", 0)
