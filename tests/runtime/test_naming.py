"""Which of an engine's words name a model, held against what the operator writes."""

from __future__ import annotations

import json

import pytest

from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.vllm import command
from plimsoll.facts.engines import engine_facts
from plimsoll.planning.settings import LoraSlots, Speculation
from plimsoll_runtime.naming import named, renamed
from tests.engines.sets import chosen

NAMES = {"acme/tiny", "acme/words", "acme/draft", "acme/sql"}


def written(**groups: object) -> tuple[str, ...]:
    """As the operator does."""
    spec = LLMDeploymentSpec.model_validate({"model": {"source": "modelscope://acme/tiny"}, **groups})
    facts = engine_facts("vllm")
    settings = {
        "lora": LoraSlots(max_loras=1, max_rank=16, max_cpu_loras=1),
        "speculation": Speculation(method="draft_model", tokens=2),
    }
    return command(spec, chosen(**settings), facts).argv


def moved(argv: tuple[str, ...]) -> tuple[str, ...]:
    return renamed(argv, lambda name: f"/at/{name}" if name in NAMES else name)


def test_what_a_model_is_served_as_stays_though_it_is_written_like_its_source():
    argv = written()
    assert argv[:5] == ("vllm", "serve", "acme/tiny", "--served-model-name", "acme/tiny")
    assert moved(argv) == (*argv[:2], "/at/acme/tiny", *argv[3:])


def test_tokenizers_drafts_and_adapters_are_named_in_words_of_their_own():
    argv = written(
        model={"source": "modelscope://acme/tiny", "tokenizer": "modelscope://acme/words"},
        adapters={"items": [{"name": "sql", "source": "modelscope://acme/sql"}]},
        speculative={"method": "draft", "model": "modelscope://acme/draft", "tokens": 2},
    )
    words = list(moved(argv))
    assert words[words.index("--tokenizer") + 1] == "/at/acme/words"
    assert json.loads(words[words.index("--speculative-config") + 1])["model"] == "/at/acme/draft"
    module = json.loads(words[words.index("--lora-modules") + 1])
    assert module == {"name": "sql", "path": "/at/acme/sql"}
    assert named(argv) == ["acme/tiny", "acme/words", "acme/sql", "acme/draft"]


@pytest.mark.parametrize(
    ("argv", "new"),
    [
        ("x --model acme/tiny", "x --model /at/acme/tiny"),
        ("vllm serve --model=acme/tiny", "vllm serve --model=/at/acme/tiny"),
        ("vllm serve a --hf_config_path acme/tiny", "vllm serve a --hf_config_path /at/acme/tiny"),
        ("vllm serve a --served-model-name=acme/tiny", "vllm serve a --served-model-name=acme/tiny"),
        ("vllm serve a --served-model-name x acme/tiny", "vllm serve a --served-model-name x acme/tiny"),
        ("vllm serve a -sc={", "vllm serve a -sc={"),
        ('vllm serve a -sc={"model":"acme/tiny"}', 'vllm serve a -sc={"model":"/at/acme/tiny"}'),
        ('vllm serve a --hf-overrides {"x":"acme/tiny"}', 'vllm serve a --hf-overrides {"x":"acme/tiny"}'),
        ("ray start --block", "ray start --block"),
    ],
)
def test_names_of_models_as_people_write_them(argv, new):
    assert " ".join(moved(tuple(argv.split()))) == new
