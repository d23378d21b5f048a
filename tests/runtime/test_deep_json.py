"""JSON that nests deeper than Python goes down is as bad as any other that cannot be read, and ends nobody."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll_runtime.adapters import Engine
from plimsoll_runtime.fetching import Fetching
from plimsoll_runtime.group import MOST_REPORT, report_of
from plimsoll_runtime.lora import Wanted, refused
from plimsoll_runtime.lora_base import base_of
from plimsoll_runtime.naming import renamed
from plimsoll_runtime.sources.hub import _error
from plimsoll_runtime.sources.lease import owner_of
from plimsoll_runtime.sources.registry import basic_of
from plimsoll_runtime.sources.stores import Store
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.hub_site import Cdn, HubSite, Repository
from tests.runtime.small_model import NAME, get, shards

DEEP = '{"a": ' + "[" * 100_000
INDEX = "model.safetensors.index.json"


class Answers:
    def ask(self, *_: object, **__: object) -> tuple[int, str]:
        return 200, DEEP


def of_an_engine(_: Path) -> object:
    return Engine(Answers()).loaded()  # type: ignore[arg-type]


def of_a_base(folder: Path) -> object:
    (folder / "config.json").write_text(DEEP)
    return base_of(["vllm", "serve", str(folder)], {})


def of_a_download(folder: Path) -> object:
    fetching = Fetching(folder)
    (folder / "blobs").mkdir()
    (folder / "snapshots/rev").mkdir(parents=True)
    (folder / "snapshots/rev" / INDEX).write_text(DEEP)
    fetching.look(0.0)
    (folder / "blobs/a.incomplete").write_bytes(b"x" * 8192)
    found = fetching.look(1.0)
    assert found is not None
    return found.total


def of_a_store(folder: Path) -> object:
    (folder / ".plimsoll").mkdir()
    (folder / ".plimsoll/rev.json").write_text(DEEP)
    return Store(folder).whole("rev", None)


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (of_an_engine, None),
        (of_a_base, None),
        (of_a_download, None),
        (lambda _: refused(Wanted("one", "1", "/a"), 500, "no room").word, "AdapterRefused"),
        (lambda _: refused(Wanted("one", "1", "/a"), 500, DEEP).word, "AdapterRefused"),
        (lambda _: _error(DEEP), ""),
        (lambda _: basic_of(DEEP, "r.io"), None),
        (lambda _: renamed(("vllm", "serve", "a", f"-sc={DEEP}"), str.upper)[-1], f"-sc={DEEP}"),
        (lambda _: report_of(b"[" * MOST_REPORT), None),
        (lambda _: owner_of(DEEP).node, ""),
        (of_a_store, None),
    ],
    ids=[
        "an engine's list",
        "a base's config",
        "an index",
        "an error",
        "a deep error",
        "a hub's error",
        "credentials",
        "a word",
        "a member's report",
        "who has a lock",
        "a note of what is there",
    ],
)
def test_what_nests_too_deep_is_as_unreadable_as_what_is_no_json(
    tmp_path: Path, read: Callable[[Path], object], found: object
) -> None:
    assert read(tmp_path) == found


def test_an_index_of_weights_that_nests_too_deep_is_told_as_a_bad_checkpoint(
    cdn: Cdn, tmp_path: Path
) -> None:
    hub = HubSite({NAME: Repository({**shards(), INDEX: DEEP.encode()})}, cdn)
    try:
        with pytest.raises(FetchFailed) as caught:
            get(hub, tmp_path)
    finally:
        hub.close()
    assert caught.value.failure.word == "BadCheckpoint"
