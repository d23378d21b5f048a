"""How a request to an S3 store is signed, version 4: a function of the request, the keys and the time."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qsl, quote

EMPTY = hashlib.sha256(b"").hexdigest()
_ALGORITHM = "AWS4-HMAC-SHA256"


class Keys(NamedTuple):
    access: str
    secret: str
    token: str | None = None


def signed(
    url: SplitResult,
    headers: Mapping[str, str],
    keys: Keys,
    region: str,
    stamp: str,
    *,
    method: str = "GET",
    service: str = "s3",
    payload: str = EMPTY,
) -> dict[str, str]:
    """What has to be added to `headers`; `stamp` reads like 20130524T000000Z. All headers are signed, and no others may come later."""
    added = {"x-amz-date": stamp}
    if service == "s3":
        added["x-amz-content-sha256"] = payload
    if keys.token:
        added["x-amz-security-token"] = keys.token
    every = {name.lower(): " ".join(value.split()) for name, value in {**headers, **added}.items()}
    every["host"] = url.netloc
    names = ";".join(sorted(every))
    canonical = "\n".join(
        (
            method,
            url.path or "/",
            _query(url.query),
            *(f"{name}:{every[name]}" for name in sorted(every)),
            "",
            names,
            payload,
        )
    )
    scope = f"{stamp[:8]}/{region}/{service}/aws4_request"
    text = "\n".join((_ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    signature = hmac.new(
        _key(keys.secret, stamp[:8], region, service), text.encode(), hashlib.sha256
    ).hexdigest()
    told = f"{_ALGORITHM} Credential={keys.access}/{scope},SignedHeaders={names},Signature={signature}"
    return {**added, "Authorization": told}


def _query(text: str) -> str:
    pairs = parse_qsl(text, keep_blank_values=True)
    return "&".join(
        f"{name}={value}" for name, value in sorted((escaped(name), escaped(value)) for name, value in pairs)
    )


def escaped(text: str, safe: str = "") -> str:
    return quote(text, safe=f"-_.~{safe}")


def _key(secret: str, day: str, region: str, service: str) -> bytes:
    key = f"AWS4{secret}".encode()
    for part in (day, region, service, "aws4_request"):
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return key
