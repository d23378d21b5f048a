"""Where models are kept: each place, revision and form of the weights for itself."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from plimsoll_runtime.sources.fetch import Fetched, store_of
from plimsoll_runtime.sources.lease import Lease, node
from plimsoll_runtime.sources.listing import Listing
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.hub_site import HubSite, Repository
from tests.runtime.sites import status_once
from tests.runtime.small_model import NAME, WANTED, Listener, files_of, get, safetensors, shards


@pytest.fixture
def hub() -> Iterator[HubSite]:
    one = HubSite({NAME: Repository(shards())})
    yield one
    one.close()


def test_a_form_of_the_weights_that_is_there_does_not_stand_for_another(hub, tmp_path):
    small = {name for name in WANTED if not name.endswith(".safetensors")}
    assert files_of(get(hub, tmp_path, load_format="dummy").path) == small
    assert files_of(get(hub, tmp_path).path) == WANTED
    assert files_of(get(hub, tmp_path, load_format="npcache").path) == {*WANTED, "pytorch_model.bin"}
    count = len(hub.asked)
    for load_format in ("dummy", None, "auto", "npcache"):
        get(hub, tmp_path, load_format=load_format)
    assert len(hub.asked) == count


def test_small_files_are_not_asked_for_again_where_the_model_is(hub, tmp_path):
    found = get(hub, tmp_path, load_format="npcache")
    hub.repositories.clear()
    assert get(hub, tmp_path, load_format="dummy") == found


PARTS = {
    **shards(),
    "1_Pooling/config.json": b"{}",
    "2_Dense/config.json": b"{}",
    "2_Dense/model.safetensors": safetensors(1000, 7),
}
DENSE = "2_Dense/model.safetensors"


@pytest.fixture
def earlier(hub, tmp_path) -> Fetched:
    """A volume to which an earlier release brought a model without the weights of its parts."""
    hub.repositories[NAME].files = PARTS
    found = get(hub, tmp_path)
    (found.path / DENSE).resolve().unlink()
    (found.path / DENSE).unlink()
    (note,) = (store_of(f"hf://{NAME}", tmp_path).root / ".plimsoll").glob("*.json")
    noted = json.loads(note.read_text())["files"]
    del noted[DENSE]
    note.write_text(json.dumps({"revision": found.revision, "files": noted}))
    hub.asked.clear()
    return found


def test_what_an_earlier_release_did_not_bring_is_fetched_once_and_nothing_else(hub, tmp_path, earlier):
    assert get(hub, tmp_path) == earlier
    assert (earlier.path / DENSE).read_bytes() == PARTS[DENSE]
    index = "model.safetensors.index.json"
    asked = [one.path.split("/", 5)[-1] for one in hub.asked if "/resolve/" in one.path]
    assert sorted(asked) == [DENSE, index]
    hub.asked.clear()
    assert get(hub, tmp_path) == earlier
    assert not hub.asked


def test_an_earlier_note_of_a_model_without_parts_is_not_doubted(hub, tmp_path):
    found = get(hub, tmp_path)
    (note,) = (store_of(f"hf://{NAME}", tmp_path).root / ".plimsoll").glob("*.json")
    note.write_text(json.dumps({"files": json.loads(note.read_text())["files"]}))
    hub.repositories.clear()
    assert get(hub, tmp_path) == found


@pytest.mark.parametrize("how", ["nobody answers", "no room", "read-only"])
def test_what_an_earlier_release_brought_serves_where_the_rest_cannot_be_had(
    hub, tmp_path, monkeypatch, earlier, how
):
    def read_only(*_: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    told = Listener()
    if how == "nobody answers":
        hub.once += [status_once("/api/", 503)] * 4
    elif how == "no room":
        monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 1})())
    else:
        monkeypatch.setattr("plimsoll_runtime.sources.lease.os.open", read_only)
    assert get(hub, tmp_path, told) == earlier
    assert "as an earlier release brought it" in told.lines[-1]


def test_who_waited_for_another_that_could_not_have_the_rest_does_not_try_it_again(
    hub, tmp_path, monkeypatch, earlier
):
    """Each that begins would else fail in turn, and the last of many long after its start should be over."""
    take, tries = Lease.take, iter([False, True])
    monkeypatch.setattr(Lease, "take", lambda lease: next(tries) and take(lease))
    assert get(hub, tmp_path) == earlier
    assert not hub.asked


def test_a_revision_that_was_resolved_stays_though_it_is_asked_for_anew(hub, tmp_path, earlier):
    hub.repositories[NAME].files = {**PARTS, "config.json": b'{"num_hidden_layers": 2}'}
    told = Listener()
    assert get(hub, tmp_path, told) == earlier
    assert "has no revision" in told.lines[-1]


WORDS_OF_ERRORS = {
    errno.ENOSPC: "DiskFull",
    errno.EDQUOT: "DiskFull",
    errno.EROFS: "NotWritable",
    errno.EACCES: "NotWritable",
}


@pytest.mark.parametrize("number", WORDS_OF_ERRORS)
@pytest.mark.parametrize("step", ["sources.lease.Lease.take", "sources.stores.Store.keep"])
def test_a_disk_that_takes_no_notes_is_told_as_what_it_is(hub, tmp_path, monkeypatch, step, number):
    def refused(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(f"plimsoll_runtime.{step}", refused)
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path)
    assert caught.value.failure.word == WORDS_OF_ERRORS[number]
    assert str(tmp_path) in caught.value.failure.message


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.EPERM])
def test_a_place_that_a_killed_owner_left_where_nobody_else_may_write_is_told(
    hub, tmp_path, monkeypatch, number
):
    """It was tried to be taken over and over until Python gave up."""

    def refused(file: Path, _: Path) -> None:
        raise OSError(number, os.strerror(number), str(file))

    lock = store_of(f"hf://{NAME}", tmp_path).lock
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"owner": "dead", "node": "elsewhere"}))
    monkeypatch.setattr("plimsoll_runtime.sources.lease.Lease._is_gone", lambda _: True)
    monkeypatch.setattr("pathlib.Path.rename", refused)
    with pytest.raises(FetchFailed, match=f"{lock}: {os.strerror(number)}") as caught:
        get(hub, tmp_path)
    assert caught.value.failure.word == "NotWritable"


def test_a_place_that_another_put_away_first_is_free(tmp_path, monkeypatch):
    (tmp_path / "lock").write_text(json.dumps({"owner": "dead", "node": "elsewhere"}))

    def comes_too_late(file: Path, aside: Path) -> None:
        file.unlink()
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(file), None, str(aside))

    monkeypatch.setattr("pathlib.Path.rename", comes_too_late)
    with Lease(tmp_path / "lock", gone=-1.0) as one:
        assert one.take()


ELSEWHERE = json.dumps({"owner": "x", "node": "elsewhere", "beat": 1})
UNREADABLE = [errno.EIO, errno.EACCES, errno.ESTALE]


@pytest.fixture
def now(monkeypatch) -> list[float]:
    """The clock of whoever waits."""
    now = [1000.0]
    monkeypatch.setattr("plimsoll_runtime.sources.lease.time.monotonic", lambda: now[0])
    return now


@pytest.fixture
def broken(monkeypatch) -> list[int]:
    """Errors that the next looks into a place meet, the last of the list first."""
    errors: list[int] = []
    read = Path.read_text

    def refused(file: Path, *about: Any, **named: Any) -> str:
        if errors and file.name.startswith("lock"):
            number = errors.pop()
            raise OSError(number, os.strerror(number), str(file))
        return read(file, *about, **named)

    monkeypatch.setattr(Path, "read_text", refused)
    return errors


@pytest.mark.parametrize("number", UNREADABLE)
def test_a_place_that_cannot_be_read_for_a_moment_is_still_its_owner_s(tmp_path, now, broken, number):
    """It was put away at once, and the model fetched twice."""
    lock = tmp_path / "lock"
    lock.write_text(ELSEWHERE)
    one = Lease(lock, gone=45.0)
    for wait, unreadable in ((0, True), (30, False), (30, True), (14, True)):
        now[0] += wait
        broken[:] = [number] if unreadable else []
        assert not one.take()
    assert lock.read_text() == ELSEWHERE
    now[0] += 2
    broken[:] = [number]
    with one:
        assert one.take(), "45 s after the last change that could be read, whatever else could not"


@pytest.mark.parametrize("number", UNREADABLE)
def test_a_place_that_can_never_be_read_is_told(tmp_path, now, broken, number):
    (tmp_path / "lock").write_text(ELSEWHERE)
    broken[:] = [number] * 4
    with Lease(tmp_path / "lock", gone=45.0) as one:
        assert not one.take()
        now[0] += 44
        assert not one.take()
        now[0] += 2
        with pytest.raises(OSError, match=os.strerror(number)):
            one.take()


def test_a_place_that_can_be_read_only_when_it_is_put_away_is_given_back(tmp_path, now, broken):
    (tmp_path / "lock").write_text(ELSEWHERE)
    broken[:] = [errno.EIO] * 2
    one = Lease(tmp_path / "lock", gone=45.0)
    assert not one.take()
    now[0] += 46
    assert not one.take()
    assert (tmp_path / "lock").read_text() == ELSEWHERE


def test_a_place_that_is_there_and_is_not_is_tried_no_more_than_twice_at_a_time(tmp_path, monkeypatch):
    """Nodes of a network file system may see a name and no file for a while."""

    def is_there(*_: object) -> int:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))

    monkeypatch.setattr("plimsoll_runtime.sources.lease.os.open", is_there)
    assert not Lease(tmp_path / "lock").take()


def test_whoever_waits_for_a_place_that_cannot_be_read_just_now_goes_on_waiting(hub, tmp_path, broken):
    lock = store_of(f"hf://{NAME}", tmp_path).lock
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"owner": "dead", "node": node()}))
    broken[:] = [errno.EIO] * 2  # for who has it, and how far that one is
    assert files_of(get(hub, tmp_path).path) == WANTED
    assert broken == []


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s3://b/llama/base", "s3://b/llama--base"),
        ("s3://b/run=1", "s3://b/run_1"),
        ("s3://b/a//c", "s3://b/a/c"),
        (f"s3://b/{'x' * 300}", f"s3://b/{'x' * 300}y"),
        ("s3://acme/m", "modelscope://acme/m"),
        ("modelscope://acme/m", "modelscope://acme/M"),
    ],
)
def test_two_places_never_share_a_folder(tmp_path, one, other):
    roots = [store_of(source, tmp_path).root for source in (one, other)]
    assert roots[0] != roots[1]
    for root in roots:
        root.mkdir(parents=True)
    assert store_of(f"{one}/", tmp_path).root == roots[0]


def test_two_revisions_never_share_what_they_were_resolved_to(tmp_path):
    store = store_of("modelscope://acme/m", tmp_path)
    asked = ["a/b", "a_b", "main", None, "refs/main"]
    for number, revision in enumerate(asked):
        store.keep(revision, Listing(f"{number:040x}", ()), None)
    assert [store.revision_of(one) for one in asked] == [f"{number:040x}" for number in range(5)]
