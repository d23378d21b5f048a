"""An S3 store that checks every signature for itself, lists in pages, and tells sums as stores do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import zlib
from collections.abc import Mapping
from urllib.parse import parse_qsl, quote, urlsplit
from xml.sax.saxutils import escape

from tests.runtime.sites import Asked, Reply, Site, ranged

ACCESS, SECRET, REGION = "AKIATEST", "secret/of+the=tests", "eu-test-1"
PAGE = 3


class BucketSite(Site):
    def __init__(self, objects: Mapping[str, bytes], bucket: str = "models") -> None:
        self.objects, self.bucket = dict(objects), bucket
        self.parts: dict[str, int] = {}
        """Bytes of the parts that an object was put in, by name."""
        self.sums: dict[str, str] = {}
        """Which further sum an object has, by name."""
        self.scrambled: set[str] = set()
        self.wrong: dict[str, bytes] = {}
        self.told_tag = '"{}"'
        """How it writes an ETag."""
        self.region, self.public = REGION, False
        super().__init__()

    def answer(self, asked: Asked) -> Reply:
        told = asked.headers.get("authorization", "")
        if not self.public and (refused := self._refused(asked, told)) is not None:
            return refused
        bucket, _, key = asked.path.lstrip("/").partition("/")
        if bucket != self.bucket:
            return _error(404, "NoSuchBucket")
        return self._object(asked, key) if key else self._list(asked)

    def _refused(self, asked: Asked, told: str) -> Reply | None:
        if not told:
            return _error(403, "AccessDenied")
        if f"/{self.region}/s3/" not in told:
            text = f"<Error><Code>AuthorizationHeaderMalformed</Code><Region>{self.region}</Region></Error>"
            return Reply(400, text.encode())
        if f"Credential={ACCESS}/" not in told:
            return _error(403, "InvalidAccessKeyId")
        return (
            None
            if told.endswith(f"Signature={self._signature(asked, told)}")
            else _error(403, "SignatureDoesNotMatch")
        )

    def _signature(self, asked: Asked, told: str) -> str:
        """Written from the description of version 4, apart from what is tested."""
        fields = dict(part.strip().split("=", 1) for part in told.partition(" ")[2].split(","))
        scope = fields["Credential"].partition("/")[2]
        parts = urlsplit(asked.raw)
        query = "&".join(
            f"{quote(name, safe='-_.~')}={quote(value, safe='-_.~')}"
            for name, value in sorted(parse_qsl(parts.query, keep_blank_values=True))
        )
        names = fields["SignedHeaders"].split(";")
        headers = "".join(f"{name}:{asked.headers[name].strip()}\n" for name in names)
        canonical = f"{asked.method}\n{parts.path}\n{query}\n{headers}\n{';'.join(names)}\n{asked.headers['x-amz-content-sha256']}"
        stamp = asked.headers["x-amz-date"]
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        key = f"AWS4{SECRET}".encode()
        for word in scope.split("/"):
            key = hmac.new(key, word.encode(), hashlib.sha256).digest()
        return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()

    def _list(self, asked: Asked) -> Reply:
        prefix, after = asked.query.get("prefix", ""), asked.query.get("continuation-token", "")
        keys = [key for key in sorted(self.objects) if key.startswith(prefix) and key > after]
        shown, more = keys[:PAGE], len(keys) > PAGE
        rows = "".join(
            f"<Contents><Key>{escape(key)}</Key><Size>{len(self.objects[key])}</Size>"
            f"<ETag>{escape(self._told_tag(key))}</ETag></Contents>"
            for key in shown
        )
        last = f"<NextContinuationToken>{escape(shown[-1])}</NextContinuationToken>" if more else ""
        space = 'xmlns="http://s3.amazonaws.com/doc/2006-03-01/"'
        text = f"<ListBucketResult {space}><IsTruncated>{str(more).lower()}</IsTruncated>{rows}{last}</ListBucketResult>"
        return Reply(200, text.encode(), {"Content-Type": "application/xml"})

    def _object(self, asked: Asked, key: str) -> Reply:
        body = self.objects.get(key)
        if body is None:
            return _error(404, "NoSuchKey")
        tag = self._told_tag(key)
        if asked.headers.get("if-match", tag) != tag:
            return _error(412, "PreconditionFailed")
        headers = {"ETag": tag}
        if key in self.scrambled:
            headers["x-amz-server-side-encryption"] = "aws:kms"
        if asked.headers.get("x-amz-checksum-mode") == "ENABLED" and (kind := self.sums.get(key)):
            made = (
                zlib.crc32(body).to_bytes(4, "big") if kind == "crc32" else hashlib.new(kind, body).digest()
            )
            headers |= {
                f"x-amz-checksum-{kind}": base64.b64encode(made).decode(),
                "x-amz-checksum-type": "FULL_OBJECT",
            }
        sent = self.wrong.get(key, body)
        if asked.query.get("partNumber") == "1" and key in self.parts:
            return Reply(206, sent[: self.parts[key]], headers)
        return ranged(asked, sent, headers)

    def _told_tag(self, key: str) -> str:
        return self.told_tag.format(self._tag(key))

    def _tag(self, key: str) -> str:
        body = self.objects[key]
        if key in self.scrambled:
            return hashlib.md5(b"key" + body).hexdigest()
        if key not in self.parts:
            return hashlib.md5(body).hexdigest()
        size = self.parts[key]
        sums = [hashlib.md5(body[at : at + size]).digest() for at in range(0, len(body), size)]
        return f"{hashlib.md5(b''.join(sums)).hexdigest()}-{len(sums)}"


def _error(status: int, code: str) -> Reply:
    return Reply(status, f"<Error><Code>{code}</Code></Error>".encode(), {"Content-Type": "application/xml"})
