"""An edit that is rolled back leaves the old set all that its pods cannot start without."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cluster import Cluster
from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.crashes import DIES
from turns.running import Desk, Operator

THEIRS = {"serviceAccount": "theirs"}


def accounts(desk: Desk) -> set[str]:
    return {one["metadata"]["name"] for one in desk.items("v1/serviceaccounts")} - {"default"}


def ready(desk: Desk) -> set[str]:
    """Pods that are."""
    return {
        one["metadata"]["name"]
        for one in desk.pods()
        for said in (one.get("status") or {}).get("conditions") or ()
        if (said["type"], said["status"]) == ("Ready", "True")
    }


@pytest.mark.usefixtures("gpus")
def test_who_is_rolled_back_to_still_has_its_account_and_it_goes_with_the_set(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    desk, admin = Desk(cluster, namespace), tmp_path / "admin.json"
    trust = {"serviceAccounts": [{"namespace": namespace, "names": ["theirs"]}]}
    said = {"apiVersion": names.API_VERSION, "kind": "OperatorConfig", "trust": trust}
    admin.write_text(json.dumps(said))
    cluster.api.create(f"/api/v1/namespaces/{namespace}/serviceaccounts", {"metadata": {"name": "theirs"}})
    with Operator(cluster, tmp_path, args=("--standalone", f"--config={admin}")) as operator:
        desk.apply()
        assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        desk.apply(scheduling=THEIRS, podAnnotations=DIES)
        assert eventually(lambda: desk.condition("Progressing")[1] == "RolledBack", LONG_SECONDS)
        assert operator.rests()
        assert accounts(desk) == {"chat", "theirs"}
        (evicted,) = ready(desk)
        cluster.api.delete(f"/api/v1/namespaces/{namespace}/pods/{evicted}?gracePeriodSeconds=0")
        assert eventually(lambda: len(ready(desk) - {evicted}) == 1, LONG_SECONDS), "another one may start"

        desk.apply(scheduling=THEIRS)
        assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS)
        assert eventually(lambda: accounts(desk) == {"theirs"}, LONG_SECONDS)
