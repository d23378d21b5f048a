"""From an entry of the plan to objects: what is frozen, what is counted, who is told what."""

from dataclasses import replace
from typing import Any, Final

import pytest

from plimsoll import names
from plimsoll.api.problems import SpecError
from plimsoll.facts import reduced
from plimsoll.facts.engines import engine_facts
from plimsoll.facts.model import Certainty
from plimsoll.facts.models import lookup
from plimsoll.planning.interval import Interval
from plimsoll.planning.layouts.layout import Layout
from plimsoll.planning.memory.ledger import Term
from plimsoll.render.revision import Revision, RevisionUnreadable, Workload
from plimsoll.render.sets import freeze, owner_of, set_name, workload
from tests.render.building import (
    UNSUPERVISED,
    bodies,
    config,
    engine_of,
    engine_words,
    frozen,
    of_kind,
    on_set,
    only,
    plain,
    resource,
    templates,
    variables,
)
from tests.render.cases import CPU, FABRIC, GROUP, HALVES, KINDS, RANKS, entry

FACTS = engine_facts("vllm")
OWNER = owner_of(resource())
CPU_GROUP = replace(CPU, layout=Layout(tensor=2), pods_per_replica=2)
MIXTURE = "Qwen/Qwen3-30B-A3B"


@pytest.mark.parametrize("kind", KINDS)
def test_a_revision_is_read_back_as_it_was_written(kind):
    said, chosen = KINDS[kind]
    admin = config(trust={"podPatches": {"allow": ["*"]}})
    revision = frozen(resource(**said), chosen=chosen, admin=admin)
    again = Revision.read(plain(revision.manifest(OWNER).body))
    assert again == revision
    assert workload(again, OWNER, 3) == workload(revision, OWNER, 3)


def test_who_may_replace_an_image_stands_beside_what_nobody_may_change():
    """A release that knows nothing of it writes the same data as it finds, and may be gone back to."""
    admin = config(
        engines={"versions": [{"version": FACTS.version, "image": "mine/vllm:1"}], "upgrade": "operator"}
    )
    revision = frozen(resource(), admin=admin)
    assert revision.admins_image == "mine/vllm:1"
    assert revision.to_data() == replace(revision, admins_image="").to_data()
    assert Revision.read(plain(revision.manifest(OWNER, failed="it never started").body)) == revision


def test_a_set_of_a_newer_release_is_read_and_given_back_as_that_wrote_it():
    """After a rollback it still serves: it is scaled and removed as any other, and its data cannot be changed."""
    revision = frozen(resource(), chosen=entry())
    body = plain(revision.manifest(OWNER).body)
    data = body["data"]
    data["newer"] = {"said": 2.0}
    data["entry"]["newer"] = data["entry"]["settings"]["newer"] = True
    again = Revision.read(body)
    assert again == revision
    assert again.to_data() == data
    assert workload(again, OWNER, 3) == workload(revision, OWNER, 3)
    assert again.manifest(OWNER, failed="it died").body["data"] == data


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"data": None},
        {"data": {"digest": 7}},
        {"metadata": {"name": "x"}, "data": {"entry": {}, "digest": "d"}},
        {"data": {**frozen(resource(), chosen=entry()).to_data(), "workload": "DaemonSet"}},
        {"data": {**frozen(resource(), chosen=entry()).to_data(), "entry": {"digest": "d"}}},
    ],
)
def test_what_is_no_set_of_ours_is_said_and_not_guessed(body):
    with pytest.raises(RevisionUnreadable, match="no serving set that can be read"):
        Revision.read(body)


def test_a_set_is_named_before_it_is_frozen_and_keeps_its_name():
    asked = resource()
    name = set_name(asked, entry(), facts=FACTS, config=config(), there={})
    assert (
        name
        == frozen(asked, chosen=entry()).name
        == names.set_name("chat", frozen(asked, chosen=entry()).digest)
    )


@pytest.mark.parametrize("replicas", [0, 1, 7])
def test_replicas_of_one_pod_are_a_number_of_a_deployment(replicas):
    objects = workload(frozen(resource(), chosen=entry()), OWNER, replicas)
    assert [one.ref.kind for one in objects] == ["Deployment"]
    assert only(objects, "Deployment")["spec"]["replicas"] == replicas


def test_why_a_set_was_given_up_stands_on_its_revision_and_changes_no_data():
    revision = frozen(resource(), chosen=entry())
    given_up = revision.manifest(OWNER, failed="out of memory")
    assert given_up.body["metadata"]["annotations"][names.ANNOTATION_FAILED] == "out of memory"
    assert given_up.body["data"] == revision.manifest(OWNER).body["data"]


def test_a_replica_over_nodes_is_a_leader_and_its_workers_who_know_one_another():
    leader, workers = of_kind(on_set(resource(), GROUP), "StatefulSet")
    assert leader["metadata"]["name"] + "-w" == workers["metadata"]["name"]
    assert (leader["spec"]["replicas"], workers["spec"]["replicas"]) == (1, 1)
    assert workers["spec"]["ordinals"] == {"start": 1}
    first, other = leader["spec"]["template"], workers["spec"]["template"]
    assert variables(first)["PLIMSOLL_RANK"] == "0"
    assert (
        variables(other)["PLIMSOLL_RANK"]["fieldRef"]["fieldPath"] == f"metadata.labels['{names.LABEL_RANK}']"
    )
    address = f"{leader['metadata']['name'].rpartition('-')[0]}-$(PLIMSOLL_GROUP)-0.chat-headless.team-a.svc"
    assert variables(first)["PLIMSOLL_LEADER"] == variables(other)["PLIMSOLL_LEADER"] == address
    assert "--headless" in engine_of(other)["args"]
    assert "--headless" not in engine_of(first)["args"]
    assert "readinessProbe" in engine_of(first)
    assert not {"readinessProbe", "startupProbe", "livenessProbe"} & set(engine_of(other))
    assert [port["name"] for port in engine_of(other)["ports"]] == ["runtime"]


def test_a_variable_is_expanded_only_after_the_one_it_is_made_of():
    order = [one["name"] for one in engine_of(frozen(resource(), chosen=GROUP).leader)["env"]]
    assert order.index("PLIMSOLL_GROUP") < order.index("PLIMSOLL_LEADER")


def test_a_user_s_variable_cannot_stand_for_one_of_ours():
    said: dict[str, Any] = {
        "engine": {"env": [{"name": "PLIMSOLL_RANK", "value": "7"}, {"name": "VLLM_HOST_IP", "value": "x"}]}
    }
    found = engine_of(frozen(resource(**said), chosen=GROUP).leader)["env"]
    assert [one.get("value") for one in found if one["name"] == "PLIMSOLL_RANK"] == ["0"]
    assert ["valueFrom" in one for one in found if one["name"] == "VLLM_HOST_IP"] == [True]


def test_groups_are_made_by_their_numbers():
    objects = workload(frozen(resource(), chosen=GROUP), OWNER, 2, (5, 2))
    made = {one.ref.name.removeprefix(frozen(resource(), chosen=GROUP).name) for one in objects}
    assert made == {"-2", "-2-w", "-5", "-5-w"}
    assert {one["metadata"]["labels"][names.LABEL_GROUP] for one in bodies(objects)} == {"2", "5"}


def test_selectors_of_all_workloads_are_disjoint_and_hold_for_their_own_pods():
    objects = [
        *workload(frozen(resource(), chosen=GROUP), OWNER, 3),
        *workload(frozen(resource(), chosen=replace(entry(), digest="f" * 16)), OWNER, 3),
    ]
    pairs = [(one.body["spec"]["selector"]["matchLabels"], one.body["spec"]["template"]["metadata"]["labels"]) for one in objects]  # fmt: skip
    for number, (selector, _) in enumerate(pairs):
        holds = [selector.items() <= labels.items() for _, labels in pairs]
        assert holds == [place == number for place in range(len(pairs))]


@pytest.mark.parametrize(
    ("chosen", "mode", "flag", "objects"),
    [
        (RANKS, "external", "--data-parallel-external-lb", 1),
        (RANKS, "hybrid", "--data-parallel-external-lb", 1),
        (HALVES, "hybrid", "--data-parallel-hybrid-lb", 1),
        (HALVES, "external", "--data-parallel-hybrid-lb", 1),
        (HALVES, "internal", None, 2),
        (entry(devices=8, layout=Layout(data=8, expert_parallel=True)), "external", None, 1),
        (
            entry(pods=4, devices=2, layout=Layout(tensor=4, data=2, expert_parallel=True)),
            "external",
            None,
            2,
        ),
    ],
)
def test_data_ranks_are_balanced_by_the_service_where_pods_hold_whole_ranks(chosen, mode, flag, objects):
    made = on_set(resource(MIXTURE, topology={"dataMode": mode}), replace(chosen, replicas=1))
    found = templates(made)
    assert len(found) == objects
    words = [set(engine_of(one)["args"]) for one in found]
    modes = {word for one in words for word in one if word.endswith("-lb")}
    assert modes == ({flag} if flag else set())
    leads = [one["metadata"]["labels"][names.LABEL_LEADER] for one in found]
    assert leads == ["true", "false"][:objects]


def test_data_ranks_of_a_dense_model_are_never_behind_the_service():
    made = on_set(resource(topology={"dataMode": "external"}), replace(RANKS, layout=Layout(data=2)))
    assert not [word for one in templates(made) for word in engine_of(one)["args"] if word.endswith("-lb")]


def test_a_leaderworkerset_is_made_where_it_is_asked_for_and_told_by_its_own_variables():
    made = on_set(resource(topology={"groups": "LeaderWorkerSet"}), replace(GROUP, replicas=3))
    body = only(made, "LeaderWorkerSet")
    assert (body["spec"]["replicas"], body["spec"]["leaderWorkerTemplate"]["size"]) == (3, 2)
    for template in templates(made):
        words = engine_of(template)["args"]
        assert words[words.index("--node-rank") + 1] == "$(LWS_WORKER_INDEX)"
        assert words[words.index("--master-addr") + 1] == "$(LWS_LEADER_ADDRESS)"
    assert (
        frozen(resource(topology={"groups": "LeaderWorkerSet"}), chosen=entry()).workload
        is Workload.DEPLOYMENT
    )


@pytest.mark.parametrize(("admin", "policy"), [(None, "None"), (UNSUPERVISED, "RecreateGroupOnPodRestart")])
@pytest.mark.parametrize("executor", ["mp", "ray"])
def test_pods_of_a_leaderworkerset_stay_where_supervisors_bring_their_group_up_again(admin, policy, executor):
    said = resource(topology={"groups": "LeaderWorkerSet", "executor": executor})
    body = only(on_set(said, GROUP, admin=admin), "LeaderWorkerSet")
    assert body["spec"]["leaderWorkerTemplate"]["restartPolicy"] == policy


def test_a_leaderworkerset_keeps_the_policy_for_restarts_that_it_was_born_with():
    """The policy counts among what makes a LeaderWorkerSet's pods new, and older releases wrote none down."""
    born = frozen(resource(topology={"groups": "LeaderWorkerSet"}), chosen=GROUP)
    written = plain(born.manifest(OWNER).body)
    assert Revision.read(written) == born
    assert Revision.read(reduced.revision(written)) == born
    assert born.to_data() == replace(born, group_restarts="RecreateGroupOnPodRestart").to_data()
    del written["metadata"]["annotations"][names.ANNOTATION_GROUP_RESTARTS]
    older = Revision.read(written)
    assert (older.name, older.digest) == (born.name, born.digest)
    (made,) = workload(older, OWNER, 1)
    assert made.body["spec"]["leaderWorkerTemplate"]["restartPolicy"] == "RecreateGroupOnPodRestart"
    assert names.ANNOTATION_GROUP_RESTARTS not in str(older.manifest(OWNER).body)


def test_with_ray_the_leader_starts_the_cluster_that_workers_join():
    leader, workers = templates(on_set(resource(topology={"executor": "ray"}), GROUP))
    assert "--nnodes" not in engine_of(leader)["args"]
    assert engine_words(workers)[:2] == ["ray", "start"]
    assert engine_words(workers)[-1] == "--address=$(PLIMSOLL_LEADER):6379"
    head = engine_words(leader)[: engine_words(leader).index("--then")]
    for words in (head, engine_words(workers)):  # an engine asks Ray for the node of this very address
        assert "--node-ip-address=$(VLLM_HOST_IP)" in words
    for each in (leader, workers):
        own = engine_of(each)["args"]
        place = own.index("--member")
        assert own[place : place + 4] == ["--member", "$(PLIMSOLL_RANK)", "2", "$(PLIMSOLL_LEADER)"]
        assert place < own.index("--")


def test_tensor_ranks_in_several_pods_share_one_nvlink_domain_and_other_groups_one_zone_if_they_can():
    for chosen, key, rule in (
        (FABRIC, "nvidia.com/gpu.clique", "requiredDuringSchedulingIgnoredDuringExecution"),
        (GROUP, "topology.kubernetes.io/zone", "preferredDuringSchedulingIgnoredDuringExecution"),
        # Hosts have no such domain: a pod that asked for one would wait for ever.
        (CPU_GROUP, "topology.kubernetes.io/zone", "preferredDuringSchedulingIgnoredDuringExecution"),
    ):
        (term,) = frozen(resource(), chosen=chosen).leader["spec"]["affinity"]["podAffinity"][rule]
        assert term.get("podAffinityTerm", term)["topologyKey"] == key


def test_cores_and_memory_of_a_replica_on_cpus_are_its_own():
    pod = frozen(resource(topology={"cpu": {}}), chosen=CPU).leader
    asked = engine_of(pod)["resources"]
    assert asked["limits"] == {key: asked["requests"][key] for key in ("cpu", "memory")}
    assert variables(pod)["OMP_NUM_THREADS"] == "3"
    assert variables(pod)["VLLM_CPU_KVCACHE_SPACE"] == "4"


def test_rdma_locks_memory_only_by_the_admin_s_word():
    asked, allowed = resource(topology={"interconnect": "rdma"}), config(trust={"rdma": True})
    for admin, chosen, added in (
        (allowed, GROUP, ["IPC_LOCK"]),
        (config(), GROUP, None),
        (allowed, entry(), None),
    ):
        engine = engine_of(frozen(asked, chosen=chosen, admin=admin).leader)
        assert engine["securityContext"]["capabilities"].get("add") == added


def test_what_could_not_be_said_to_the_engine_travels_with_the_set():
    revision = frozen(resource(), chosen=entry(watermark_permille=5), version="0.20.2")
    assert revision.unsaid == ("--watermark 0.005: vllm 0.20.2 has no such flag",)


def resolved(source):
    found = lookup(source)
    assert found is not None
    return found


def test_replicas_load_the_commit_that_was_planned_with():
    model = replace(resolved("Qwen/Qwen3-8B"), revision="abc123")
    revision = freeze(resource(), entry(), facts=FACTS, config=config(), model=model)
    words = engine_of(revision.leader)["args"]
    assert words[words.index("--revision") + 1] == "abc123"
    assert revision.name == frozen(resource(), chosen=entry()).name


def test_replicas_that_only_read_a_claim_load_the_commit_that_is_there_unless_the_user_names_one():
    """It was put there before the hub's newest one was pushed, and pods that may not write cannot bring that."""
    newest = replace(resolved("Qwen/Qwen3-8B"), revision="abc123")
    kept = {"weights": {"claim": {"name": "kept", "readOnly": True}}}
    words = {}
    for named in (None, "v1"):
        model = {"source": "Qwen/Qwen3-8B", "revision": named}
        asked = resource(model=model, storage=kept)
        revision = freeze(asked, entry(), facts=FACTS, config=config(), model=newest)
        words[named] = engine_of(revision.leader)["args"]
    assert "hf://Qwen/Qwen3-8B" in words[None]
    assert "--revision" not in words[None]
    assert "hf://Qwen/Qwen3-8B#v1" in words["v1"]


def test_without_the_model_s_facts_its_size_follows_from_the_ledger():
    chosen = entry(devices=2)
    term = Term(name="weights", bytes=Interval.exact(8e9), formula="", inputs={}, certainty=Certainty.EXACT)
    chosen = replace(chosen, ledger=replace(chosen.ledger, terms=(term,)))
    assert freeze(resource(), chosen, facts=FACTS, config=config()).weight_bytes == 16_000_000_000


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (
            {"adapters": {"items": [{"name": "a", "source": "s3://b/a"}]}},
            r"spec.adapters.items\[0\].source: only the model",
        ),
        ({"adapters": {"items": [{"name": "a", "source": "modelscope://b/a"}]}}, "makes that hf"),
        (
            {"model": {"source": "modelscope://a/b", "tokenizer": "hf://a/b"}},
            "spec.model.tokenizer: .* makes that modelscope",
        ),
    ],
)
def test_a_source_that_no_pod_could_come_by_is_a_problem_of_the_spec(said, why):
    with pytest.raises(SpecError, match=why):
        frozen(resource(**said), chosen=entry())


LOADS: Final = {**names.STAY, names.ANNOTATION_UNTIL_READY: "true"}


@pytest.mark.parametrize(
    ("entry", "said", "borne"),
    [
        (None, {}, LOADS),
        (None, {"note": "x"}, {"note": "x", **LOADS}),
        (None, {"karpenter.sh/do-not-disrupt": "false"}, {"karpenter.sh/do-not-disrupt": "false"}),
        (GROUP, {}, names.STAY),
        (GROUP, {"karpenter.sh/do-not-disrupt": "false"}, names.STAY),
    ],
    ids=["one that loads", "beside the user's", "the user's word about it", "a group, always", "a group, whatever is said"],
)  # fmt: skip
def test_what_loads_or_belongs_to_a_group_asks_the_autoscalers_not_to_disturb_it(entry, said, borne):
    found = templates(on_set(resource(podAnnotations=said), KINDS["one-gpu"][1] if entry is None else entry))
    assert found
    assert all(one["metadata"]["annotations"] == borne for one in found)


@pytest.mark.parametrize(
    ("op", "value", "borne"),
    [
        ("add", '"true"', {"karpenter.sh/do-not-disrupt": "true"}),
        ("replace", '"false"', {"karpenter.sh/do-not-disrupt": "false"}),
        ("remove", None, {}),
        ("test", '"true"', LOADS),
    ],
)
def test_what_a_patch_says_about_being_disturbed_is_not_taken_off_a_pod_that_is_ready(op, value, borne):
    one = {"op": op, "path": "/metadata/annotations/karpenter.sh~1do-not-disrupt", "value": value}
    made = frozen(
        resource(podPatches=[{key: said for key, said in one.items() if said is not None}]),
        admin=config(trust={"podPatches": {"allow": ["*"]}}),
    )
    assert made.leader["metadata"]["annotations"] == borne


def test_pods_that_ask_to_stay_for_as_long_as_they_load_make_no_new_set():
    """So that those of a release before, which do not ask, are left to serve."""
    asks, asked = frozen(resource()), names.ANNOTATION_UNTIL_READY
    bare = plain(asks.leader)
    assert asked in bare["metadata"].pop("annotations")
    before = replace(asks, leader=bare)
    assert (before.name, before.set_labels) == (asks.name, asks.set_labels)
    kept = Revision.read(plain(before.manifest(OWNER).body))
    (template,) = templates(workload(kept, OWNER, 1))
    assert asked not in template["metadata"].get("annotations", {})
