"""The supervisor around an engine's container: brought to it or in its image, and in nobody's way."""

import json
from typing import Final

import pytest

from plimsoll import __version__
from plimsoll.api.problems import SpecError
from plimsoll.facts.engines import engine_facts
from plimsoll.render.revision import Revision
from plimsoll.render.sets import owner_of
from tests.render.building import UNSUPERVISED, config, engine_of, frozen, resource
from tests.render.cases import KINDS

PATCHED: Final = config(
    trust={"podPatches": {"allow": ["*", "/spec/initContainers*"]}, "images": ["own.example/*"]},
)
BUNDLED: Final = {
    "version": engine_facts("vllm").version,
    "image": "own.example/bundled:1",
    "supervisor": __version__,
}


def templates_of(revision):
    """The leader's, and the others' of a group."""
    return [one for one in (revision.leader, revision.worker) if one is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_under_the_supervisor_the_engine_is_told_the_very_words_that_it_is_told_without(kind):
    said, chosen = KINDS[kind]
    patches = {"podPatches": {"allow": ["/spec/hostname"]}}
    admin = config(trust=patches)
    plain_admin = config(runtime={"enabled": False}, trust=patches)
    with_it = frozen(resource(**said), chosen=chosen, admin=admin)
    without = frozen(resource(**said), chosen=chosen, admin=plain_admin)
    assert with_it.name == without.name
    for one, other in ((with_it.leader, without.leader), (with_it.worker, without.worker)):
        if one is None or other is None:
            assert one is other
            continue
        own, bare = engine_of(one), engine_of(other)
        assert own["command"] == ["python3", "-I", "-S", "/plimsoll/plimsoll_runtime.pyz"]
        assert own["args"][own["args"].index("--") + 1 :] == [*bare["command"], *bare["args"]]
        assert {port["name"]: port["containerPort"] for port in own["ports"]}["runtime"] == 8079
        assert own["image"] == bare["image"]
        assert [brought["name"] for brought in one["spec"]["initContainers"]] == ["plimsoll"]


@pytest.mark.parametrize(
    ("patch", "command", "init"),
    [
        ({"op": "replace", "path": "/spec/containers/0/command", "value": '["numactl", "vllm", "serve"]'}, ["numactl", "vllm", "serve"], []),
        ({"op": "add", "path": "/spec/initContainers", "value": '[{"name": "own", "image": "own.example/one:1"}]'}, ["vllm", "serve"], ["own"]),
        ({"op": "replace", "path": "/spec/containers/0/volumeMounts", "value": "[]"}, ["vllm", "serve"], []),
    ],
)  # fmt: skip
def test_patches_meet_the_plain_pod_and_the_supervisor_comes_around_it(patch, command, init):
    admin = config(
        registry={"runtimeImage": "own.example/plimsoll:7"},
        trust={"podPatches": {"allow": ["*", "/spec/initContainers*"]}, "images": ["own.example/*"]},
    )
    pod = frozen(resource(podPatches=[patch]), admin=admin).leader["spec"]
    own = engine_of({"spec": pod})
    assert own["command"] == ["python3", "-I", "-S", "/plimsoll/plimsoll_runtime.pyz"]
    after = own["args"][own["args"].index("--") + 1 :]
    assert after[: len(command)] == command
    assert [one["name"] for one in pod["initContainers"]] == ["plimsoll", *init]
    assert own["volumeMounts"][-1]["mountPath"] == "/plimsoll"


@pytest.mark.parametrize("kind", ["one-gpu", "group"])
def test_pods_of_an_image_that_has_this_release_s_supervisor_start_that_one_and_stay_the_same_set(kind):
    said, chosen = KINDS[kind]
    own, brought = (
        frozen(resource(**said), chosen=chosen, admin=config(engines={"versions": [entry]}))
        for entry in (BUNDLED, {**BUNDLED, "supervisor": "9.9.9"})
    )
    assert (own.name, own.digest) == (brought.name, brought.digest)
    for one, other in zip(templates_of(own), templates_of(brought), strict=True):
        assert "initContainers" not in one["spec"]
        assert "/plimsoll" not in [mount["mountPath"] for mount in engine_of(one)["volumeMounts"]]
        assert [each["name"] for each in other["spec"]["initContainers"]] == ["plimsoll"]
        for what in ("command", "args", "ports", "image"):
            assert engine_of(one)[what] == engine_of(other)[what]


def test_a_container_whose_command_a_patch_has_taken_starts_as_its_image_says():
    patch = {"op": "remove", "path": "/spec/containers/0/command"}
    pod = frozen(resource(podPatches=[patch]), admin=PATCHED).leader
    own = engine_of(pod)
    assert "command" not in own
    assert "initContainers" not in pod["spec"]
    assert [port["name"] for port in own["ports"]] == ["http"]


@pytest.mark.parametrize(
    ("path", "value", "why"),
    [
        ("/spec/volumes/-", {"name": "plimsoll", "emptyDir": {}}, "is the volume by which the supervisor comes.*found plimsoll"),
        ("/spec/initContainers", [{"name": "plimsoll", "image": "own.example/one:1"}], "is the initContainer by which.*found plimsoll"),
        ("/spec/containers/0/volumeMounts/-", {"name": "tmp", "mountPath": "/plimsoll"}, "is the mountPath by which.*found /plimsoll"),
        ("/spec/containers/0/args", [1, 2], "leaves no list of words as the engine's args"),
        ("/spec/containers/0/ports", "none", "leaves no list of objects as ports"),
    ],
)  # fmt: skip
def test_a_patch_that_takes_the_supervisor_s_place_is_a_problem_of_the_spec(path, value, why):
    patch = {"op": "add", "path": path, "value": json.dumps(value)}
    with pytest.raises(SpecError, match=why):
        frozen(resource(podPatches=[patch]), admin=PATCHED)


def test_a_set_that_is_there_keeps_its_pods_when_the_admin_turns_the_supervisor_on():
    there = frozen(resource(), admin=UNSUPERVISED)
    assert Revision.read(there.manifest(owner_of(resource())).body) == there
    assert frozen(resource()).name == there.name
