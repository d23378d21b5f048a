"""A small model that lies in a real store, where a test may fetch and spoil it."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from fronting import Front
from plimsoll_runtime.sources.fetch import Fetched, fetch
from plimsoll_runtime.sources.trouble import FetchFailed, Patience
from plimsoll_runtime.sources.web import NOTHING
from stores import Bucket, Registry, Store
from tests.runtime.small_model import Listener, shards

PATIENCE: Final = Patience(attempts=6, first=0.01, most=0.05, timeout=120.0)
SHARD: Final = "model-00002-of-00003.safetensors"
RAW: Final = "application/vnd.cncf.model.weight.v1.raw"
TAR: Final = "application/vnd.oci.image.layer.v1.tar"
PLAIN: Final = "application/octet-stream"
BY_PATH: Final = "org.cncf.model.filepath"
BY_TITLE: Final = "org.opencontainers.image.title"


@dataclass(frozen=True)
class Lain:
    """A model that lies in a store."""

    store: Store
    named: Callable[[str], str]
    """Its source, by the address of the store or of a front before it."""
    opens: Callable[[str], Mapping[str, str]]
    """The variables that say where the store is and who asks."""
    file: Callable[[str], Path]
    """Where the bytes of a file lie."""
    path: Callable[[str], str]
    """By which a file is asked for."""

    def get(
        self,
        into: Path,
        told: Listener | None = None,
        *,
        at: Front | None = None,
        more: Mapping[str, str] = NOTHING,
    ) -> Fetched:
        address = self.store.address if at is None else f"127.0.0.1:{at.port}"
        given = {**self.opens(address), **more}
        return fetch(self.named(address), None, into, told or Listener(), given, patience=PATIENCE)

    def refused(self, into: Path, *, at: Front | None = None, more: Mapping[str, str] = NOTHING) -> str:
        """Word and message."""
        with pytest.raises(FetchFailed) as caught:
            self.get(into, at=at, more=more)
        return f"{caught.value.failure.word}: {caught.value.failure.message}"


def basic(registry: Registry) -> str:
    return f"Basic {base64.b64encode(f'{registry.USER}:{registry.PASSWORD}'.encode()).decode()}"


def in_registry(store: Registry, place: str, note: str = BY_PATH, kind: str = RAW) -> Lain:
    files = shards()
    layers = [{"mediaType": kind, "annotations": {note: name}} for name in files]
    store.push(place, "v1", layers, list(files.values()), basic(store))
    digests = {name: f"sha256:{hashlib.sha256(body).hexdigest()}" for name, body in files.items()}
    return Lain(
        store=store,
        named=lambda address: f"oci://{address}/{place}:v1",
        opens=lambda _: {"OCI_REGISTRY_AUTH": f"{store.USER}:{store.PASSWORD}"},
        file=lambda name: store.blob(digests[name]),
        path=lambda name: digests[name],
    )


def in_bucket(store: Bucket, place: str) -> Lain:
    place = f"{place}/a model+1"
    for name, body in shards().items():
        store.put(f"{place}/{name}", body)
    store.put(f"{place}0/config.json", b"another")
    return Lain(
        store=store,
        named=lambda _: f"s3://{store.NAME}/{place}",
        opens=lambda address: {
            "AWS_ENDPOINT_URL": f"http://{address}",
            "AWS_ACCESS_KEY_ID": store.KEYS.access,
            "AWS_SECRET_ACCESS_KEY": store.KEYS.secret,
            "AWS_REGION": store.REGION,
        },
        file=lambda name: store.file(f"{place}/{name}"),
        path=lambda name: f"{place}/{name}",
    )


def spoil(file: Path) -> None:
    body = file.read_bytes()
    file.write_bytes(body[:1000] + bytes([body[1000] ^ 1]) + body[1001:])
