"""Resources whose texts try to be more than texts, beside resources of others: they are refused or told, and nobody else notices.

What becomes of each text in what is rendered is tried without a cluster, for all places and all classes. Here it is tried what an
operator makes of all of them at once: whether it goes on with its work, and whether what it says about itself can be read.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from cluster import Cluster
from cluster.api import ApiError, Object
from cluster.metrics import promtool
from common import LONG_SECONDS, PATIENCE_SECONDS, eventually
from plimsoll import names
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from tests.render.hostile import MARK, NESTED, PAYLOADS, text_at, texts, with_text
from tests.render.hostile import Path as Step
from turns.running import SMALL, Desk, Operator

RENDERED: Final[dict[str, Any]] = {
    "engine": {"env": [{"name": "A_VARIABLE", "value": MARK}]},
    "chatTemplate": {"inline": MARK},
    "networking": {
        "service": {"labels": {"l": MARK}, "annotations": {"a": MARK}},
        "ingress": {"hosts": ["chat.example.com"], "path": f"/{MARK}", "annotations": {"a": MARK}},
    },
    "topology": {"tolerations": [{"key": MARK, "value": MARK}]},
    "podLabels": {"l": MARK},
    "podAnnotations": {"a": MARK},
}  # fmt: skip
"""Texts that come to stand in the children of a resource."""
JUDGED: Final[dict[str, Any]] = {
    "model": {"source": SMALL, "servedNames": [MARK], "revision": MARK},
    "engine": {"extraArgs": [MARK], "attentionBackend": MARK},
    "podPatches": [{"op": "add", "path": "/metadata/annotations/patched", "value": f'"{MARK}"'}],
    "toolCalling": {"parser": MARK},
    "adapters": {"items": [{"name": MARK, "source": f"hf://org/{MARK}", "revision": MARK}]},
    "scheduling": {"queue": MARK, "schedulerName": MARK, "serviceAccount": MARK},
}  # fmt: skip
"""Texts about which the operator has something to say before it renders any."""
READ: Final[dict[str, dict[str, Any]]] = {
    "patched": {"podPatches": [{"op": "add", "path": "/metadata/annotations/patched", "value": MARK}]},
    "listed": {"podPatches": [{"op": "add", "path": "/spec/containers/0/env", "value": MARK}]},
    "compared": {"podPatches": [{"op": "test", "path": "/spec/containers", "value": MARK}]},
    "argued": {"engine": {"extraArgs": [f"--hf-overrides={MARK}", "--compilation-config", MARK]}},
    "described": {"model": {"source": SMALL, "architecture": {"config": MARK}}},
    "templated": {"chatTemplate": {"inline": MARK}},
}
"""Texts that are read as JSON, or as a template."""
LONGER_THAN_A_RETRY: Final = 20.0
BENIGN: Final = ("plain", "edited", "scaled")


def hostile() -> Iterator[tuple[str, Object]]:
    """By name a spec for each class of payload, in all places at once whose schema takes it; and one in all places whatever that
    says. Without replicas, so that they take nothing that their neighbours want."""
    for part, said in {"rendered": RENDERED, "judged": JUDGED}.items():
        whole = {"model": {"source": SMALL}, "replicas": 0, **said}
        benign = LLMDeploymentSpec.model_validate(whole)
        for kind, payload in PAYLOADS.items():
            taken = all_at_once = benign
            for place in texts(benign):
                if MARK in text_at(benign, place):
                    one = changed(benign, place, payload)
                    taken = changed(taken, place, payload) if is_valid(one) else taken
                    all_at_once = changed(all_at_once, place, payload)
            yield f"{part}-{kind}", taken.to_dict()
            yield f"all-{part}-{kind}", all_at_once.to_dict()
    yield from nested()


def nested() -> Iterator[tuple[str, Object]]:
    """A spec for each JSON of many levels and members in each place where it would be gone down."""
    for place, said in READ.items():
        for kind, payload in NESTED.items():
            whole = json.dumps({"model": {"source": SMALL}, "replicas": 0, **said})
            name = f"{place}-{kind.replace(' ', '-')}"
            yield name, json.loads(whole.replace(MARK, json.dumps(payload)[1:-1]))


def changed(spec: LLMDeploymentSpec, place: Step, payload: str) -> LLMDeploymentSpec:
    text = json.dumps(payload)[1:-1] if place[0] == "pod_patches" else payload
    made: LLMDeploymentSpec = with_text(spec, place, text_at(spec, place).replace(MARK, text))
    return made


def is_valid(spec: LLMDeploymentSpec) -> bool:
    return is_valid_as_said(spec.to_dict())


def is_valid_as_said(spec: Object) -> bool:
    try:
        LLMDeploymentSpec.model_validate(spec)
    except ValidationError:
        return False
    return True


def accepted(desk: Desk) -> set[str]:
    """Those that the schema lets through."""
    there: set[str] = set()
    for name, spec in hostile():
        about = {"name": name, "namespace": desk.namespace}
        body = {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": about, "spec": spec}
        try:
            desk.cluster.api.apply(desk.path(name), body)
        except ApiError as error:
            if error.status not in (400, 422):
                raise
        else:
            there.add(name)
    return there


def untold(desk: Desk, there: set[str]) -> list[str]:
    """Those of whose spec as it is nothing is said yet."""
    found = {one["metadata"]["name"]: one for one in desk.items(f"{names.API_VERSION}/{names.PLURAL}")}
    return sorted(name for name in there if not is_told(found[name]))


def is_told(resource: Object) -> bool:
    said = {
        one["type"]: one["status"]
        for one in (resource.get("status") or {}).get("conditions") or ()
        if one.get("observedGeneration") == resource["metadata"]["generation"] and one["message"]
    }
    return names.READY in said or said.get(names.STALLED) == "True"


def answers(operator: Operator, path: str) -> tuple[int, str]:
    with urllib.request.urlopen(
        f"http://127.0.0.1:{operator.port}{path}", timeout=PATIENCE_SECONDS
    ) as answer:
        return answer.status, answer.read().decode()


def test_hostile_resources_are_refused_or_told_and_their_neighbours_serve_on(
    cluster: Cluster,
    gpus: None,  # noqa: ARG001 - there before the operator looks
    namespace: str,
    tmp_path: Path,
) -> None:
    desk = Desk(cluster, namespace)
    with Operator(cluster, tmp_path, args=("--standalone", "--log-format=json")) as operator:
        for name in BENIGN:
            desk.apply(name)
        for name in BENIGN:
            assert desk.says("Ready", "True", "Serving", name, patience=LONG_SECONDS)
        before = {one["metadata"]["uid"]: label_of(one) for one in desk.pods()}
        there = accepted(desk)
        deep = {name for name, _ in nested()}
        assert len(PAYLOADS) < len(there - deep) < 3 * len(PAYLOADS), (
            "most of what is everywhere is refused, and no more"
        )
        assert {name for name, spec in nested() if is_valid_as_said(spec)} <= there
        desk.apply("scaled", replicas=2)
        desk.apply("edited", workload={"contextTokens": 8192})
        assert eventually(lambda: untold(desk, there) == [], LONG_SECONDS), untold(desk, there)
        assert eventually(lambda: desk.get("scaled")["status"].get("ready") == "2/2", LONG_SECONDS)
        assert eventually(lambda: desk.condition("Progressing", "edited")[1] == "RolledOut", LONG_SECONDS)
        for name in BENIGN:
            assert desk.says("Ready", "True", "Serving", name, patience=LONG_SECONDS)
        kept = {one["metadata"]["uid"] for one in desk.pods()}
        assert {uid for uid, name in before.items() if name != "edited"} <= kept
        rests = partial(operator.rests, LONGER_THAN_A_RETRY)
        assert eventually(rests, LONG_SECONDS), "what is refused is not sent again and again"
        assert operator.turns_failed() == 0
        assert answers(operator, "/readyz") == (200, "ok")
        assert answers(operator, "/healthz") == (200, "ok")
        said = promtool("check", "metrics", text=answers(operator, "/metrics")[1])
        assert (said.returncode, said.stdout + said.stderr) == (0, "")
        assert operator.process.poll() is None
        # What it says as it is ended, and a line that is not at its end yet, are judged elsewhere.
        lines = operator.log.read_bytes().rpartition(b"\n")[0].splitlines()
    assert lines
    assert all(isinstance(json.loads(line), dict) for line in lines), "one entry a line, whatever is in it"
    assert not any(b"Traceback" in line for line in lines)


def label_of(pod: Object) -> str:
    return str(pod["metadata"]["labels"][names.LABEL_DEPLOYMENT])
