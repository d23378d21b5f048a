"""Single calls from outside the cluster on behalf of a person: by a context of their kubeconfig, with their rights."""

from __future__ import annotations

import os
from collections.abc import Sequence
from http import HTTPStatus
from typing import Any, Final

from kubernetes.client import ApiClient, Configuration
from kubernetes.client.exceptions import ApiException
from kubernetes.config import ConfigException, kube_config, load_incluster_config, new_client_from_config
from urllib3.exceptions import HTTPError

TIMEOUT_SECONDS: Final = 30


class ClusterUnreadable(RuntimeError):
    """A cluster cannot be asked, or does not let its nodes and pods be listed. The message says what would help."""


class ContextUnknown(ClusterUnreadable):
    """No cluster was asked, as the kubeconfig names none that can be used."""


class Unanswered(ClusterUnreadable):
    """There was no answer, or only that the server cannot answer now. The same call may be tried again."""


def cure_of(status: int | None, namespace: str | None = "") -> str:
    """What helps where a list was refused, as the end of a sentence; nothing where rights are not the matter. `namespace` is what was asked
    for, where a user can choose one: None is all of them."""
    if status != HTTPStatus.FORBIDDEN:
        return ""
    return (
        "; list must be allowed"
        if namespace is not None
        else "; name a namespace that you may list: -n NAMESPACE"
    )


def client_of(context: str | None) -> ApiClient:
    """A client for a context of the kubeconfig, or for the current one; in a pod that has no kubeconfig, for the pod's own cluster, as kubectl does."""
    where = kube_config.KUBE_CONFIG_DEFAULT_LOCATION
    files = where.split(kube_config.ENV_KUBECONFIG_PATH_SEPARATOR)
    # Of a user without a home, as in some pods, pathlib raises; this tells that nothing is there.
    if not any(os.path.exists(os.path.expanduser(file)) for file in files):  # noqa: PTH110, PTH111
        return _client_of_the_pod(context, where)
    try:
        client: ApiClient = new_client_from_config(context=context)  # type: ignore[no-untyped-call]
    except (ConfigException, OSError, ValueError) as error:
        raise ContextUnknown(
            f"{str(error).rstrip('.')}; check KUBECONFIG and the names that `kubectl config get-contexts` lists"
        ) from None
    return client


def _client_of_the_pod(context: str | None, where: str) -> ApiClient:
    missing = ContextUnknown(f"there is no kubeconfig at {where}; name yours in KUBECONFIG")
    if context is not None:
        raise missing
    found = Configuration()
    try:
        load_incluster_config(found)  # type: ignore[no-untyped-call]
    except ConfigException:
        raise missing from None
    return ApiClient(found)


def call(
    client: ApiClient,
    method: str,
    path: str,
    body: dict[str, Any] | None = None,
    *,
    media: str = "",
    query: Sequence[tuple[str, object]] = (),
    timeout_seconds: int = TIMEOUT_SECONDS,
) -> tuple[int, str, bytes]:
    """Status, reason and text of the answer, whatever its status; raises Unanswered where there is none. `media` is the body's type."""
    headers = {"Accept": "application/json"} | ({"Content-Type": media} if media else {})
    request = client.param_serialize(
        method,
        path,
        query_params=list(query),
        header_params=headers,
        body=body,
        auth_settings=["BearerToken"],
    )
    try:
        answer = client.call_api(*request, _request_timeout=timeout_seconds)
        text: bytes = answer.read()  # type: ignore[no-untyped-call]
    except ApiException as error:
        raise ClusterUnreadable(f"{path}: {error.status} {error.reason}") from None
    except (HTTPError, OSError) as error:
        raise Unanswered(f"the cluster does not answer: {error}") from None
    return answer.status, answer.reason, text
