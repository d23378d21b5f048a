"""From an applied resource to replicas that serve, and what happens to them when people and machines interfere."""

from __future__ import annotations

from collections import Counter

import pytest

from common import LONG_SECONDS, eventually
from plimsoll import names
from turns.running import Desk, Operator


def test_an_applied_resource_serves_and_says_so_in_a_line(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    line = desk.cluster.kubectl("-n", desk.namespace, "get", "llm", "--no-headers").stdout.split()
    assert line[:7] == ["chat", "True", "1/1", "hf://Qwen/Qwen3-8B", "H100-SXM-80GB", "tp1", "Serving"]
    assert desk.condition("Reconciling") == desk.condition("Stalled") == ("", "")
    # Whoever works by handlers of changes leaves a finalizer and what it saw last on each resource.
    metadata = desk.get()["metadata"]
    assert not {"finalizers", "annotations"} & metadata.keys()
    assert {one.get("subresource") for one in metadata["managedFields"]} == {None, "status"}


def test_what_serves_is_left_alone_also_by_an_operator_that_starts(operator: Operator, desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    assert operator.rests()
    before = desk.children()
    writes = operator.writes()
    desk.apply()
    assert desk.children() == before
    assert desk.get()["spec"] == {"model": {"source": "hf://Qwen/Qwen3-8B"}}
    operator.restart()
    assert eventually(lambda: operator.metric("plimsoll_turns_total") > 0)
    assert (operator.writes(), desk.children()) == (0, before)
    assert writes > 0


def test_what_was_scaled_while_no_operator_ran_is_put_back_once_one_starts(
    operator: Operator, desk: Desk
) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    (name,) = desk.deployments()
    operator.stop()
    desk.cluster.kubectl("-n", desk.namespace, "scale", "deployment", name, "--replicas=0")
    assert desk.deployments() == {name: 0}
    operator.start()
    assert eventually(lambda: desk.deployments() == {name: 1})
    assert operator.rests()
    operator.restart()
    assert eventually(lambda: operator.metric("plimsoll_turns_total") > 0)
    assert operator.rests()
    assert operator.writes() == 0, "the number is nobody else's any more"


def test_it_is_scaled_by_the_scale_subresource(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    done = desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=3")
    assert done.returncode == 0, done.stderr
    assert eventually(lambda: desk.get()["status"].get("ready") == "3/3")
    scale = desk.cluster.api.get(f"{desk.path()}/scale")
    assert scale["status"]["replicas"] == 3
    assert "plimsoll.dev/deployment=chat" in scale["status"]["selector"]
    desk.cluster.kubectl("-n", desk.namespace, "scale", "llm", "chat", "--replicas=0")
    assert desk.says("Ready", "True", "Stopped")
    assert eventually(lambda: desk.pods() == [])


@pytest.mark.parametrize(
    "kind",
    ["deployment", "service", "serviceaccount", "configmap", "poddisruptionbudget", "controllerrevision"],
)
def test_a_child_that_is_deleted_comes_back(desk: Desk, kind: str) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    before = set(desk.children())
    desk.cluster.kubectl(
        "-n", desk.namespace, "delete", kind, "-l", "app.kubernetes.io/managed-by=plimsoll", "--wait=false"
    )
    assert eventually(lambda: set(desk.children()) == before and desk.says("Ready", "True", "Serving"))


def test_a_child_that_is_edited_is_put_back(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    (name,) = desk.deployments()
    n = ("-n", desk.namespace)
    desk.cluster.kubectl(*n, "scale", "deployment", name, "--replicas=4")
    assert eventually(lambda: desk.deployments() == {name: 1})
    desk.cluster.kubectl(*n, "set", "image", f"deployment/{name}", "*=evil")
    assert eventually(
        lambda: (
            "evil" not in str(desk.items("apps/v1/deployments")[0]["spec"]["template"]["spec"]["containers"])
        )
    )
    desk.cluster.kubectl(*n, "label", "service", "chat", "plimsoll.dev/deployment-")
    desk.cluster.kubectl(
        *n, "patch", "service", "chat", "--type=merge", "-p", '{"spec":{"ports":[{"port":81}]}}'
    )
    assert eventually(lambda: [one["spec"]["ports"][0]["port"] for one in desk.items("v1/services")] == [80])
    # Of the two bounds there may be but one: ours cannot be put beside somebody else's.
    other = '{"spec":{"maxUnavailable":"100%","minAvailable":null}}'
    desk.cluster.kubectl(*n, "patch", "poddisruptionbudget", "chat", "--type=merge", "-p", other)
    assert eventually(
        lambda: (
            [
                ("minAvailable" in one["spec"], "maxUnavailable" in one["spec"])
                for one in desk.items("policy/v1/poddisruptionbudgets")
            ]
            == [(True, False)]
        )
    )


def test_an_object_of_the_same_name_that_is_somebody_elses_is_not_touched(desk: Desk) -> None:
    n = ("-n", desk.namespace)
    desk.cluster.kubectl(*n, "create", "service", "clusterip", "chat", "--tcp=99:99")
    desk.apply()
    assert desk.says("Stalled", "True", "NameConflict")
    assert "Service" in desk.message("Stalled")
    assert [one["spec"]["ports"][0]["port"] for one in desk.items("v1/services")] == [99]
    desk.cluster.kubectl(*n, "delete", "service", "chat")
    assert desk.says("Ready", "True", "Serving")


def test_an_edit_of_the_model_moves_the_replicas_and_leaves_nothing_behind(desk: Desk) -> None:
    desk.apply(replicas=2)
    assert desk.says("Ready", "True", "Serving")
    (old,) = desk.deployments()
    desk.apply(replicas=2, workload={"contextTokens": 8192})
    assert desk.says("Ready", "True", "Serving")
    assert eventually(lambda: len(desk.deployments()) == 1 and old not in desk.deployments())
    assert len(desk.items("apps/v1/controllerrevisions")) == 1
    assert eventually(lambda: len(desk.pods()) == 2)


def test_a_canary_stands_at_each_of_its_steps_until_that_was_watched_for_long_enough(desk: Desk) -> None:
    def tried(hold_seconds: int) -> None:
        canary = {"percents": [25, 50], "holdSeconds": hold_seconds}
        rollout = {"strategy": "surge", "maxSurge": 1, "canary": canary}
        desk.apply(replicas=4, workload={"contextTokens": 8192}, rollout=rollout)

    def stands(new: int) -> bool:
        states = {one["state"]: (one["replicas"], one["ready"]) for one in desk.get()["status"]["sets"]}
        pods = Counter(one["metadata"]["labels"][names.LABEL_SET] == old for one in desk.pods())
        return (
            states == {"Canary": (new, new), "Draining": (4 - new, 4 - new)}
            and desk.condition("Progressing")[1] == "Canary"
            and f"{new} of {new} canary replicas serve, {4 - new} on the old set"
            in desk.message("Progressing")
            and pods == {False: new, True: 4 - new}
        )

    desk.apply(replicas=4)
    assert desk.says("Ready", "True", "Serving", patience=LONG_SECONDS)
    (whole,) = desk.items("apps/v1/deployments")
    old = whole["metadata"]["labels"][names.LABEL_SET]
    tried(hold_seconds=86400)
    assert eventually(lambda: stands(1), LONG_SECONDS), desk.get()["status"]
    tried(
        hold_seconds=45
    )  # since it stands there, and then for as long at the next one, which is long enough to be seen
    assert eventually(lambda: stands(2), LONG_SECONDS), desk.get()["status"]
    tried(hold_seconds=1)
    assert eventually(lambda: desk.condition("Progressing")[1] == "RolledOut", LONG_SECONDS)
    assert eventually(lambda: list(desk.deployments().values()) == [4], LONG_SECONDS)
    assert whole["metadata"]["name"] not in desk.deployments()


def test_a_new_set_that_dies_is_rolled_back_with_the_reason(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    (old,) = desk.deployments()
    desk.apply(podAnnotations={"e2e.plimsoll.dev/dies": "exit", "e2e.plimsoll.dev/back-off": "1s"})
    assert desk.says("Stalled", "True", "StartFailed")
    assert desk.condition("Progressing") == ("False", "RolledBack")
    assert desk.deployments()[old] == 1
    assert "ended" in desk.message("Stalled")
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    assert eventually(lambda: desk.deployments() == {old: 1})


def test_a_users_mistake_is_a_condition_and_its_correction_is_enough(desk: Desk) -> None:
    desk.apply(topology={"tensor": 3})
    assert desk.says("Stalled", "True", "InvalidSpec")
    assert "topology.tensor" in desk.message("Stalled")
    assert desk.children() == {}
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    desk.apply(topology={"tensor": 3})
    assert desk.says("Stalled", "True", "InvalidSpec")
    assert len(desk.deployments()) == 1, "what serves is not taken down by a mistake"


def test_nothing_is_left_when_it_is_deleted(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    desk.cluster.api.delete(desk.path())
    assert eventually(lambda: desk.children() == {} and desk.pods() == [])


def test_a_plan_that_is_lost_is_made_again_from_what_serves(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    before = desk.deployments()
    desk.cluster.kubectl("-n", desk.namespace, "delete", "configmap", "chat-plan")
    assert eventually(
        lambda: any(one["metadata"]["name"] == "chat-plan" for one in desk.items("v1/configmaps"))
    )
    assert desk.deployments() == before


def test_paused_freezes_everything_but_status(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    before = desk.deployments()
    desk.apply(paused=True, replicas=3)
    assert desk.says("Ready", "False", "Paused")
    assert desk.deployments() == before
    desk.apply(replicas=3)
    assert eventually(lambda: desk.get()["status"].get("ready") == "3/3")


def test_more_replicas_than_gpus_are_said_and_come_when_there_is_room(desk: Desk) -> None:
    desk.apply("first", replicas=60)
    assert eventually(
        lambda: desk.condition("Placed", "first") in (("False", "NoGPUs"), ("False", "NoFreeGPUs"))
    )
    desk.apply("second")
    assert desk.says("Placed", "False", "NoFreeGPUs", "second")
    assert eventually(lambda: "first" in desk.message("Placed", "second"))
    desk.apply("first", replicas=1)
    assert desk.says("Ready", "True", "Serving", "second")


def test_what_a_deleted_resource_left_serves_no_other_of_its_name(desk: Desk) -> None:
    desk.apply()
    assert desk.says("Ready", "True", "Serving")
    (name,) = desk.deployments()
    left = f"/apis/apps/v1/namespaces/{desk.namespace}/deployments/{name}"
    desk.cluster.api.patch(left, {"metadata": {"finalizers": ["e2e.plimsoll.dev/held"]}})
    desk.cluster.api.delete(desk.path())
    try:
        assert eventually(lambda: "deletionTimestamp" in desk.cluster.api.get(left)["metadata"])
        desk.apply()
        assert desk.says("Ready", "False", "Starting"), str(desk.get())
        assert len(desk.pods()) == 1, "the old one answers still"
        assert desk.get()["status"]["ready"] == "0/1"
    finally:
        desk.cluster.api.patch(left, {"metadata": {"finalizers": None}})
    assert desk.says("Ready", "True", "Serving")
