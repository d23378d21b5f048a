"""What a hand has added to maps of ours: keys that an apply leaves beside ours, told by who has written which field."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll import names
from plimsoll.kube.child import added_by_others

SELECTOR = {
    "apiVersion": "v1",
    "kind": "A",
    "metadata": {"name": "a"},
    "spec": {"selector": {"matchLabels": {"a": "1"}}},
}
LIMITED = {
    "spec": {"limits": {"cpu": "1"}, "strategy": {"type": "Recreate", "steps": 2}, "ports": [{"port": 1}]}
}


@pytest.mark.parametrize(
    ("body", "by_hand", "taken"),
    [
        (SELECTOR, {"f:spec": {"f:selector": {"f:matchLabels": {"f:b": {}}}}}, [{"spec": {"selector": {"matchLabels": {"b": None}}}}]),
        (SELECTOR, {"f:spec": {"f:selector": {"f:matchLabels": {".": {}, "f:a": {}}}}}, []),
        (SELECTOR, {"f:spec": {"f:selector": {"f:matchExpressions": {}}, "f:paused": {}}}, []),
        (SELECTOR, {"f:metadata": {"f:annotations": {"f:b": {}}, "f:labels": {"f:b": {}}, "f:finalizers": {}}}, []),
        (SELECTOR, {"f:secrets": {}, "f:spec": {}}, []),
        (LIMITED, {"f:spec": {"f:limits": {"f:memory": {}}}}, [{"spec": {"limits": {"memory": None}}}]),
        (LIMITED, {"f:spec": {"f:strategy": {"f:more": {}}, "f:ports": {'k:{"port":2}': {"f:port": {}}}}}, []),
        ({"data": {"a": "1"}}, {"f:data": {"f:b": {}, "f:a": {}}}, [{"data": {"b": None}}]),
        ({"spec": {"template": {"labels": {"a": "1"}}}}, {"f:spec": {"f:template": {"f:labels": {"f:b": {}}}}}, []),
        ({"apiVersion": "v1", "kind": "ServiceAccount"}, {"f:secrets": {}}, []),
    ],
    ids=[
        "a key beside ours", "our own key", "fields of a spec", "metadata", "other parts", "a map of amounts", "fields and items",
        "data", "labels anywhere", "nothing of ours",
    ],
)  # fmt: skip
def test_keys_in_maps_of_ours_are_taken_away_and_nothing_else(
    body: dict[str, Any], by_hand: dict[str, Any], taken: list[Any]
) -> None:
    wrote = {"manager": "by-hand", "operation": "Update", "fieldsV1": by_hand}
    assert added_by_others({"managedFields": [wrote]}, body) == taken


@pytest.mark.parametrize(
    "ours", [{"manager": names.MANAGER_CHILDREN}, {"manager": "by-hand", "subresource": "status"}]
)
def test_who_writes_as_they_should_added_nothing(ours: dict[str, str]) -> None:
    fields: dict[str, Any] = {"f:spec": {"f:selector": {"f:matchLabels": {"f:b": {}}}}}
    assert added_by_others({"managedFields": [{**ours, "fieldsV1": fields}]}, SELECTOR) == []


def test_what_several_hands_have_added_is_taken_from_each() -> None:
    fields: list[dict[str, Any]] = [{"f:data": {f"f:{key}": {}}} for key in "bc"]
    metadata = {
        "managedFields": [{"manager": f"hand-{index}", "fieldsV1": one} for index, one in enumerate(fields)]
    }
    assert added_by_others(metadata, {"data": {"a": "1"}}) == [{"data": {"b": None}}, {"data": {"c": None}}]
