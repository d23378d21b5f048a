import pytest

from plimsoll import __version__
from plimsoll.api.problems import SpecError
from plimsoll.facts.engines import engine_facts
from plimsoll.render.images import image_of, mirrored
from tests.engines.sets import chosen
from tests.render.building import config, resource

LISTED = {"version": "0.33.0", "image": "mine.example/vllm:1", "gaudiImage": "mine.example/gaudi@sha256:ab"}


def image(*, vendor="nvidia", admin=None, at="0.33.0", **engine):
    spec = resource(engine=engine).spec
    return image_of(spec, chosen(vendor=vendor), engine_facts("vllm", at), admin or config())


@pytest.mark.parametrize(
    ("vendor", "name"),
    [
        ("nvidia", "docker.io/vllm/vllm-openai:v0.33.0"),
        ("amd", "docker.io/vllm/vllm-openai-rocm:v0.33.0"),
        ("cpu", "docker.io/vllm/vllm-openai-cpu:v0.33.0"),
    ],
)
def test_without_a_word_it_is_the_project_s_own_for_the_hardware(vendor, name):
    assert image(vendor=vendor).name == name


@pytest.mark.parametrize(("vendor", "field"), [("habana", "gaudiImage"), ("intel", "xpuImage")])
def test_where_none_is_published_the_problem_names_the_fields_that_would_help(vendor, field):
    with pytest.raises(SpecError, match=rf"spec.engine.image: no image of vLLM for {vendor}.*{field}"):
        image(vendor=vendor)


def test_the_admin_s_image_for_the_version_goes_before_the_published_one():
    admin = config(engines={"versions": [LISTED]})
    assert image(admin=admin).name == "mine.example/vllm:1"
    assert image(admin=admin, vendor="habana").name == "mine.example/gaudi@sha256:ab"
    assert image(admin=admin, vendor="amd").name == "docker.io/vllm/vllm-openai-rocm:v0.33.0"


def test_the_user_s_own_image_goes_before_all_and_is_taken_as_it_is_written():
    admin = config(engines={"versions": [LISTED]}, registry={"mirror": "mirror.example/x"})
    made = image(admin=admin, image="team/own:2", imagePullSecrets=["pull"])
    assert (made.name, made.own, made.pull_secrets) == ("team/own:2", True, ("pull",))


@pytest.mark.parametrize(
    ("name", "at_mirror"),
    [
        ("docker.io/vllm/vllm-openai:v1", "m.example:5000/all/vllm/vllm-openai:v1"),
        ("vllm/vllm-openai:v1", "m.example:5000/all/vllm/vllm-openai:v1"),
        ("localhost/x", "m.example:5000/all/x"),
        ("r:80/x@sha256:ab", "m.example:5000/all/x@sha256:ab"),
        ("alone:1", "m.example:5000/all/alone:1"),
    ],
)
def test_a_mirror_takes_the_place_of_the_registry_alone(name, at_mirror):
    assert mirrored(name, config(registry={"mirror": "m.example:5000/all/"}).registry) == at_mirror


def test_pull_secrets_of_both_are_given_once_each():
    admin = config(registry={"pullSecrets": ["admin", "both"]})
    assert image(admin=admin, imagePullSecrets=["both"]).pull_secrets == ("both", "admin")


@pytest.mark.parametrize(
    ("said", "within"),
    [
        ({**LISTED, "supervisor": __version__}, ["mine.example/vllm:1"]),
        ({**LISTED, "supervisor": "9.9.9"}, []),
        (LISTED, []),
    ],
    ids=["of this release", "of another", "of none"],
)
def test_a_supervisor_is_in_the_admin_s_own_image_where_it_is_of_this_release(said, within):
    admin = config(engines={"versions": [said]})
    made = [image(admin=admin), image(admin=admin, vendor="amd"), image(admin=admin, image="team/own:2")]
    assert [one.name for one in made if one.supervised] == within


@pytest.mark.parametrize(
    ("engine", "upgrade", "binding"),
    [
        ({}, "operator", "mine.example/vllm:1"),
        ({}, "manual", ""),
        ({"version": "0.33.0"}, "operator", ""),
        ({"version": "0.33.0", "upgrade": "operator"}, "manual", "mine.example/vllm:1"),
        ({"upgrade": "manual"}, "operator", ""),
        ({"image": "team/own:2"}, "operator", "team/own:2"),
    ],
)
def test_an_image_makes_another_set_only_where_its_chooser_may_move_the_deployment(engine, upgrade, binding):
    admin = config(engines={"versions": [LISTED], "upgrade": upgrade})
    assert image(admin=admin, **engine).binding == binding
