"""A model from a hub: cut and resumed, wrong, refused, sent elsewhere, shared; and found by the hub's own client."""

from __future__ import annotations

import hashlib
import json
import re
import resource
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi, scan_cache_dir, snapshot_download, try_to_load_from_cache

from plimsoll_runtime.model import header
from plimsoll_runtime.sources.fetch import Fetched
from plimsoll_runtime.sources.listing import Digest, Listing, matches
from plimsoll_runtime.sources.partial import SUFFIX
from plimsoll_runtime.sources.remote import remote
from plimsoll_runtime.sources.stores import Store
from plimsoll_runtime.sources.trouble import FetchFailed, Stopped
from tests.runtime.hub_site import TOKEN, Cdn, HubSite, Repository
from tests.runtime.sites import cut_once, status_once
from tests.runtime.small_model import NAME, QUICK, WANTED, Listener, files_of, get, safetensors, shards


@pytest.fixture
def hub(cdn: Cdn) -> Iterator[HubSite]:
    one = HubSite({NAME: Repository(shards())}, cdn)
    yield one
    one.close()


def test_what_an_engine_reads_comes_and_nothing_else(hub, tmp_path):
    told = Listener()
    found = get(hub, tmp_path, told)
    repository = hub.repositories[NAME]
    assert found == Fetched(tmp_path / f"models--acme--tiny/snapshots/{repository.commit}", repository.commit)
    assert files_of(found.path) == WANTED
    assert all((found.path / name).read_bytes() == repository.files[name] for name in WANTED)
    total = sum(len(repository.files[name]) for name in WANTED)
    assert told.seen[-1] == (total, total)


def test_the_clients_own_reader_finds_it_offline(hub, tmp_path, monkeypatch):
    found = get(hub, tmp_path)
    assert Path(snapshot_download(NAME, cache_dir=tmp_path, local_files_only=True)) == found.path
    assert (
        Path(snapshot_download(NAME, revision=found.revision, cache_dir=tmp_path, local_files_only=True))
        == found.path
    )
    config = try_to_load_from_cache(NAME, "config.json", cache_dir=tmp_path)
    assert isinstance(config, str)
    cache = scan_cache_dir(tmp_path)
    assert not cache.warnings
    (repository,) = cache.repos
    assert (repository.repo_id, sorted(repository.refs)) == (NAME, ["main"])


def test_the_clients_own_download_of_the_stand_in_is_the_same(hub, tmp_path):
    (tmp_path / "theirs").mkdir()
    theirs = HfApi(endpoint=hub.url).snapshot_download(
        NAME, cache_dir=tmp_path / "theirs", allow_patterns=["*.json", "model-*.safetensors"]
    )
    ours = get(hub, tmp_path / "ours")
    assert files_of(Path(theirs)) == files_of(ours.path)
    blobs = [
        sorted(file.name for file in (tmp_path / who / "models--acme--tiny/blobs").iterdir())
        for who in ("theirs", "ours")
    ]
    assert blobs[0] == blobs[1]


def test_it_is_asked_for_once_and_found_without_a_network_after(hub, tmp_path):
    found = get(hub, tmp_path)
    count = len(hub.asked)
    assert get(hub, tmp_path) == found
    assert get(hub, tmp_path, revision=found.revision) == found
    assert len(hub.asked) == count


def test_a_cut_connection_goes_on_where_it_was(hub, cdn, tmp_path):
    cdn.once += [cut_once("00001", 100_000), cut_once("00001", 100_000)]
    get(hub, tmp_path)
    asked = [one.headers.get("range") for one in cdn.asked if "00001" in one.path]
    assert asked[0] is None
    assert [one.partition("-")[0] for one in asked[1:]] == ["bytes=100000", "bytes=200000"]


def test_a_fetch_that_was_stopped_goes_on_where_it_was(hub, cdn, tmp_path):
    cdn.hold, told = threading.Event(), Listener()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            get(hub, tmp_path, told)
        except Stopped as stopped:
            failures.append(stopped)

    thread = threading.Thread(target=run)
    thread.start()
    assert cdn.holding.wait(60)
    while not told.seen or told.seen[-1][0] < 300_000:
        assert thread.is_alive()
    told.end.set()
    thread.join()
    assert failures
    cdn.hold.set()
    cdn.hold, before = None, len(cdn.asked)
    again = Listener()
    found = get(hub, tmp_path, again)
    assert files_of(found.path) == WANTED
    assert again.seen[0][0] >= 300_000
    ranges = [one.headers["range"].removeprefix("bytes=").split("-") for one in cdn.asked[before:]]
    assert 0 < sum(int(last) - int(first) for first, last in ranges) < 650_000


def test_busy_servers_are_asked_again(hub, cdn, tmp_path):
    hub.once += [
        status_once("/api/", 503),
        status_once("/api/", 429, {"Retry-After": "0"}),
        status_once("resolve", 500),
    ]
    cdn.once += [status_once("00002", 503)]
    assert files_of(get(hub, tmp_path).path) == WANTED


def test_a_server_that_stays_busy_is_given_up(hub, tmp_path):
    hub.once += [status_once("/api/", 503)] * 4
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path)
    assert caught.value.failure.word == "Download"
    assert "503" in caught.value.failure.message


def test_an_address_that_expired_is_asked_for_anew(hub, cdn, tmp_path):
    cdn.once += [status_once("00003", 403)]
    assert files_of(get(hub, tmp_path).path) == WANTED


@pytest.mark.parametrize("name", ["model-00002-of-00003.safetensors", "config.json"])
def test_what_is_not_what_its_sum_says_is_fetched_once_more_and_then_refused(hub, tmp_path, name):
    right = hub.repositories[NAME].files[name]
    hub.repositories[NAME].wrong[name] = bytes(len(right))
    told = Listener()
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path, told)
    assert caught.value.failure.word == "BadCheckpoint"
    assert name in caught.value.failure.message
    assert any("fetched again" in line for line in told.lines)
    assert not (tmp_path / f"models--acme--tiny/blobs/{hashlib.sha256(right).hexdigest()}").exists()
    del hub.repositories[NAME].wrong[name]
    assert files_of(get(hub, tmp_path).path) == WANTED


@pytest.mark.parametrize(
    ("change", "asked", "told"),
    [
        ({"gated": True}, {}, "GatedModel: acme/tiny: the hub does not let this token read the model"),
        ({}, {"HF_TOKEN": "hf_wrong_token"}, "GatedModel: acme/tiny: the hub does not take this token"),
        ({"private": True}, {}, "ModelNotFound: there is no acme/tiny at"),
        ({}, {"revision": "v9"}, "ModelNotFound: acme/tiny has no revision 'v9'"),
        ({"files": {}}, {}, "ModelNotFound: hf://acme/tiny holds no files"),
    ],
)
def test_what_a_hub_refuses_is_told_in_words(hub, tmp_path, change, asked, told):
    for name, value in change.items():
        setattr(hub.repositories[NAME], name, value)
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path, **asked)
    assert f"{caught.value.failure.word}: {caught.value.failure.message}".startswith(told)
    assert "hf_wrong" not in str(caught.value)


@pytest.mark.parametrize("token", [f"{TOKEN}\nhf_second", f"{TOKEN}\r\nX: y", f"\u201c{TOKEN}", f"{TOKEN}\0"])
def test_a_token_that_no_request_can_hold_is_told_without_it(hub, tmp_path, token):
    told = Listener()
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path, told, HF_TOKEN=token)
    assert caught.value.failure.word == "GatedModel"
    assert "line break" in caught.value.failure.message
    assert not any(secret in f"{caught.value.failure} {told.lines}" for secret in (TOKEN, "hf_second"))


def test_an_address_that_cannot_be_asked_for_is_not_quoted(hub, tmp_path):
    told = Listener()
    hub.location = f"{hub.url}x/x?secret=ab"
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path, told)
    assert caught.value.failure.word == "Download"
    assert "secret" not in f"{caught.value.failure} {told.lines}"


def test_a_token_opens_what_is_gated_and_goes_nowhere_else(hub, cdn, tmp_path):
    hub.repositories[NAME].gated = True
    assert files_of(get(hub, tmp_path, HF_TOKEN=TOKEN).path) == WANTED
    assert all("authorization" in one.headers for one in hub.asked)
    assert not any("authorization" in one.headers for one in cdn.asked)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
        ("http://[fe80::1]/x", "fe80::1"),
        ("http://[::ffff:169.254.169.254]/x", "hands out"),
        ("http://metadata.google.internal/x", "metadata.google.internal"),
        ("http://100.100.100.200/x", "100.100.100.200"),
        ("http://0.0.0.0/x", "0.0.0.0"),
        ("file:///etc/passwd", "no address of http"),
        ("ftp://127.0.0.1/x", "no address of http"),
    ],
)
def test_a_download_is_not_followed_to_where_it_must_not_go(hub, tmp_path, location, said):
    hub.location = location
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path)
    assert caught.value.failure.word == "Download"
    assert said in caught.value.failure.message
    assert "sends the download on" in caught.value.failure.message


def test_a_download_that_goes_in_circles_ends(hub, tmp_path):
    hub.location = f"{hub.url}/{NAME}/resolve/main/pytorch_model.bin"
    with pytest.raises(FetchFailed, match="on and on"):
        get(hub, tmp_path)


def test_a_file_that_leaves_its_folder_is_nobodys(hub, tmp_path):
    hub.repositories[NAME].files = {**shards(), "../../outside.json": b"{}"}
    with pytest.raises(FetchFailed, match="lists"):
        get(hub, tmp_path)


def test_a_server_without_ranges_does_too(hub, cdn, tmp_path):
    cdn.once += [cut_once("00001", 100_000)]
    cdn.ignores_ranges = True
    assert files_of(get(hub, tmp_path).path) == WANTED


def test_a_model_of_more_files_than_a_process_may_open_comes_too(hub, tmp_path):
    names = [f"part-{number:03}.json" for number in range(120)]
    hub.repositories[NAME].files = {**shards(), **{name: name.encode() for name in names}}
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = {int(number.name) for number in Path("/proc/self/fd").iterdir()}
    free = [number for number in range(len(taken) + 61) if number not in taken]
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[60], limits[1]))
    try:
        found = get(hub, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert files_of(found.path) == {*WANTED, *names}


def test_another_owner_of_the_place_that_is_faster_breaks_nothing(hub, tmp_path, monkeypatch):
    def too_late(file: Path, digest: Digest, size: int, stopped: Callable[[], bool]) -> bool:
        assert matches(file, digest, size, stopped)
        file.rename(file.with_name(file.name.removesuffix(SUFFIX)))
        return matches(file, digest, size, stopped)

    monkeypatch.setattr("plimsoll_runtime.sources.download.matches", too_late)
    assert files_of(get(hub, tmp_path).path) == WANTED
    assert not list(tmp_path.rglob(f"*{SUFFIX}-done"))


def test_two_owners_that_note_at_once_break_nothing(tmp_path, monkeypatch):
    store, listing = Store(tmp_path), Listing("1", ())
    write, others = Path.write_text, [1, 2]

    def writes(file: Path, text: str, **told: str) -> int:
        count = write(file, text, **told)
        if others:
            others.pop()
            store.keep(None, listing, None)
        return count

    monkeypatch.setattr(Path, "write_text", writes)
    store.keep(None, listing, None)
    assert (store.whole("1", None), store.revision_of(None)) == (store.folder("1"), "1")
    assert not list(tmp_path.rglob("*.new"))


def test_two_that_share_a_folder_fetch_once(hub, cdn, tmp_path):
    cdn.hold = threading.Event()
    told = [Listener(), Listener()]
    found: list[Fetched] = []
    threads = [threading.Thread(target=lambda one=one: found.append(get(hub, tmp_path, one))) for one in told]
    for thread in threads:
        thread.start()
    assert cdn.holding.wait(60)
    cdn.hold.set()
    for thread in threads:
        thread.join()
    assert found[0] == found[1]
    cdn.close()  # it has counted all that it sent when it has ended
    assert cdn.bytes_sent() == 3 * len(safetensors(300_000))


def test_a_disk_without_room_is_told_before_anything_is_fetched(hub, cdn, tmp_path, monkeypatch):
    monkeypatch.setattr("shutil.disk_usage", lambda _: type("Usage", (), {"free": 500_000})())
    with pytest.raises(FetchFailed) as caught:
        get(hub, tmp_path)
    assert caught.value.failure.word == "DiskFull"
    assert not cdn.asked


def test_headers_are_read_without_weights(hub, cdn):
    model = remote(f"hf://{NAME}", None, {"HF_ENDPOINT": hub.url}, QUICK)
    assert model.revision == hub.repositories[NAME].commit
    with model.open("config.json") as stream:
        assert json.loads(stream.read())["num_hidden_layers"] == 1
    hub.repositories[NAME].files = {**shards(), "model-00001-of-00003.safetensors": safetensors(5_000_000)}
    model = remote(f"hf://{NAME}", None, {"HF_ENDPOINT": hub.url}, QUICK)
    with model.open("model-00001-of-00003.safetensors") as stream:
        assert header("m", stream) == {"w": ("U8", (5_000_000,))}
    assert cdn.bytes_sent() <= 300_000


def test_a_wait_for_a_busy_server_is_told_where_headers_are_read(hub, capfd):
    hub.once += [status_once("/api/", 429, {"Retry-After": "0"})]
    remote(f"hf://{NAME}", None, {"HF_ENDPOINT": hub.url}, QUICK)
    assert re.search(r"waiting \S+ s to ask again: .* answers 429", capfd.readouterr().err)
