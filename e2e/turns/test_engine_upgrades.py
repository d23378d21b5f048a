"""A newer engine in the admin's file reaches the deployments whose owners, or whose admin, let the operator bring it; none else."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Final

import pytest

from cluster import Cluster
from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.running import Desk, Operator

VERSION: Final = "0.33.0"
OLD: Final = "registry.example.com/engines/vllm:a"
NEW: Final = "registry.example.com/engines/vllm:b"


class Admin:
    """The file that the operator reads as it starts."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "admin.json"

    def lists(self, image: str, *, upgrade: str = "manual") -> None:
        engines = {"versions": [{"version": VERSION, "image": image}], "upgrade": upgrade}
        said = {"apiVersion": names.API_VERSION, "kind": "OperatorConfig", "engines": engines}
        self.file.write_text(json.dumps(said))


def engines(desk: Desk, name: str) -> dict[str, str]:
    """By the uid of a pod, which image its engine is of."""
    return {
        one["metadata"]["uid"]: one["spec"]["containers"][0]["image"]
        for one in desk.pods()
        if one["metadata"]["labels"][names.LABEL_DEPLOYMENT] == name
    }


def tried(desk: Desk, hold_seconds: int) -> None:
    """By a canary of one of two."""
    rollout = {
        "strategy": "surge",
        "maxSurge": 1,
        "canary": {"percents": [50], "holdSeconds": hold_seconds},
    }
    desk.apply("moved", replicas=2, engine={"upgrade": "operator"}, rollout=rollout)


@pytest.mark.usefixtures("gpus")
def test_a_newer_engine_moves_by_its_canary_who_lets_the_operator_and_nobody_else(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    desk, admin = Desk(cluster, namespace), Admin(tmp_path)
    admin.lists(OLD)
    with Operator(cluster, tmp_path, args=("--standalone", f"--config={admin.file}")) as operator:
        desk.apply("own", engine={"upgrade": "manual"})
        desk.apply("silent")
        tried(desk, hold_seconds=86400)
        for name in ("own", "silent", "moved"):
            assert desk.says("Ready", "True", "Serving", name, patience=LONG_SECONDS)
        own, silent = engines(desk, "own"), engines(desk, "silent")
        for before in (own, silent, engines(desk, "moved")):
            assert set(before.values()) == {OLD}

        admin.lists(NEW)
        operator.restart()
        assert desk.says("Progressing", "True", "Canary", "moved", patience=LONG_SECONDS)
        served = "1 of 1 canary replicas serve, 1 on the old set"
        assert eventually(lambda: served in desk.message("Progressing", "moved"), LONG_SECONDS)
        assert operator.rests()
        assert Counter(engines(desk, "moved").values()) == {OLD: 1, NEW: 1}, "it stands at its step"
        tried(desk, hold_seconds=1)
        assert eventually(lambda: sorted(engines(desk, "moved").values()) == [NEW, NEW], LONG_SECONDS)
        assert desk.says("Progressing", "True", "RolledOut", "moved", patience=LONG_SECONDS)
        assert (engines(desk, "own"), engines(desk, "silent")) == (own, silent)

        admin.lists(NEW, upgrade="operator")
        operator.restart()
        assert eventually(lambda: set(engines(desk, "silent").values()) == {NEW}, LONG_SECONDS)
        assert desk.says("Ready", "True", "Serving", "silent", patience=LONG_SECONDS)
        assert operator.rests()
        assert engines(desk, "own") == own, "its owner has the last word"
