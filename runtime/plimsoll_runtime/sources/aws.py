"""Whose keys sign what is asked of an S3 store: those of the environment, or those that a pod's own account is lent for them."""

from __future__ import annotations

import calendar
import contextlib
import json
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

from plimsoll_runtime.sources.guard import address_of, parts_of
from plimsoll_runtime.sources.sigv4 import Keys
from plimsoll_runtime.sources.trouble import Refused, Transient, failed
from plimsoll_runtime.sources.web import Web

LENT_SECONDS = 3600
EARLY_SECONDS = 300.0
LEAST_SECONDS = 60.0
_KEYS = ("AccessKeyId", "SecretAccessKey", "SessionToken")
_CONTAINER = "AWS_CONTAINER"
"""How the variables begin that tell a pod which agent lends it keys."""
_ECS = "169.254.170.2"
_AGENTS = (_ECS, "169.254.170.23", "fd00:ec2::23")
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
        relative, full = (
            environment.get(f"{_CONTAINER}_CREDENTIALS_{kind}_URI") for kind in ("RELATIVE", "FULL")
        )
        if relative or full:
            return self._by_agent(
                f"http://{_ECS}/{relative.lstrip('/')}" if relative else full or "", environment
            )
        return LentKeys(None, float("inf"))

    def _by_role(self, role: str, file: Path, environment: Mapping[str, str]) -> LentKeys:
        region = environment.get("AWS_REGION") or environment.get("AWS_DEFAULT_REGION") or "us-east-1"
        endpoint = environment.get("AWS_ENDPOINT_URL_STS") or f"https://sts.{region}.{domain_of(region)}"
        token = _token_in(file)
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

    def _by_agent(self, url: str, environment: Mapping[str, str]) -> LentKeys:
        """From the agent of the node that lends a pod the role of its account (EKS Pod Identity, ECS)."""
        parts = parts_of(url)
        near = parts.scheme == "http" and _is_agent(parts.hostname or "")
        if not near and parts.scheme != "https":
            told = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
            message = f"{_CONTAINER}_CREDENTIALS_FULL_URI: {told} is no agent of this node, and not encrypted"
            raise failed("Download", message, _REMEDY)
        file, token = (environment.get(f"{_CONTAINER}_AUTHORIZATION_TOKEN{ends}") for ends in ("_FILE", ""))
        token = _token_in(Path(file)) if file else token
        secret = {"Authorization": token} if token else {}
        try:
            with self._web.open(
                url, {"Accept": "application/json"}, secret, follow=False, near=near
            ) as answer:
                text = answer.text()
        except Refused as refused:
            raise failed("GatedModel", f"no role is lent to this pod: {refused}", _REMEDY) from refused
        try:
            body = json.loads(text)
            keys = _keys([body["AccessKeyId"], body["SecretAccessKey"], body["Token"]])
            until = calendar.timegm(time.strptime(str(body.get("Expiration"))[:19], "%Y-%m-%dT%H:%M:%S"))
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
            raise Transient("the node's agent answers without keys") from error
        # What is about to run out is asked for again, but not with each request.
        left = max(until - time.time() - EARLY_SECONDS, LEAST_SECONDS)
        return LentKeys(keys, time.monotonic() + left)


def _is_agent(host: str) -> bool:
    address = address_of(host)
    return host == "localhost" or (address is not None and (address.is_loopback or str(address) in _AGENTS))


def _token_in(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise failed("Download", f"{file} cannot be read: {error.strerror}", _REMEDY) from error


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
    try:
        return _keys([found[name] for name in _KEYS])
    except (KeyError, TypeError, ValueError) as error:
        raise Transient("the token service answers without keys") from error


def _keys(told: Sequence[Any]) -> Keys:
    if not all(isinstance(one, str) and one for one in told):
        raise ValueError("these are no keys")
    return Keys(*told)
