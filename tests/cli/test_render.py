"""`plimsoll render` from end to end: the same objects as the operator's turn, or a reason in words."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from plimsoll import __version__, names
from plimsoll.api.v1alpha1 import LLMDeployment
from plimsoll.cli.render import text_of
from plimsoll.control.record import Record
from plimsoll.facts.models import lookup
from plimsoll.facts.snapshot import read_snapshot, take_snapshot, write_snapshot
from plimsoll.planning.planner import PlanFacts
from plimsoll.reconcile.decide import decide
from plimsoll.reconcile.kept import Kept
from plimsoll.reconcile.seen import Seen
from plimsoll.reconcile.token import mark_of
from plimsoll.render.revision import Revision
from plimsoll.render.routing import LEADER_WORKER_SETS, ROUTE
from tests.cli.running import plimsoll
from tests.reconcile.test_known_models import CLAIM, kept

EXAMPLES = Path(__file__).parents[2] / "examples"
FLEET = EXAMPLES / "fleet.yaml"
SAMPLES = sorted(path for path in EXAMPLES.glob("*.yaml") if path != FLEET)
CODES = {"10-too-big.yaml": 2, "09-contended.yaml": 2}
UID = "6f1c2a34-0000-4000-8000-000000000001"


def resource(**spec: Any) -> dict[str, Any]:
    body = {"model": {"source": "hf://Qwen/Qwen3-8B"}, **spec}
    metadata = {"name": "chat", "namespace": "team-a", "uid": UID, "generation": 1}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": body}


@pytest.fixture
def snapshot(tmp_path: Path):
    """A file with the example's fleet and these resources, plans and sets."""

    def write(*deployments: dict[str, Any], **more: Any) -> str:
        fleet = read_snapshot(FLEET.read_bytes())
        taken = take_snapshot(fleet.nodes, fleet.pods, config=fleet.config, deployments=deployments, **more)
        file = tmp_path / "snapshot.yaml"
        file.write_text(write_snapshot(taken))
        return str(file)

    return write


def rendered(file: str, *more: str) -> list[dict[str, Any]]:
    ran = plimsoll("render", "--snapshot", file, *more)
    assert ran.code == 0, ran.err
    return list(yaml.safe_load_all(ran.out))


def turned(file: str, body: dict[str, Any], **more: Any) -> str:
    """What the operator's turn would apply, as text."""
    taken = read_snapshot(Path(file).read_bytes())
    seen = Seen(
        deployment=LLMDeployment.observed(body),
        inventory=taken.inventory(selectors=[{}]),
        facts=PlanFacts(model=lookup("Qwen/Qwen3-8B")),
        now=1_700_000_000.0,
        config=taken.config,
        capabilities=frozenset({ROUTE, LEADER_WORKER_SETS}),
        mark=mark_of(__version__, taken.config),
        **more,
    )
    return "".join(map(text_of, decide(seen).manifests))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.name)
def test_every_example_renders_to_objects_or_says_why_not(sample: Path):
    ran = plimsoll("render", "-f", str(sample), "--snapshot", str(FLEET))
    assert ran.code == CODES.get(sample.name, 0), ran.err
    for body in yaml.safe_load_all(ran.out):
        assert {"apiVersion", "kind", "metadata"} <= set(body)
        assert "ownerReferences" not in body["metadata"]
    assert bool(ran.out) != ("nothing to render: " in ran.err)


ADAPTERS = {
    "adapters": {"runtimeLoading": True, "items": [{"name": "sql", "source": "hf://a/sql", "revision": "v2"}]}
}


@pytest.mark.parametrize(
    "spec", [{}, {"replicas": 0}, {"networking": {"gateway": {"name": "g"}}}, ADAPTERS], ids=str
)
def test_it_prints_byte_for_byte_what_a_turn_applies(snapshot, spec):
    body = resource(**spec)
    file = snapshot(body)
    ran = plimsoll("render", "--snapshot", file)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == turned(file, body)
    assert UID in ran.out


def test_what_the_engine_cannot_be_told_is_said_beside_the_objects(snapshot):
    file = snapshot(resource(engine={"version": "0.20.2", "maxQueuedRequests": 50}))
    ran = plimsoll("render", "--snapshot", file)
    assert ran.code == 0, ran.err
    assert "the engine is not told --max-num-queued-reqs 50: vllm 0.20.2 has no such flag" in ran.err


def test_a_resource_in_a_file_is_taken_for_an_edit_of_the_one_in_the_snapshot(snapshot, tmp_path: Path):
    file = snapshot(resource())
    edited = resource(networking={"service": {"port": 81}})
    edited["metadata"] = {"name": "chat", "namespace": "team-a"}
    path = tmp_path / "llm.json"
    path.write_text(json.dumps(edited))
    objects = rendered(file, "-f", str(path))
    assert {one["metadata"]["ownerReferences"][0]["uid"] for one in objects} == {UID}


def test_a_set_that_serves_is_taken_as_it_was_born_and_not_rendered_anew(snapshot):
    first = rendered(snapshot(resource()))
    revision = next(one for one in first if one["kind"] == "ControllerRevision")
    plan = next(one for one in first if one["metadata"]["name"] == "chat-plan")
    # As a release before this one made it: with another template for the same set.
    revision["data"]["leader"]["spec"]["terminationGracePeriodSeconds"] = 12345
    kept = {"team-a/chat": json.loads(plan["data"]["plan.json"])}
    again = rendered(snapshot(resource(), sets=[revision], plans=kept))
    pods = next(one for one in again if one["kind"] == "Deployment")["spec"]["template"]["spec"]
    assert pods["terminationGracePeriodSeconds"] == 12345


def test_of_a_set_in_a_snapshot_it_is_known_who_may_replace_its_image(snapshot):
    first = rendered(snapshot(resource()))
    revision = next(one for one in first if one["kind"] == "ControllerRevision")
    revision["metadata"]["annotations"] |= {names.ANNOTATION_ADMINS_IMAGE: "mine/vllm:1"}
    taken = read_snapshot(Path(snapshot(resource(), sets=[revision])).read_bytes())
    assert [Revision.read(one).admins_image for one in taken.sets] == ["mine/vllm:1"]


def test_a_revision_that_cannot_be_read_is_said_and_made_anew(snapshot):
    first = rendered(snapshot(resource()))
    revision = next(one for one in first if one["kind"] == "ControllerRevision")
    revision["data"] = {"digest": 1}
    ran = plimsoll("render", "--snapshot", snapshot(resource(), sets=[revision]))
    assert ran.code == 0
    assert "no serving set that can be read" in ran.err
    assert "it counts as absent" in ran.err


def test_an_api_that_a_cluster_may_lack_is_named_to_be_used(snapshot):
    file = snapshot(resource())
    assert "PodMonitor" not in {one["kind"] for one in rendered(file)}
    assert "PodMonitor" in {one["kind"] for one in rendered(file, "--api", "PodMonitor")}


def test_what_is_wrong_with_the_pods_ends_it_with_the_field(snapshot):
    patch = {"op": "remove", "path": "/spec/nowhere"}
    trusting = {
        "apiVersion": names.API_VERSION,
        "kind": "OperatorConfig",
        "trust": {"podPatches": {"allow": ["*"]}},
    }
    file = Path(snapshot(resource(podPatches=[patch])))
    config = file.with_name("config.yaml")
    config.write_text(json.dumps(trusting))
    ran = plimsoll("render", "--snapshot", str(file), "--config", str(config))
    assert ran.code == 3
    assert "podPatches[0] ('/spec/nowhere'): finds no 'nowhere'" in ran.err
    assert ran.out == ""


def test_a_model_that_a_pod_told_of_is_what_the_operator_planned_with(snapshot):
    body = resource(model={"source": CLAIM})
    assert plimsoll("plan", "--snapshot", snapshot(body)).code != 0
    file = snapshot(body, beside={"team-a/chat": Kept(models=kept()).beside()})
    assert plimsoll("plan", "--snapshot", file).code == 0
    objects = rendered(file)
    assert {"Deployment", "Service"} <= {one["kind"] for one in objects}


@pytest.mark.parametrize(
    ("spec", "record", "stays"),
    [
        ({"scaling": {"max": 4}}, Record(replicas=2), True),
        ({"scaling": {"max": 4}}, Record(), False),
        ({"replicas": 2}, Record(replicas=2), False),
    ],
    ids=["traffic decides", "nothing was decided", "its user decides"],
)
def test_what_was_said_of_traffic_stands_where_there_is_none_to_look_at(snapshot, spec, record, stays):
    """The plan in the cluster says why there are so many replicas, and the one that was printed gave another reason."""
    body, last = resource(**spec), "half of all requests waited in the last minute"
    plan = json.loads(planned(rendered(snapshot(body))))
    pinned = {"team-a/chat": plan | {"replicas_reason": last}}
    file = snapshot(body, plans=pinned, beside={"team-a/chat": Kept(control=record).beside()})
    assert (json.loads(planned(rendered(file)))["replicas_reason"] == last) is stays


def planned(objects: list[dict[str, Any]]) -> str:
    return str(next(one for one in objects if one["metadata"]["name"] == "chat-plan")["data"][names.PLAN_KEY])
