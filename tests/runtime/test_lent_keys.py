"""Keys that the agent of a node lends a pod, as EKS Pod Identity and ECS have it: from whom they are taken, for how long, and instead of what."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll_runtime.sources.aws import KeyRing
from plimsoll_runtime.sources.sigv4 import Keys
from plimsoll_runtime.sources.trouble import FetchFailed, Patience, Transient
from plimsoll_runtime.sources.web import Web
from tests.runtime.sites import Asked, Reply, Site

FULL, FILE = "AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"
LENT = Keys("AKIA", "secret", "session")


class Agent(Site):
    told: dict[str, object] | bytes
    status = 200

    def answer(self, asked: Asked) -> Reply:
        body = self.told if isinstance(self.told, bytes) else json.dumps(self.told).encode()
        return Reply(self.status, body)


@pytest.fixture
def agent() -> Iterator[Agent]:
    one = Agent()
    one.told = told()
    yield one
    one.close()


def told(seconds: float = 3600.0, **other: object) -> dict[str, object]:
    until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + seconds))
    keys = {"AccessKeyId": "AKIA", "SecretAccessKey": "secret", "Token": "session", "Expiration": until}
    return {**keys, "AccountId": "1", **other}


def ring(environment: dict[str, str]) -> KeyRing:
    return KeyRing(Web(environment, Patience(timeout=5.0)))


def test_the_agent_is_asked_with_the_token_in_its_file_as_it_is_by_then(agent, tmp_path, monkeypatch):
    now = [1000.0]
    monkeypatch.setattr("plimsoll_runtime.sources.aws.time.monotonic", lambda: now[0])
    token = tmp_path / "token"
    keys = ring({FULL: f"{agent.url}/v1/credentials", FILE: str(token)})
    for word, later in (("one", 3290), ("two", 20)):
        token.write_text(f"{word}\n")
        assert keys.keys() == LENT
        now[0] += later
        assert keys.keys() == LENT
    assert [(one.path, one.headers["authorization"]) for one in agent.asked] == [
        ("/v1/credentials", "one"),
        ("/v1/credentials", "two"),
    ]


def test_keys_that_run_out_soon_are_not_asked_for_with_each_request(agent):
    agent.told = told(30)
    keys = ring({FULL: agent.url})
    assert [keys.keys() for _ in range(3)] == [LENT] * 3
    assert len(agent.asked) == 1
    assert "authorization" not in agent.asked[0].headers


def test_no_proxy_stands_between_a_pod_and_the_agent_of_its_node(agent):
    proxy = {"HTTP_PROXY": "http://127.0.0.1:9", "ALL_PROXY": "http://127.0.0.1:9"}
    assert ring({FULL: agent.url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "t", **proxy}).keys() == LENT
    assert agent.asked[0].headers["authorization"] == "t"


@pytest.mark.parametrize(
    ("environment", "url"),
    [
        ({FULL: "http://169.254.170.23/v1/credentials"}, "http://169.254.170.23/v1/credentials"),
        ({FULL: "http://[fd00:ec2::23]/v1/credentials"}, "http://[fd00:ec2::23]/v1/credentials"),
        ({FULL: "http://localhost:1/c"}, "http://localhost:1/c"),
        ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/a?id=1"}, "http://169.254.170.2/v2/a?id=1"),
        ({"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "@evil.example/"}, "http://169.254.170.2/@evil.example/"),
    ],
)
def test_agents_are_known_by_their_addresses(monkeypatch, environment, url):
    asked: list[tuple[str, object]] = []

    def opened(_: Web, url: str, *__: object, **how: Any) -> None:
        asked.append((url, how["near"]))
        raise Transient("nobody is there")

    monkeypatch.setattr(Web, "open", opened)
    with pytest.raises(Transient):
        ring(environment).keys()
    assert asked == [(url, True)]


def test_the_guard_lets_a_pod_ask_the_agent_and_nothing_else_there(monkeypatch):
    def unreachable(_: object) -> None:
        raise OSError(113, "No route to host")

    monkeypatch.setattr("http.client.HTTPConnection.connect", unreachable)
    with pytest.raises(Transient, match="No route to host"):
        ring({FULL: "http://169.254.170.23/v1/credentials"}).keys()
    with pytest.raises(FetchFailed, match="hands out its credentials"):
        Web({}).open("http://169.254.170.23/v1/credentials")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://169.254.169.254/latest", "169.254.169.254 is no agent of this node"),
        ("http://evil.example/c", "evil.example is no agent"),
        ("http://127.0.0.1@evil.example/c", "http://evil.example is no agent"),
        ("http://10.0.0.1/c", "10.0.0.1 is no agent"),
        ("https://169.254.170.23/c", "169.254.170.23 is an address of the machine itself"),
        ("file:///etc/passwd", "is no agent"),
    ],
)
def test_nobody_else_is_asked_for_keys(url, said):
    with pytest.raises(FetchFailed, match=said) as caught:
        ring({FULL: url, "AWS_CONTAINER_AUTHORIZATION_TOKEN": "t"}).keys()
    assert caught.value.failure.word == "Download"


def test_a_server_over_tls_is_asked_as_all_others_are(monkeypatch):
    near: list[object] = []

    def opened(_: Web, url: str, *__: object, **how: Any) -> None:
        near.append(how["near"])
        raise Transient(url)

    monkeypatch.setattr(Web, "open", opened)
    with pytest.raises(Transient):
        ring({FULL: "https://keys.example/c"}).keys()
    assert near == [False]


def test_keys_of_the_environment_and_of_a_web_identity_come_first(agent, tmp_path):
    static = {"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "B"}
    assert ring({FULL: agent.url, **static}).keys() == Keys("A", "B")
    role = {"AWS_ROLE_ARN": "arn:aws:iam::1:role/r", "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "gone")}
    with pytest.raises(FetchFailed, match="gone cannot be read"):
        ring({FULL: agent.url, **role}).keys()
    assert not agent.asked


@pytest.mark.parametrize(
    "body", [b"<html>", b"[]", {}, told(Token=None), told(Expiration="soon"), told(AccessKeyId=1)]
)
def test_an_agent_that_answers_without_keys_is_asked_again(agent, body):
    agent.told = body
    with pytest.raises(Transient, match="answers without keys"):
        ring({FULL: agent.url}).keys()


def test_an_agent_that_lends_nothing_is_told_with_its_answer(agent, tmp_path):
    agent.status = 404
    with pytest.raises(FetchFailed, match=r"no role is lent to this pod: 127\.0\.0\.1 answers 404") as caught:
        ring({FULL: agent.url}).keys()
    assert caught.value.failure.word == "GatedModel"
    with pytest.raises(FetchFailed, match="token cannot be read"):
        ring({FULL: agent.url, FILE: str(tmp_path / "token")}).keys()
