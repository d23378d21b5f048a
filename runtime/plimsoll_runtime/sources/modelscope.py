"""A repository of ModelScope. Its API names no commit, so what is listed is told by a sum of it, and each file is held to its own."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from plimsoll_runtime.sources.hub import is_inside
from plimsoll_runtime.sources.listing import Digest, File, Listing
from plimsoll_runtime.sources.named import endpoint
from plimsoll_runtime.sources.trouble import REACH, FetchFailed, Refused, failed
from plimsoll_runtime.sources.web import Answer, Web

HOST = "www.modelscope.cn"
BRANCH = "master"
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_NAMES = "correct spec.model.source and spec.model.revision; a private one also needs spec.model.tokenSecret"


class ModelScope:
    def __init__(self, repository: str, revision: str | None, web: Web) -> None:
        self.repository, self._asked = repository, revision or BRANCH
        self.name = f"modelscope://{repository}"
        self._web = web
        domain = web.environment.get("MODELSCOPE_DOMAIN") or HOST
        token = web.environment.get("MODELSCOPE_API_TOKEN")
        # Older servers read the cookie, newer ones the header.
        secret = (
            {"Authorization": f"Bearer {token.strip()}", "Cookie": f"m_session_id={token.strip()}"}
            if token
            else {}
        )
        self._endpoint, self._secret = endpoint(
            "MODELSCOPE_DOMAIN",
            domain if "://" in domain else f"https://{domain}",
            "network.modelscopeEndpoint",
            secret,
        )

    def listing(self) -> Listing:
        asked = f"Revision={quote(self._asked, safe='')}&Recursive=True"
        try:
            told = self._web.json(
                f"{self._endpoint}/api/v1/models/{quote(self.repository)}/repo/files?{asked}", self._secret
            )
        except Refused as refused:
            raise self._explained(refused) from refused
        data = told.get("Data") if isinstance(told, dict) else None
        listed = data.get("Files") if isinstance(data, dict) else None
        if not isinstance(listed, list):
            said = str(told.get("Message", ""))[:300] if isinstance(told, dict) else ""
            raise failed(
                "ModelNotFound",
                f"there is no {self.repository} at {self._asked} ({said or 'no files'})",
                _NAMES,
            )
        files = sorted(file for about in listed for file in self._file(about))
        text = "".join(
            f"{file.path}\0{file.size}\0{file.digest.value if file.digest else ''}\n" for file in files
        )
        return Listing(hashlib.sha256(text.encode()).hexdigest()[:40], tuple(files))

    def _file(self, about: Any) -> Sequence[File]:
        if not isinstance(about, dict) or about.get("Type") == "tree":
            return ()
        path, size, told = about.get("Path"), about.get("Size"), about.get("Sha256")
        if not isinstance(path, str) or not is_inside(path) or not isinstance(size, int) or size < 0:
            raise failed("Download", f"{self._endpoint} lists {str(path)[:200]!r} with size {size!r}", REACH)
        known = isinstance(told, str) and _SHA256.match(told)
        return (File(path, size, Digest("sha256", str(told)) if known else None, path),)

    def with_sums(self, file: File) -> File:
        return file

    def open(self, file: File, start: int, end: int) -> Answer:
        asked = f"Revision={quote(self._asked, safe='')}&FilePath={quote(file.key, safe='')}"
        headers = {"Range": f"bytes={start}-{end - 1}"} if (start, end) != (0, file.size) else {}
        try:
            return self._web.open(
                f"{self._endpoint}/api/v1/models/{quote(self.repository)}/repo?{asked}", headers, self._secret
            )
        except Refused as refused:
            raise self._explained(refused) from refused

    def _explained(self, refused: Refused) -> FetchFailed:
        if refused.status in (401, 403):
            message = f"{self.repository}: ModelScope does not let this token read the model"
            return failed("GatedModel", message, "name a token that may read it in spec.model.tokenSecret")
        if refused.status == 404:
            return failed(
                "ModelNotFound", f"there is no {self.repository} at {self._asked} of {self._endpoint}", _NAMES
            )
        return failed("Download", f"{self.name}: {refused}", REACH)
