"""Text that means something to YAML, a terminal, a shell, a template or a table, in every field of the resource: it is
refused with the field's name, or carried through to the output as the text it is."""

import json
import unicodedata
from typing import Any

import pytest

from plimsoll.api.loading import load_deployments
from plimsoll.api.problems import all_fields
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from tests.cli.running import plimsoll

TRICKS = [
    "no",
    "0x1F",
    "1e3",
    "~",
    "!!python/object/apply:os.system ['true']",
    "*anchor",
    "{{ template }}",
    "$(touch /tmp/x); `id`",
    "[red]bold[/red]",
    "\x1b[31mred\x1b[0m",
    "chat\u202egnp.yaml",
    "a\u0000b",
    "nai\u0308ve-\ufb01-\U0001d53d\u2800",
    "x" * 5_000,
    "line\nbreak: true",
    "../../etc/passwd",
]


def leaves() -> list[str]:
    paths = all_fields(LLMDeploymentSpec)
    return [path for path in paths if not any(other.startswith(f"{path}.") for other in paths)]


def resource(number: int, path: str, value: object) -> dict[str, Any]:
    spec: dict[str, Any] = {"model": {"source": "hf://Qwen/Qwen3-0.6B"}}
    group = spec
    *parents, last = path.split(".")
    for part in parents:
        group = group.setdefault(part, {})
    group[last] = value
    head = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "LLMDeployment",
        "metadata": {"name": f"x{number}"},
    }
    return {**head, "spec": spec}


def accepted(documents: list[dict[str, Any]]) -> list[str]:
    texts = [json.dumps(document) for document in documents]
    return [text for text in texts if not load_deployments(text).problems]


@pytest.mark.parametrize("trick", TRICKS, ids=lambda trick: ascii(trick)[:20])
def test_in_every_field_it_is_refused_or_text(trick: str):
    paths = leaves()
    assert len(paths) > 100
    each = [resource(n, path, value) for n, path in enumerate(paths) for value in (trick, [trick])]
    refused = plimsoll(
        "plan", "-f", "-", "--fleet", "8xH100", stdin="\n---\n".join(map(json.dumps, each[:40]))
    )
    assert refused.code == 3
    for place, text in enumerate(accepted(each)[::2]):
        ran = plimsoll("plan", "-f", "-", "--fleet", "1xL4", "-a" if place % 2 else "-ojson", stdin=text)
        assert ran.code in {0, 2, 3}
        shown = ran.out + ran.err
        assert "Traceback" not in shown
        assert [c for c in shown if unicodedata.category(c) in {"Cc", "Cf"} and c != "\n"] == []
