"""Flags of versions past: what still can be said is said in today's words, the rest is named with its successor.

Which flags are stale, how many words follow them and what took their place stands in the engine's data file.
"""

from __future__ import annotations

from typing import Any

from plimsoll.cli.importing.argv import Stale
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.features import write_rope, write_speculation
from plimsoll.cli.importing.values import BadValueError, json_object

_TASKS = {
    "generate": "generate",
    "embed": "embed",
    "embedding": "embed",
    "score": "rerank",
    "classify": "classify",
}


def write_stale(draft: Draft, stale: list[Stale]) -> None:
    """Flags of versions past: what still can be said is said in today's words."""
    told: dict[str, Any] = {}
    speculative: list[str] = []
    keys = {
        "--speculative-model": "model",
        "--num-speculative-tokens": "num_speculative_tokens",
        "--speculative-draft-tensor-parallel-size": "draft_tensor_parallel_size",
        "--ngram-prompt-lookup-max": "prompt_lookup_max",
        "--ngram-prompt-lookup-min": "prompt_lookup_min",
    }
    for item in stale:
        name, text = item.flag.flag, item.words[0] if item.words else ""
        if name in keys and text:
            told[keys[name]] = text
            speculative.append(item.what)
            continue
        try:
            _one_stale(draft, item, name, text)
        except BadValueError as error:
            draft.lose(item.what, str(error))
    if told:
        try:
            write_speculation(draft, told, " ".join(speculative), translated=True)
        except (BadValueError, ImportProblem) as error:
            draft.lose(" ".join(speculative), str(error))


def _one_stale(draft: Draft, item: Stale, name: str, text: str) -> None:
    if name == "--guided-decoding-backend" and text:
        draft.translate(
            "structuredOutput.backend", text.partition(":")[0], item.what, "it has another name now"
        )
    elif name == "--rope-scaling" and text:
        write_rope(draft, json_object(text), item.what, translated=True)
    elif name in ("--worker-use-ray", "--engine-use-ray"):
        draft.translate("topology.executor", "ray", item.what, "it has another name now")
    elif name == "--task" and text in _TASKS:
        draft.translate("model.task", _TASKS[text], item.what, "the task is the model's")
    elif name == "--cuda-graph-sizes" and item.words:
        draft.pass_on(("--cudagraph-capture-sizes", *item.words), item.what, "it has another name now")
    elif item.flag.instead.startswith("nothing") or name == "--enable-reasoning":
        draft.drop(item.what, item.flag.instead)
    else:
        draft.lose(
            item.what,
            f"vLLM {draft.facts.facts_version} has no such flag any more; instead: {item.flag.instead}",
        )
