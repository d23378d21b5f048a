"""A model that only its owner's volume or Secret opens: a pod reads it once, and the plan follows what it told.

Nodes are simulated, so what a pod would leave is written into its status as a kubelet would; what it leaves is made by the
supervisor's own code.
"""

from __future__ import annotations

import json
from typing import Any, Final

from cluster.api import Object
from common import eventually
from plimsoll import names
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.model import Model, told
from turns.running import Desk, Operator

MODEL: Final = {"source": "hf://acme/mine", "tokenSecret": {"name": "hub"}}
CONFIG: Final = {
    "architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "torch_dtype": "bfloat16", "hidden_size": 1024,
    "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    "vocab_size": 151936, "max_position_embeddings": 40960, "tie_word_embeddings": True,
}  # fmt: skip


def readers(desk: Desk) -> list[Object]:
    return [one for one in desk.pods() if one["metadata"]["labels"].get(names.LABEL_ROLE) == "facts"]


def reader(desk: Desk, *, but: str = "") -> Object:
    """The pod that reads, once it runs."""

    def running() -> list[Object]:
        found = [one for one in readers(desk) if one["metadata"]["name"] != but]
        return [one for one in found if (one.get("status") or {}).get("phase") == "Running"]

    assert eventually(lambda: len(running()) == 1), readers(desk)
    return running()[0]


def kept(desk: Desk) -> dict[str, str]:
    (plan,) = [one for one in desk.items("v1/configmaps") if one["metadata"]["name"] == "chat-plan"]
    data: dict[str, str] = plan["data"]
    return data


def planned(desk: Desk) -> str:
    """Which model the plan is of."""
    return str(json.loads(kept(desk)[names.PLAN_KEY])["model_digest"])


def ends(desk: Desk, pod: Object, code: int, message: str) -> None:
    name = pod["metadata"]["name"]
    status: dict[str, Any] = {"phase": "Succeeded" if code == 0 else "Failed"}
    (container,) = pod["status"]["containerStatuses"]
    times = {"startedAt": pod["status"]["startTime"], "finishedAt": pod["status"]["startTime"]}
    ended = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "message": message, **times}
    status["containerStatuses"] = [{**container, "ready": False, "state": {"terminated": ended}}]
    desk.cluster.api.patch(f"/api/v1/namespaces/{desk.namespace}/pods/{name}/status", {"status": status})


def failure(word: str) -> str:
    return json.dumps(Failure(word, "the files are no model", "copy the model anew")._asdict())


def test_a_pod_reads_what_only_its_owner_may_and_its_answer_is_kept(desk: Desk, operator: Operator) -> None:
    desk.apply(model=MODEL, workload={"contextTokens": 8192})
    pod = reader(desk)
    assert desk.says("ModelFacts", "Unknown", "Reading")
    assert eventually(lambda: pod["metadata"]["name"] in desk.message("ModelFacts"))
    assert desk.condition("Stalled") == ("", "")
    assert desk.condition("Ready") == ("False", "Starting")
    assert desk.deployments() == {}
    ends(desk, pod, 0, told(Model(CONFIG, {})))
    assert desk.says("ModelFacts", "True", "FactsPod"), desk.get()["status"]
    assert desk.says("Ready", "True", "Serving")
    assert eventually(lambda: readers(desk) == [])
    assert json.loads(kept(desk)["models.json"])[0]["source"] == MODEL["source"]
    operator.restart()
    desk.apply(model=MODEL, workload={"contextTokens": 8192}, replicas=2)
    assert eventually(lambda: desk.get()["status"].get("ready") == "2/2")
    assert desk.condition("ModelFacts") == ("True", "FactsPod")
    assert readers(desk) == [], "what was told before is known"
    before = planned(desk)
    desk.cluster.kubectl("-n", desk.namespace, "annotate", "llm", "chat", f"{names.ANNOTATION_REPLAN}=1")
    again = reader(desk, but=pod["metadata"]["name"])
    assert planned(desk) == before
    ends(desk, again, 0, told(Model({**CONFIG, "intermediate_size": 4096}, {})))
    assert eventually(lambda: readers(desk) == [])
    assert eventually(lambda: planned(desk) != before), "another checkpoint is planned as what it is"


def test_a_mistake_is_told_with_its_remedy_and_waits_for_a_person(desk: Desk) -> None:
    desk.apply(model=MODEL)
    first = reader(desk)
    ends(desk, first, 1, failure("BadCheckpoint"))
    assert desk.says("Stalled", "True", "ModelUnreadable")
    assert desk.condition("ModelFacts") == ("False", "Unreadable")
    assert "copy the model anew" in desk.message("Stalled")
    desk.apply(model=MODEL, scaling={"min": 2})
    assert desk.says("Stalled", "True", "ModelUnreadable")
    assert [one["metadata"]["name"] for one in readers(desk)] == [first["metadata"]["name"]]
    desk.cluster.kubectl("-n", desk.namespace, "annotate", "llm", "chat", f"{names.ANNOTATION_REPLAN}=1")
    second = reader(desk, but=first["metadata"]["name"])
    assert eventually(
        lambda: [one["metadata"]["name"] for one in readers(desk)] == [second["metadata"]["name"]]
    )
    ends(desk, second, 0, told(Model(CONFIG, {})))
    assert desk.says("ModelFacts", "True", "FactsPod")
    assert desk.condition("Stalled") == ("", "")


def test_a_quota_that_is_used_up_is_waited_for_and_told(desk: Desk) -> None:
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "few"},
        "spec": {"hard": {"pods": "0"}},
    }
    desk.cluster.api.create(f"/api/v1/namespaces/{desk.namespace}/resourcequotas", quota)
    # Until its controller has counted, a quota refuses nothing in words that tell.
    where = f"/api/v1/namespaces/{desk.namespace}/resourcequotas/few"
    assert eventually(lambda: "hard" in (desk.cluster.api.get(where).get("status") or {}))
    desk.apply(model=MODEL)
    assert desk.says("ModelFacts", "Unknown", "Reading")
    assert eventually(lambda: "ResourceQuota few" in desk.message("ModelFacts"))
    assert desk.condition("Stalled") == ("", "")


def test_what_the_user_may_not_name_is_read_by_nobody_and_a_pod_goes_with_its_resource(desk: Desk) -> None:
    desk.apply(model={**MODEL, "trustRemoteCode": True})
    assert desk.says("Stalled", "True", "ModelUnreadable")
    assert readers(desk) == []
    desk.apply("other", model=MODEL)
    reader(desk)
    desk.apply("other")
    assert desk.says("Ready", "True", "Serving", "other")
    assert eventually(lambda: readers(desk) == [])
    desk.apply("third", model=MODEL, paused=True)
    assert desk.says("ModelFacts", "Unknown", "Reading", "third")
    assert "spec.paused" in desk.message("ModelFacts", "third")
    assert readers(desk) == []
    desk.apply("third", model=MODEL, paused=False)
    reader(desk)
    desk.cluster.api.delete(desk.path("third"))
    assert eventually(lambda: readers(desk) == [])
