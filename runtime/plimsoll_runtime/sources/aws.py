"""Whose keys sign what is asked of an S3 store: those of the environment, or those that a pod's own account is lent for them."""

from __future__ import annotations

import contextlib
import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from plimsoll_runtime.sources.sigv4 import Keys
from plimsoll_runtime.sources.trouble import Refused, Transient, failed
from plimsoll_runtime.sources.web import Web

LENT_SECONDS = 3600
EARLY_SECONDS = 300.0
_KEYS = ("AccessKeyId", "SecretAccessKey", "SessionToken")
_REMEDY = "check the role of spec.scheduling.serviceAccount, or give keys by spec.engine.env (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY)"


class LentKeys(NamedTuple):
    keys: Keys | None
    """None where nothing is signed, as public buckets allow."""
    until: float
    """Until when they may be used, by this machine's monotonic clock."""


class KeyRing:
    """The keys to sign with, read or borrowed when they are first needed and again before they run out. Not for several threads at once."""

    def __init__(self, web: Web) -> None:
        self._web = web
        self._lent: LentKeys | None = None

    def keys(self) -> Keys | None:
        if self._lent is None or time.monotonic() > self._lent.until:
            self._lent = self._get()
        return self._lent.keys

    def _get(self) -> LentKeys:
        environment = self._web.environment
        access, secret = environment.get("AWS_ACCESS_KEY_ID"), environment.get("AWS_SECRET_ACCESS_KEY")
        if access and secret:
            keys = Keys(access.strip(), secret.strip(), environment.get("AWS_SESSION_TOKEN") or None)
            return LentKeys(keys, float("inf"))
        role, file = environment.get("AWS_ROLE_ARN"), environment.get("AWS_WEB_IDENTITY_TOKEN_FILE")
        if role and file:
            return self._by_role(role, Path(file), environment)
        return LentKeys(None, float("inf"))

    def _by_role(self, role: str, file: Path, environment: Mapping[str, str]) -> LentKeys:
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = environment.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.{domain_of(region)}"
        try:
            token = file.read_text(encoding="utf-8").strip()
        except OSError as error:
            raise failed("Download", f"{file} cannot be read: {error.strerror}", _REMEDY) from error
        asked = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": role,
            "RoleSessionName": environment.get("AWS_ROLE_SESSION_NAME") or "plimsoll-runtime",
            "WebIdentityToken": token,
            "DurationSeconds": str(LENT_SECONDS),
        }
        headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
        try:
            with self._web.open(
                endpoint, headers, method="POST", body=urlencode(asked).encode(), follow=False
            ) as answer:
                return LentKeys(_keys_in(answer.text()), time.monotonic() + LENT_SECONDS - EARLY_SECONDS)
        except Refused as refused:
            raise failed("GatedModel", f"{role} is not lent to this pod: {refused}", _REMEDY) from refused


def domain_of(region: str) -> str:
    """Amazon's regions in China have names of their own."""
    return "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"


def _keys_in(text: bytes) -> Keys:
    """The keys in a token service's answer: JSON is asked for, and services that know only XML are understood too."""
    found: Any = None
    try:
        body = json.loads(text)
        found = body["AssumeRoleWithWebIdentityResponse"]["AssumeRoleWithWebIdentityResult"]["Credentials"]
    except ValueError:
        with contextlib.suppress(ET.ParseError):  # a proxy's page
            root = ET.fromstring(text)  # noqa: S314 - of a host that was asked by name
            found = {one.tag.rpartition("}")[2]: one.text or "" for one in root.iter()}
    except (KeyError, TypeError, RecursionError):
        pass
    told = [found.get(name) for name in _KEYS] if isinstance(found, dict) else [None]
    if not all(isinstance(one, str) and one for one in told):
        raise Transient("the token service answers without keys")
    return Keys(*told)
