import copy
import json

import pytest

from plimsoll.api.problems import SpecError
from plimsoll.api.v1alpha1.pods import PodPatch
from plimsoll.render.patching import OUR_LABELS, patched
from tests.render.building import config, engine_of, frozen, resource

POD = frozen(resource()).leader


def patch(op, path, value=None):
    return PodPatch.model_validate(
        {"op": op, "path": path} | ({} if value is None else {"value": json.dumps(value)})
    )


def after(*patches, admin=None):
    return patched(dict(POD), patches, admin or config())


@pytest.mark.parametrize(
    ("one", "where", "found"),
    [
        (patch("add", "/spec/hostname", "x"), lambda pod: pod["spec"]["hostname"], "x"),
        (patch("add", "/metadata/labels/a~1b~0c", "v"), lambda pod: pod["metadata"]["labels"]["a/b~c"], "v"),
        (patch("add", "/spec/volumes/-", {"name": "n"}), lambda pod: pod["spec"]["volumes"][-1], {"name": "n"}),
        (patch("add", "/spec/volumes/0", {"name": "n"}), lambda pod: pod["spec"]["volumes"][0], {"name": "n"}),
        (patch("replace", "/spec/containers/0/resources/requests/memory", "64Gi"), lambda pod: engine_of(pod)["resources"]["requests"]["memory"], "64Gi"),
        (patch("remove", "/spec/topologySpreadConstraints"), lambda pod: pod["spec"].get("topologySpreadConstraints"), None),
        (patch("remove", "/spec/containers/0/env/0"), lambda pod: len(engine_of(pod)["env"]), len(engine_of(POD)["env"]) - 1),
        (patch("test", "/spec/enableServiceLinks", value=False), lambda pod: pod, POD),
    ],
)  # fmt: skip
def test_each_operation_does_what_the_standard_says(one, where, found):
    assert where(after(one)) == found


def test_patches_are_applied_in_order_and_leave_the_given_pod_alone():
    before = copy.deepcopy(POD)
    made = after(
        patch("add", "/spec/hostname", "x"),
        patch("test", "/spec/hostname", "x"),
        patch("remove", "/spec/hostname"),
    )
    assert made == before == POD


@pytest.mark.parametrize(
    ("one", "why"),
    [
        (patch("remove", "/spec/nowhere"), "finds no 'nowhere'; there are"),
        (patch("replace", "/spec/containers/7/image", "x"), "finds no entry 7; the list has 1"),
        (patch("replace", "/spec/containers/first/name", "x"), "number of a list's entry"),
        (patch("add", "/spec/containers/00", {}), "number of a list's entry"),
        (patch("add", "/spec/containers/5", {}), "adds entry 5, but the list has 1"),
        (patch("add", "/spec/enableServiceLinks/x", 1), "finds a plain value"),
        (patch("test", "/spec/enableServiceLinks", value=True), "instead of true"),
        (patch("replace", "/spec/containers/0/image", "evil"), "changes the engine's image; use spec.engine.image"),
        (patch("add", "/spec/containers/-", {"name": "s", "image": "evil"}), "brings image evil"),
        (patch("add", "/spec/initContainers", [{"name": "s", "image": "evil"}]), "brings image evil"),
        (patch("remove", "/spec/containers/0/name"), "leaves no container engine"),
        (patch("replace", "/spec/containers", []), "leaves no container engine"),
        (patch("replace", "/spec/containers", "x"), "leaves no pod"),
        (patch("replace", "/spec/containers/0/name", "x"), "leaves no container engine"),
        *[(patch("replace", f"/metadata/labels/{key.replace('/', '~1')}", "x"), "changes label") for key in OUR_LABELS if key in POD["metadata"]["labels"]],
    ],
)  # fmt: skip
def test_a_patch_that_does_not_fit_or_goes_too_far_is_named_with_its_place(one, why):
    with pytest.raises(SpecError, match=r"spec.podPatches\[1\]") as refused:
        after(patch("test", "/spec/enableServiceLinks", value=False), one)
    assert why in str(refused.value)


@pytest.mark.parametrize(("at", "place"), [("0", 0), ("-", 1)])
@pytest.mark.parametrize("unnamed", [{}, {"name": None}, {"name": 1}, {"name": {}}])
def test_a_container_needs_a_name_once_the_last_patch_is_applied(unnamed, at, place):
    """The engine's is found by its name, and a turn failed on the way to it."""
    side, admin = {"image": "team.example/side:1"}, config(trust={"images": ["team.example/*"]})
    bare = patch("add", f"/spec/containers/{at}", {**side, **unnamed})
    with pytest.raises(SpecError, match=rf"^spec.podPatches: leave container {place} without a name"):
        after(bare, admin=admin)
    made = after(bare, patch("add", f"/spec/containers/{place}/name", "side"), admin=admin)
    assert made["spec"]["containers"][place] == {**side, "name": "side"}


BARE = {key: value for key, value in engine_of(POD).items() if key != "securityContext"}


@pytest.mark.parametrize(
    "one", [patch("replace", "/spec/containers/0", BARE), patch("add", "/spec/containers", [BARE])]
)
def test_a_protection_does_not_go_with_what_is_replaced_around_it(one):
    """No path of such a patch names the field, so that no list of the admin's could tell."""
    with pytest.raises(SpecError, match="changes securityContext, which the admin"):
        after(one, admin=config(trust={"podPatches": {"allow": ["*"]}}))
    after(one, admin=config(trust={"podPatches": {"allow": ["*", "*/securityContext*"]}}))


def test_a_container_with_an_image_that_the_admin_trusts_may_be_added():
    side = {"name": "side", "image": "team.example/side:1"}
    made = after(patch("add", "/spec/containers/-", side), admin=config(trust={"images": ["team.example/*"]}))
    assert made["spec"]["containers"][1] == side


def test_a_set_is_frozen_with_its_patches():
    asked = resource(podPatches=[{"op": "add", "path": "/spec/hostname", "value": '"x"'}])
    assert (
        frozen(asked, admin=config(trust={"podPatches": {"allow": ["/spec/hostname"]}})).leader["spec"][
            "hostname"
        ]
        == "x"
    )
