"""`facts` of a model that lies on a hub: the same message as of a folder, a few ranges read, and the hub's refusals in its words."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll.facts.failure import read_failure
from plimsoll.facts.model_told import read_model
from plimsoll.facts.resolve import facts_from_folder
from plimsoll_runtime.command import main
from tests.runtime.hub_site import TOKEN, HubSite, Repository
from tests.runtime.test_model import MIXTURE, Tensors, folder_of, mixture_tensors

NAME = "acme/mine"
WEIGHTS = b"\0" * (8 << 20)


def files_of(folder: Path, tensors: Tensors) -> dict[str, bytes]:
    """The folder's files, with weights behind the headers, and an index."""
    found = {file.name: file.read_bytes() for file in sorted(folder.iterdir())}
    shards = [name for name in found if name.endswith(".safetensors")]
    index: dict[str, str] = {}
    for name in shards:
        size = struct.unpack("<Q", found[name][:8])[0]
        index |= dict.fromkeys(set(json.loads(found[name][8 : 8 + size])) - {"__metadata__"}, name)
        found[name] += WEIGHTS
    assert set(index) == set(tensors)
    found["model.safetensors.index.json"] = json.dumps({"weight_map": index}).encode()
    return found


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return folder_of(tmp_path / "model", MIXTURE, mixture_tensors(4))


@pytest.fixture
def hub(folder: Path) -> Iterator[HubSite]:
    site = HubSite({NAME: Repository(files_of(folder, mixture_tensors(4)), gated=True)})
    yield site
    site.close()


def asked(hub: HubSite, message: Path, *words: str, token: str = TOKEN) -> int:
    environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": token}
    return main(["facts", f"hf://{NAME}", *words, "--termination-log", str(message)], environment)


def test_a_gated_repository_is_told_as_its_folder_would_be_and_no_weight_is_read(
    hub: HubSite, folder: Path, tmp_path: Path
) -> None:
    message = tmp_path / "message"
    assert asked(hub, message) == 0
    there = read_model(message.read_text(), source=f"hf://{NAME}", revision=None)
    here = facts_from_folder(folder)
    assert (there.architecture, there.weights) == (here.architecture, here.weights)
    assert there.revision == hub.repositories[NAME].commit
    assert hub.bytes_sent() < len(WEIGHTS) / 2


def test_a_token_that_may_not_read_it_is_told_in_words(hub: HubSite, tmp_path: Path) -> None:
    message = tmp_path / "message"
    assert asked(hub, message, token="wrong") == 1
    failure = read_failure(message.read_text())
    assert failure is not None
    assert failure.word == "GatedModel"
    assert "wrong" not in message.read_text()


def test_a_revision_that_is_not_there_is_told(hub: HubSite, tmp_path: Path) -> None:
    message = tmp_path / "message"
    assert asked(hub, message, "--revision", "v9") == 1
    failure = read_failure(message.read_text())
    assert failure is not None
    assert failure.word == "ModelNotFound"


def test_an_error_that_nobody_foresaw_is_told_by_its_kind_alone(
    hub: HubSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise LookupError("hf_quoted")

    monkeypatch.setattr("plimsoll_runtime.told_model.remote", fault)
    message = tmp_path / "message"
    assert asked(hub, message) == 1
    failure = read_failure(message.read_text())
    assert failure is not None
    assert failure.word == "Download"
    assert "LookupError" in failure.message
    assert "fault" in json.loads(message.read_text())["evidence"][-1]
    assert "hf_quoted" not in message.read_text()


def test_a_start_that_ends_in_such_an_error_is_told_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fault(*_: object) -> None:
        raise LookupError("hf_quoted")

    monkeypatch.setattr("plimsoll_runtime.command.bring", fault)
    monkeypatch.setattr("plimsoll_runtime.supervisor.Supervisor.listen", lambda _: None)
    message = tmp_path / "message"
    own = ["serve", "--port", "0", "--fetch", "acme/x", "--termination-log", str(message)]
    assert main([*own, "--", "true"], {"PATH": "/bin:/usr/bin"}) == 1
    failure = read_failure(message.read_text())
    assert failure is not None
    assert (failure.word, "LookupError" in failure.message) == ("Download", True)
