"""The supervisor brings a model and starts the engine with it: what the engine is told, and what people are."""

from __future__ import annotations

import json
import signal
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.processes import free_port
from plimsoll_runtime.bringing import Wish, Words, bring, missing, wish_of
from plimsoll_runtime.complete import incomplete
from plimsoll_runtime.said import FETCHING, Said
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.conftest import ENGINE, PATIENCE, Started
from tests.runtime.hub_site import Cdn, HubSite, Repository
from tests.runtime.small_model import NAME, safetensors, shards


@pytest.fixture
def hub(cdn: Cdn) -> Iterator[HubSite]:
    one = HubSite(
        {
            NAME: Repository(shards()),
            "acme/words": Repository({"tokenizer.json": b"{}", "a.safetensors": b"x"}),
        },
        cdn,
    )
    yield one
    one.close()


def start(supervised: Started, hub: HubSite, *wishes: str, model: str = NAME) -> None:
    words = ["serve", model, f"--port={free_port()}", f"--requests={supervised.requests}"]
    own = tuple(f"--fetch={wish}" for wish in wishes)
    environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(supervised.folder / "cache")}
    supervised.start(sys.executable, str(ENGINE), *words, own=own, environment=environment)


def test_an_engine_starts_once_its_model_is_there(supervised, hub, cdn):
    cdn.hold = threading.Event()
    start(supervised, hub, f"hf://{NAME}")
    facts = supervised.until("fetching")
    while facts["progress"] is None or facts["progress"]["bytes"] < 300_000:
        facts = supervised.facts()
    assert facts["state"] == "fetching"
    assert facts["progress"]["of"] > 900_000
    assert facts["phase"].startswith("fetching the model")
    page = supervised.ask("/metrics")[1]
    assert "plimsoll_runtime_fetch_bytes " in page
    assert f"plimsoll_runtime_fetch_total_bytes {facts['progress']['of']}" in page
    cdn.hold.set()
    facts = supervised.until("serving")
    commit = hub.repositories[NAME].commit
    assert facts["fetched"] == [{"source": f"hf://{NAME}", "revision": commit}]
    assert facts["phases"][0]["name"] == "fetch"
    assert facts["progress"] is None
    assert f"hf://{NAME} at {commit} is in" in supervised.said()


def test_a_supervisor_that_is_killed_while_it_fetches_leaves_what_the_next_goes_on_with(
    packed, tmp_path, hub, cdn
):
    cdn.hold = threading.Event()
    for life in ("first", "second"):
        (tmp_path / life).mkdir()
        one = Started(packed, tmp_path / life)
        try:
            words = ["serve", NAME, f"--port={free_port()}", f"--requests={one.requests}"]
            environment = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "cache")}
            one.start(
                sys.executable, str(ENGINE), *words, own=(f"--fetch=hf://{NAME}",), environment=environment
            )
            if life == "first":
                assert cdn.holding.wait(PATIENCE)
                while (one.facts()["progress"] or {"bytes": 0})["bytes"] < 300_000:
                    assert one.process is not None
                while not any(
                    file.stat().st_size for file in (tmp_path / "cache").rglob("?" * 64 + ".plimsoll-done")
                ):
                    assert one.process is not None
                one.send(signal.SIGKILL)
                one.end()
                cdn.hold.set()
                cdn.hold, before = None, len(cdn.asked)
            else:
                one.until("serving")
        finally:
            one.close()
    ranges = [asked.headers["range"] for asked in cdn.asked[before:] if "range" in asked.headers]
    assert any(not told.startswith("bytes=0-") for told in ranges)


def test_a_supervisor_that_is_to_end_while_it_fetches_does_so(supervised, hub, cdn):
    cdn.hold = threading.Event()
    start(supervised, hub, f"hf://{NAME}")
    supervised.until("fetching")
    assert cdn.holding.wait(PATIENCE)
    supervised.send(signal.SIGTERM)
    assert supervised.end() == 0
    assert not supervised.message.exists()


def test_what_a_fetch_fails_for_is_left_for_the_kubelet(supervised, hub):
    hub.repositories[NAME].gated = True
    start(supervised, hub, f"hf://{NAME}")
    assert supervised.end() == 1
    assert supervised.failure()["word"] == "GatedModel"
    assert "tokenSecret" in supervised.failure()["remedy"]


def said() -> Said:
    one = Said(("vllm",), 0.0)
    one.begins_to_fetch(0.0)
    return one


def brought(hub: HubSite, tmp_path: Path, argv: str, *wishes: str, **environment: str) -> Words:
    given = {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path), **environment}
    return bring([wish_of(wish) for wish in wishes], Words(tuple(argv.split()), given), said(), lambda: False)


@pytest.mark.parametrize(
    ("more", "offline"),
    [
        ("", "1"),
        (" --trust-remote-code", None),
        (" --enable-lora", None),
        (" --served-model-name acme/other", "1"),
        (f" --tokenizer {NAME} --hf-config-path={NAME} --generation-config vllm", "1"),
        (" --hf-config-path acme/other", None),
        (" --tokenizer=acme/other", None),
        (" --tokenizer /mounted", "1"),
        (' --speculative-config {"method":"eagle3","model":"acme/other"}', None),
        (' --speculative-config {"method":"ngram"}', "1"),
        (" --revision v1", None),
        (" --tokenizer-revision v1", None),
    ],
)
def test_an_engine_does_not_ask_the_hub_for_what_is_there(hub, tmp_path, more, offline):
    words = brought(hub, tmp_path, f"vllm serve {NAME}{more}", f"hf://{NAME}")
    assert words.argv == tuple(f"vllm serve {NAME}{more}".split())
    assert words.environment.get("HF_HUB_OFFLINE") == offline


def test_an_engine_asks_for_a_tokenizer_at_the_models_revision_which_was_not_brought(hub, tmp_path):
    commit = hub.repositories[NAME].commit
    wishes = (f"hf://{NAME}#{commit}", "hf://acme/words")
    words = brought(hub, tmp_path, f"vllm serve {NAME} --revision {commit}", wishes[0])
    assert words.environment["HF_HUB_OFFLINE"] == "1"
    argv = f"vllm serve {NAME} --revision {commit} --tokenizer acme/words"
    assert "HF_HUB_OFFLINE" not in brought(hub, tmp_path, argv, *wishes).environment


def test_of_a_tokenizer_no_weights_are_fetched(hub, tmp_path):
    brought(hub, tmp_path, f"vllm serve {NAME} --tokenizer acme/words", f"hf://{NAME}", "hf://acme/words")
    commit = hub.repositories["acme/words"].commit
    assert [file.name for file in (tmp_path / f"hub/models--acme--words/snapshots/{commit}").iterdir()] == [
        "tokenizer.json"
    ]


def test_a_model_of_modelscope_is_served_by_its_name_and_read_from_its_folder(modelscope, hub, tmp_path):
    words = brought(
        hub,
        tmp_path,
        "vllm serve acme/tiny --served-model-name acme/tiny",
        "modelscope://acme/tiny",
        MODELSCOPE_DOMAIN=modelscope.url,
        VLLM_USE_MODELSCOPE="True",
    )
    assert words.argv[3:] == ("--served-model-name", "acme/tiny")
    assert (Path(words.argv[2]) / "config.json").is_file()
    assert words.environment["VLLM_USE_MODELSCOPE"] == "False"


def test_offline_a_model_that_is_there_is_taken_and_one_that_is_not_is_told(hub, tmp_path):
    with pytest.raises(FetchFailed) as caught:
        brought(hub, tmp_path, f"vllm serve {NAME}", f"hf://{NAME}", HF_HUB_OFFLINE="1")
    assert caught.value.failure.word == "Download"
    assert "HF_HUB_OFFLINE" in caught.value.failure.message
    brought(hub, tmp_path, f"vllm serve {NAME}", f"hf://{NAME}")
    hub.repositories.clear()
    brought(hub, tmp_path, f"vllm serve {NAME}", f"hf://{NAME}", HF_HUB_OFFLINE="1")


def test_offline_the_only_commit_that_somebody_brought_is_taken_and_named_to_the_engine(hub, tmp_path):
    commit, argv = hub.repositories[NAME].commit, f"vllm serve {NAME}"
    brought(hub, tmp_path, f"{argv} --revision {commit}", f"hf://{NAME}#{commit}")
    (main,) = tmp_path.rglob("refs/main")
    main.unlink()
    words = brought(hub, tmp_path, argv, f"hf://{NAME}", HF_HUB_OFFLINE="1")
    assert words.argv == (*argv.split(), "--revision", commit)
    (main.parents[1] / "snapshots" / ("0" * 40)).mkdir()
    with pytest.raises(FetchFailed):
        brought(hub, tmp_path, argv, f"hf://{NAME}", HF_HUB_OFFLINE="1")


def test_offline_what_modelscopes_own_client_may_have_is_left_to_the_engine(modelscope, hub, tmp_path):
    given = {"MODELSCOPE_DOMAIN": modelscope.url, "VLLM_USE_MODELSCOPE": "True"}
    argv, source = "vllm serve acme/tiny --tokenizer acme/words", "modelscope://acme/tiny"
    wishes = (source, "modelscope://acme/words")
    left = brought(hub, tmp_path, argv, *wishes, HF_HUB_OFFLINE="1", **given)
    assert left.argv == tuple(argv.split())
    assert left.environment["VLLM_USE_MODELSCOPE"] == "True"
    assert not modelscope.asked
    brought(hub, tmp_path, "vllm serve acme/tiny", source, **given)
    half = brought(hub, tmp_path, argv, *wishes, HF_HUB_OFFLINE="1", **given)
    assert (Path(half.argv[2]) / "config.json").is_file()
    assert half.argv[3:] == ("--tokenizer", "acme/words")
    assert half.environment["VLLM_USE_MODELSCOPE"] == "True"


def test_what_is_broken_at_its_source_is_told_before_an_engine_starts(hub, tmp_path):
    name = "model-00002-of-00003.safetensors"
    hub.repositories[NAME].files = {**shards(), name: safetensors(300_000)[:-5]}
    with pytest.raises(FetchFailed, match=f"{name} has 300073 bytes, and its header tells of 300078"):
        brought(hub, tmp_path, f"vllm serve {NAME}", f"hf://{NAME}")


def test_what_was_not_whole_at_its_source_is_asked_for_anew(modelscope, hub, tmp_path):
    source = "modelscope://acme/tiny"
    last = "model-00003-of-00003.safetensors"
    del modelscope.files[last]
    with pytest.raises(FetchFailed, match="lacks 1 of the files that its index names"):
        brought(hub, tmp_path, "vllm serve acme/tiny", source, MODELSCOPE_DOMAIN=modelscope.url)
    modelscope.files = shards()
    words = brought(hub, tmp_path, "vllm serve acme/tiny", source, MODELSCOPE_DOMAIN=modelscope.url)
    assert (Path(words.argv[2]) / last).is_file()


def test_what_a_hub_had_in_part_is_asked_for_anew(hub, tmp_path):
    last = "model-00003-of-00003.safetensors"
    hub.repositories[NAME].files = {name: body for name, body in shards().items() if name != last}
    with pytest.raises(FetchFailed, match="lacks 1 of the files that its index names"):
        brought(hub, tmp_path, f"vllm serve {NAME}", f"hf://{NAME}")
    hub.repositories[NAME].files = shards()
    brought(hub, tmp_path, f"vllm serve {NAME}", f"hf://{NAME}")


@pytest.mark.parametrize(
    ("text", "wish"),
    [
        ("hf://acme/m", Wish("hf://acme/m", None)),
        ("s3://b/a=b@c", Wish("s3://b/a=b@c", None)),
        ("hf://acme/m#refs/pr/3", Wish("hf://acme/m", "refs/pr/3")),
    ],
)
def test_wishes_as_they_are_written(text, wish):
    assert wish_of(text) == wish


def test_a_state_of_fetching_has_words_before_bytes_come():
    one = said()
    assert (one.facts(1.0)["state"], one.facts(1.0)["phase"]) == (FETCHING, "looking for the model")


HEAD = b'{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
GOOD = struct.pack("<Q", len(HEAD)) + HEAD + b"1234"
INDEX = json.dumps({"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}).encode()


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"config.json": b"{}"}, None),
        ({"config.json": b"{}", "m.safetensors": GOOD}, None),
        ({"m.safetensors": GOOD[:-1]}, "BadCheckpoint"),
        ({"m.safetensors": GOOD + b"x"}, "BadCheckpoint"),
        ({"m.safetensors": b""}, "BadCheckpoint"),
        ({"m.safetensors": b"<html>not what you asked for</html>"}, "BadCheckpoint"),
        ({"model.safetensors.index.json": INDEX, "one.safetensors": GOOD, "two.safetensors": GOOD}, None),
        ({"model.safetensors.index.json": INDEX, "one.safetensors": GOOD}, "BadCheckpoint"),
        ({"model.safetensors.index.json": b"[]", "one.safetensors": GOOD}, None),
        ({f"model-0000{number}-of-00002.safetensors": GOOD for number in (1, 2)}, None),
        ({"model-00001-of-00002.safetensors": GOOD}, "BadCheckpoint"),
        ({"model-00000-of-00002.safetensors": GOOD, "model-00001-of-00002.safetensors": GOOD}, None),
    ],
)
def test_a_folder_is_judged_by_what_it_says_it_holds(tmp_path, files, told):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    failure = incomplete(tmp_path)
    assert (None if failure is None else failure.word) == told
    assert incomplete(tmp_path, "dummy") is None
    assert missing(["vllm", "serve", str(tmp_path)]) == failure


OWN_INDEX = INDEX.replace(b"one.", b"consolidated-1.").replace(b"two.", b"consolidated-2.")
COMMON = {"model.safetensors.index.json": INDEX, "one.safetensors": GOOD, "two.safetensors": GOOD}
OWN = {"consolidated-1.safetensors": GOOD, "consolidated-2.safetensors": GOOD}
HALF = {"model.safetensors.index.json": INDEX, "one.safetensors": GOOD}


@pytest.mark.parametrize(
    ("files", "load_format", "told"),
    [
        ({"model.safetensors.index.json": INDEX, "consolidated.safetensors": GOOD}, "mistral", None),
        ({**HALF, "consolidated.safetensors": GOOD}, "mistral", None),
        ({"consolidated.safetensors.index.json": OWN_INDEX, **OWN}, "mistral", None),
        ({**COMMON, "consolidated.safetensors.index.json": OWN_INDEX}, "mistral", "BadCheckpoint"),
        ({"model-00001-of-00002.safetensors": GOOD, "consolidated.safetensors": GOOD}, "mistral", None),
        ({"model.safetensors.index.json": INDEX, "pytorch_model.bin": b"x"}, "npcache", None),
        ({"model.safetensors.index.json": INDEX, "model.pt": b"x"}, "pt", None),
        ({**HALF, "consolidated.safetensors": GOOD}, "safetensors", "BadCheckpoint"),
        ({"consolidated.safetensors.index.json": OWN_INDEX, **COMMON}, "safetensors", None),
        ({"model.safetensors.index.json": INDEX, "consolidated.safetensors": GOOD}, None, None),
        ({"consolidated.safetensors.index.json": OWN_INDEX, "model.safetensors": GOOD}, "auto", None),
        ({"model.safetensors.index.json": INDEX, "pytorch_model.bin": b"x"}, None, None),
        ({"model.safetensors.index.json": INDEX, "training_args.bin": b"x"}, None, "BadCheckpoint"),
        ({"model.safetensors.index.json": INDEX, "model.safetensors": GOOD}, None, "BadCheckpoint"),
        ({"consolidated.safetensors.index.json": OWN_INDEX, "model.safetensors.index.json": INDEX}, None, "BadCheckpoint"),
        ({"consolidated.safetensors.index.json": OWN_INDEX, **HALF}, None, "BadCheckpoint"),
    ],
)  # fmt: skip
def test_only_the_form_of_the_weights_that_is_loaded_has_to_be_there(tmp_path, files, load_format, told):
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    words = ["vllm", "serve", str(tmp_path), *(["--load-format", load_format] if load_format else [])]
    failure = missing(words)
    assert (None if failure is None else failure.word) == told


@pytest.mark.parametrize(
    ("load_format", "name"), [("mistral", "consolidated.safetensors"), ("npcache", "pytorch_model.bin")]
)
def test_a_form_that_is_asked_for_is_brought_and_not_refused_for_another(hub, tmp_path, load_format, name):
    hub.repositories[NAME].files = {**shards(), "consolidated.safetensors": safetensors(1000)}
    brought(hub, tmp_path, f"vllm serve {NAME} --load-format {load_format}", f"hf://{NAME}")
    (folder,) = (tmp_path / "hub/models--acme--tiny/snapshots").iterdir()
    weights = (".safetensors", ".bin")
    assert {file.name for file in folder.iterdir() if file.name.endswith(weights)} == {name}


def test_of_two_forms_the_one_comes_that_the_engine_will_see(hub, tmp_path):
    hub.repositories[NAME].files = {**shards(), "consolidated.safetensors": safetensors(1000)}
    for place, more, own in (("a", "", False), ("b", " --enable-lora", True)):
        brought(hub, tmp_path / place, f"vllm serve {NAME}{more}", f"hf://{NAME}")
        (folder,) = (tmp_path / place / "hub/models--acme--tiny/snapshots").iterdir()
        assert (folder / "consolidated.safetensors").is_file() == own
        assert (folder / "model-00001-of-00003.safetensors").is_file() != own


def test_a_folder_that_is_not_there_is_no_model(tmp_path):
    failure = missing(["vllm", "serve", str(tmp_path / "gone")])
    assert failure is not None
    assert failure.word == "ModelNotFound"
    assert missing(["vllm", "serve", "acme/m"]) is None
