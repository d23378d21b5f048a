import json

import pytest
import yaml

from plimsoll.api.config import OperatorConfig
from plimsoll.api.problems import SpecError
from plimsoll.facts.learned import Learned, Residual, learned
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.observe import observe
from plimsoll.facts.snapshot import read_snapshot, take_snapshot, write_snapshot
from tests.facts.cluster import H100, claim, cpu_node, dra_gpu, node, pod, resource_slice

CONFIG = OperatorConfig.model_validate(
    {
        "nodeClasses": [
            {"name": "h", "gpuProduct": "H100", "gpusPerNode": 8, "maxNodes": 4, "labels": {"class": "h"}}
        ],
        "prices": {"gpuHour": [{"product": "L4", "perHour": "0.7"}]},
    }
)


def lessons() -> Learned:
    key = LearnedKey(model="abc", gpu="H100-SXM-80GB", engine="vllm-0.33.0", flags="tp1")
    return learned([Residual(key=key, term="activation", bytes=5, half_width=2, starts=3)])


def secretive(item):
    """As a cluster gives it: with what must never be written down."""
    item["metadata"]["annotations"] = {"kubectl.kubernetes.io/last-applied-configuration": "hush"}
    item["metadata"]["managedFields"] = [{"manager": "hush"}]
    item["status"]["addresses"] = [{"type": "InternalIP", "address": "10.9.8.7"}]
    for container in item["spec"].get("containers", ()):
        container |= {"image": "registry.example.com/hush", "env": [{"name": "TOKEN", "value": "hush"}]}
    return item


NODES = [
    secretive(node("n2", {**H100, "class": "h"}, unschedulable=True)),
    secretive(
        node("n1", {**H100, "nvidia.com/gpu.memory": "65536"}, taints=[{"key": "k", "effect": "NoSchedule"}])
    ),
    secretive(node("n3", devices={})),
    secretive(node("n4", {"nvidia.com/gpu.product": "NVIDIA-H900"})),
    cpu_node("ünï"),
]
PODS = [
    secretive(pod("b", deployment="chat")),
    secretive(pod("a", requests={"cpu": "250m", "memory": "1Gi", "ephemeral-storage": "30Gi"})),
    secretive(pod("done", phase="Succeeded")),
    pod("claimer", on="n3", requests={}, deployment="code"),
]
SLICES = [
    resource_slice([dra_gpu("gpu-0"), dra_gpu("gpu-1")], on="n3"),
    resource_slice([], driver="net.example.com"),
]
CLAIMS = [claim("gpu-0", on="n3", pods=("claimer",)), {"metadata": {"name": "waiting", "namespace": "team"}}]
DEPLOYMENT = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "LLMDeployment",
    "metadata": {"name": "chat", "namespace": "team", "managedFields": ["hush"], "generation": 2},
    "spec": {"model": {"source": "hf://org/name"}},
}


def taken(order=1):
    return take_snapshot(
        NODES[::order],
        PODS[::order],
        slices=SLICES[::order],
        claims=CLAIMS[::order],
        config=CONFIG,
        learned=lessons(),
        deployments=[DEPLOYMENT],
        plans={"team/chat": {"schema": 1, "sets": []}},
        sets=[{"name": "chat-abc", "replicas": 2}],
        models=[{"source": "pvc://m"}],
        beside={"team/chat": {"replan": "1"}},
        served=frozenset({("gateway.networking.k8s.io", "HTTPRoute")}),
    )


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_a_snapshot_gives_the_inventory_of_the_cluster_it_was_taken_of(form):
    read = read_snapshot(write_snapshot(taken(), form))
    live = observe(NODES, PODS, SLICES, CONFIG, claims=CLAIMS)
    assert read.inventory() == live
    assert len(live.problems) == 1
    selectors = [{"kubernetes.io/hostname": "n1"}]
    assert read.inventory(selectors=selectors) == observe(
        NODES, PODS, SLICES, CONFIG, claims=CLAIMS, selectors=selectors
    )


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_everything_else_comes_back_as_it_was(form):
    read = read_snapshot(write_snapshot(taken(), form))
    assert read == taken()
    assert read.learned == lessons()
    assert read.config == CONFIG
    assert read.plans == {"team/chat": {"schema": 1, "sets": []}}
    assert read.deployments[0]["metadata"] == {"name": "chat", "namespace": "team", "generation": 2}


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_equal_clusters_give_equal_bytes_and_reading_then_writing_keeps_them(form):
    text = write_snapshot(taken(), form)
    assert write_snapshot(taken(-1), form) == text
    assert write_snapshot(read_snapshot(text), form) == text


def test_images_environment_addresses_and_annotations_stay_in_the_cluster():
    text = write_snapshot(taken())
    assert "hush" not in text
    assert "10.9.8.7" not in text
    assert "done" not in text
    assert "net.example.com" not in text


def test_an_empty_cluster_is_a_snapshot_too():
    empty = read_snapshot(write_snapshot(take_snapshot([], [])))
    assert empty.inventory() == observe([], [])
    assert empty.served is None
    bare = read_snapshot(write_snapshot(take_snapshot([], [], served=frozenset())))
    assert bare.served == frozenset()
    unseen = read_snapshot(write_snapshot(take_snapshot([], None)))
    assert unseen.inventory().free_is_assumed


@pytest.mark.parametrize("write", [json.dumps, yaml.safe_dump], ids=["json", "yaml"])
def test_the_output_of_kubectl_get_nodes_is_enough_and_free_is_said_to_be_assumed(write):
    items = [{"apiVersion": "v1", "kind": "Node", **item} for item in NODES]
    text = write({"apiVersion": "v1", "kind": "List", "items": items, "metadata": {"resourceVersion": ""}})
    inventory = read_snapshot(text).inventory()
    assert inventory == observe(NODES)
    assert inventory.free_is_assumed


def test_pods_in_the_list_make_free_known():
    items = [{"kind": "Node", **node()}, {"kind": "Pod", **pod()}]
    inventory = read_snapshot(json.dumps({"kind": "List", "items": items})).inventory()
    assert inventory == observe([node()], [pod()])
    assert not inventory.free_is_assumed


@pytest.mark.parametrize(
    "document",
    [{"kind": "Node", **node()}, {"kind": "NodeList", "items": [node()]}],
    ids=["one node", "the API server's own list"],
)
def test_other_forms_of_nodes_are_read_too(document):
    assert read_snapshot(json.dumps(document)).inventory() == observe([node()])


SNAPSHOT = {"apiVersion": "plimsoll.dev/v1alpha1", "kind": "Snapshot"}


@pytest.mark.parametrize(
    ("document", "field", "says"),
    [
        ("", "", "Snapshot"),
        ("just words", "", "Snapshot"),
        ([], "", "Snapshot"),
        ({}, "kind", "Snapshot"),
        ({"kind": "Deployment"}, "kind", "Snapshot"),
        ({"kind": "List", "items": [{"kind": "Secret"}]}, "items[0].kind", "Node"),
        ({"kind": "List", "items": [{"kind": "Pod", **pod("p")}]}, "items", "no Node among 1 of kind Pod"),
        (
            {"kind": "PodList", "items": [{"metadata": {"name": "p"}}] * 2},
            "items",
            "no Node among 2 of kind Pod",
        ),
        ({"kind": "List", "items": ["n1"]}, "items[0]", "object"),
        ({"kind": "List", "items": [{"kind": "Node"}]}, "nodes[0].metadata.name", "text"),
        ({"kind": "Node", "metadata": {"name": ["x"]}}, "nodes[0].metadata.name", "text"),
        (
            {"kind": "Node", "metadata": {"name": "x"}, "status": {"allocatable": 8}},
            "nodes[0].status.allocatable",
            "object",
        ),
        (
            {"kind": "Node", "metadata": {"name": "x"}, "spec": {"taints": [1]}},
            "nodes[0].spec.taints",
            "list of objects",
        ),
        ({**SNAPSHOT, "apiVersion": "plimsoll.dev/v2"}, "apiVersion", "v1alpha1"),
        ({"kind": ["List"]}, "kind", "Snapshot"),
        ({"kind": "List", "items": [{"kind": {"x": 1}}]}, "items[0].kind", "Node"),
        (
            {"kind": "Node", "metadata": {"name": "x"}, "spec": {"taints": [{"key": ["x"]}]}},
            "nodes[0].spec.taints",
            "texts as key",
        ),
        ({**SNAPSHOT, "node": []}, "node", "nodes"),
        ({**SNAPSHOT, "nodes": 3}, "nodes", "list"),
        ({**SNAPSHOT, "nodes": ["x"]}, "nodes[0]", "object"),
        ({**SNAPSHOT, "plans": ["x"]}, "plans", "object"),
        ({**SNAPSHOT, "learned": {"schema": 9}}, "learned", "schema"),
        (
            {**SNAPSHOT, "config": {"nodeClasses": [{"name": "x"}]}},
            "config.nodeClasses[0].maxNodes",
            "must be set",
        ),
    ],
)
def test_a_file_that_is_none_of_these_names_the_field_and_what_would_be_right(document, field, says):
    with pytest.raises(SpecError) as raised:
        read_snapshot(document if isinstance(document, str) else json.dumps(document))
    (problem,) = raised.value.problems
    assert problem.field == field
    assert says in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        "{" * 100_000,
        "- " * 100_000,
        "\n".join(" " * i + "a:" for i in range(3000)),
        "a: &a [*a]",
        "!!python/object/apply:os.system [true]",
        "a: b: c",
        "\x00",
        b"\xff\xfe",
        "{" + '"a":' * 100_000,
        "kind: Node\nmetadata: &m {name: x, labels: *m}",
        "kind: Snapshot\napiVersion: 2026-01-01",
        "\n".join(
            ["a0: &a0 [x, x]", *(f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 60)), "kind: *a59"]
        ),
        "a0: &a0 {x: 1}\n"
        + "\n".join(f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 9)}]}}" for i in range(1, 30)),
        "kind: Node\nmetadata: {name: x, labels: {a: [1]}}",
        '{"kind": "Node", "metadata": {"name": "x"}, "status": {"allocatable": {"cpu": []}}}',
        "kind: Node\nmetadata: {name: x}\nstatus: {capacity: 2026-99-99}",
    ],
)
def test_hostile_text_is_a_problem_and_no_crash(text):
    with pytest.raises(SpecError):
        read_snapshot(text).inventory()


@pytest.mark.parametrize(
    "value", ["no", "1e3", "0x1F", "~", "2026-01-01", "12:30:45", "ünï✓", "'", '"', ": ", "#", ""]
)
def test_label_values_that_yaml_could_take_for_something_else_stay_text(value):
    odd = take_snapshot([node(labels={**H100, "odd": value})], [])
    assert read_snapshot(write_snapshot(odd)) == odd
    (pool,) = odd.inventory().pools
    assert pool.labels["odd"] == value


def test_a_list_of_nodes_may_share_parts_by_aliases():
    text = yaml.safe_dump(
        {"kind": "List", "items": [{"kind": "Node", **item} for item in (NODES[0], NODES[0])]}
    )
    assert "*id001" in text
    assert read_snapshot(text).inventory() == observe([NODES[0]])


def test_parts_of_a_slice_or_claim_that_are_no_texts_are_names_all_the_same():
    listed = {
        "kind": "ResourceSlice",
        "metadata": {"name": "s"},
        "spec": {
            "driver": "gpu.nvidia.com",
            "nodeName": "n1",
            "pool": {"name": ["n1"]},
            "devices": [{"name": {"x": 1}}],
        },
    }
    given = {
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "status": {"allocation": {"devices": {"results": [{"device": ["x"], "pool": {}, "driver": 1}]}}},
    }
    items = [{"kind": "Node", **node("n1", {}, {})}, listed, given]
    (problem,) = read_snapshot(json.dumps({"kind": "List", "items": items})).inventory().problems
    assert "productName" in problem.message
