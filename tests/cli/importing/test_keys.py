"""A key that stands in a Secret stays one: however the text names it, the field that holds the Secret is written."""

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from plimsoll.cli.importing import Imported, import_text

FROM_SECRET: Mapping[str, Any] = {"valueFrom": {"secretKeyRef": {"name": "k", "key": "token"}}}
OTHER_SECRET: Mapping[str, Any] = {"valueFrom": {"secretKeyRef": {"name": "other", "key": "key"}}}
KEY: Mapping[str, Any] = {"name": "KEY", **FROM_SECRET}
K = {"name": "k", "key": "token"}


def pod(words: list[str], *env: Mapping[str, Any], shell: bool = False) -> Imported:
    """A pod that starts the engine with further words, by itself or through a shell."""
    line = ["vllm", "serve", "a/b", *words]
    container = {
        "name": "vllm",
        "image": "vllm/vllm-openai",
        "command": ["sh", "-c", " ".join(line)] if shell else line,
        "env": [dict(one) for one in env],
    }
    return import_text(
        yaml.safe_dump({"apiVersion": "v1", "kind": "Pod", "spec": {"containers": [container]}})
    )


def held(imported: Imported) -> tuple[object, object, object]:
    """The Secrets that the resource names: of the API's key, of the hub's token, and the variables beside them."""
    (document,) = imported.documents
    spec = document["spec"]
    return (
        spec.get("networking", {}).get("apiKeySecret"),
        spec["model"].get("tokenSecret"),
        spec.get("engine", {}).get("env"),
    )


VLLM_API_KEY: Mapping[str, Any] = {"name": "VLLM_API_KEY", **FROM_SECRET}


@pytest.mark.parametrize(
    ("words", "env", "shell"),
    [
        (["--api-key", "$(KEY)"], [KEY], False),
        (["--api-key=$(KEY)"], [KEY], False),
        (["--api-key", "$KEY"], [KEY], True),
        (["--api-key", '"$KEY"'], [KEY], True),
        (["--api-key=${KEY}"], [KEY], True),
        (["--api-key", "${KEY:-none}"], [KEY], True),
        (["--api-key", "$(KEY)"], [KEY], True),
        ([], [VLLM_API_KEY], False),
        (["--api-key", "$(VLLM_API_KEY)"], [VLLM_API_KEY], False),
        ([], [KEY, {"name": "VLLM_API_KEY", "value": "$(KEY)"}], False),
    ],
)
def test_a_key_in_a_secret_stays_the_key_of_the_api(
    words: list[str], env: list[Mapping[str, Any]], shell: bool
) -> None:
    found = pod(words, *env, shell=shell)
    assert held(found) == (K, None, None)
    assert found.lost == ()


def test_a_hub_s_token_in_a_secret_stays_the_token() -> None:
    assert held(pod(["--hf-token", "$(KEY)"], KEY)) == (None, K, None)


def test_a_variable_that_the_engine_reads_too_keeps_its_place() -> None:
    found = pod(["--api-key", "$(HF_TOKEN)"], {"name": "HF_TOKEN", **FROM_SECRET})
    assert held(found) == (K, K, None)


def test_the_flag_counts_where_the_variable_holds_another_key() -> None:
    found = pod(["--api-key", "$(KEY)"], {"name": "VLLM_API_KEY", **OTHER_SECRET}, KEY)
    assert held(found) == (K, None, None)
    assert [(fate.what, fate.why) for fate in found.lost] == [
        ("VLLM_API_KEY from Secret other", "the engine takes --api-key, which is there too")
    ]


def test_of_several_keys_the_first_is_kept_and_the_others_are_lost_aloud() -> None:
    found = pod(["--api-key", "open-sesame", "$(KEY)", "$(B)"], KEY, {"name": "B", **OTHER_SECRET})
    assert held(found)[0] == K
    assert [fate.what for fate in found.lost] == ["--api-key (hidden), further ones"]
    assert "sesame" not in repr(found)


@pytest.mark.parametrize("word", ["$(KEY)", "sk-$(KEY)", "open-sesame"])
def test_a_key_that_is_in_no_secret_is_lost_with_where_it_belongs(word: str) -> None:
    (fate,) = pod(["--api-key", word]).lost
    assert fate.what == "--api-key (hidden)"
    assert "name that in networking.apiKeySecret" in fate.why


def test_what_carried_a_key_is_told_to_be_its_field_now() -> None:
    assert [(fate.what, fate.to) for fate in pod(["--api-key", "$(KEY)"], KEY).fates][-2:] == [
        ("--api-key from Secret k", "spec.networking.apiKeySecret"),
        ("KEY from Secret k", "spec.networking.apiKeySecret"),
    ]
