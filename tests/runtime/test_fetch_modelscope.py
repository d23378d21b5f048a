"""A model from ModelScope: cut and resumed, wrong, refused, sent elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from plimsoll_runtime.sources.fetch import Fetched, fetch
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.registry_site import ModelScopeSite
from tests.runtime.sites import Asked, Reply, cut_once
from tests.runtime.small_model import QUICK, WANTED, Listener, files_of


def scope(site: ModelScopeSite, into: Path, revision: str | None = None, **environment: str) -> Fetched:
    given = {"MODELSCOPE_DOMAIN": site.url, **environment}
    return fetch("modelscope://acme/tiny", revision, into, Listener(), given, patience=QUICK)


def test_a_model_of_modelscope(modelscope, tmp_path):
    modelscope.once.append(cut_once("repo", 100))
    found = scope(modelscope, tmp_path)
    assert files_of(found.path) == WANTED
    count = len(modelscope.asked)
    assert scope(modelscope, tmp_path) == found
    assert len(modelscope.asked) == count
    assert scope(modelscope, tmp_path, "v1") == found


@pytest.mark.parametrize(
    ("revision", "token", "word"),
    [("v9", "", "ModelNotFound"), (None, "right", "GatedModel"), (None, "", "BadCheckpoint")],
)
def test_what_modelscope_refuses_is_told_in_words(modelscope, tmp_path, revision, token, word):
    modelscope.token = token
    if word == "BadCheckpoint":
        modelscope.wrong["config.json"] = bytes(len(modelscope.files["config.json"]))
    with pytest.raises(FetchFailed) as caught:
        scope(modelscope, tmp_path, revision, MODELSCOPE_API_TOKEN="wrong")
    assert caught.value.failure.word == word


def of_file(name: str, reply: Reply) -> Callable[[Asked], Reply | None]:
    """A misdeed for whoever asks for this file."""
    return lambda asked: reply if asked.query.get("FilePath") == name else None


def test_a_large_file_of_modelscope_that_is_cut_goes_on_where_it_was(modelscope, tmp_path):
    name = "model-00001-of-00003.safetensors"
    modelscope.once += [of_file(name, Reply(cut=100_000))] * 2
    found = scope(modelscope, tmp_path)
    assert (found.path / name).read_bytes() == modelscope.files[name]
    asked = [one.headers.get("range") for one in modelscope.asked if one.query.get("FilePath") == name]
    assert asked[0] is None
    assert [one.partition("-")[0] for one in asked[1:]] == ["bytes=100000", "bytes=200000"]


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("http://169.254.169.254/latest/meta-data/", "169.254.169.254"),
        ("http://metadata.google.internal/x", "metadata.google.internal"),
        ("file:///etc/passwd", "no address of http"),
    ],
)
def test_modelscope_sends_nobody_where_a_download_must_not_go(modelscope, tmp_path, location, said):
    modelscope.once.append(of_file("config.json", Reply(302, b"", {"Location": location})))
    with pytest.raises(FetchFailed) as caught:
        scope(modelscope, tmp_path)
    assert caught.value.failure.word == "Download"
    assert "sends the download on" in caught.value.failure.message
    assert said in caught.value.failure.message


def test_a_token_of_modelscope_goes_to_no_other_host(modelscope, cdn, tmp_path):
    name = "model-00002-of-00003.safetensors"
    modelscope.token = "right"
    cdn.files["/blob"] = modelscope.files[name]
    modelscope.once.append(of_file(name, Reply(302, b"", {"Location": f"{cdn.url}/blob?sig=good"})))
    assert files_of(scope(modelscope, tmp_path, MODELSCOPE_API_TOKEN="right").path) == WANTED
    assert len(cdn.asked) == 1
    assert not {"authorization", "cookie"} & set(cdn.asked[0].headers)
