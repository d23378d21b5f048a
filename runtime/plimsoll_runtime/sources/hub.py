"""A repository of the hub or of a mirror that speaks as it does: its commit, its files, any part of them."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

from plimsoll_runtime.sources.listing import Digest, File, Listing
from plimsoll_runtime.sources.named import endpoint
from plimsoll_runtime.sources.trouble import REACH, FetchFailed, Refused, Transient, failed
from plimsoll_runtime.sources.web import Answer, Web

HUB = "https://huggingface.co"
COMMIT = re.compile(r"[0-9a-f]{40}\Z")
_FIELD = "network.hubEndpoint"
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_TOKENS = "accept the model's terms, and name a token that may read it in spec.model.tokenSecret"
_NAMES = "correct spec.model.source and spec.model.revision; a private one also needs spec.model.tokenSecret"


class Hub:
    def __init__(self, repository: str, revision: str | None, web: Web) -> None:
        self.repository, self.revision = repository, revision or "main"
        self.name = f"hf://{repository}"
        environment = web.environment
        self._web = web
        token = environment.get("HF_TOKEN") or environment.get("HUGGING_FACE_HUB_TOKEN")
        secret = {"Authorization": f"Bearer {token.strip()}"} if token else {}
        self._endpoint, self._secret = endpoint(
            "HF_ENDPOINT", environment.get("HF_ENDPOINT") or HUB, _FIELD, secret
        )
        self._commit: str | None = None

    def listing(self) -> Listing:
        url = f"{self._endpoint}/api/models/{quote(self.repository)}/revision/{quote(self.revision, safe='')}?blobs=true"
        try:
            told = self._web.json(url, self._secret)
        except Refused as refused:
            raise self._explained(refused) from refused
        commit, listed = (told.get("sha"), told.get("siblings")) if isinstance(told, dict) else (None, None)
        if not isinstance(commit, str) or not COMMIT.match(commit) or not isinstance(listed, list):
            raise failed(
                "Download",
                f"{self._endpoint} answers for {self.repository} without a commit and files",
                REACH,
            )
        self._commit = commit
        return Listing(commit, tuple(file for about in listed if (file := self._file(about)) is not None))

    def _file(self, about: Any) -> File | None:
        if not isinstance(about, dict) or not isinstance(about.get("rfilename"), str):
            return None
        path, lfs = about["rfilename"], about.get("lfs")
        size = lfs.get("size") if isinstance(lfs, dict) else about.get("size")
        if not is_inside(path) or not isinstance(size, int) or size < 0:
            raise failed(
                "Download",
                f"{self._endpoint} lists {path[:200]!r} of {self.repository} with size {size!r}",
                REACH,
            )
        return File(path, size, _digest(about.get("blobId"), lfs), path)

    def with_sums(self, file: File) -> File:
        return file

    def open(self, file: File, start: int, end: int) -> Answer:
        url = f"{self._endpoint}/{quote(self.repository)}/resolve/{self._commit or quote(self.revision, safe='')}/{quote(file.key)}"
        asked = {"Range": f"bytes={start}-{end - 1}"} if (start, end) != (0, file.size) else {}
        try:
            return self._web.open(url, asked, self._secret)
        except Refused as refused:
            if refused.status == 403 and refused.elsewhere:
                # An address that was signed for a moment ago; the hub gives a new one.
                raise Transient(str(refused)) from refused
            raise self._explained(refused) from refused

    def _explained(self, refused: Refused) -> FetchFailed:
        code = refused.headers.get("x-error-code", "")
        said = refused.headers.get("x-error-message", "") or _error(refused.body)
        if code == "GatedRepo" or refused.status == 403:
            return failed(
                "GatedModel", f"{self.repository}: the hub does not let this token read the model", _TOKENS
            )
        if refused.status == 401 and ("credentials" in said or "token" in said.lower()) and self._secret:
            return failed(
                "GatedModel", f"{self.repository}: the hub does not take this token ({said})", _TOKENS
            )
        if refused.status == 401 and self._secret.get("Authorization", "").startswith("Basic "):
            message = f"{self._endpoint} does not take the name and password in HF_ENDPOINT"
            return failed("Download", message, f"correct {_FIELD} of the operator's config")
        if code == "RevisionNotFound":
            return failed("ModelNotFound", f"{self.repository} has no revision {self.revision!r}", _NAMES)
        if code == "EntryNotFound":
            return failed("ModelNotFound", f"{self.repository}: {said or 'a file is not there'}", _NAMES)
        if refused.status in (401, 404):
            how = "" if self._secret else ", or it is private and no token was given"
            return failed("ModelNotFound", f"there is no {self.repository} at {self._endpoint}{how}", _NAMES)
        return failed("Download", f"{self.name}: {refused}{': ' + said if said else ''}", REACH)


def _digest(blob: object, lfs: object) -> Digest | None:
    if isinstance(lfs, dict):
        found = lfs.get("sha256") or lfs.get("oid")
        return Digest("sha256", found) if isinstance(found, str) and _SHA256.match(found) else None
    return Digest("git", blob) if isinstance(blob, str) and COMMIT.match(blob) else None


def _error(body: str) -> str:
    try:
        said = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        return ""
    return said[:300] if isinstance(said, str) else ""


def is_inside(path: str) -> bool:
    """Whether a path stays within the folder that it is put into; one that leaves it is no file of the model."""
    parts = path.split("/")
    return bool(path) and "\\" not in path and "\0" not in path and not {"", ".", ".."} & set(parts)
