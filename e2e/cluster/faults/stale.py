"""Reads of the past: the API server itself knows how the world was at a version, so a stale view is asked for, not made up.

A list is asked for at exactly that version, and one object as a list of one. Watches, which `watches` holds back, complete the view.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Final
from urllib.parse import parse_qsl, urlencode

from cluster.api import Api
from cluster.faults import http

_PARTIAL: Final = re.compile(rb"as=PartialObjectMetadata\b")
_PACKED: Final = re.compile(rb"\r\nAccept-Encoding:[^\r]*", re.IGNORECASE)


def version_now(api: Api) -> str:
    """Of the whole cluster."""
    return str(api.get("/api/v1/namespaces", limit="1")["metadata"]["resourceVersion"])


def list_at(head: http.Head, version: str) -> http.Head:
    """A page after the first is left as it is: it is of the first one's version."""
    method, target, rest = head.first_line
    path, _, query = target.partition("?")
    asked = dict(parse_qsl(query))
    if "continue" in asked:
        return head
    asked |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
    return _with_line(head, f"{method} {path}?{urlencode(asked)} {rest}")


def one_at(head: http.Head, version: str) -> http.Head:
    """The list of which the answer is the only item."""
    method, target, rest = head.first_line
    collection, _, name = target.partition("?")[0].rpartition("/")
    asked = {
        "fieldSelector": f"metadata.name={name}",
        "resourceVersion": version,
        "resourceVersionMatch": "Exact",
    }
    made = _with_line(head, f"{method} {collection}?{urlencode(asked)} {rest}")
    return replace(made, raw=_PACKED.sub(b"", _PARTIAL.sub(b"as=PartialObjectMetadataList", made.raw)))


def only_item(body: bytes, name: str) -> tuple[int, bytes]:
    """Status and body of the answer about one object, from the list; what is no list is passed on as it is."""
    said = json.loads(body)
    kind = said["kind"].removesuffix("List")
    if kind == said["kind"]:
        return 200, body
    if not said["items"]:
        return 404, http.status_object(404, f"{name!r} not found")
    (item,) = said["items"]
    return 200, json.dumps({"kind": kind, "apiVersion": said["apiVersion"]} | item).encode()


def _with_line(head: http.Head, line: str) -> http.Head:
    return replace(head, raw=line.encode("latin-1") + b"\r\n" + head.raw.partition(b"\r\n")[2])
