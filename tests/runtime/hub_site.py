"""A hub: repositories with commits and branches, large files at a second host, gated and private ones, and an API as the real one has it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from tests.runtime.sites import Asked, Reply, Site, ranged

LARGE = (".safetensors", ".bin", ".gguf", ".pt")
TOKEN = "hf_" + "a" * 30


@dataclass
class Repository:
    files: Mapping[str, bytes]
    gated: bool = False
    private: bool = False
    branches: tuple[str, ...] = ("main",)
    wrong: dict[str, bytes] = field(default_factory=dict)
    """What is sent instead, by name."""

    @property
    def commit(self) -> str:
        text = b"".join(
            name.encode() + hashlib.sha1(body).digest() for name, body in sorted(self.files.items())
        )
        return hashlib.sha1(text).hexdigest()


def git_sum(body: bytes) -> str:
    return hashlib.sha1(f"blob {len(body)}\0".encode() + body).hexdigest()


class Cdn(Site):
    """Where large files lie; an address is good for whoever has its signature, and nobody brings a token."""

    def __init__(self, host: str | None = None) -> None:
        super().__init__(host)
        self.files: dict[str, bytes] = {}
        self.ignores_ranges = False

    def answer(self, asked: Asked) -> Reply:
        body = self.files.get(asked.path)
        if asked.query.get("sig") != "good":
            return Reply(403, b"<Error/>")
        if "authorization" in asked.headers:
            return Reply(400, b"two ways to sign")
        if body is None:
            return Reply(404)
        return Reply(200, body) if self.ignores_ranges else ranged(asked, body)


class HubSite(Site):
    def __init__(
        self, repositories: Mapping[str, Repository], cdn: Cdn | None = None, host: str | None = None
    ) -> None:
        self.repositories, self.cdn = dict(repositories), cdn
        self.location: str | None = None
        """Where large files are said to be, in place of the second host."""
        super().__init__(host)

    def answer(self, asked: Asked) -> Reply:
        if asked.path.startswith("/api/models/"):
            rest = asked.path.removeprefix("/api/models/")
            way = "/tree/" if "/tree/" in rest else "/revision/"
            name, _, revision = rest.partition(way)
            answer = self._tree if way == "/tree/" else self._about
            return self._refused(asked, name, revision or "main") or answer(name, asked)
        name, separator, rest = asked.path.lstrip("/").partition("/resolve/")
        revision, _, path = rest.partition("/")
        if not separator:
            return Reply(404)
        return self._refused(asked, name, revision) or self._file(asked, self.repositories[name], path)

    def _refused(self, asked: Asked, name: str, revision: str) -> Reply | None:
        repository, told = self.repositories.get(name), asked.headers.get("authorization")
        if told is not None and told != f"Bearer {TOKEN}":
            said = "Invalid credentials in Authorization header"
            return _error(401, None, said)
        if repository is None or (repository.private and told is None):
            return _error(401 if told is None else 404, "RepoNotFound", "Repository not found")
        if repository.gated and told is None:
            return _error(
                401, "GatedRepo", f"Access to model {name} is restricted. You must be authenticated"
            )
        if revision not in (*repository.branches, repository.commit):
            return _error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        return None

    def _tree(self, name: str, asked: Asked) -> Reply:
        """As newer clients ask for it."""
        listed = []
        for path, body in sorted(self.repositories[name].files.items()):
            about: dict[str, object] = {"type": "file", "oid": git_sum(body), "size": len(body), "path": path}
            if path.endswith(LARGE):
                about["lfs"] = {
                    "oid": hashlib.sha256(body).hexdigest(),
                    "size": len(body),
                    "pointerSize": 135,
                }
            listed.append(about)
        return Reply(200, json.dumps(listed).encode(), {"Content-Type": "application/json"})

    def _about(self, name: str, asked: Asked) -> Reply:
        repository = self.repositories[name]
        siblings = []
        for path, body in sorted(repository.files.items()):
            about: dict[str, object] = {"rfilename": path}
            if asked.query.get("blobs") == "true":
                about |= {"size": len(body), "blobId": git_sum(body)}
                if path.endswith(LARGE):
                    sum_ = hashlib.sha256(body).hexdigest()
                    about["lfs"] = {"sha256": sum_, "size": len(body), "pointerSize": 135}
            siblings.append(about)
        told = {"id": name, "modelId": name, "sha": repository.commit, "private": False, "siblings": siblings}
        return Reply(200, json.dumps(told).encode(), {"Content-Type": "application/json"})

    def _file(self, asked: Asked, repository: Repository, path: str) -> Reply:
        body = repository.files.get(path)
        if body is None:
            return _error(404, "EntryNotFound", "Entry not found")
        large, sent = path.endswith(LARGE), repository.wrong.get(path, body)
        tag = hashlib.sha256(body).hexdigest() if large else git_sum(body)
        headers = {"X-Repo-Commit": repository.commit, "ETag": f'"{tag}"'}
        if not large or self.cdn is None:
            return ranged(asked, sent, headers)
        place = f"/{repository.commit}/{path}"
        self.cdn.files[place] = sent
        location = self.location or f"{self.cdn.url}{place}?sig=good"
        headers |= {"Location": location, "X-Linked-Size": str(len(body)), "X-Linked-ETag": f'"{tag}"'}
        return Reply(302, b"", headers)


def _error(status: int, code: str | None, said: str) -> Reply:
    headers = {"X-Error-Message": said} | ({} if code is None else {"X-Error-Code": code})
    return Reply(status, json.dumps({"error": said}).encode(), headers)
