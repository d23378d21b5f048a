"""A registry of images with a token service of its own, as the distribution API has it, and a ModelScope."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping, Sequence

from tests.runtime.sites import Asked, Reply, Site, ranged

USER, PASSWORD, TOKEN = "puller", "pass:word", "registry-token"
SCOPE = "repository:acme/tiny:pull"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def archive(
    files: Mapping[str, bytes], links: Mapping[str, str] | None = None, *, pack: bool = False
) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as tar:
        for name, body in files.items():
            about = tarfile.TarInfo(name)
            about.size = len(body)
            tar.addfile(about, io.BytesIO(body))
        for name, target in (links or {}).items():
            about = tarfile.TarInfo(name)
            about.type, about.linkname = tarfile.SYMTYPE, target
            tar.addfile(about)
    return gzip.compress(held.getvalue(), 1) if pack else held.getvalue()


class RegistrySite(Site):
    def __init__(self) -> None:
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, tuple[str, bytes]] = {}
        self.wrong: dict[str, bytes] = {}
        self.realm: str | None = None
        self.closed, self.public = True, False
        self.challenges = 'Bearer realm="{realm}",service="tests"', ""
        """Ways to say who asks, a header each."""
        super().__init__()

    def push(self, tag: str, layers: Sequence[tuple[str, str, bytes]], *, index: bool = False) -> str:
        """Kind, title and bytes of each; the digest of the manifest."""
        listed = []
        for kind, title, body in layers:
            digest = self._put(body)
            notes = {"annotations": {"org.opencontainers.image.title": title}} if title else {}
            listed.append({"mediaType": kind, "digest": digest, "size": len(body), **notes})
        config = {"mediaType": "application/vnd.oci.empty.v1+json", "digest": self._put(b"{}"), "size": 2}
        digest = self._name(
            tag, MANIFEST, {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": listed}
        )
        if index:
            others = [
                {
                    "mediaType": MANIFEST,
                    "digest": f"sha256:{'0' * 64}",
                    "size": 1,
                    "platform": {"os": "linux", "architecture": "s390x"},
                },
                {"mediaType": MANIFEST, "digest": digest, "size": 1},
            ]
            digest = self._name(tag, INDEX, {"schemaVersion": 2, "mediaType": INDEX, "manifests": others})
        return digest

    def _put(self, body: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
        self.blobs[digest] = body
        return digest

    def _name(self, tag: str, kind: str, body: Mapping[str, object]) -> str:
        text = json.dumps(body).encode()
        digest = f"sha256:{hashlib.sha256(text).hexdigest()}"
        self.manifests[tag] = self.manifests[digest] = (kind, text)
        return digest

    def answer(self, asked: Asked) -> Reply:
        if asked.path == "/token":
            return self._token(asked)
        if self.closed and asked.headers.get("authorization") != f"Bearer {TOKEN}":
            realm = self.realm or f"{self.url}/token"
            one, other = (way.format(realm=realm) for way in self.challenges)
            # Names of headers are the same in any case, so these are two of one name.
            more = {"Www-Authenticate": other} if other else {}
            return Reply(401, b"{}", {"WWW-Authenticate": one, **more})
        place = asked.path.removeprefix("/v2/acme/tiny/")
        what, _, name = place.partition("/")
        if what == "manifests" and name in self.manifests:
            kind, body = self.manifests[name]
            return Reply(200, body, {"Content-Type": kind})
        if what == "blobs" and name in self.blobs:
            return ranged(asked, self.wrong.get(name, self.blobs[name]))
        return Reply(404, b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}')

    def _token(self, asked: Asked) -> Reply:
        told = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        known = self.public or asked.headers.get("authorization") == f"Basic {told}"
        if not known or (asked.query.get("scope"), asked.query.get("service")) != (SCOPE, "tests"):
            return Reply(401, b"{}")
        return Reply(200, json.dumps({"token": TOKEN}).encode())


class ModelScopeSite(Site):
    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files, self.token = dict(files), ""
        self.wrong: dict[str, bytes] = {}
        super().__init__()

    def answer(self, asked: Asked) -> Reply:
        if self.token and asked.headers.get("authorization") != f"Bearer {self.token}":
            return Reply(403, b"{}")
        base = "/api/v1/models/acme/tiny/repo"
        if asked.query.get("Revision") not in ("master", "v1") or not asked.path.startswith(base):
            return Reply(404, b'{"Code":404}')
        if asked.path == base:
            name = asked.query["FilePath"]
            return ranged(asked, self.wrong.get(name, self.files[name])) if name in self.files else Reply(404)
        listed: list[dict[str, object]] = [{"Path": "processing", "Type": "tree", "Size": 0}]
        for name, body in self.files.items():
            listed.append(
                {"Path": name, "Type": "blob", "Size": len(body), "Sha256": hashlib.sha256(body).hexdigest()}
            )
        return Reply(200, json.dumps({"Code": 200, "Data": {"Files": listed}}).encode())
