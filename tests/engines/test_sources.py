"""What a supervisor is told to bring before its engine starts, by where models come from and what may be kept."""

from __future__ import annotations

import pytest

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.sources import fetched_first


def spec(source: str, model: dict[str, object] | None = None, **others: object) -> LLMDeploymentSpec:
    return LLMDeploymentSpec.model_validate({"model": {"source": source, **(model or {})}, **others})


WEIGHTS: dict[str, object] = {"claimTemplate": {}}
READ_ONLY = {"claim": {"name": "kept", "readOnly": True}}


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (spec("hf://acme/m"), ("hf://acme/m",)),
        (spec("acme/m", {"revision": "refs/pr/1"}), ("hf://acme/m#refs/pr/1",)),
        (spec("modelscope://acme/m"), ("modelscope://acme/m",)),
        (spec("hf://acme/m", {"tokenizer": "acme/words"}), ("hf://acme/m", "hf://acme/words")),
        (spec("hf://acme/m", storage={"weights": {"image": {"reference": "r/i:1"}}}), ()),
        (spec("hf://acme/m", storage={"weights": READ_ONLY}), ("hf://acme/m",)),  # looked for there
        (spec("s3://bucket/m"), ("s3://bucket/m",)),
        (spec("s3://bucket/m", storage={"weights": WEIGHTS}), ("s3://bucket/m",)),
        (spec("s3://bucket/m", {"loadFormat": "runai_streamer"}), ()),
        (spec("s3://bucket/m", {"loadFormat": "safetensors"}), ("s3://bucket/m",)),
        (spec("s3://bucket/m", storage={"weights": READ_ONLY}), ()),
        (spec("oci://r.io/a:1"), ()),
        (spec("pvc://claim/m"), ()),
        (spec("/models/m"), ()),
    ],
)
def test_what_is_brought_first(asked, words):
    assert fetched_first(asked) == words
