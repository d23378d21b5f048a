"""What a text must look like, in words: one sentence for each pattern of the API, as nobody should have to read the pattern itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from plimsoll.api.base import (
    ADDRESS,
    DNS_LABEL,
    DNS_SUBDOMAIN,
    HEADER_NAME,
    HEADER_VALUE,
    IMAGE,
    LABEL_KEY,
    LABEL_VALUE,
    METRIC_LABEL,
    ONE_LINE,
    PRINTABLE,
    PRINTABLE_SPACE,
    PROXY,
)
from plimsoll.api.quantity import DECIMAL, QUANTITY
from plimsoll.api.v1alpha1.source import SPELLING

_ENDS: Final = "and begin and end with a letter or a digit"
_PATH: Final = "must be a path that begins with '/' and holds only letters, digits and . _ ~ / -"

SPELLINGS: Final[Mapping[str, str]] = {
    SPELLING: "must be hf://ORG/NAME or ORG/NAME, modelscope://ORG/NAME, s3://BUCKET/PATH, "
    "oci://REGISTRY/REPOSITORY:TAG, pvc://CLAIM/PATH, or an absolute path",
    DNS_LABEL: f"must hold only small letters, digits and '-', {_ENDS}",
    DNS_SUBDOMAIN: f"must hold only small letters, digits, '-' and '.', {_ENDS}",
    LABEL_KEY: f"a key must hold only letters, digits, '-', '_' and '.', {_ENDS}; a domain and '/' may stand before it",
    LABEL_VALUE: f"must hold only letters, digits, '-', '_' and '.', {_ENDS}",
    PRINTABLE: "must hold only ASCII letters, digits and signs, without spaces",
    PRINTABLE_SPACE: "must hold only ASCII letters, digits, signs and spaces, on one line",
    ONE_LINE: "must be one line, without tabs",
    METRIC_LABEL: "a name must hold only letters, digits and '_', and begin with no digit",
    HEADER_NAME: "the name of a header must hold only letters, digits, '-' and '_', and begin with a letter or a digit",
    HEADER_VALUE: "must hold only ASCII letters, digits, signs and spaces, and begin and end with no space",
    QUANTITY: "must be an amount as Kubernetes writes it, as 16Gi or 500M",
    DECIMAL: "must be a number in plain digits that is not negative, as 2.49, without a unit",
    r"^[A-Z]{3}$": "must be a currency's three capital letters, as EUR",
    ADDRESS: "must be an address that begins with http:// or https://; "
    "characters such as / # ? @ in a password must be escaped (%2F), and @ in a path",
    PROXY: "must be http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, without a path; "
    "characters such as / # ? @ in a password must be escaped (%2F)",
    r"^https?://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?$": "must be https://HOST or https://HOST:PORT (or http://), in small letters and without a path",
    r"^[1-9][0-9]{0,8}(\.[0-9]{1,6})?$": "must be a number of at least 1 in plain digits, as 4 or 2.5",
    r"^[0-9]{1,3}(\.[0-9]{1,4})?$": "must be a percentage in plain digits, as 99.9, without a sign",
    r"^[0-9]+\.[0-9]+(\.[0-9]+)?$": "must be a release in digits, as 0.33.0, without a v before it",
    r"^[0-9]+\.[0-9]+(\.[0-9]+)?([.-]?[a-z]+[0-9]*)?$": "must be a release, as 0.33.0 or 0.33.0rc1, without a v before it",
    IMAGE: "must be an image as REGISTRY/REPOSITORY:TAG or with @sha256:DIGEST, without https://",
    r"^[A-Za-z0-9][A-Za-z0-9._:-]*(/[A-Za-z0-9._:-]+)*/?$": "must be a registry as HOST:PORT/PATH, without https://",
    r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$": f"must hold only letters, digits, '_', '.' and '-', {_ENDS}",
    r"^[A-Za-z0-9]([A-Za-z0-9_. -]*[A-Za-z0-9])?$": f"must be a GPU's name as `plimsoll gpus` has it: letters, digits, spaces, '_', '.' and '-', {_ENDS}",
    r"^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$": f"must be a namespace, in which * may stand for a part: small letters, digits and '-', {_ENDS} or *",
    r"^(\*\.)?[a-z0-9]([-a-z0-9.]*[a-z0-9])?$": "must be a host's name in small letters, without a scheme, port or path; *. may stand before it",
    r"^/[A-Za-z0-9._~/-]*$": _PATH,
    r"^/[!-~]+$": "must be a JSON pointer that begins with '/', as /spec/containers/0/resources",
    r"^[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*$": "must be a path inside the volume that does not begin with '/'",
    r"^[-._A-Za-z0-9]+$": "must be a key: letters, digits, '-', '_' and '.'",
    r"^[A-Za-z0-9][A-Za-z0-9._/-]*$": "must be a branch, a tag or a commit: letters, digits, '.', '_', '/' and '-'",
    r"^[a-z]([-a-z0-9]*[a-z0-9])?$": "must begin with a letter and hold only small letters, digits and '-', and not end with '-'",
}  # fmt: skip
