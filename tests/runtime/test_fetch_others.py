"""Models from a registry; how those that share a folder take turns, and which proxy is asked."""

from __future__ import annotations

import base64
import errno
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from plimsoll_runtime.model import header
from plimsoll_runtime.sources import lease as leases
from plimsoll_runtime.sources.fetch import Fetched, fetch
from plimsoll_runtime.sources.guard import parts_of
from plimsoll_runtime.sources.lease import Lease, node
from plimsoll_runtime.sources.proxies import Proxy, proxy_of
from plimsoll_runtime.sources.registry import Reference, basic_of, reference_of
from plimsoll_runtime.sources.remote import remote
from plimsoll_runtime.sources.trouble import FetchFailed
from plimsoll_runtime.sources.unpacking import CHUNK, HALF, SPARE
from tests.runtime.registry_site import (
    INDEX,
    MANIFEST,
    PASSWORD,
    USER,
    RegistrySite,
    archive,
)
from tests.runtime.sites import cut_once
from tests.runtime.small_model import QUICK, WANTED, Listener, files_of, safetensors, shards

RAW = "application/vnd.cncf.model.weight.v1.raw"
TAR = "application/vnd.oci.image.layer.v1.tar"
AUTH = {"OCI_REGISTRY_AUTH": f"{USER}:{PASSWORD}"}


@pytest.fixture
def registry() -> Iterator[RegistrySite]:
    one = RegistrySite()
    yield one
    one.close()


def pull(registry: RegistrySite, into: Path, tag: str = ":v1", **environment: str) -> Fetched:
    source = f"oci://127.0.0.1:{registry.port}/acme/tiny{tag}"
    return fetch(source, None, into, Listener(), AUTH | environment, patience=QUICK)


def test_an_artifact_is_the_files_that_it_names(registry, tmp_path):
    digest = registry.push("v1", [(RAW, name, body) for name, body in shards().items()])
    registry.once.append(cut_once("blobs", 100))
    found = pull(registry, tmp_path)
    assert found.revision == digest.removeprefix("sha256:")
    assert files_of(found.path) == WANTED
    count = len(registry.asked)
    assert pull(registry, tmp_path) == found
    assert len(registry.asked) == count


@pytest.mark.parametrize("packed", [False, True])
def test_an_image_is_unpacked_layer_by_layer(registry, tmp_path, packed):
    kind = f"{TAR}+gzip" if packed else TAR
    first = archive(
        {"config.json": b"old", "./a/b.json": b"1", "gone.json": b"x", "all/x.json": b"x"}, pack=packed
    )
    second = archive(
        {
            "config.json": b"new",
            ".wh.gone.json": b"",
            "all/.wh..wh..opq": b"",
            "all/y.json": b"y",
            "m.safetensors": safetensors(100),
        },
        {"link.json": "a/b.json", "out.json": "/etc/passwd"},
        pack=packed,
    )
    registry.push("v1", [(kind, "", first), (kind, "", second)], index=True)
    found = pull(registry, tmp_path)
    assert files_of(found.path) == {"config.json", "a/b.json", "link.json", "all/y.json", "m.safetensors"}
    assert (found.path / "config.json").read_bytes() == b"new"


@pytest.mark.parametrize("name", ["../evil", "a/../../evil"])
def test_a_layer_does_not_leave_its_folder(registry, tmp_path, name):
    registry.push("v1", [(TAR, "", archive({name: b"x"}))])
    with pytest.raises(FetchFailed, match="outside the model"):
        pull(registry, tmp_path / "deep/er")
    assert not list(tmp_path.rglob("evil"))


def test_a_manifest_with_notes_and_machines_of_another_form_is_read(registry, tmp_path):
    registry.push("v1", [(RAW, "config.json", b"{}")])
    manifest = json.loads(registry.manifests["v1"][1])
    layer = archive({"a.json": b"{}"})
    odd = {"mediaType": TAR, "digest": registry._put(layer), "size": len(layer), "annotations": ["a"]}
    manifest["layers"].append(odd)
    digest = registry._name("one", MANIFEST, manifest)
    listed = [{"mediaType": MANIFEST, "digest": digest, "size": 1, "platform": "linux/amd64"}]
    registry._name("v2", INDEX, {"mediaType": INDEX, "manifests": listed})
    assert files_of(pull(registry, tmp_path, ":v2").path) == {"config.json", "a.json"}
    registry._name("v3", INDEX, {"mediaType": INDEX, "manifests": 3})
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path, ":v3")
    assert caught.value.failure.word == "ModelNotFound"


def test_the_headers_of_what_is_no_archive_are_refused_in_words(registry):
    registry.push("v1", [(TAR, "", b"no archive at all" * 1000)])
    with pytest.raises(FetchFailed, match="no archive") as caught:
        remote(f"oci://127.0.0.1:{registry.port}/acme/tiny:v1", None, AUTH, QUICK)
    assert caught.value.failure.word == "BadCheckpoint"


@pytest.fixture
def disk(tmp_path, monkeypatch) -> Callable[[int], None]:
    """Gives the machine a disk of so many bytes beyond what is spared, on which nothing lies but what tests put there."""

    def of(size: int) -> None:
        def usage(_: Path) -> SimpleNamespace:
            used = sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())
            return SimpleNamespace(free=size + SPARE + CHUNK - used)

        monkeypatch.setattr("shutil.disk_usage", usage)

    return of


def test_what_a_killed_pod_had_unpacked_makes_room_for_the_next(registry, tmp_path, disk):
    body = safetensors(2_000_000)
    registry.push("v1", [(TAR, "", archive({"m.safetensors": body}))])
    found = pull(registry, tmp_path)
    half = found.path / HALF
    half.mkdir()
    (found.path / "m.safetensors").rename(half / "m.safetensors")
    disk(5_000_000)
    assert pull(registry, tmp_path) == found
    assert files_of(found.path) == {"m.safetensors"}


def test_layers_that_grow_beyond_the_disk_are_told_and_leave_it_free(registry, tmp_path, disk):
    packed = archive({"a.json": b"{}", "m.safetensors": bytes(3 * CHUNK)}, pack=True)
    registry.push("v1", [(f"{TAR}+gzip", "", packed)])
    disk(2 * CHUNK)
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path)
    assert caught.value.failure.word == "DiskFull"
    assert sum(file.stat().st_size for file in tmp_path.rglob("*")) < CHUNK
    disk(4 * CHUNK)
    assert files_of(pull(registry, tmp_path).path) == {"a.json", "m.safetensors"}


def test_a_disk_that_is_full_while_layers_are_unpacked_is_told_as_that(registry, tmp_path, monkeypatch):
    registry.push("v1", [(TAR, "", archive({"config.json": b"{}"}))])

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("plimsoll_runtime.sources.unpacking._write", full)
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path)
    assert caught.value.failure.word == "DiskFull"


@pytest.mark.parametrize("name", [".wh...", "a/.wh...", ".wh..", ".wh.", "a/.wh.."])
def test_a_layer_deletes_nothing_outside_its_folder(registry, tmp_path, name):
    registry.push("v1", [(RAW, "config.json", b"{}")])
    other = pull(registry, tmp_path)
    registry.push("v2", [(TAR, "", archive({"a/b.json": b"{}"})), (TAR, "", archive({name: b""}))])
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path, ":v2")
    assert caught.value.failure.word == "BadCheckpoint"
    assert files_of(other.path) == {"config.json"}


def test_a_layer_that_deletes_all_before_it_does_not_delete_what_is_still_packed(registry, tmp_path):
    last = archive({".wh..wh..opq": b"", "config.json": b"{}"})
    layers = [archive({"old.json": b"{}"}), last, archive({"new.json": b"{}", "config.json": b"[]"})]
    registry.push("v1", [(RAW, "side.json", b"{}"), *((TAR, "", body) for body in layers)])
    assert files_of(pull(registry, tmp_path).path) == {"side.json", "config.json", "new.json"}


def test_a_file_where_a_folder_is_makes_no_volume_unwritable(registry, tmp_path):
    registry.push("v1", [(TAR, "", archive({"a": b"x", "a/b.json": b"x"}))])
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path)
    assert caught.value.failure.word == "BadCheckpoint"


def test_a_blob_that_is_not_what_its_digest_says_is_refused(registry, tmp_path):
    body = safetensors(1000)
    registry.push("v1", [(RAW, "m.safetensors", body)])
    registry.wrong = {digest: bytes(len(blob)) for digest, blob in registry.blobs.items() if blob == body}
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path)
    assert caught.value.failure.word == "BadCheckpoint"


def test_a_manifest_that_is_not_what_its_digest_says_is_refused(registry, tmp_path):
    digest = registry.push("v1", [(RAW, "config.json", b"{}")])
    registry.manifests[digest] = (registry.manifests[digest][0], registry.manifests[digest][1] + b" ")
    with pytest.raises(FetchFailed, match="not what its digest says"):
        pull(registry, tmp_path, f"@{digest}")


@pytest.mark.parametrize(
    ("tag", "given", "word"),
    [
        (":v1", {"OCI_REGISTRY_AUTH": "puller:wrong"}, "GatedModel"),
        (":v1", {"OCI_REGISTRY_AUTH": ""}, "GatedModel"),
        (":v9", {}, "ModelNotFound"),
    ],
)
def test_what_a_registry_refuses_is_told_in_words(registry, tmp_path, tag, given, word):
    registry.push("v1", [(RAW, "config.json", b"{}")])
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path, tag, **given)
    assert caught.value.failure.word == word


BEARER = 'Bearer realm="{realm}",service="tests",scope="*"'
BASIC = 'Basic realm="https://elsewhere.example/v2, bearer of",charset="UTF-8"'


@pytest.mark.parametrize(
    "challenges",
    [(BEARER, BASIC), (BASIC, BEARER), (f"{BASIC}, {BEARER}", ""), (BEARER.replace("Bearer", "bearer"), "")],
)
@pytest.mark.parametrize("auth", ["", AUTH["OCI_REGISTRY_AUTH"]])
def test_a_token_is_asked_for_where_a_registry_knows_other_ways_too(registry, tmp_path, challenges, auth):
    registry.public, registry.challenges = not auth, challenges
    registry.push("v1", [(RAW, "config.json", b"{}")])
    assert files_of(pull(registry, tmp_path, OCI_REGISTRY_AUTH=auth).path) == {"config.json"}


def test_a_registry_that_gives_no_tokens_is_told_as_one_that_lets_nobody_in(registry, tmp_path):
    registry.public, registry.challenges = True, (BASIC, "")
    registry.push("v1", [(RAW, "config.json", b"{}")])
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path, OCI_REGISTRY_AUTH="")
    assert caught.value.failure.word == "GatedModel"


@pytest.mark.parametrize(
    "realm", ["http://169.254.169.254/token", "http://evil.example/token", "file:///etc/passwd"]
)
def test_a_password_goes_to_no_other_host(registry, tmp_path, realm):
    registry.push("v1", [(RAW, "config.json", b"{}")])
    registry.realm = realm
    with pytest.raises(FetchFailed) as caught:
        pull(registry, tmp_path)
    assert caught.value.failure.word == "Download"


def test_headers_are_read_without_weights(registry):
    files = {"config.json": b'{"a": 1}', "model.safetensors": safetensors(3_000_000)}
    registry.push("tar", [(TAR, "", archive(files))])
    registry.push("raw", [(RAW, name, body) for name, body in files.items()])
    for tag in ("tar", "raw"):
        before = registry.bytes_sent()
        model = remote(f"oci://127.0.0.1:{registry.port}/acme/tiny:{tag}", None, AUTH, QUICK)
        assert set(model.files) == set(files)
        with model.open("config.json") as stream:
            assert json.load(stream) == {"a": 1}
        with model.open("model.safetensors") as stream:
            assert header("m", stream) == {"w": ("U8", (3_000_000,))}
        assert registry.bytes_sent() - before < 1_500_000


@pytest.mark.parametrize(
    ("location", "reference"),
    [
        ("registry.example/a/b:v1", Reference("registry.example", "a/b", "v1")),
        ("localhost:5000/m", Reference("localhost:5000", "m", "latest")),
        ("acme/m:1", Reference("registry-1.docker.io", "acme/m", "1")),
        ("m", Reference("registry-1.docker.io", "library/m", "latest")),
        ("r.io/a@sha256:00", Reference("r.io", "a", "sha256:00")),
        ("r.io/a:v1@sha256:00", Reference("r.io", "a", "sha256:00")),
    ],
)
def test_references(location, reference):
    assert reference_of(location) == reference


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("told", "basic"),
    [
        ("", None),
        ("a:b", encoded("a:b")),
        ("tok", encoded("token:tok")),
        ('{"auths": {"r.io": {"auth": "YTpi"}}}', "YTpi"),
        ('{"auths": {"https://r.io": {"username": "a", "password": "b"}}}', encoded("a:b")),
        ('{"auths": {"other.io": {"auth": "YTpi"}}}', None),
        ("{no json", None),
    ],
)
def test_credentials_of_a_registry(told, basic):
    assert basic_of(told, "r.io") == basic


def test_a_place_is_taken_by_one(tmp_path):
    with Lease(tmp_path / "lock") as one, Lease(tmp_path / "lock") as other:
        assert one.take()
        assert not other.take()
        one.give()
        assert other.take()
    assert not (tmp_path / "lock").exists()


def test_the_place_of_a_killed_owner_on_this_node_is_free_at_once(tmp_path):
    lines = f"import sys; sys.path.insert(0, {str(Path(leases.__file__).parents[2])!r})\n"
    lines += "from pathlib import Path\nfrom plimsoll_runtime.sources.lease import Lease\n"
    lines += f"assert Lease(Path({str(tmp_path / 'lock')!r})).take()\nprint('taken', flush=True)\ninput()"
    with subprocess.Popen(
        [sys.executable, "-c", lines], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"taken\n"
        with Lease(tmp_path / "lock") as other:
            assert not other.take()
            owner.kill()
            owner.wait()
            assert other.take()


def test_the_place_of_an_owner_elsewhere_is_free_after_it_was_silent_for_long(tmp_path, monkeypatch):
    (tmp_path / "lock").write_text(
        json.dumps({"owner": "x", "node": "elsewhere", "beat": 1, "done": 5, "of": 9})
    )
    now = [1000.0]
    monkeypatch.setattr("plimsoll_runtime.sources.lease.time.monotonic", lambda: now[0])
    with Lease(tmp_path / "lock", gone=45.0, beat=60.0) as one:
        assert not one.take()
        owner = one.owner()
        assert owner is not None
        assert (owner.done, owner.of) == (5, 9)
        now[0] += 40
        (tmp_path / "lock").write_text(json.dumps({"owner": "x", "node": "elsewhere", "beat": 2}))
        assert not one.take()
        now[0] += 44
        assert not one.take()
        now[0] += 2
        assert one.take()
        assert json.loads((tmp_path / "lock").read_text())["node"] == node()


def test_a_place_that_another_took_meanwhile_is_given_back(tmp_path):
    (tmp_path / "lock").write_text(json.dumps({"owner": "dead", "node": "elsewhere"}))
    one = Lease(tmp_path / "lock", gone=-1.0)
    assert one._is_gone()
    (tmp_path / "lock").write_text(json.dumps({"owner": "new", "node": "elsewhere"}))
    assert not one._put_away()
    assert json.loads((tmp_path / "lock").read_text())["owner"] == "new"
    assert [file.name for file in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize(
    ("url", "environment", "proxy"),
    [
        ("https://hub.example/x", {}, None),
        ("https://hub.example/x", {"HTTPS_PROXY": "http://p:3128"}, Proxy("p", 3128, {})),
        ("http://hub.example/x", {"HTTPS_PROXY": "http://p:3128"}, None),
        (
            "https://hub.example/x",
            {"https_proxy": "u:w@p:1"},
            Proxy("p", 1, {"Proxy-Authorization": f"Basic {encoded('u:w')}"}),
        ),
        ("https://hub.example/x", {"HTTPS_PROXY": "http://p", "NO_PROXY": ".example"}, None),
        ("https://10.1.2.3/x", {"HTTPS_PROXY": "http://p", "NO_PROXY": "10.0.0.0/8"}, None),
        ("https://hub.example/x", {"HTTPS_PROXY": "http://p", "NO_PROXY": "ample"}, Proxy("p", 80, {})),
        ("https://hub.example/x", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, None),
    ],
)
def test_which_proxy_a_request_goes_through(url, environment, proxy):
    assert proxy_of(parts_of(url), environment) == proxy
