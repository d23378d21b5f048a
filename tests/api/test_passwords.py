"""What is told of an address that a person wrote: never its password."""

from __future__ import annotations

import pytest

from plimsoll.api.passwords import without_passwords
from plimsoll.api.problems import show


@pytest.mark.parametrize(
    "scheme", ["http://", "HTTP://", "https://", "socks5://", "socks5h://", "oci://", "redis://", ""]
)
@pytest.mark.parametrize(
    "password",
    [
        "S3cr3tPass",
        "S3cr3t/Pass",
        "S3cr3t@Pass",
        "S3cr3t#Pass",
        "S3cr3t:Pass",
        "S3cr3t?Pass",
        "S3cr3t Pass",
        "/S3cr3tPass",
    ],
)
def test_a_password_is_not_told_whatever_the_scheme_and_the_signs_in_it(scheme: str, password: str) -> None:
    told = show(f"{scheme}svc:{password}@proxy.corp:3128")
    assert told == f"'{scheme}***@proxy.corp:3128'"


def test_a_token_in_place_of_a_name_is_not_told() -> None:
    assert show("https://hf_token@mirror.corp/a") == "'https://***@mirror.corp/a'"


def test_a_name_with_its_domain_is_not_told_with_its_password() -> None:
    assert show("corp/svc:S3cr3t@proxy:3128") == "'***@proxy:3128'"


def test_a_password_within_a_group_is_not_told() -> None:
    assert show({"httpProxy": "u:p@proxy:1"}) == "{'httpProxy': '***@proxy:1'}"


@pytest.mark.parametrize(
    "text",
    [
        "hf://org/name@main",
        "oci://registry:5000/models/llama:8b",
        "oci://registry:5000/models/llama:8b@sha256:0123",
        "registry:5000/vllm/vllm-openai:v0.33.0@sha256:0123",
        "s3://bucket/folder",
        "http://proxy:3128",
        "https://hub.example/a",
        "socks5://proxy:1080",
        "me@example.com",
        "model: not found; write to me@example.com",
    ],
)
def test_what_holds_no_password_is_told_whole(text: str) -> None:
    assert without_passwords(text) == text
