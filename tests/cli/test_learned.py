"""`plimsoll learned` against a server that answers lists: looked at, handed on, forgotten."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.facts.learned import Residual, export_learned, import_learned, learned
from plimsoll.facts.learned_rows import LearnedKey
from plimsoll.facts.learned_speed import Speed
from tests.cli.running import plimsoll
from tests.kube.api_server import Api, serving

MAPS = "/api/v1/configmaps"
GIB = 2**30


def entry(name: str, term: str = "activation", gpu: str = "H100-SXM-80GB") -> Residual:
    key = LearnedKey(model=f"digest-of-{name}", gpu=gpu, engine="vllm-0.33.0", flags="tp1-t8192-s256")
    return Residual(
        key=key, term=term, bytes=3 * GIB // 2, half_width=GIB // 4, starts=7, name=f"hf://{name}"
    )


KNOWN = learned(
    [entry("Qwen/Qwen3-32B"), entry("Qwen/Qwen3-32B", "weights"), entry("Qwen/Qwen3-0.6B", gpu="L4")]
)


def config_map(name: str, text: str, namespace: str = "plimsoll") -> dict[str, object]:
    return {
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": "9"},
        "data": {"learned.json": text},
    }


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Api]:
    with serving(tmp_path) as server:
        server.lists[MAPS] = [config_map("plimsoll-learned", export_learned(KNOWN))]
        yield server


def test_all_of_it_is_a_table(cluster: Api) -> None:
    ran = plimsoll("learned", "list")
    assert ran.code == 0, ran.err
    assert ran.out.count("hf://Qwen/Qwen3-32B") == 2
    assert "+1.50" in ran.out
    assert "0.25" in ran.out


def test_words_choose_among_it_whatever_their_case(cluster: Api) -> None:
    ran = plimsoll("learned", "list", "QWEN3-32b", "weights", "-o", "json")
    (found,) = json.loads(ran.out)
    assert (found["term"], found["bytes"], found["starts"]) == ("weights", 3 * GIB // 2, 7)
    assert "nothing of what was learned" in plimsoll("learned", "list", "mistral").err


def test_what_is_exported_is_read_again(cluster: Api) -> None:
    assert import_learned(plimsoll("learned", "export").out) == KNOWN


def test_of_several_of_that_name_the_operator_s_is_asked_for(cluster: Api) -> None:
    strange = config_map("plimsoll-learned", export_learned(learned([])), "a-tenant")
    maps = cluster.lists[MAPS]
    assert isinstance(maps, list)
    maps.insert(0, strange)
    refused = plimsoll("learned", "export")
    assert refused.code != 0
    assert "a-tenant, plimsoll; say with --namespace" in refused.err
    assert import_learned(plimsoll("learned", "export", "-n", "plimsoll").out) == KNOWN
    assert import_learned(plimsoll("learned", "export", "-n", "a-tenant").out) == learned([])


def test_a_snapshot_tells_the_same_and_holds_the_seed_as_well(cluster: Api, tmp_path: Path) -> None:
    seed = learned([entry("mistralai/Mistral-7B")])
    maps = cluster.lists[MAPS]
    assert isinstance(maps, list)
    maps.append(config_map("plimsoll-learned-seed", export_learned(seed)))
    file = tmp_path / "s.yaml"
    assert plimsoll("snapshot", "--context", "-o", str(file)).code == 0
    told = import_learned(plimsoll("learned", "export", "--snapshot", str(file)).out)
    assert set(told.residuals) == {*KNOWN.residuals, *seed.residuals}


def test_what_is_forgotten_is_taken_out_of_the_kept_object_and_nothing_else(cluster: Api) -> None:
    ran = plimsoll("learned", "forget", "qwen3-32b")
    assert ran.code == 0, ran.err
    assert "2 forgotten, 1 entry left" in ran.err
    ((path, body),) = cluster.written
    assert path == "/api/v1/namespaces/plimsoll/configmaps/plimsoll-learned"
    assert body["metadata"]["resourceVersion"] == "9"  # type: ignore[index]
    left = import_learned(body["data"]["learned.json"])  # type: ignore[index]
    assert left == learned([entry("Qwen/Qwen3-0.6B", gpu="L4")])


def test_words_that_nothing_holds_write_nothing(cluster: Api) -> None:
    assert "0 forgotten, 3 entries left" in plimsoll("learned", "forget", "mistral").err
    assert cluster.written == []


def test_whoever_wrote_meanwhile_is_not_overwritten(cluster: Api) -> None:
    cluster.write_status = 409
    ran = plimsoll("learned", "forget", "qwen3-32b")
    assert ran.code == 3
    assert "changed meanwhile" in ran.err or "409" in ran.err


def test_a_cluster_where_nothing_was_learned_says_so(cluster: Api) -> None:
    cluster.lists[MAPS] = []
    assert "nothing was learned yet" in plimsoll("learned", "list").err
    assert "nothing was learned yet" in plimsoll("learned", "forget", "x").err


def test_maps_that_may_not_be_listed_are_an_error(cluster: Api) -> None:
    cluster.lists[MAPS] = 403
    ran = plimsoll("learned", "list")
    assert ran.code == 3
    assert "403" in ran.err


SPEED = Speed(
    key=LearnedKey(model="digest", gpu="L4", engine="vllm-0.33.0", flags="tp1"),
    ttft=1.25,
    tpot=0.9,
    ttft_spread=1.5,
    tpot_spread=1.2,
    input_tokens=512,
    output_tokens=128,
    points=4,
    at=1_800_000_000,
    name="Qwen/Qwen3-0.6B",
)


def test_what_ramps_taught_is_listed_exported_and_forgotten_beside_what_starts_did(
    cluster: Api, tmp_path: Path
) -> None:
    known = learned(KNOWN.residuals, speeds=[SPEED])
    cluster.lists[MAPS] = [config_map("plimsoll-learned", export_learned(known))]
    listed = plimsoll("learned", "list").out
    assert "GIB" in listed
    for part in ("x 1.25", "x 0.90", "512 + 128"):
        assert part in listed
    (row,) = json.loads(plimsoll("learned", "list", "speed", "-o", "json").out)
    assert (row["term"], row["name"], row["tpot"], row["points"]) == ("speed", "Qwen/Qwen3-0.6B", 0.9, 4)
    assert import_learned(plimsoll("learned", "export").out) == known
    file = tmp_path / "s.yaml"
    assert plimsoll("snapshot", "--context", "-o", str(file)).code == 0
    assert import_learned(plimsoll("learned", "export", "--snapshot", str(file)).out) == known
    assert "1 forgotten, 3 entries left" in plimsoll("learned", "forget", "speed").err
    ((_, body),) = cluster.written
    assert import_learned(body["data"]["learned.json"]) == KNOWN  # type: ignore[index]
