"""A folder of a bucket in a store that speaks as S3 does. Its requests are signed; nobody is followed elsewhere."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import threading
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from urllib.parse import SplitResult, urlsplit

from plimsoll_runtime.sources.aws import KeyRing, domain_of
from plimsoll_runtime.sources.hub import is_inside
from plimsoll_runtime.sources.listing import Digest, File, Listing
from plimsoll_runtime.sources.sigv4 import escaped, signed
from plimsoll_runtime.sources.trouble import REACH, FetchFailed, Refused, Transient, failed
from plimsoll_runtime.sources.web import Answer, Web

_MD5 = re.compile(r"[0-9a-f]{32}\Z")
_PARTS = re.compile(r"[0-9a-f]{32}-(\d+)\Z")
_STRONG = re.compile(r'\A"?([\x21\x23-\x7e]+)"?\Z')
"""An ETag that stands for exactly these bytes. A weak one, W/"...", does not."""
_WHO = re.compile(r"AccessKey|User")
"""In codes for somebody whom a store does not know; some say it with a status of their own."""
_CODE = re.compile(r"<Code>([^<]{1,100})</Code>")
_REGION = re.compile(r"<Region>([a-z0-9-]{1,40})</Region>")
_CHANGED = 412
"""The answer where an object is no longer the one of If-Match."""
_WRONG_REGION = (
    "PermanentRedirect",
    "AuthorizationHeaderMalformed",
    "IllegalLocationConstraintException",
    "TemporaryRedirect",
)
_KEYS = "keys that may read the bucket: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY by spec.engine.env, or a role of spec.scheduling.serviceAccount"
_NAMES = "correct spec.model.source: s3://BUCKET/FOLDER, the folder that holds config.json"


class Bucket:
    def __init__(self, location: str, web: Web) -> None:
        self.name = f"s3://{location}"
        self._bucket, _, path = location.partition("/")
        self._prefix = f"{path.strip('/')}/" if path.strip("/") else ""
        self._web, environment = web, web.environment
        self._region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        self._own = (
            environment.get("AWS_ENDPOINT_URL_S3") or environment.get("AWS_ENDPOINT_URL") or ""
        ).rstrip("/")
        self._virtual = environment.get("RUNAI_STREAMER_S3_USE_VIRTUAL_ADDRESSING") == "1"
        self._key_ring, self._lock = KeyRing(web), threading.Lock()
        self._tags: dict[str, str] = {}
        """The ETag of each key as it was listed, where the store tells one: the revision is made of them, so nothing else may come under it."""

    def listing(self) -> Listing:
        files: list[File] = []
        tags, token = hashlib.sha256(), ""
        while True:
            asked = f"list-type=2&prefix={escaped(self._prefix)}" + (
                f"&continuation-token={escaped(token)}" if token else ""
            )
            with self._ask("", asked) as answer:
                page = self._read(answer.text())
            for about in page.iter():
                if _name_without_namespace(about) == "Contents":
                    files.extend(self._file(about))
            token = next(
                (
                    one.text or ""
                    for one in page.iter()
                    if _name_without_namespace(one) == "NextContinuationToken"
                ),
                "",
            )
            if not token:
                break
        files.sort(key=lambda file: file.path)
        if not files:
            raise failed("ModelNotFound", f"{self.name} holds nothing", _NAMES)
        for file in files:
            tags.update(f"{file.path}\0{file.size}\0{file.digest.value if file.digest else ''}\n".encode())
        return Listing(tags.hexdigest()[:40], tuple(files))

    def _file(self, about: ET.Element) -> Sequence[File]:
        told = {_name_without_namespace(one): one.text or "" for one in about}
        key, size = told.get("Key", ""), told.get("Size", "")
        path = key[len(self._prefix) :]
        if not path or key.endswith("/"):  # the folder itself, where a program made an object of it
            return ()
        if not key.startswith(self._prefix) or not size.isdecimal() or not is_inside(path):
            raise failed("Download", f"{self.name} lists {key[:200]!r} with size {size[:40]!r}", REACH)
        tag = told.get("ETag", "")
        self._tags[key] = _first(_STRONG, tag)
        return (File(path, int(size), Digest("etag", tag.strip('"')), key),)

    def with_sums(self, file: File) -> File:
        """The file with the sum of it that can be checked here. A store has several kinds of sums, and some ETags are not one."""
        with self._ask(file.key, "", {"x-amz-checksum-mode": "ENABLED"}, method="HEAD") as answer:
            headers = answer.headers
        tags = {self._tags.get(file.key, ""), _first(_STRONG, headers.get("etag", ""))} - {""}
        if headers.get("content-length", "") not in ("", str(file.size)) or len(tags) > 1:
            raise self._changed(file.key)
        return file._replace(digest=_sum_of_object(headers) or self._of_parts(file, headers))

    def _of_parts(self, file: File, headers: Mapping[str, str]) -> Digest | None:
        """The sum of an object that was uploaded in parts. All parts are as large as the first, whose size the store tells when it is asked."""
        tag = _etag(headers)
        found = _PARTS.match(tag)
        if found is None or _is_scrambled(headers):
            return None
        try:
            with self._ask(file.key, "partNumber=1", method="HEAD") as answer:
                size = answer.headers.get("content-length", "")
        except (Refused, FetchFailed):
            return None
        part = int(size) if size.isdecimal() else 0
        return Digest("parts", tag, part) if part and -(-file.size // part) == int(found[1]) else None

    def open(self, file: File, start: int, end: int) -> Answer:
        asked = {"Range": f"bytes={start}-{end - 1}"} if (start, end) != (0, file.size) else {}
        if tag := self._tags.get(file.key):
            asked["If-Match"] = f'"{tag}"'
        return self._ask(file.key, "", asked)

    def _ask(self, key: str, query: str, headers: Mapping[str, str] = {}, *, method: str = "GET") -> Answer:
        for attempt in range(3):
            url = self._url(key, query)
            with self._lock:
                keys = self._key_ring.keys()
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
            secret = {} if keys is None else signed(url, headers, keys, self._region, stamp, method=method)
            try:
                answer = self._web.open(url.geturl(), headers, secret, method=method, follow=False)
                if answer.status < 300:
                    return answer
                with answer:
                    refused = Refused(
                        answer.status,
                        answer.headers,
                        answer.text().decode("utf-8", "replace"),
                        url.hostname or "",
                    )
            except Refused as error:
                refused = error
            region = refused.headers.get("x-amz-bucket-region") or _first(_REGION, refused.body)
            if attempt or not region or region == self._region:
                raise self._explained(refused, key) from refused
            self._region = region
        raise Transient(f"{self.name} is in no region")

    def _url(self, key: str, query: str) -> SplitResult:
        path = f"/{escaped(key, '/')}"
        plain = "." not in self._bucket
        if self._own:
            base = urlsplit(self._own)
            if self._virtual:
                return base._replace(
                    netloc=f"{self._bucket}.{base.netloc}", path=base.path + path, query=query
                )
            return base._replace(path=f"{base.path}/{self._bucket}{path if key else ''}", query=query)
        host = f"s3.{self._region}.{domain_of(self._region)}"
        if plain:
            return SplitResult("https", f"{self._bucket}.{host}", path, query, "")
        return SplitResult("https", host, f"/{self._bucket}{path if key else ''}", query, "")

    def _read(self, text: bytes) -> ET.Element:
        try:
            return ET.fromstring(text)  # noqa: S314 - expat bounds what entities grow to
        except ET.ParseError as error:
            raise Transient(f"{self.name}: the store answers what is no XML") from error

    def _explained(self, refused: Refused, key: str) -> FetchFailed:
        code = _first(_CODE, refused.body) or str(refused.status)
        if code == "NoSuchBucket":
            return failed("ModelNotFound", f"there is no bucket {self._bucket}", _NAMES)
        if refused.status in (401, 403) or _WHO.search(code):
            return failed("GatedModel", f"the store does not let these keys read {self.name} ({code})", _KEYS)
        if refused.status == 404:
            return failed("ModelNotFound", f"{self.name} has no {key or 'such folder'}", _NAMES)
        if refused.status == _CHANGED:
            return self._changed(key)
        if code in _WRONG_REGION:
            return failed(
                "Download", f"{self.name} is in another region ({code})", "AWS_REGION by spec.engine.env"
            )
        return failed("Download", f"{self.name}: the store answers {refused.status} ({code})", REACH)

    def _changed(self, key: str) -> FetchFailed:
        path = key[len(self._prefix) :]
        return failed("Download", f"{path} of {self.name} changed while it was fetched", "start again")


def _sum_of_object(headers: Mapping[str, str]) -> Digest | None:
    """The sum of the whole object, if the store tells one. One that ends in a number of parts is a sum of sums, and is left out here."""
    for kind in ("sha256", "sha1", "crc32"):
        told = headers.get(f"x-amz-checksum-{kind}", "")
        if (
            told
            and "-" not in told
            and headers.get("x-amz-checksum-type", "FULL_OBJECT").upper() == "FULL_OBJECT"
        ):
            try:
                return Digest(kind, base64.b64decode(told, validate=True).hex())
            except (binascii.Error, ValueError):
                continue
    tag = _etag(headers)
    return Digest("md5", tag) if _MD5.match(tag) and not _is_scrambled(headers) else None


def _etag(headers: Mapping[str, str]) -> str:
    return headers.get("etag", "").strip('"')


def _is_scrambled(headers: Mapping[str, str]) -> bool:
    """Whether the object is encrypted with keys of a key service or of the customer, as its ETag is then not a sum of its bytes."""
    return headers.get("x-amz-server-side-encryption", "").startswith("aws:kms") or any(
        name.startswith("x-amz-server-side-encryption-customer") for name in headers
    )


def _first(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return found[1] if found else ""


def _name_without_namespace(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]
