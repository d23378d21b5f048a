"""A mirror whose address holds a name and a password: they go to it as such where there is no token, and into no text."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path

import pytest

from plimsoll_runtime.sources.fetch import fetch
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.hub_site import TOKEN, HubSite, Repository
from tests.runtime.registry_site import ModelScopeSite
from tests.runtime.sites import Asked, Reply, Site
from tests.runtime.small_model import NAME, QUICK, WANTED, Listener, files_of, shards

BASIC = "Basic " + base64.b64encode(b"ci:Hunter2/x").decode()


class Guarded(HubSite):
    """A mirror that keeps the way to a hub to those it knows."""

    def answer(self, asked: Asked) -> Reply:
        if asked.headers.get("authorization") != BASIC:
            return Reply(401, b"", {"WWW-Authenticate": 'Basic realm="mirror"'})
        return super().answer(Asked(asked.method, asked.path, asked.raw, asked.query, {}))


class GuardedScope(ModelScopeSite):
    def answer(self, asked: Asked) -> Reply:
        return super().answer(asked) if asked.headers.get("authorization") == BASIC else Reply(401)


@pytest.fixture
def hub() -> Iterator[HubSite]:
    one = Guarded({NAME: Repository(shards())})
    yield one
    one.close()


@pytest.fixture
def scope() -> Iterator[ModelScopeSite]:
    one = GuardedScope(shards())
    yield one
    one.close()


def at(site: Site, known: str = "ci:Hunter2%2Fx") -> str:
    return site.url.replace("://", f"://{known}@") + "/"


def told(into: Path, source: str, **environment: str) -> str:
    """All that a fetch that fails says."""
    with pytest.raises(FetchFailed) as caught:
        fetch(source, None, into, Listener(), environment, patience=QUICK)
    return str(caught.value.failure)


def test_a_hub_is_told_who_asks(hub, tmp_path):
    given = {"HF_ENDPOINT": at(hub)}
    assert files_of(fetch(f"hf://{NAME}", None, tmp_path, Listener(), given, patience=QUICK).path) == WANTED


def test_modelscope_is_told_who_asks(scope, tmp_path):
    given = {"MODELSCOPE_DOMAIN": at(scope)}
    found = fetch(f"modelscope://{NAME}", None, tmp_path, Listener(), given, patience=QUICK)
    assert files_of(found.path) == WANTED


def test_a_token_goes_before_the_name_and_password_of_the_address(hub, tmp_path):
    told(tmp_path, f"hf://{NAME}", HF_ENDPOINT=at(hub), HF_TOKEN=TOKEN)
    assert {one.headers["authorization"] for one in hub.asked} == {f"Bearer {TOKEN}"}


def test_a_mirror_that_takes_neither_name_nor_password_is_told_as_that(hub, tmp_path):
    said = told(tmp_path, f"hf://{NAME}", HF_ENDPOINT=at(hub, "ci:Wrong99"))
    assert f"{hub.url} does not take the name and password in HF_ENDPOINT" in said
    assert "Wrong99" not in said
    assert len(hub.asked) == 1


@pytest.mark.parametrize("source", [f"hf://{NAME}", f"modelscope://{NAME}"])
def test_what_a_mirror_refuses_is_told_without_its_password(hub, scope, tmp_path, source):
    hub.once.append(lambda _: Reply(404))
    scope.once.append(lambda _: Reply(404))
    said = told(tmp_path, source, HF_ENDPOINT=at(hub), MODELSCOPE_DOMAIN=at(scope))
    assert (hub if source.startswith("hf") else scope).url in said
    assert "Hunter2" not in said


@pytest.mark.parametrize(
    ("source", "name", "field"),
    [
        (f"hf://{NAME}", "HF_ENDPOINT", "network.hubEndpoint"),
        (f"modelscope://{NAME}", "MODELSCOPE_DOMAIN", "network.modelscopeEndpoint"),
    ],
)
@pytest.mark.parametrize("password", ["Hunter2/x", "123456/x", "Hunter2#x"])
def test_an_address_whose_password_is_not_escaped_is_told_by_its_variable(
    source, name, field, password, tmp_path
):
    said = told(tmp_path, source, **{name: f"https://ci:{password}@mirror.corp/hf"})
    assert f"{name} is no address; characters such as / # ? @ in its password must be escaped" in said
    assert field in said
    assert not any(word in said for word in ("Hunter2", "123456", "mirror"))
