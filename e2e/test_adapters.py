"""Adapters of the real engine, kept by the supervisor as a list says: loaded and unloaded without a restart, again after one, and a
wrong one told while all else serves."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import models
from asking import Engine
from build import NAME, build
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.engine import EngineUnavailable, ensure_engine
from real import left_out
from supervised import PATIENCE_SECONDS, Supervised, Told

pytestmark = pytest.mark.real_engine

KEY: Final = "sk-of-the-test"
WORDS: Final = ("--enable-lora", "--max-loras=2", "--max-lora-rank=8", "--max-cpu-loras=4")
ENVIRONMENT: Final = {"VLLM_ALLOW_RUNTIME_LORA_UPDATING": "True", "VLLM_API_KEY": KEY}
PROMPT: Final = [5, 6, 7]
TOKENS: Final = 8


class Kept:
    """An engine whose list of adapters a test writes, as the kubelet would."""

    def __init__(self, folder: Path) -> None:
        places = Places.of(os.environ)  # noqa: TID251 - the default of an entry point
        try:
            python = ensure_engine(places, Progress(sys.stderr))
        except EngineUnavailable as why:
            left_out(str(why))
        self._model = models.dense().write(folder / "dense")
        self._list = folder / "list" / "adapters.json"
        self._list.parent.mkdir()
        self.supervised = Supervised(python, build(folder / NAME), folder)

    def start(self) -> None:
        own = (f"--adapters={self._list}", f"--adapters-into={self._list.parent / 'fetched'}")
        self.supervised.start(self._model, Told(words=WORDS, own=own, environment=ENVIRONMENT))
        self.supervised.serving()

    @property
    def engine(self) -> Engine:
        return Engine(url=self.supervised.url, key=KEY)

    def declare(self, **folders: Path) -> None:
        """In one step, so that nobody reads half a list."""
        adapters = [
            {"name": name, "id": f"{name}{path.name}", "source": str(path), "path": str(path)}
            for name, path in folders.items()
        ]
        new = self._list.with_suffix(".new")
        new.write_text(json.dumps({"schema": 1, "adapters": adapters}))
        new.rename(self._list)

    def until(self, **states: str) -> dict[str, Any]:
        """What is told of each once they are so far."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while True:
            told = {one["name"]: one for one in self.supervised.facts()["adapters"] or ()}
            if {name: one["state"] for name, one in told.items()} == states:
                return told
            assert time.monotonic() < deadline, (told, self.supervised.said())
            time.sleep(0.2)

    def says(self, model: str) -> str:
        return self.engine.complete(model, PROMPT, TOKENS)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    one = Kept(tmp_path)
    yield one
    one.supervised.close()


def test_adapters_follow_their_list_and_the_engine_through_a_restart_and_a_wrong_one_is_told(
    kept: Kept, tmp_path: Path
) -> None:
    first = models.adapter().write(tmp_path / "first")
    second = models.adapter(rank=4).write(tmp_path / "second")
    large = models.adapter(rank=64).write(tmp_path / "large")
    foreign = models.adapter(hidden=64).write(tmp_path / "foreign")
    kept.declare(one=first)
    kept.start()
    kept.until(one="Loaded")
    engine_process = kept.supervised.one("serve")
    plain, with_one = kept.says("dense"), kept.says("one")
    assert plain != with_one

    with pytest.raises(AssertionError, match=r"completions: 404 .*does not exist"):
        kept.says("two")
    kept.declare(
        one=first, two=second, large=large, foreign=foreign, nowhere=tmp_path / "nowhere", dense=first
    )
    told = kept.until(
        one="Loaded", two="Loaded", large="Failed", foreign="Failed", nowhere="Failed", dense="Failed"
    )
    assert {name: one["word"] for name, one in told.items() if one["word"]} == {
        "large": "AdapterRank",
        "foreign": "OtherBaseModel",  # which this engine loads without a word, if it is asked to
        "nowhere": "NotMounted",
        "dense": "NameTaken",
    }
    assert "spec.adapters.maxRank: 64" in told["large"]["remedy"]
    assert "spec.model.source" in told["foreign"]["remedy"]
    assert kept.says("two") not in (plain, with_one)
    assert (kept.says("dense"), kept.says("one")) == (plain, with_one)

    kept.declare(one=second)
    kept.until(one="Loaded")
    assert kept.says("one") != with_one
    with pytest.raises(AssertionError, match="completions: 404"):
        kept.says("two")
    assert kept.supervised.one("serve") == engine_process

    os.kill(engine_process, signal.SIGKILL)
    kept.supervised.failure()
    kept.declare(one=first)
    kept.start()
    kept.until(one="Loaded")
    assert (kept.says("dense"), kept.says("one")) == (plain, with_one)
