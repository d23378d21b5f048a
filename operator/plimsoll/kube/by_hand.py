"""One call about one object from outside the cluster, as a person's hand makes it."""

from __future__ import annotations

from typing import Any

from kubernetes.client import ApiClient
from kubernetes.client.exceptions import ApiException
from urllib3.exceptions import HTTPError

from plimsoll.kube.reader import TIMEOUT_SECONDS, ClusterUnreadable


class Unanswered(ClusterUnreadable):
    """Nobody answered, or only to say that they cannot now: the same may be asked again."""


def call(
    client: ApiClient, method: str, path: str, body: dict[str, Any] | None = None, *, media: str = ""
) -> tuple[int, str, bytes]:
    """Status, reason and text of the answer, whatever it says; Unanswered where there is none. `media` is the body's type."""
    headers = {"Accept": "application/json"} | ({"Content-Type": media} if media else {})
    request = client.param_serialize(
        method, path, header_params=headers, body=body, auth_settings=["BearerToken"]
    )
    try:
        answer = client.call_api(*request, _request_timeout=TIMEOUT_SECONDS)
        text: bytes = answer.read()  # type: ignore[no-untyped-call]
    except ApiException as error:
        raise ClusterUnreadable(f"{path}: {error.status} {error.reason}") from None
    except (HTTPError, OSError) as error:
        raise Unanswered(f"the cluster does not answer: {error}") from None
    return answer.status, answer.reason, text
