"""A model in a registry of images: its manifest, and its layers as blobs that are known by their sums.

Two forms are met. Artifacts have a layer for each file, which its title names; images have layers that are archives. The files of
the former are those of the model, the latter are unpacked where they came to.
"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode, urljoin

from plimsoll_runtime.sources.guard import parts_of, same_origin
from plimsoll_runtime.sources.hub import is_inside
from plimsoll_runtime.sources.listing import Digest, File, Listing
from plimsoll_runtime.sources.trouble import ANEW, REACH, FetchFailed, Refused, failed
from plimsoll_runtime.sources.web import Answer, Web

AUTH = "OCI_REGISTRY_AUTH"
"""A token, USER:PASSWORD, or all of a .dockerconfigjson."""
TITLES = ("org.cncf.model.filepath", "org.opencontainers.image.title")
ARCHIVES = ".layers/"
"""Below it, archives that are still to be unpacked, in their order."""
_MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)
_INDEXES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
)
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}\Z")
_BEARER = re.compile(r"(?:\A|,)\s*bearer\s", re.IGNORECASE)
"""Before what is said of tokens; other ways to say who asks may stand on either side."""
_CHALLENGE = re.compile(r'(\w+)="([^"]*)"')
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
_TOKENS = f"a Secret that may pull it in spec.model.tokenSecret: a token, USER:PASSWORD, or a whole .dockerconfigjson ({AUTH} of the pod)"
_NAMES = "correct spec.model.source: oci://REGISTRY/REPOSITORY:TAG"


class Reference(NamedTuple):
    host: str
    repository: str
    tag: str
    """Or a digest."""


def reference_of(location: str) -> Reference:
    name, at, digest = location.partition("@")
    host, slash, rest = name.partition("/")
    if not slash or not ("." in host or ":" in host or host == "localhost"):
        host, rest = "docker.io", name
    repository, colon, tag = rest.rpartition(":")
    if not colon:
        repository, tag = rest, "latest"
    if host == "docker.io":
        host = "registry-1.docker.io"
        repository = repository if "/" in repository else f"library/{repository}"
    return Reference(host, repository, digest if at else tag)


class Registry:
    def __init__(self, location: str, web: Web) -> None:
        self.name = f"oci://{location}"
        self._reference = reference_of(location)
        self._web = web
        host = self._reference.host
        # As the programs that pull images do: without encryption only on this machine, or where it is said.
        plain = host.partition(":")[0] in ("localhost", "127.0.0.1") or host in web.environment.get(
            "OCI_REGISTRY_PLAIN_HTTP", ""
        ).split(",")
        self._base = f"{'http' if plain else 'https'}://{host}/v2/{quote(self._reference.repository)}"
        self._basic = basic_of(web.environment.get(AUTH, ""), host)
        self._bearer: str | None = None
        self._lock = threading.Lock()

    def listing(self) -> Listing:
        manifest, digest = self._manifest(self._reference.tag)
        if manifest.get("mediaType") in _INDEXES or "manifests" in manifest:
            manifest, _ = self._manifest(self._for_this_machine(manifest))
        layers = manifest.get("layers")
        if not isinstance(layers, list):
            raise failed("BadCheckpoint", f"{self.name} is no image and no artifact", _NAMES)
        files = [self._file(place, about) for place, about in enumerate(layers)]
        return Listing(digest.partition(":")[2], tuple(file for file in files if file.size))

    def _manifest(self, tag: str) -> tuple[Mapping[str, Any], str]:
        accepted = {"Accept": ", ".join((*_MANIFESTS, *_INDEXES))}
        with self._ask(f"{self._base}/manifests/{quote(tag, safe=':')}", accepted) as answer:
            text = answer.text()
        found = f"sha256:{hashlib.sha256(text).hexdigest()}"
        if _DIGEST.match(tag) and found != tag:
            raise failed("BadCheckpoint", f"the manifest of {self.name} is not what its digest says", ANEW)
        try:
            body = json.loads(text)
        except (ValueError, RecursionError):
            body = None
        if not isinstance(body, dict):
            raise failed("Download", f"{self.name}: the registry answers what is no manifest", REACH)
        return body, found

    def _for_this_machine(self, index: Mapping[str, Any]) -> str:
        told = index.get("manifests")
        listed = [
            one
            for one in (told if isinstance(told, list) else ())
            if isinstance(one, dict) and _DIGEST.match(str(one.get("digest")))
        ]
        machine = _MACHINES.get(platform.machine(), platform.machine())
        for one in listed:
            on = _object(one.get("platform"))
            if on.get("os", "linux") == "linux" and on.get("architecture", machine) == machine:
                return str(one["digest"])
        raise failed("ModelNotFound", f"{self.name} has nothing for linux/{machine}", _NAMES)

    def _file(self, place: int, about: Any) -> File:
        digest, size, kind = (
            (about.get(name) for name in ("digest", "size", "mediaType"))
            if isinstance(about, dict)
            else (None,) * 3
        )
        if not isinstance(digest, str) or not _DIGEST.match(digest) or not isinstance(size, int) or size < 0:
            raise failed(
                "Download",
                f"{self.name} has a layer with digest {str(digest)[:100]!r} and size {size!r}",
                REACH,
            )
        notes = _object(about.get("annotations"))
        title = next((str(notes[name]) for name in TITLES if notes.get(name)), "")
        archive = any(word in str(kind) for word in (".tar", "+gzip", "+zstd")) or str(kind).endswith(
            "image.layer.v1.tar"
        )
        if title and not archive and not is_inside(title):
            raise failed("Download", f"{self.name} names a file {title[:200]!r}", REACH)
        path = (
            title
            if title and not archive
            else f"{ARCHIVES}{place:04}-{digest.partition(':')[2][:16]}{_ending(str(kind))}"
        )
        return File(path, size, Digest("sha256", digest.partition(":")[2]), digest)

    def with_sums(self, file: File) -> File:
        return file

    def open(self, file: File, start: int, end: int) -> Answer:
        asked = {}
        if file.at or (start, end) != (0, file.size):
            asked["Range"] = f"bytes={file.at + start}-{file.at + end - 1}"
        return self._ask(f"{self._base}/blobs/{file.key}", asked)

    def _ask(self, url: str, headers: Mapping[str, str]) -> Answer:
        bearer = self._bearer
        try:
            return self._web.open(url, headers, self._secret(bearer))
        except Refused as refused:
            if refused.status != 401 or refused.elsewhere:
                raise self._explained(refused) from refused
            challenge = refused.headers.get("www-authenticate", "")
        with self._lock:
            if self._bearer == bearer:
                self._bearer = self._login(challenge)
        try:
            return self._web.open(url, headers, self._secret(self._bearer))
        except Refused as refused:
            raise self._explained(refused) from refused

    def _secret(self, bearer: str | None) -> Mapping[str, str]:
        if bearer is not None:
            return {"Authorization": f"Bearer {bearer}"}
        return {"Authorization": f"Basic {self._basic}"} if self._basic else {}

    def _login(self, challenge: str) -> str:
        """Where the registry says a token is to be had. What is known of the user goes there as it does to the registry: by name."""
        found = _BEARER.search(challenge)
        # Of what is said twice the first is of tokens, and the last of another way.
        told = dict(reversed(_CHALLENGE.findall(challenge, found.end()))) if found else {}
        if not told.get("realm"):
            raise failed("GatedModel", f"the registry does not let this pod pull {self.name}", _TOKENS)
        asked = {"scope": f"repository:{self._reference.repository}:pull"}
        if told.get("service"):
            asked["service"] = told["service"]
        realm = urljoin(self._base, told["realm"])
        parts, base = parts_of(realm), parts_of(self._base)
        if parts.scheme not in (base.scheme, "https"):
            raise failed(
                "Download",
                f"{base.hostname} asks for its password to be sent in the open",
                "check the registry",
            )
        secret = (
            {"Authorization": f"Basic {self._basic}"}
            if self._basic and _trusts(base.hostname, parts.hostname)
            else {}
        )
        if self._basic and not secret and not same_origin(parts, base):
            message = f"{base.hostname} wants its password sent to {parts.hostname}, which is another's host"
            raise failed("Download", message, "check the registry in spec.model.source")
        glue = "&" if parts.query else "?"
        try:
            body = self._web.json(f"{realm}{glue}{urlencode(asked)}", secret)
        except Refused as refused:
            message = f"{parts.hostname} gives no token for {self.name} ({refused.status})"
            raise failed("GatedModel", message, _TOKENS) from refused
        token = (body.get("token") or body.get("access_token")) if isinstance(body, dict) else None
        if not isinstance(token, str):
            raise failed("Download", f"{parts.hostname} answers without a token", REACH)
        return token

    def _explained(self, refused: Refused) -> FetchFailed:
        if refused.status in (401, 403):
            return failed("GatedModel", f"the registry does not let this pod pull {self.name}", _TOKENS)
        if refused.status == 404:
            return failed("ModelNotFound", f"there is no {self.name}", _NAMES)
        return failed("Download", f"{self.name}: {refused}", REACH)


def _trusts(host: str | None, other: str | None) -> bool:
    """Whether a token service may be told the user's name: it may, if it belongs to the registry's own domain."""
    if host is None or other is None:
        return False
    last = host.split(".")[-2:]
    return host == other or (
        len(last) == 2 and not host.replace(".", "").isdecimal() and other.split(".")[-2:] == last
    )


def _object(told: Any) -> Mapping[str, Any]:
    """What was told, if it is an object of JSON; else an empty one."""
    return told if isinstance(told, dict) else {}


def _ending(kind: str) -> str:
    if "gzip" in kind:
        return ".tar.gz"
    return ".tar.zst" if "zstd" in kind else ".tar"


def basic_of(told: str, host: str) -> str | None:
    """The credentials for HTTP's basic authentication, from any of the three forms of OCI_REGISTRY_AUTH; None where it names nobody for this host."""
    text = told.strip()
    if not text:
        return None
    if text.startswith("{"):
        return _of_docker(text, host)
    return base64.b64encode((text if ":" in text else f"token:{text}").encode()).decode()


def _of_docker(text: str, host: str) -> str | None:
    try:
        listed = json.loads(text)["auths"]
        names: Sequence[str] = (host, f"https://{host}", f"https://{host}/v2/", f"https://{host}/v1/")
        if host == "registry-1.docker.io":
            names = (*names, "docker.io", "https://index.docker.io/v1/")
        about = next((listed[name] for name in names if name in listed), None)
        if about is None:
            return None
        if about.get("auth"):
            return str(about["auth"])
        return base64.b64encode(f"{about['username']}:{about['password']}".encode()).decode()
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
