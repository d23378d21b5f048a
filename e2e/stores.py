"""Where models lie, as real programs: a registry of images and a store that speaks S3, each over a folder of its own on this machine.

They check passwords, tokens, signatures and sums for themselves. What lies in them is put there as their own clients would put it; their
folders are open to tests, which may spoil what is in them.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import socket
import sys
import time
import xml.etree.ElementTree as ET
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote, urlsplit

from cluster.binaries import Places, ensure
from cluster.binaries.progress import Progress
from cluster.owner import Owner
from plimsoll_runtime.sources.sigv4 import Keys, escaped, signed

PATIENCE_SECONDS: Final = 120.0
MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"


class Store(Owner):
    """One program, called as its release is, on a port of this machine, and its folder."""

    address = ""

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    @abstractmethod
    def _argv(self, address: str) -> Sequence[str]:
        """With whatever files they name written."""

    def _start(self) -> None:
        places = Places.of(os.environ)  # noqa: TID251 - the default of an entry point
        program = ensure([self.called], places, Progress(sys.stderr))[self.called]
        self.address = self._listening(self.called, program, self._argv, _answers, PATIENCE_SECONDS)

    def _ask(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str], *, expected: int
    ) -> tuple[Mapping[str, str], bytes]:
        """The headers of the answer, names in small letters, and its body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
        with contextlib.closing(connection):
            connection.request(method, target, body, dict(headers))
            answer = connection.getresponse()
            said = answer.read()
        assert answer.status == expected, f"{method} {target}: {answer.status} {said[:500]!r}"
        return {name.lower(): value for name, value in answer.getheaders()}, said


class Registry(Store):
    """That of the distribution project. It asks for a password, or for a token of a service that tests are."""

    called = "registry"
    USER: Final = "puller"
    PASSWORD: Final = "pass:word"
    _HTPASSWD: Final = "puller:$2b$04$iUZOXC64fpCVm9mrwL55e.vlKWTH3MixtrTuTul3KaB/DrouzDAzi\n"
    """This user with this password, as the registry keeps them."""

    def __init__(
        self, tokens: Mapping[str, Any] | None = None, keys: Mapping[str, Any] | None = None
    ) -> None:
        """`tokens`: realm, service and issuer of a token service, and `keys` the set by which its tokens are known."""
        super().__init__()
        self._tokens, self._keys = tokens, keys

    def _argv(self, address: str) -> Sequence[str]:
        (self.folder / "htpasswd").write_text(self._HTPASSWD)
        (self.folder / "keys.json").write_text(json.dumps(self._keys))
        auth: dict[str, Any] = {"htpasswd": {"realm": "tests", "path": str(self.folder / "htpasswd")}}
        if self._tokens is not None:
            signed_by = {"jwks": str(self.folder / "keys.json"), "signingalgorithms": ["ES256"]}
            auth = {"token": {**self._tokens, **signed_by}}
        config = {
            "version": "0.1",
            "log": {"level": "info"},
            "storage": {"filesystem": {"rootdirectory": str(self.folder / "blobs")}},
            "http": {"addr": address, "secret": "of the tests"},
            "auth": auth,
        }
        (self.folder / "config.yml").write_text(json.dumps(config))
        return ("serve", str(self.folder / "config.yml"))

    def push(
        self,
        repository: str,
        tag: str,
        layers: Sequence[Mapping[str, Any]],
        bodies: Sequence[bytes],
        authorization: str,
    ) -> str:
        """`layers` say kind and notes of each; the digest of the manifest."""
        listed = [
            {**about, "digest": self._blob(repository, body, authorization), "size": len(body)}
            for about, body in zip(layers, bodies, strict=True)
        ]
        config = {
            "mediaType": "application/vnd.oci.empty.v1+json",
            "digest": self._blob(repository, b"{}", authorization),
            "size": 2,
        }
        manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": listed}
        headers = {"Content-Type": MANIFEST, "Authorization": authorization}
        body = json.dumps(manifest).encode()
        told, _ = self._ask("PUT", f"/v2/{repository}/manifests/{tag}", body, headers, expected=201)
        return told["docker-content-digest"]

    def _blob(self, repository: str, body: bytes, authorization: str) -> str:
        digest, headers = f"sha256:{hashlib.sha256(body).hexdigest()}", {"Authorization": authorization}
        begun, _ = self._ask("POST", f"/v2/{repository}/blobs/uploads/", b"", headers, expected=202)
        at = urlsplit(begun["location"])
        target = f"{at.path}?{at.query}&digest={quote(digest)}"
        headers["Content-Type"] = "application/octet-stream"
        self._ask("PUT", target, body, headers, expected=201)
        return digest

    def blob(self, digest: str) -> Path:
        """Where the bytes of a blob lie."""
        kind, _, value = digest.partition(":")
        return self.folder / f"blobs/docker/registry/v2/blobs/{kind}/{value[:2]}/{value}/data"


class Bucket(Store):
    """Versity's gateway, with one bucket, which checks the signature of every request."""

    called = "s3-folder"
    KEYS: Final = Keys("AKIATEST", "secret/of+the=tests")
    REGION: Final = "eu-test-1"
    NAME: Final = "models"

    def _argv(self, address: str) -> Sequence[str]:
        for name in ("buckets", "attributes"):
            (self.folder / name).mkdir(exist_ok=True)
        folders = [str(self.folder / name) for name in ("buckets", "attributes")]
        return (address, self.REGION, self.KEYS.access, self.KEYS.secret, *folders)

    def _start(self) -> None:
        super()._start()
        self._signed("PUT", "")

    def put(self, key: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self._signed("PUT", key, body=body, headers=headers)

    def put_in_parts(self, key: str, parts: Sequence[bytes]) -> None:
        """All parts but the last have 5 MiB or more, as such stores want it."""
        _, begun = self._signed("POST", key, "uploads=")
        upload = next(one.text or "" for one in ET.fromstring(begun).iter() if one.tag.endswith("UploadId"))
        told = ""
        for number, part in enumerate(parts, 1):
            answer, _ = self._signed("PUT", key, f"partNumber={number}&uploadId={escaped(upload)}", part)
            told += f"<Part><PartNumber>{number}</PartNumber><ETag>{answer['etag']}</ETag></Part>"
        done = f"<CompleteMultipartUpload>{told}</CompleteMultipartUpload>".encode()
        self._signed("POST", key, f"uploadId={escaped(upload)}", done)

    def file(self, key: str) -> Path:
        """Where the bytes of an object lie."""
        return self.folder / "buckets" / self.NAME / key

    def _signed(
        self,
        method: str,
        key: str,
        query: str = "",
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
    ) -> tuple[Mapping[str, str], bytes]:
        target = f"/{self.NAME}" + (f"/{escaped(key, '/')}" if key else "")
        url = urlsplit(f"http://{self.address}{target}?{query}")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
        payload, told = hashlib.sha256(body).hexdigest(), dict(headers or {})
        told |= signed(url, told, self.KEYS, self.REGION, stamp, method=method, payload=payload)
        return self._ask(method, f"{target}?{query}" if query else target, body, told, expected=200)


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 5):
        return True
    return False
