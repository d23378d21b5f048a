"""What a pod's supervisor is told of the plan, and that it judges by it: rendered by the one, read by the other."""

import json
from dataclasses import replace

import pytest

from plimsoll.facts.gpus import Vendor, all_gpus
from plimsoll.planning.layouts.layout import Layout
from plimsoll.render.volumes import CACHES
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.gpus import Devices, Gpu
from plimsoll_runtime.preflight import Seen, misfits, need_of, see, warnings
from tests.render.building import config, engine_of, frozen, resource
from tests.render.cases import GIB, KINDS, entry

NVIDIA = [gpu for gpu in all_gpus() if gpu.vendor is Vendor.NVIDIA]
CACHE = {"writable": [CACHES]}
H100 = {"product": "H100", "capability": "9.0"}
LINKED = {"nvlink": True}
STARTS = {"startSeconds": 2158}
"""Of a group: reading the weights and all beside, and the image."""
AS_DRIVERS_SAY = ("NVIDIA-", "Tesla-")
"""Labels of NVIDIA's feature discovery are the driver's own names with dashes for spaces."""


def told_in(template):
    """Before the engine's own words begin."""
    words = engine_of(template)["args"]
    own = words[: words.index("--")] if "--" in words else []
    return json.loads(own[own.index("--plan") + 1]) if "--plan" in own else None


def words_of(chosen):
    """The plan's, in a pod as it is rendered."""
    return json.dumps(told_in(frozen(resource(), chosen=chosen).leader))


def judged(chosen, *names, total=80 * GIB, capability=None) -> list[Failure]:
    """By the supervisor, in a container that sees GPUs of these names."""
    need = need_of(json.loads(words_of(chosen)))
    gpus = tuple(Gpu(name, total, total, capability=capability) for name in names)
    return misfits(need, Seen(devices=Devices(gpus)))


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("one-gpu", {"gpus": 1, **H100, "gpuBytes": 80 * GIB, **CACHE}),
        ("claim", {"gpus": 2, **H100, "gpuBytes": 80 * GIB, **CACHE, **LINKED}),
        ("group", {"gpus": 4, **H100, "gpuBytes": 80 * GIB, **CACHE, **LINKED, **STARTS}),
        ("group-by-ray", {"gpus": 4, **H100, "gpuBytes": 80 * GIB, **CACHE, **LINKED, **STARTS}),
        ("group-in-one-fabric", {"gpus": 4, "product": "GB200", "gpuBytes": 80 * GIB, **CACHE, **STARTS}),
        ("amd", {"gpus": 1, "gpuBytes": 80 * GIB, **CACHE}),
        ("mig", {"gpus": 1, "product": "H100", **CACHE}),
        ("cpu", None),
    ],
)
def test_each_pod_s_supervisor_is_told_what_the_plan_counts_on_in_that_pod(kind, told):
    said, chosen = KINDS[kind]
    revision = frozen(resource(**said), chosen=chosen)
    assert told_in(revision.leader) == told
    assert revision.worker is None or told_in(revision.worker) == told


def test_pods_of_a_group_on_cpus_are_told_how_long_they_may_wait_for_one_another():
    group = replace(KINDS["cpu"][1], pods_per_replica=2, layout=Layout(tensor=2))
    told = told_in(frozen(resource(topology={"cpu": {}}), chosen=group).leader)
    assert list(told) == ["startSeconds"]
    assert need_of(told).start_seconds == told["startSeconds"]


@pytest.mark.parametrize(
    ("chosen", "admin"),
    [
        (entry(devices=1), {}),
        (entry(devices=2, layout=Layout(data=2)), {}),
        (entry(devices=2, gpu="L40S-48GB"), {}),
        (entry(devices=2, partition="3g.40gb"), {}),
        (entry(devices=2, vendor="amd", gpu="MI300X", resource="amd.com/gpu"), {}),
        (entry(devices=2), {"nodeClasses": [{"name": "a", "maxNodes": 1, "interconnect": "pcie", "labels": {"a": "b"}, "gpuProduct": "H100-SXM-80GB", "gpusPerNode": 8}]}),
    ],
    ids=["one rank", "ranks apart", "no such link", "parts", "another link", "an admin knows better"],
)  # fmt: skip
def test_nvlink_is_counted_on_only_where_ranks_share_layers_on_gpus_that_have_it(chosen, admin):
    told = told_in(frozen(resource(), chosen=chosen, admin=config(**admin)).leader)
    assert "nvlink" not in told


def test_gpus_without_the_links_that_the_plan_counts_on_are_a_warning_and_no_end():
    need = need_of(json.loads(words_of(entry(devices=2))))
    gpus = (Gpu("NVIDIA H100 80GB HBM3", 80 * GIB, 80 * GIB, (9, 0)),) * 2
    for linked, word in ((False, ["NoNvlink"]), (True, []), (None, [])):
        seen = Seen(devices=Devices(gpus, nvlink=linked))
        assert [one.word for one in warnings(need, seen)] == word
        assert misfits(need, seen) == []


@pytest.mark.parametrize("gpu", NVIDIA, ids=lambda gpu: gpu.name)
def test_every_product_passes_by_the_names_that_its_driver_says(gpu):
    chosen = entry(gpu=gpu.name)
    for label in (alias for alias in gpu.aliases if alias.startswith(AS_DRIVERS_SAY)):
        for said in (label, label.replace("-", " ")):
            assert judged(chosen, said) == []


@pytest.mark.parametrize(
    ("planned", "names", "total", "word"),
    [
        ("H100-SXM-80GB", ["NVIDIA L40S"], 80 * GIB, "WrongGpu"),
        ("A10-24GB", ["NVIDIA A100-SXM4-80GB"], 80 * GIB, "WrongGpu"),
        ("A100-SXM-80GB", ["NVIDIA A100-SXM4-40GB"], 40 * GIB, "WrongGpu"),
        ("H100-SXM-80GB", [], 80 * GIB, "TooFewGpus"),
    ],
)
def test_what_the_plan_does_not_count_on_ends_the_start_with_a_word(planned, names, total, word):
    assert judged(entry(gpu=planned), *names, total=total)[0].word == word


@pytest.mark.parametrize("gpu", NVIDIA, ids=lambda gpu: gpu.name)
def test_a_product_whose_driver_shows_less_memory_than_the_catalogue_passes_and_a_smaller_one_does_not(gpu):
    """Error correction takes a sixteenth of what the catalogue has without it, and figures for one product differ by a thirtieth."""
    chosen = entry(gpu=gpu.name)
    chosen = replace(chosen, hardware=replace(chosen.hardware, memory_bytes=gpu.memory_bytes))
    said = words_of(chosen)
    model = json.loads(said)["product"]
    assert judged(chosen, model, total=gpu.memory_bytes * 15 // 16 * 98 // 100) == []
    smaller = [
        other.memory_bytes
        for other in NVIDIA
        if other.memory_bytes < 0.95 * gpu.memory_bytes
        and json.loads(words_of(entry(gpu=other.name)))["product"] == model
    ]
    for total in smaller:
        assert [one.word for one in judged(chosen, model, total=total)] == ["WrongGpu"]


def test_an_older_generation_of_the_same_number_ends_the_start_with_a_word():
    seen = judged(entry(gpu="RTX-PRO-6000"), "NVIDIA RTX 6000 Ada Generation", capability=(8, 9))
    assert [one.word for one in seen] == ["GpuTooOld"]
    assert judged(entry(gpu="RTX-6000-Ada"), "NVIDIA RTX 6000 Ada Generation", capability=(8, 9)) == []


def test_fewer_gpus_than_planned_end_the_start_with_a_word():
    assert judged(entry(devices=4), "NVIDIA H100 80GB HBM3")[0].word == "TooFewGpus"


def test_a_pod_whose_gpus_nobody_can_ask_for_passes():
    assert misfits(need_of(json.loads(words_of(entry(devices=8)))), Seen()) == []


def test_a_share_of_a_device_is_not_held_to_the_memory_of_a_whole_one():
    chosen = entry()
    shared = replace(chosen, hardware=replace(chosen.hardware, sharing=4))
    assert judged(shared, "NVIDIA H100 80GB HBM3", total=20 * GIB) == []


@pytest.mark.parametrize(
    ("storage", "patches", "told"),
    [
        ({}, [], [CACHES]),
        ({"weights": {"claim": {"name": "c"}}}, [], [CACHES]),
        ({"weights": {"claim": {"name": "c", "readOnly": True}}}, [], [CACHES]),
        ({"cache": {"claim": {"name": "c", "readOnly": True}}}, [], None),
        ({}, [{"op": "remove", "path": "/spec/containers/0/volumeMounts"}], None),
    ],
)
def test_a_cache_that_must_be_written_is_named_unless_it_is_said_to_be_read_only(storage, patches, told):
    admin = config(trust={"podPatches": {"allow": ["/spec/*"]}})
    revision = frozen(resource(storage=storage, podPatches=patches), chosen=entry(), admin=admin)
    assert told_in(revision.leader).get("writable") == told


def test_a_cache_that_cannot_be_written_ends_the_start_with_a_word(tmp_path):
    (tmp_path / "file").touch()
    need = need_of({"writable": [str(tmp_path / "file" / "cache")]})
    assert [one.word for one in misfits(need, see(need, None))] == ["NotWritable"]
