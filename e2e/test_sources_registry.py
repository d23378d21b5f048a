"""What is a registry's alone, of a real one: passwords, tokens, the forms of artifacts, and what is spoilt below a manifest."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.hashes import SHA256

from lain import BY_PATH, BY_TITLE, PATIENCE, PLAIN, RAW, SHARD, TAR, basic, in_registry
from plimsoll_runtime.sources.fetch import fetch
from plimsoll_runtime.sources.trouble import FetchFailed
from stores import Registry
from tests.runtime.registry_site import archive
from tests.runtime.sites import Asked, Reply, Site
from tests.runtime.small_model import WANTED, Listener, files_of, safetensors, shards

pytestmark = pytest.mark.real_store


@pytest.mark.parametrize("left", [0, 100_000])
def test_what_is_shorter_on_the_servers_disk_than_it_says_is_refused(
    registry: Registry, place: str, tmp_path: Path, left: int
) -> None:
    lain = in_registry(registry, place)
    with lain.file(SHARD).open("r+b") as file:
        file.truncate(left)
    size = len(shards()[SHARD])
    assert lain.refused(tmp_path) == f"BadCheckpoint: {SHARD} has {left} bytes, and {size} were announced"


@pytest.mark.parametrize("auth", ["puller:wrong", "somebody:pass:word", ""])
def test_a_password_that_is_not_right_is_told(
    registry: Registry, place: str, tmp_path: Path, auth: str
) -> None:
    lain = in_registry(registry, place)
    said = lain.refused(tmp_path, more={"OCI_REGISTRY_AUTH": auth})
    assert said == f"GatedModel: the registry does not let this pod pull {lain.named(registry.address)}"


@pytest.mark.parametrize("what", ["tag", "repository"])
def test_what_is_not_in_a_registry_is_told(registry: Registry, place: str, tmp_path: Path, what: str) -> None:
    lain = in_registry(registry, place)
    source = lain.named(registry.address)
    source = source.replace(":v1", ":v9") if what == "tag" else source.replace("acme/", "other/")
    with pytest.raises(FetchFailed) as caught:
        fetch(source, None, tmp_path, Listener(), lain.opens(""), patience=PATIENCE)
    assert (caught.value.failure.word, caught.value.failure.message) == (
        "ModelNotFound",
        f"there is no {source}",
    )


def test_files_that_are_named_by_their_title_come_too(registry: Registry, place: str, tmp_path: Path) -> None:
    lain = in_registry(registry, place, BY_TITLE, PLAIN)
    assert files_of(lain.get(tmp_path).path) == WANTED


@pytest.mark.parametrize("packed", [False, True])
def test_layers_that_are_archives_are_unpacked(
    registry: Registry, place: str, tmp_path: Path, packed: bool
) -> None:
    wanted = {name: body for name, body in shards().items() if name in WANTED}
    first = archive({**wanted, "config.json": b"old", "gone.json": b"{}"}, pack=packed)
    second = archive({"config.json": wanted["config.json"], ".wh.gone.json": b""}, pack=packed)
    kind = {"mediaType": f"{TAR}+gzip" if packed else TAR}
    digest = registry.push(place, "v1", [kind, kind], [first, second], basic(registry))
    given = {"OCI_REGISTRY_AUTH": f"{registry.USER}:{registry.PASSWORD}"}
    for name in (":v1", f"@{digest}"):
        source = f"oci://{registry.address}/{place}{name}"
        found = fetch(source, None, tmp_path / name[:1], Listener(), given, patience=PATIENCE)
        assert files_of(found.path) == WANTED
        assert all((found.path / file).read_bytes() == body for file, body in wanted.items())


class TokenService(Site):
    """Gives tokens of the kind that registries of the world ask for, signed by a key of its own, for what is asked and no more."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        super().__init__()

    @property
    def told(self) -> Mapping[str, Any]:
        """To a registry."""
        return {"realm": f"{self.url}/token", "service": "tests", "issuer": "tests"}

    @property
    def keys(self) -> Mapping[str, Any]:
        numbers = self._key.public_key().public_numbers()
        point = {
            name: _encoded(value.to_bytes(32, "big")) for name, value in (("x", numbers.x), ("y", numbers.y))
        }
        return {"keys": [{"kty": "EC", "crv": "P-256", "kid": "one", "alg": "ES256", **point}]}

    def token(self, repository: str, *actions: str) -> str:
        now = int(time.time())
        claims = {
            "iss": "tests",
            "sub": "puller",
            "aud": "tests",
            "nbf": now - 600,
            "iat": now,
            "exp": now + 600,
            "jti": "1",
            "access": [{"type": "repository", "name": repository, "actions": list(actions)}],
        }
        parts = [_encoded(json.dumps(one).encode()) for one in ({"alg": "ES256", "kid": "one"}, claims)]
        text = ".".join(parts)
        both = utils.decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(SHA256())))
        return f"{text}.{_encoded(b''.join(one.to_bytes(32, 'big') for one in both))}"

    def answer(self, asked: Asked) -> Reply:
        known = base64.b64encode(b"puller:pass:word").decode()
        if asked.headers.get("authorization") != f"Basic {known}" or asked.query.get("service") != "tests":
            return Reply(401, b"{}")
        _, repository, actions = asked.query["scope"].split(":")
        return Reply(200, json.dumps({"token": self.token(repository, *actions.split(","))}).encode())


def _encoded(body: bytes) -> str:
    return base64.urlsafe_b64encode(body).decode().rstrip("=")


@pytest.fixture
def service() -> Iterator[TokenService]:
    one = TokenService()
    yield one
    one.close()


@pytest.fixture
def guarded(service: TokenService) -> Iterator[Registry]:
    """A registry that takes tokens of that service, and nothing else."""
    with Registry(tokens=service.told, keys=service.keys) as one:
        yield one


def test_a_token_is_asked_for_where_the_registry_says(
    guarded: Registry, service: TokenService, place: str, tmp_path: Path
) -> None:
    names = {"config.json": b"{}", "model.safetensors": safetensors(100_000)}
    layers = [{"mediaType": RAW, "annotations": {BY_PATH: name}} for name in names]
    pushes = f"Bearer {service.token(place, 'pull', 'push')}"
    guarded.push(place, "v1", layers, list(names.values()), pushes)
    source = f"oci://{guarded.address}/{place}:v1"
    found = fetch(
        source,
        None,
        tmp_path / "right",
        Listener(),
        {"OCI_REGISTRY_AUTH": "puller:pass:word"},
        patience=PATIENCE,
    )
    assert {name: (found.path / name).read_bytes() for name in files_of(found.path)} == names
    assert len(service.asked) == 1
    with pytest.raises(FetchFailed) as caught:
        fetch(
            source, None, tmp_path / "wrong", Listener(), {"OCI_REGISTRY_AUTH": "puller:x"}, patience=PATIENCE
        )
    assert caught.value.failure.word == "GatedModel"
    assert caught.value.failure.message == f"127.0.0.1 gives no token for {source} (401)"
