"""A list of adapters that is edited reaches running pods as an object, and nothing else: no new set, no new pod."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from common import eventually
from plimsoll.api.v1alpha1.features import Adapter
from plimsoll.engines.adapters import LIST_KEY, adapter_id
from turns.running import Desk, Operator
from turns.test_learning import config, found_here, supervisor

SQL: Final = {"name": "sql", "source": "hf://acme/sql"}
LAW: Final = {"name": "law", "source": "s3://bucket/law"}


def told(*items: dict[str, str], state: str = "Loaded", **failure: str) -> list[dict[str, str]]:
    """As a supervisor tells of them."""
    return [
        {"name": item["name"], "id": adapter_id(Adapter.model_validate(item)), "state": state, **failure}
        for item in items
    ]


def listed(desk: Desk) -> list[str]:
    path = f"/api/v1/namespaces/{desk.namespace}/configmaps/chat-adapters"
    body = json.loads(desk.cluster.api.get(path)["data"][LIST_KEY])
    return [one["name"] for one in body["adapters"]]


def states(desk: Desk) -> dict[str, Any]:
    found = desk.get()["status"].get("adapters") or ()
    return {one["name"]: (one["state"], f"{one.get('loaded')}/{one.get('replicas')}") for one in found}


def pods(desk: Desk) -> list[tuple[str, int]]:
    return sorted((one["metadata"]["uid"], one["metadata"].get("generation", 0)) for one in desk.pods())


def test_an_edited_list_of_adapters_makes_no_new_set_and_each_is_told_with_its_state(
    place: Desk, tmp_path: Path
) -> None:
    args = ("--standalone", f"--lease-namespace={place.namespace}", f"--config={config(tmp_path)}")
    with supervisor() as server, Operator(place.cluster, tmp_path, args=args) as operator:
        server.report |= {"state": "serving", "measured": {"kvTokens": 1000}, "adapters": told(SQL)}
        serve(place, server.server_address[1])
        found_here(place, "chat")
        assert eventually(lambda: states(place) == {"sql": ("Loaded", "1/1")}), operator.tail()
        assert "sql" in place.get()["status"]["endpoint"]["modelNames"]
        before, sets = pods(place), place.deployments()

        refused = {"word": "AdapterRank", "message": "its rank is 64", "remedy": "spec.adapters.maxRank: 64"}
        server.report |= {"adapters": [*told(SQL), *told(LAW, state="Failed", **refused)]}
        edit(place, SQL, LAW)
        assert eventually(lambda: listed(place) == ["law", "sql"]), operator.tail()
        assert eventually(lambda: states(place) == {"law": ("Failed", "0/1"), "sql": ("Loaded", "1/1")}), (
            operator.tail()
        )
        assert eventually(lambda: place.condition("Degraded") == ("True", "AdapterFailed"))
        assert "spec.adapters.maxRank: 64" in place.message("Degraded")
        assert place.condition("Ready") == ("True", "Serving")

        path = f"/api/v1/namespaces/{place.namespace}/configmaps/chat-adapters"
        place.cluster.api.patch(path, {"data": {LIST_KEY: "{}"}})
        assert eventually(lambda: "law" in json.dumps(place.cluster.api.get(path)["data"])), operator.tail()

        edit(place, SQL)
        assert eventually(lambda: listed(place) == ["sql"] and list(states(place)) == ["sql"])
        assert (pods(place), place.deployments()) == (before, sets)


def serve(desk: Desk, port: int) -> None:
    """With the pod's supervisor where the test listens."""
    listens = {"name": "runtime", "containerPort": port, "protocol": "TCP"}
    patch = {"op": "add", "path": "/spec/containers/0/ports/-", "value": json.dumps(listens)}
    desk.apply(adapters={"runtimeLoading": True, "items": [SQL]}, podPatches=[patch])
    assert desk.says("Ready", "True", "Serving")


def edit(desk: Desk, *items: dict[str, str]) -> None:
    """The list alone, as a person would."""
    desk.cluster.api.patch(desk.path(), {"spec": {"adapters": {"items": list(items)}}})
