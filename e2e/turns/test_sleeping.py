"""To no replica and back, by signals that live outside the pods."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from common import LONG_SECONDS, eventually
from plimsoll import names
from plimsoll.reconcile.kept import CONTROL_KEY
from turns.running import Desk
from turns.traffic import Traffic, stand_in
from turns.watching import SCALED, operated, wanted

WAITING: Final = "gateway_requests_waiting"
WAKES: Final[Mapping[str, dict[str, Any]]] = {"asked": {"query": WAITING}, "written": {"annotation": True}}


def sleepy(wake: Mapping[str, Any]) -> dict[str, Any]:
    scaling = {"max": 2, "downWindowSeconds": 3, "zero": {"wake": dict(wake), "afterSeconds": 60}}
    return {**SCALED, "scaling": scaling}


def starts_quickly(place: Desk, name: str) -> None:
    """As if ten starts had been seen: who knows of none stays awake for three of those that it supposes, which are minutes."""
    path = f"/api/v1/namespaces/{place.namespace}/configmaps/{name}-plan"
    record = json.loads(place.cluster.api.get(path)["data"].get(CONTROL_KEY, "{}"))
    roles = record.setdefault("memory", {}).setdefault("roles", {})
    roles.setdefault("serve", {})["starts"] = [1.0] * 10
    place.cluster.api.patch(path, {"data": {CONTROL_KEY: json.dumps(record)}})


def test_the_last_replica_goes_when_nobody_asks_and_comes_back_for_whom_the_gateway_holds_or_who_writes_it_down(
    place: Desk, tmp_path: Path
) -> None:
    with (
        operated(place.cluster, tmp_path, [place.namespace]) as (server, prom, operator),
        Traffic(stand_in(server), place.pods) as traffic,
    ):
        gateway = server.page("gateway")
        gateway.set(WAITING, 0)
        prom.scrape([gateway.target()])
        for name, wake in WAKES.items():
            place.apply(name, **sleepy(wake))
        for name in WAKES:
            assert place.says("Ready", "True", "Serving", name)
        traffic.inflight = 2
        operator.stop()
        for name in WAKES:
            starts_quickly(place, name)
        operator.start()
        ticks = operator.metric("plimsoll_control_ticks_total")
        assert eventually(lambda: operator.metric("plimsoll_control_ticks_total") >= ticks + 5)
        assert [wanted(place, name) for name in WAKES] == [1, 1], "somebody asks"
        traffic.inflight = 0
        for name in WAKES:
            assert place.says("Ready", "True", "ScaledToZero", name, patience=LONG_SECONDS)
        assert place.pods() == []
        gateway.set(WAITING, 3)
        assert place.says("Ready", "True", "Serving", "asked")
        assert wanted(place, "written") == 0
        place.cluster.api.patch(
            place.path("written"), {"metadata": {"annotations": {names.ANNOTATION_WAKE: "somebody came"}}}
        )
        assert place.says("Ready", "True", "Serving", "written")
        told = {name: place.get(name)["status"]["scalingHistory"][0]["reason"] for name in WAKES}
        assert told == dict.fromkeys(WAKES, "Woken")
