"""Every string of the resource against text that would like to be something else: refused by name, or kept as it is."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from plimsoll.api.crd import custom_resource_definition
from plimsoll.api.loading import load_deployments

SPEC = custom_resource_definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
Path = tuple[str, ...]

PAYLOADS = {
    "template": "{{ 7 * 7 }}{% for x in y %}",
    "shell": "$(id) `id` ; rm -rf / && $HOME",
    "yaml": "a: b\n---\nkind: Secret\n!!python/object/apply:os.system [id] &x *x",
    "argument": "--trust-remote-code --port=1",
    "path": "../../../etc/passwd\x00.yaml",
    "quotes": "'\"\\\"'\\",
    "words of YAML": "null",
    "number": "1e309",
    "right to left": "abc\u202edcba",
    "invisible": "a\u200bb\ufeff",
    "other scripts": "模型 модель نموذج 🦙",
    "lone surrogate": "\ud800",
    "escape": "\x1b[31mred",
    "newline at the end": "hf://a/b\n",
    "huge": "x" * 20_000,
}


def strings(schema: dict[str, Any], path: Path = ()) -> Iterator[Path]:
    if schema.get("type") == "string" or schema.get("x-kubernetes-int-or-string"):
        yield path
    for name, child in schema.get("properties", {}).items():
        yield from strings(child, (*path, name))
    if "items" in schema:
        yield from strings(schema["items"], (*path, "[]"))
    if "additionalProperties" in schema:
        yield from strings(schema["additionalProperties"], (*path, "key"))


def put(path: Path, value: str) -> Any:
    if not path:
        return value
    inner = put(path[1:], value)
    return [inner] if path[0] == "[]" else {path[0]: inner}


def dig(document: Any, path: Path) -> Any:
    for part in path:
        document = document[0 if part == "[]" else part]
    return document


PATHS = sorted(set(strings(SPEC)))


def test_there_are_strings_to_try() -> None:
    assert len(PATHS) > 90


@pytest.mark.parametrize("path", PATHS, ids=".".join)
def test_a_string_is_refused_by_name_or_kept_as_it_is(path: Path) -> None:
    spelled = "spec." + ".".join(path).replace(".[]", "[0]")
    for kind, payload in PAYLOADS.items():
        spec = {"model": {"source": "a/b"}} | put(path, payload)
        spec["model"] = {"source": "a/b"} | spec["model"]
        text = json.dumps({
            "apiVersion": "plimsoll.dev/v1alpha1", "kind": "LLMDeployment", "metadata": {"name": "chat"}, "spec": spec
        })  # fmt: skip
        loaded = load_deployments(text)
        for problem in loaded.problems:
            assert str(problem).isprintable(), kind
            assert len(str(problem)) < 1000, kind
        if loaded.deployments:
            assert dig(loaded.deployments[0].to_dict()["spec"], path) == payload, kind
        elif not any(spelled == problem.field for problem in loaded.problems):
            # Then something around it is missing; the string itself is one that its schema takes.
            assert payload.isprintable() or "\n" in payload, kind
