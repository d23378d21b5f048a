"""After a rollback of the operator: a set that a newer release made is scaled, replaced and removed as any other."""

from __future__ import annotations

from typing import Any

from common import eventually
from plimsoll import names
from turns.running import Desk, Operator


def made_by_a_newer_release(desk: Desk) -> dict[str, Any]:
    """Its one ControllerRevision, made again as a release writes it that knows more."""
    (revision,) = desk.items("apps/v1/controllerrevisions")
    about = revision["metadata"]
    path = f"/apis/apps/v1/namespaces/{desk.namespace}/controllerrevisions"
    for place in (revision["data"], revision["data"]["entry"], revision["data"]["entry"]["settings"]):
        place["newer"] = {"than": ["this"]}
    left = ("name", "namespace", "labels", "annotations", "ownerReferences")
    metadata = {name: about[name] for name in left}
    desk.cluster.api.delete(f"{path}/{about['name']}")
    body = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": metadata}
    # By apply, as an operator does it: what is stored is compared byte by byte, and is sorted then.
    return desk.cluster.api.apply(
        f"{path}/{about['name']}",
        {**body, "data": revision["data"], "revision": revision["revision"]},
        manager=names.MANAGER_CHILDREN,
    )


def test_a_set_of_a_newer_release_is_scaled_replaced_and_stopped(operator: Operator, desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    operator.stop()
    newer = made_by_a_newer_release(desk)
    # Its plan cannot be read either.
    plan = f"/api/v1/namespaces/{desk.namespace}/configmaps/chat-plan"
    desk.cluster.api.patch(plan, {"data": {"plan.json": '{"newer": 1}'}})
    before = {pod["metadata"]["uid"] for pod in desk.pods()}
    operator.start()
    desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=2")
    assert eventually(lambda: desk.get()["status"].get("ready") == "2/2")
    assert desk.condition("Stalled") == ("", "")
    assert before < {pod["metadata"]["uid"] for pod in desk.pods()}
    (there,) = desk.items("apps/v1/controllerrevisions")
    assert (there["metadata"]["uid"], there["data"]) == (newer["metadata"]["uid"], newer["data"])
    desk.cluster.api.patch(desk.path(), {"spec": {"podLabels": {"team": "b"}}})
    assert eventually(lambda: newer["metadata"]["name"] not in desk.deployments())
    assert eventually(lambda: desk.get()["status"].get("ready") == "2/2")
    desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=0")
    assert eventually(lambda: desk.pods() == [])
    assert desk.says("Ready", "True", "Stopped")
