"""Models through a proxy: what is encrypted by a tunnel, the rest by whole addresses; the names are known to the proxy alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from plimsoll.api.trust import DENIED_ENV
from plimsoll_runtime.command import main
from plimsoll_runtime.sources.fetch import Fetched, fetch
from plimsoll_runtime.sources.guard import parts_of
from plimsoll_runtime.sources.proxies import proxy_of
from plimsoll_runtime.sources.trouble import FetchFailed
from tests.runtime.proxy_site import ProxySite
from tests.runtime.registry_site import ModelScopeSite
from tests.runtime.sites import Asked, Reply, certified
from tests.runtime.small_model import QUICK, WANTED, Listener, files_of, shards

HOST = "models.example"
LARGE = "model-00001-of-00003.safetensors"
CREDENTIALS = "pods:pa ss"
Proxying = Callable[..., ProxySite]


class EncryptedScope(ModelScopeSite):
    def __init__(self, folder: Path) -> None:
        self.tls, self.authority = certified(folder, HOST)
        super().__init__(shards())


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[EncryptedScope]:
    one = EncryptedScope(tmp_path)
    yield one
    one.close()


@pytest.fixture
def proxying() -> Iterator[Proxying]:
    there: list[ProxySite] = []

    def make(site: ModelScopeSite, credentials: str = "") -> ProxySite:
        there.append(ProxySite({HOST: site.port}, credentials))
        return there[-1]

    yield make
    for one in there:
        one.close()


def through(proxy: ProxySite, site: ModelScopeSite, into: Path, credentials: str = "") -> Fetched:
    """Of a site that is encrypted if it can be."""
    authority = getattr(site, "authority", None)
    scheme = "http" if authority is None else "https"
    given = {
        "MODELSCOPE_DOMAIN": f"{scheme}://{HOST}",
        f"{scheme.upper()}_PROXY": f"http://{credentials}{proxy.address}",
        "SSL_CERT_FILE": str(authority or ""),
    }
    return fetch("modelscope://acme/tiny", None, into, Listener(), given, patience=QUICK)


def test_what_is_not_encrypted_is_asked_for_by_whole_addresses(modelscope, proxying, tmp_path):
    proxy = proxying(modelscope)
    assert files_of(through(proxy, modelscope, tmp_path / "into").path) == WANTED
    assert len(proxy.asked) >= len(modelscope.asked) > 0
    assert all(one.startswith(f"GET http://{HOST}/api/v1/models/acme/tiny/") for one in proxy.asked)
    assert all(one.headers["host"] == HOST for one in modelscope.asked)


def test_what_is_encrypted_goes_through_a_tunnel(encrypted, proxying, tmp_path):
    proxy = proxying(encrypted)
    found = through(proxy, encrypted, tmp_path / "into")
    assert files_of(found.path) == WANTED
    assert (found.path / LARGE).read_bytes() == encrypted.files[LARGE]
    assert set(proxy.asked) == {f"CONNECT {HOST}:443"}
    assert len(proxy.asked) >= len(encrypted.asked) > 0


def test_a_connection_that_is_cut_behind_a_proxy_goes_on_where_it_was(modelscope, proxying, tmp_path):
    def cut(asked: Asked) -> Reply | None:
        return Reply(cut=100_000) if asked.query.get("FilePath") == LARGE else None

    modelscope.once.append(cut)
    assert files_of(through(proxying(modelscope), modelscope, tmp_path / "into").path) == WANTED
    ranges = [one.headers.get("range") for one in modelscope.asked if one.query.get("FilePath") == LARGE]
    assert ranges[0] is None
    assert [one.partition("-")[0] for one in ranges[1:]] == ["bytes=100000"]


@pytest.mark.parametrize("kind", ["modelscope", "encrypted"])
def test_a_proxy_that_asks_for_credentials_gets_them_and_nobody_else_does(request, kind, proxying, tmp_path):
    site: ModelScopeSite = request.getfixturevalue(kind)
    proxy = proxying(site, CREDENTIALS)
    assert files_of(through(proxy, site, tmp_path / "into", "pods:pa%20ss@").path) == WANTED
    assert not any("proxy-authorization" in one.headers for one in site.asked)


@pytest.mark.parametrize("kind", ["modelscope", "encrypted"])
@pytest.mark.parametrize("credentials", ["", "pods:wrong-one@"])
def test_a_proxy_that_takes_no_credentials_is_told_as_that_and_asked_once(
    request, kind, credentials, proxying, tmp_path
):
    site: ModelScopeSite = request.getfixturevalue(kind)
    proxy = proxying(site, CREDENTIALS)
    with pytest.raises(FetchFailed) as caught:
        through(proxy, site, tmp_path / "into", credentials)
    failure = caught.value.failure
    assert failure.word == "Download"
    assert "the proxy 127.0.0.1" in failure.message
    assert "407" in failure.message
    assert "wrong-one" not in str(failure)
    assert "network.httpsProxy of the operator's config" in failure.remedy
    assert not any(fnmatchcase(word, denied) for word in failure.remedy.split() for denied in DENIED_ENV)
    assert len(proxy.asked) == 1
    assert not site.asked


@pytest.mark.parametrize("location", ["http://169.254.169.254/latest", "http://metadata.google.internal/x"])
def test_no_proxy_is_asked_for_what_must_not_be_followed(modelscope, proxying, tmp_path, location):
    def sends_on(asked: Asked) -> Reply | None:
        return Reply(302, b"", {"Location": location}) if "FilePath" in asked.query else None

    modelscope.once.append(sends_on)
    proxy = proxying(modelscope)
    with pytest.raises(FetchFailed, match="sends the download on"):
        through(proxy, modelscope, tmp_path / "into")
    assert not any(location in one for one in proxy.asked)


UNESCAPED = ["http://svc-llm:S3cr3t{}Pass@proxy.corp:3128", "svc-llm:123456{}Pass@proxy.corp:3128"]
"""What stands before an unescaped sign is taken for the port: one that is no number, and one that could be a port of a host svc-llm."""


@pytest.mark.parametrize("sign", ["/", "#", "?", "["])
@pytest.mark.parametrize("told", UNESCAPED)
@pytest.mark.parametrize("name", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_whose_password_is_not_escaped_is_told_by_its_variable_alone(sign, told, name):
    with pytest.raises(FetchFailed) as caught:
        proxy_of(parts_of("https://hub.example/x"), {name: told.format(sign)})
    failure = caught.value.failure
    assert failure.message.startswith(f"{name.upper()} is no address; characters such as / # ? @")
    assert "network.httpsProxy" in failure.remedy
    assert not any(
        word in f"{failure}{caught.value.__cause__}" for word in ("S3cr3t", "123456", "Pass@", "svc-llm")
    )


def test_a_variable_without_a_host_is_no_way_past_the_proxy():
    with pytest.raises(FetchFailed, match="HTTP_PROXY is no address"):
        proxy_of(parts_of("http://hub.example/x"), {"HTTP_PROXY": "http://:3128"})


@pytest.mark.parametrize("password", ["S3cr3t/Pass", "S3cr3t#Pass", "S3cr3t?Pass", "S3cr3t@Pass"])
def test_no_pod_leaves_the_password_of_its_proxy_in_what_tenants_read(password, tmp_path, capsys):
    message = tmp_path / "message"
    environment = {
        "HTTPS_PROXY": f"http://svc-llm:{password}@127.0.0.1:x",
        "HF_ENDPOINT": "https://hub.example",
    }
    assert main(["facts", "hf://acme/m", "--termination-log", str(message)], environment) == 1
    told = message.read_text() + "".join(capsys.readouterr())
    assert "HTTPS_PROXY is no address" in told
    assert not any(word in told for word in ("S3cr3t", "Pass@"))


@pytest.mark.parametrize("scheme", ["https", "socks5"])
def test_a_proxy_that_speaks_no_plain_http_is_told_nothing(scheme, modelscope, proxying, tmp_path):
    proxy = proxying(modelscope)
    given = {
        "MODELSCOPE_DOMAIN": f"https://{HOST}",
        "HTTPS_PROXY": f"{scheme}://svc:Hunter2@{proxy.address}",
    }
    with pytest.raises(FetchFailed, match="HTTPS_PROXY: only http:// proxies are understood") as caught:
        fetch("modelscope://acme/tiny", None, tmp_path, Listener(), given, patience=QUICK)
    assert "network.httpsProxy" in caught.value.failure.remedy
    assert not proxy.asked


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_proxy_that_is_down_is_told_as_what_cannot_be_asked(scheme, tmp_path):
    given = {"HF_ENDPOINT": f"{scheme}://{HOST}", f"{scheme.upper()}_PROXY": "http://svc:Hunter2@127.0.0.1:1"}
    with pytest.raises(FetchFailed) as caught:
        fetch("hf://acme/tiny", None, tmp_path, Listener(), given, patience=QUICK)
    assert f"{HOST} cannot be reached by the proxy 127.0.0.1:1: " in str(caught.value)
    assert "Hunter2" not in str(caught.value)
