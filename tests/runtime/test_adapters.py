"""Adapters are kept as the list says, whatever becomes of the list, of their files and of the engine."""

from __future__ import annotations

import json
import os
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from plimsoll_runtime.adapter_source import TOKEN, fetching
from plimsoll_runtime.adapters import (
    AGAIN_SECONDS,
    CHECK_SECONDS,
    MARK_SECONDS,
    UNUSED_SECONDS,
    USED,
    Adapters,
    Engine,
    key_of,
)
from plimsoll_runtime.address import Address
from plimsoll_runtime.exposition import exposition
from plimsoll_runtime.failure import Failure
from plimsoll_runtime.group import Members, Report, report_of
from plimsoll_runtime.said import SERVING, Said
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.conftest import PATIENCE
from tests.runtime.hub_site import TOKEN as HUB_TOKEN
from tests.runtime.hub_site import Cdn, HubSite, Repository
from tests.runtime.lora_engine import an_adapter, item, listed, lora_engine


class Kept:
    """Adapters of one engine, a step at a time."""

    def __init__(self, folder, engine, *, key=None, fetch=None, lacking=None, environment=None):
        self.file, self.into = folder / "list" / "adapters.json", folder / "into"
        self.file.parent.mkdir()
        self.said = Said(["vllm", "serve", "tiny"], 0.0)
        where = None if engine is None else Engine(Address("127.0.0.1", engine.port, False), key)
        self.adapters = Adapters(
            self.file,
            self.into,
            where,
            self.said,
            fetch=fetch or self.no_fetch,
            max_rank=16,
            lacking=lacking,
            environment=environment,
        )
        self.now = 1000.0

    @staticmethod
    def no_fetch(wanted, into, told):
        raise FetchFailed(Failure("Download", "nothing can be fetched here", "a folder"))

    @property
    def told(self) -> list[dict[str, Any]]:
        return self.said.adapters or []

    def declare(self, *items):
        self.file.write_bytes(listed(*items))

    def serve(self):
        self.said.enter(SERVING)

    def step(self, seconds=3.0):
        self.now += seconds
        self.adapters.step(self.now)
        return {one["name"]: one["state"] for one in self.told}

    def until(self, states):
        """While something is fetched beside."""
        deadline = time.monotonic() + PATIENCE
        while self.step(0.0) != states:
            assert time.monotonic() < deadline, self.told
            time.sleep(0.005)

    def word(self, name):
        return next(one["word"] for one in self.told if one["name"] == name)

    def message(self, name):
        return next(one["message"] for one in self.told if one["name"] == name)


def test_what_is_declared_is_loaded_once_the_engine_serves_and_unloaded_when_it_is_not_declared_any_more(
    tmp_path,
):
    one, two = an_adapter(tmp_path / "one"), an_adapter(tmp_path / "two")
    with lora_engine() as engine:
        kept = Kept(tmp_path, engine)
        kept.declare(item("one", one))
        assert kept.step() == {"one": "Waiting"}
        assert engine.asked == []
        kept.serve()
        assert kept.step() == {"one": "Loaded"}
        kept.declare(item("one", one), item("two", two))
        assert kept.step() == {"one": "Loaded", "two": "Loaded"}
        assert engine.loaded == {"one": str(one), "two": str(two)}
        kept.declare(item("two", two))
        assert kept.step() == {"two": "Loaded"}
        assert engine.loaded == {"two": str(two)}
        assert engine.asked == ["load one", "load two", "unload one"]


def test_a_list_that_is_gone_or_cannot_be_read_unloads_nothing(tmp_path):
    with lora_engine() as engine:
        kept = Kept(tmp_path, engine)
        kept.serve()
        kept.declare(item("one", an_adapter(tmp_path / "one")))
        kept.step()
        kept.file.unlink()
        assert kept.step() == {"one": "Loaded"}
        kept.file.write_text("{")
        assert kept.step() == {"one": "Loaded"}
        kept.declare()
        assert kept.step() == {}
        assert engine.loaded == {}


def test_an_engine_that_forgot_an_adapter_gets_it_again(tmp_path):
    with lora_engine() as engine:
        kept = Kept(tmp_path, engine)
        kept.serve()
        kept.declare(item("one", an_adapter(tmp_path / "one")))
        kept.step()
        engine.loaded.clear()
        assert kept.step(1.0) == {"one": "Loaded"}
        assert kept.step(CHECK_SECONDS) == {"one": "Loaded"}
        assert engine.asked == ["load one", "load one"]


def test_a_new_engine_gets_all_of_them(tmp_path):
    folder = an_adapter(tmp_path / "one")
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        with lora_engine() as engine:
            kept = Kept(tmp_path / name, engine)
            kept.declare(item("one", folder))
            kept.serve()
            assert kept.step() == {"one": "Loaded"}
            assert engine.loaded == {"one": str(folder)}


@pytest.mark.parametrize("replaces", [True, False])
def test_another_revision_takes_the_place_of_the_one_before_only_when_it_is_there(tmp_path, replaces):
    with lora_engine(replaces=replaces) as engine:
        kept = Kept(tmp_path, engine)
        kept.serve()
        kept.declare(item("one", an_adapter(tmp_path / "old"), "v1"))
        kept.step()
        new = tmp_path / "new"
        kept.declare(item("one", new, "v2"))
        assert kept.step() == {"one": "Failed"}
        assert kept.told[0]["serves"] is True
        assert engine.loaded == {"one": str(tmp_path / "old")}
        an_adapter(new)
        assert kept.step(AGAIN_SECONDS) == {"one": "Loaded"}
        assert engine.loaded == {"one": str(new)}


def test_what_somebody_else_loaded_stays_unless_its_name_is_declared(tmp_path):
    ours = an_adapter(tmp_path / "ours")
    with lora_engine() as engine:
        engine.loaded = {"theirs": "/theirs", "taken": "/theirs"}
        kept = Kept(tmp_path, engine)
        kept.serve()
        kept.declare(item("taken", ours))
        assert kept.step() == {"taken": "Loaded"}
        assert engine.loaded == {"theirs": "/theirs", "taken": str(ours)}
        kept.declare()
        kept.step()
        assert engine.loaded == {"theirs": "/theirs"}


def test_one_that_is_refused_holds_no_other_up_and_is_tried_more_and_more_rarely(tmp_path):
    with lora_engine() as engine:
        engine.refuses["bad"] = (
            500,
            "Call failed\nThe size of tensor a (256) must match the size of tensor b (64)",
        )
        kept = Kept(tmp_path, engine)
        kept.serve()
        kept.declare(item("bad", an_adapter(tmp_path / "bad")), item("good", an_adapter(tmp_path / "good")))
        assert kept.step() == {"bad": "Failed", "good": "Loaded"}
        assert kept.word("bad") == "OtherBaseModel"
        assert "must match the size" in kept.message("bad")
        for _ in range(100):
            kept.step()
        assert 4 <= engine.asked.count("load bad") <= 8
        del engine.refuses["bad"]
        assert kept.step(300.0) == {"bad": "Loaded", "good": "Loaded"}


def test_the_engines_key_is_used_and_a_wrong_one_is_told(tmp_path):
    folder = an_adapter(tmp_path / "one")
    for key, state in (("secret", "Loaded"), ("another", "Failed")):
        (tmp_path / key).mkdir()
        with lora_engine(key="secret") as engine:
            kept = Kept(tmp_path / key, engine, key=key)
            kept.serve()
            kept.declare(item("one", folder))
            assert kept.step() == {"one": state}
    assert kept.word("one") == "EngineKey"


@pytest.mark.parametrize(
    ("argv", "environment", "key"),
    [
        ("vllm serve m --api-key one", {"VLLM_API_KEY": "two"}, "one"),
        ("vllm serve m", {"VLLM_API_KEY": "two"}, "two"),
        ("vllm serve m", {}, None),
    ],
)
def test_the_key_is_the_one_that_the_engine_takes(argv, environment, key):
    assert key_of(argv.split(), environment) == key


def test_an_engine_that_does_not_answer_is_waited_for(tmp_path):
    with lora_engine() as engine:
        kept = Kept(tmp_path, engine)
        kept.declare(item("one", an_adapter(tmp_path / "one")))
    kept.serve()
    assert kept.step() == {"one": "Waiting"}
    assert kept.message("one") == "the engine does not answer"


def test_what_is_not_here_is_fetched_beside_all_else_and_loaded_from_where_it_came_to(tmp_path):
    go_on, began = threading.Event(), threading.Event()

    def fetch(wanted, into, told):
        told("1 of 2 MiB")
        began.set()
        go_on.wait(PATIENCE)
        return an_adapter(into / "commit")

    with lora_engine() as engine:
        kept = Kept(tmp_path, engine, fetch=fetch)
        kept.serve()
        kept.declare(item("far"), item("near", an_adapter(tmp_path / "near")))
        kept.step()
        assert began.wait(PATIENCE)
        assert kept.step() == {"far": "Fetching", "near": "Loaded"}
        assert kept.message("far") == "1 of 2 MiB"
        go_on.set()
        kept.until({"far": "Loaded", "near": "Loaded"})
        assert engine.loaded["far"].startswith(str(kept.into))


def test_what_cannot_be_fetched_is_told_without_secrets_and_tried_again(tmp_path):
    tries = []

    def fetch(wanted, into, told):
        tries.append(wanted.name)
        if len(tries) == 1:
            raise FetchFailed(Failure("GatedModel", "the hub refuses the token hunter22", "another token"))
        return an_adapter(into)

    with lora_engine() as engine:
        kept = Kept(tmp_path, engine, fetch=fetch, environment={"HF_TOKEN": "hunter22"})
        kept.serve()
        kept.declare(item("far"))
        kept.until({"far": "Failed"})
        assert (kept.word("far"), kept.message("far")) == ("GatedModel", "the hub refuses the token ***")
        assert kept.step(AGAIN_SECONDS) == {"far": "Fetching"}
        kept.until({"far": "Loaded"})


def test_a_fetch_of_what_is_not_declared_any_more_changes_nothing(tmp_path):
    go_on = threading.Event()

    def fetch(wanted, into, told):
        go_on.wait(PATIENCE)
        return an_adapter(into)

    with lora_engine() as engine:
        kept = Kept(tmp_path, engine, fetch=fetch)
        kept.serve()
        kept.declare(item("far"))
        assert kept.step() == {"far": "Fetching"}
        kept.declare(item("far", revision="v2"))
        assert kept.step() == {"far": "Waiting"}
        go_on.set()
        kept.until({"far": "Loaded"})
        assert engine.asked == ["load far"]


def test_what_nobody_has_wanted_for_a_day_is_deleted(tmp_path):
    with lora_engine() as engine:
        kept = Kept(tmp_path, engine, fetch=lambda wanted, into, told: an_adapter(into))
        for name, age in (("old", UNUSED_SECONDS + 60), ("of another pod", 60)):
            (kept.into / name).mkdir(parents=True)
            mark = kept.into / name / USED
            mark.touch()
            then = time.time() - age
            os.utime(mark, (then, then))
        (kept.into / "not ours").mkdir()
        kept.serve()
        kept.declare(item("far"))
        kept.until({"far": "Loaded"})
        kept.step(MARK_SECONDS)
        left = sorted(folder.name for folder in kept.into.iterdir())
        assert left[-2:] == ["not ours", "of another pod"]
        assert len(left) == 3


def test_a_rank_that_answers_nobody_only_brings_the_files_and_its_leader_waits_for_them(tmp_path):
    folder = an_adapter(tmp_path / "one")
    members = Members(2)
    (tmp_path / "member").mkdir()
    member = Kept(tmp_path / "member", None)
    assert members.take(Report(1, "x", adapters=()), "10.0.0.1", 0.0)
    with lora_engine() as engine:
        leader = Kept(tmp_path, engine, lacking=members.lacking)
        leader.serve()
        for kept in (leader, member):
            kept.declare(item("one", folder))
        assert leader.step() == {"one": "Waiting"}
        assert leader.message("one") == "rank 1 of this replica has not got its files yet"
        assert member.step() == {"one": "Loaded"}
        assert member.adapters.holds() == ("one",)
        assert members.take(Report(1, "x", adapters=member.adapters.holds()), "10.0.0.1", 1.0)
        assert leader.step() == {"one": "Loaded"}


def test_a_member_of_an_older_release_is_not_waited_for():
    report = report_of(b'{"rank": 1, "run": "x"}')
    assert report is not None
    assert report.adapters is None
    members = Members(2)
    members.take(report, "10.0.0.1", 0.0)
    assert members.lacking("one") == []


def test_64_adapters_that_all_fail_are_told_within_what_the_operator_reads(tmp_path):
    with lora_engine() as engine:
        for number in range(64):
            engine.refuses[f"{number:063}"] = (500, "size mismatch " * 100)
        kept = Kept(tmp_path, engine)
        kept.serve()
        folder = an_adapter(tmp_path / "one")
        kept.declare(*(item(name, folder) for name in engine.refuses))
        assert set(kept.step().values()) == {"Failed"}
    assert len(json.dumps(kept.said.facts(0.0))) < 64 * 1024
    assert 'plimsoll_runtime_adapters{state="Failed"} 64' in exposition(kept.said.facts(0.0))


def test_the_supervisor_keeps_adapters_of_the_engine_that_it_started(supervised, tmp_path):
    file = tmp_path / "adapters.json"
    file.write_bytes(listed(item("one", tmp_path / "nowhere")))
    supervised.engine(own=(f"--adapters={file}", f"--adapters-into={tmp_path / 'into'}"))
    supervised.until_said("adapter one: NotMounted")
    deadline = time.monotonic() + PATIENCE
    while not (told := supervised.facts()["adapters"]):
        assert time.monotonic() < deadline
    assert (told[0]["name"], told[0]["state"], told[0]["word"]) == ("one", "Failed", "NotMounted")


def test_without_a_list_nobody_speaks_of_adapters(supervised):
    supervised.engine()
    assert supervised.until("serving")["adapters"] is None


def test_an_adapter_comes_from_a_hub_with_the_token_of_adapters_and_its_revision(tmp_path):
    files = {
        "adapter_config.json": json.dumps({"peft_type": "LORA", "r": 8}).encode(),
        "adapter_model.safetensors": b"tensors",
        "README.md": b"# sql",
    }
    hub = {"acme/sql": Repository(files, private=True, branches=("main", "v2"))}
    with closing(Cdn()) as cdn, closing(HubSite(hub, cdn)) as site, lora_engine() as engine:
        environment = {"HF_ENDPOINT": site.url, "HF_TOKEN": "of-the-model", TOKEN: HUB_TOKEN}
        fetch = fetching(environment, lambda: False)
        kept = Kept(tmp_path, engine, fetch=fetch, environment=environment)
        kept.serve()
        kept.declare(item("sql", source="hf://acme/sql", revision="v2"))
        kept.until({"sql": "Loaded"})
        folder = Path(engine.loaded["sql"])
        assert (folder / "adapter_model.safetensors").read_bytes() == b"tensors"
        kept.declare(item("sql", source="hf://acme/other"))
        kept.until({"sql": "Failed"})
        assert "spec.adapters.items[sql].source" in kept.told[0]["remedy"]
        assert engine.loaded["sql"] == str(folder)
