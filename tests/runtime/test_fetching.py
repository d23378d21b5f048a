"""How far a download is, seen from the folder that the hub's client fills."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from plimsoll_runtime.fetching import GIB, Fetching, Progress, folder_of
from tests.runtime.conftest import PATIENCE


@pytest.mark.parametrize(
    ("argv", "environment", "folder"),
    [
        ("vllm serve acme/m", {"HOME": "/h"}, "/h/.cache/huggingface/hub/models--acme--m"),
        ("vllm serve acme/m", {"HOME": "/h", "HF_HOME": "/hf"}, "/hf/hub/models--acme--m"),
        ("vllm serve acme/m", {"HF_HOME": "/hf", "HF_HUB_CACHE": "/c"}, "/c/models--acme--m"),
        ("vllm serve acme/m --download-dir /d", {"HF_HOME": "/hf"}, "/d/models--acme--m"),
        ("vllm serve --model=acme/m", {"HF_HOME": "/hf"}, "/hf/hub/models--acme--m"),
        ("vllm serve gpt2", {"HF_HOME": "/hf"}, "/hf/hub/models--gpt2"),
        ("vllm serve /models/m", {}, None),
        ("vllm serve s3://bucket/m", {}, None),
        ("vllm serve --port 1", {}, None),
        ("ray start --block", {}, None),
    ],
)
def test_where_the_model_is_kept(argv, environment, folder):
    assert folder_of(argv.split(), environment) == (None if folder is None else Path(folder))


def write(file: Path, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)


def test_nothing_is_told_before_bytes_come_nor_after(tmp_path):
    fetching = Fetching(tmp_path)
    assert fetching.look(0.0) is None
    write(tmp_path / "blobs/a", 5000)
    assert fetching.look(1.0) is None
    write(tmp_path / "blobs/b", 5000)
    assert fetching.look(2.0) is None


def test_what_an_earlier_start_left_half_written_is_no_download(tmp_path):
    write(tmp_path / "blobs/b.incomplete", 4096)
    fetching = Fetching(tmp_path)
    assert [fetching.look(at) for at in (0.0, 1.0, 2.0)] == [None] * 3


def test_bytes_total_and_rate_of_a_download(tmp_path):
    fetching = Fetching(tmp_path)
    write(tmp_path / "blobs/a", 8192)
    fetching.look(9.0)
    write(tmp_path / "blobs/b.incomplete", 4096)
    assert fetching.look(10.0) == Progress(12288, None, 4096)
    index = json.dumps({"metadata": {"total_size": 40960}, "weight_map": {}})
    write(tmp_path / "snapshots/old/model.safetensors.index.json", 3)
    write(tmp_path / "snapshots/rev/model.safetensors.index.json", 0)
    (tmp_path / "snapshots/rev/model.safetensors.index.json").write_text(index)
    write(tmp_path / "blobs/b.incomplete", 24576)
    assert fetching.look(13.0) == Progress(32768, 40960, 6144)
    assert fetching.look(60.0) == Progress(32768, 40960, 0)  # what was long ago does not count
    assert fetching.look(200.0) is None


def test_a_file_that_was_made_at_full_length_counts_what_is_in_it(tmp_path):
    fetching = Fetching(tmp_path)
    (tmp_path / "blobs").mkdir()
    fetching.look(0.0)
    with (tmp_path / "blobs/a.incomplete").open("wb") as file:
        os.truncate(file.fileno(), GIB)
        file.write(b"x" * 8192)
    progress = fetching.look(1.0)
    assert progress is not None
    assert 0 < progress.done < GIB


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (
            Progress(3 * GIB, 12 * GIB, 100 << 20),
            "fetching the model: 3.0 of 12.0 GiB, 100 MiB/s, 2 min left",
        ),
        (
            Progress(11 * GIB, 12 * GIB, 100 << 20),
            "fetching the model: 11.0 of 12.0 GiB, 100 MiB/s, 10 s left",
        ),
        (Progress(3 * GIB, None, None), "fetching the model: 3.0 GiB"),
        (Progress(5 << 20, 10 << 20, 2 << 20), "fetching the model: 5.0 of 10.0 MiB, 2 MiB/s, 2 s left"),
        (Progress(0, 12 * GIB, 1 << 20), "fetching the model: 0.0 of 12.0 GiB, 1 MiB/s, 3 h left"),
        (Progress(0, 12 * GIB, 40 << 10), "fetching the model: 0.0 of 12.0 GiB, 40 KiB/s, 4 days left"),
    ],
)
def test_progress_in_words(progress, text):
    assert progress.text() == text


def test_a_supervisor_tells_it(supervised, tmp_path):
    hub = tmp_path / "hub"
    write(hub / "models--tiny/blobs/a.incomplete", 8192)
    supervised.engine(f"--download-dir={hub}", "--deaf-start")
    supervised.until("starting")
    supervised.until_said("pid ")
    facts, size, deadline = supervised.facts(), 8192, time.monotonic() + PATIENCE
    while facts["state"] != "fetching":  # the first look may come after any of these
        assert time.monotonic() < deadline
        size += 4096
        write(hub / "models--tiny/blobs/a.incomplete", size)
        facts = supervised.facts()
    assert facts["progress"]["bytes"] <= size
    assert facts["phase"].startswith("fetching the model")
    (hub / "models--tiny/blobs/a.incomplete").rename(hub / "models--tiny/blobs/a")
    assert supervised.until("starting")["progress"] is None
