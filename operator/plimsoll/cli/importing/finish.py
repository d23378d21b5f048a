"""The last look at a draft: what contradicts itself, what the API would refuse, and the resource that remains.

The API's own models judge. A field they refuse is taken out and said to be lost with their reason, so that the result is
always a valid resource; only without a model there is none.
"""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError

from plimsoll import names
from plimsoll.api.problems import problems_of
from plimsoll.api.v1alpha1 import LLMDeployment, LLMDeploymentSpec
from plimsoll.cli.importing.draft import Draft, ImportProblem, name_from

_ROUNDS = 32
_HUB = "hf://"


def finish(draft: Draft) -> dict[str, Any]:
    """The document, valid as the API sees it."""
    if not draft.get("model.source"):
        raise ImportProblem(
            "no model is named; give it as the first word behind `vllm serve`, with --model, or in the field of its kind"
        )
    _part_revision(draft)
    _agree(draft)
    document = _document(draft)
    for _ in range(_ROUNDS):
        try:
            LLMDeployment.model_validate(document)
        except ValidationError as error:
            _take_out(draft, error)
            document = _document(draft)
        else:
            return document
    raise ImportProblem("the result is no valid LLMDeployment")


def _part_revision(draft: Draft) -> None:
    """KServe names a commit or branch of a hub behind the repository: hf://ORG/NAME:REVISION."""
    whole = str(draft.get("model.source"))
    name, _, revision = whole.removeprefix(_HUB).partition(":")
    if not whole.startswith(_HUB) or not (name and revision):
        return
    draft.spec["model"]["source"] = f"{_HUB}{name}"
    if draft.get("model.revision") is None:
        draft.translate("model.revision", revision, whole, "a hub's revision has a field of its own")


def _document(draft: Draft) -> dict[str, Any]:
    """The draft as an LLMDeployment, its groups in the API's order."""
    spec = _without_empty(draft.spec)
    metadata = {"name": name_from(str(draft.get("model.source"))), **draft.metadata}
    order = ["model", *(info.alias or name for name, info in LLMDeploymentSpec.model_fields.items())]
    ordered = {key: spec[key] for key in order if key in spec}
    return {"apiVersion": names.API_VERSION, "kind": names.KIND, "metadata": metadata, "spec": ordered}


def _agree(draft: Draft) -> None:
    """Settle what the engine settles by itself, in the same way."""
    if draft.get("memory.kvCacheSize") is not None and draft.get("memory.utilizationPercent") is not None:
        draft.remove(
            "memory.utilizationPercent",
            "--kv-cache-memory-bytes fixes the pool, and the share is then ignored",
        )
    sequences, tokens = draft.get("engine.maxSequences"), draft.get("engine.maxBatchedTokens")
    if isinstance(sequences, int) and isinstance(tokens, int) and tokens < sequences:
        draft.remove(
            "engine.maxBatchedTokens", f"it is below --max-num-seqs {sequences}; the engine refuses that"
        )
    if sequences is not None:
        draft.warn(
            "engine.maxSequences stays as --max-num-seqs has it: leave it out to have it planned, or name it in tuning.allow to have it retuned"
        )
    if draft.get("adapters.maxLoaded") is None and draft.get("adapters.items"):
        draft.spec["adapters"]["maxLoaded"] = (
            1  # the engine's default, where Plimsoll would take one slot an adapter
        )
    sizes = [draft.get(f"topology.{key}") for key in ("tensor", "pipeline", "data")]
    if any(size is not None for size in sizes):
        draft.spec["topology"]["mode"] = "manual"
    _compare_devices(draft, [size or 1 for size in sizes])


def _compare_devices(draft: Draft, sizes: list[Any]) -> None:
    """Warn where a pod asks for more GPUs than its command uses."""
    used = 1
    for size in sizes:
        used *= size if isinstance(size, int) else 1
    if draft.gpus is not None and draft.gpus > used:
        draft.warn(
            f"the pod asks for {draft.gpus} GPUs, and its command uses {used}: "
            "say topology.tensor where more are meant"
        )


def _take_out(draft: Draft, error: ValidationError) -> None:
    """Take the fields out that the API refuses, each with its reason; raises ImportProblem for one without which there is no resource."""
    taken = 0
    for problem, said in zip(error.errors(), problems_of(error, LLMDeployment), strict=True):
        place = [
            part for part in problem["loc"] if isinstance(part, str) and not part.startswith("function-")
        ]
        field = str((problem.get("ctx") or {}).get("field", ""))
        if place[:1] == ["metadata"]:
            raise ImportProblem(str(said))
        path = _existing(draft, [*place[1:], *field.split(".")] if field else place[1:])
        if path in ("", "model", "model.source"):
            raise ImportProblem(str(said))
        draft.remove(path, f"a deployment refuses it: {said.message}")
        taken += 1
    if not taken:
        raise ImportProblem(f"the result is no valid LLMDeployment: {error}")


def _existing(draft: Draft, parts: list[str]) -> str:
    """The longest beginning of a path that the draft has a value for."""
    for end in range(len(parts), 0, -1):
        path = ".".join(parts[:end])
        if draft.get(path) is not None:
            return path
    return ""


def _without_empty(value: Any) -> Any:
    """The value without keys that hold nothing, at any depth."""
    if isinstance(value, dict):
        cleaned = {key: _without_empty(item) for key, item in value.items()}
        return {key: item for key, item in cleaned.items() if item not in ({}, [], None)}
    return value
