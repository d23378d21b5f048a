"""`plimsoll import`: what serves a model today, in anybody's words, as LLMDeployments; with what was lost on the way.

Pure functions from text to documents. Each kind of text has a module of its own, which knows that kind's words and
nothing else; all of them write into a `Draft`, which keeps the account. Printing is left to the command.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from plimsoll.api.loading import parse_documents
from plimsoll.api.problems import SpecError
from plimsoll.cli.importing import dynamo, kserve, kubeai, kubernetes, production_stack
from plimsoll.cli.importing.command import Command, facts_for, write_command
from plimsoll.cli.importing.config_file import is_config, words_of
from plimsoll.cli.importing.docker import Container, is_run, read_compose, read_run
from plimsoll.cli.importing.draft import Draft, Fate, ImportProblem, Outcome
from plimsoll.cli.importing.finish import finish
from plimsoll.cli.importing.shell import UNREAD, commands_in, exports_in, find_engines
from plimsoll.cli.importing.systemd import read_unit
from plimsoll.cli.importing.values import BadValueError
from plimsoll.names import NAME_MAX

__all__ = ["Fate", "ImportProblem", "Imported", "Outcome", "import_text", "is_read"]

KINDS = (
    "a `vllm serve` or `docker run` command, a systemd unit, a compose file, the engine's --config file, "
    "Deployment, StatefulSet, Pod, LeaderWorkerSet, InferenceService, LLMInferenceService, Model (KubeAI), "
    "VLLMRuntime, production-stack values, DynamoGraphDeployment, DynamoGraphDeploymentRequest"
)

_WRITERS: Mapping[str, tuple[str, Callable[[Draft, dict[str, Any]], None]]] = {
    **dict.fromkeys(kubernetes.WORKLOADS, ("", kubernetes.write_workload)),
    "InferenceService": ("serving.kserve.io/", kserve.write_inference_service),
    "LLMInferenceService": ("serving.kserve.io/", kserve.write_llm_inference_service),
    "Model": ("kubeai.org/", kubeai.write_model),
    "VLLMRuntime": ("production-stack.vllm.ai/", production_stack.write_runtime),
    "DynamoGraphDeployment": ("nvidia.com/", dynamo.write_graph),
    "DynamoGraphDeploymentRequest": ("nvidia.com/", dynamo.write_request),
}


def is_read(kind: str) -> bool:
    """Whether resources of this kind can be turned into LLMDeployments."""
    return kind in _WRITERS


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """The resources, and what became of every word."""

    documents: tuple[dict[str, Any], ...]
    """LLMDeployments as plain data, valid as the API sees them."""
    fates: tuple[Fate, ...]
    warnings: tuple[str, ...]

    @property
    def lost(self) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.fates if fate.outcome is Outcome.LOST)

    @property
    def translated(self) -> tuple[Fate, ...]:
        return tuple(fate for fate in self.fates if fate.outcome is Outcome.TRANSLATED)


def import_text(text: str, *, name: str | None = None, engine_version: str | None = None) -> Imported:
    """Read a text of any known kind. `engine_version` is the version to write for; absent, the text's own or the newest."""
    if not text.strip():
        raise ImportProblem(f"the text is empty; read are {KINDS}")
    if re.search(r"^\s*\[(Unit|Service|Install)\]\s*$", text, re.MULTILINE):
        drafts = [_from_unit(text, engine_version)]
    elif _is_yaml(text):
        drafts = _from_yaml(text, engine_version)
    else:
        drafts = _from_shell(text, engine_version)
    if name is not None:
        for draft in drafts:
            draft.metadata["name"] = name
    documents = tuple(_apart([finish(draft) for draft in drafts]))
    return Imported(
        documents=documents,
        fates=tuple(fate for draft in drafts for fate in draft.fates),
        warnings=tuple(dict.fromkeys(warning for draft in drafts for warning in draft.warnings)),
    )


def _apart(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Resources of one text under names of their own: the second of a name gets a number."""
    taken: set[tuple[str, str]] = set()
    for document in documents:
        metadata = document["metadata"]
        name, number = str(metadata["name"]), 1
        while (str(metadata.get("namespace", "")), str(metadata["name"])) in taken:
            number += 1
            metadata["name"] = f"{name[: NAME_MAX - 4].rstrip('-')}-{number}"
        taken.add((str(metadata.get("namespace", "")), str(metadata["name"])))
    return documents


def _is_yaml(text: str) -> bool:
    """Whether a text's first line looks like YAML or JSON rather than like a command."""
    first = next(
        (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")), ""
    )
    return bool(re.match(r"\s*(---|\{|\[|-\s|[\w\"'./-]+\s*:(\s|$))", first))


def _from_shell(text: str, version: str | None) -> list[Draft]:
    """Every engine that a shell text starts; of `docker run` the containers, else the commands."""
    commands = commands_in(text)
    containers = [read_run(words) for words in commands if is_run(words)]
    if containers:
        exported = {key: value for words in commands for key, value in exports_in(words).items()}
        for container in containers:
            container.found.environment = {**exported, **container.found.environment}
        others = [words for words in commands if not is_run(words) and not exports_in(words)]
        containers[-1].lost += [(" ".join(words), UNREAD) for words in others]
        return [_from_container(container, version) for container in containers]
    engines = find_engines(commands)
    if not engines:
        raise ImportProblem(f"no engine is started here ({text.strip()[:60]!r}); read are {KINDS}")
    drafts = []
    for engine in engines:
        draft = Draft(facts_for(None, version))
        for what, why in engine.lost:
            draft.lose(what, why)
        write_command(
            draft, Command(argv=tuple(engine.argv), environment=engine.environment, dialect=engine.dialect)
        )
        drafts.append(draft)
    return drafts


def _from_container(container: Container, version: str | None) -> Draft:
    """One container as a draft."""
    draft = Draft(facts_for(container.image, version))
    draft.gpus = container.gpus
    if container.name:
        draft.name(container.name)
    for what, why in [*container.lost, *container.found.lost]:
        draft.lose(what, why)
    found = container.found
    write_command(
        draft,
        Command(
            argv=tuple(found.argv),
            environment=found.environment,
            image=container.image,
            mounts=container.mounts,
            dialect=found.dialect,
        ),
    )
    return draft


def _from_unit(text: str, version: str | None) -> Draft:
    """The engine that a systemd unit starts."""
    words, environment, lost = read_unit(text)
    if is_run(words):
        container = read_run(words)
        container.found.environment = {**environment, **container.found.environment}
        draft = _from_container(container, version)
    else:
        engines = find_engines([words], environment)
        if not engines:
            raise ImportProblem(f"ExecStart starts no vLLM: {' '.join(words)[:120]}")
        draft = Draft(facts_for(None, version))
        engine = engines[0]
        write_command(
            draft, Command(argv=tuple(engine.argv), environment=engine.environment, dialect=engine.dialect)
        )
    for what, why in lost:
        draft.lose(what, why)
    return draft


def _from_yaml(text: str, version: str | None) -> list[Draft]:
    """Every manifest, compose file or configuration in a text; what is not read is lost, unless nothing is read at all."""
    try:
        documents = parse_documents(text)
    except SpecError as error:
        raise ImportProblem(f"not YAML that can be read: {error}") from None
    opened: list[Any] = []
    for document in documents:
        is_list = isinstance(document, dict) and document.get("kind") == "List"
        opened += document.get("items") or [] if is_list else [document]
    drafts: list[Draft] = []
    beside: list[dict[str, Any]] = []
    refused: list[tuple[str, ImportProblem]] = []
    for document in opened:
        if isinstance(document, dict) and _writer(document) is None and "kind" in document:
            beside.append(document)
            continue
        try:
            drafts += _from_document(document, version)
        except ImportProblem as problem:
            refused.append((_called(document), problem))
    if refused and not drafts:
        raise ImportProblem("; ".join(f"{called}: {why}" if called else str(why) for called, why in refused))
    for called, why in refused:
        drafts[0].lose(called or "a document", str(why))
    if not drafts:
        kinds = ", ".join(str(document.get("kind")) for document in beside)
        raise ImportProblem(f"nothing that serves a model here ({kinds or 'no document'}); read are {KINDS}")
    for document in beside:
        _write_beside(drafts, document)
    return drafts


def _called(document: Any) -> str:
    """A manifest by its kind and name, as kubectl would call it; nothing for what has neither."""
    if not isinstance(document, dict) or "kind" not in document:
        return ""
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, Mapping) else None
    return f"{document['kind']} {name}" if name else str(document["kind"])


def _from_document(document: Any, version: str | None) -> list[Draft]:
    """One document as drafts, by its kind, or by the keys that a compose file, Helm values or an engine's configuration have."""
    if not isinstance(document, dict):
        raise ImportProblem(f"{document!r} is no map; read are {KINDS}")
    facts = facts_for(_image_in(document), version)
    writer = _writer(document)
    if writer is not None:
        draft = Draft(facts)
        try:
            writer(draft, document)
        except BadValueError as error:
            raise ImportProblem(str(error)) from None
        return [draft]
    if "servingEngineSpec" in document:
        drafts = []
        for place, model in enumerate(production_stack.models_of(document)):
            image = f"{model.get('repository')}:{model.get('tag')}"
            draft = Draft(facts_for(image, version))
            production_stack.write_values_model(draft, model, document, place)
            drafts.append(draft)
        return drafts
    if "services" in document:
        return [_from_container(container, version) for container in read_compose(document)]
    if is_config(document, facts.flags):
        draft = Draft(facts)
        write_command(draft, Command(argv=tuple(words_of(document))))
        return [draft]
    keys = ", ".join(list(map(str, document))[:5])
    raise ImportProblem(f"YAML of a kind that is not read (it has {keys}); read are {KINDS}")


def _writer(document: Mapping[str, Any]) -> Callable[[Draft, dict[str, Any]], None] | None:
    """What writes a manifest of this kind into a draft; None where no such kind is read."""
    prefix, writer = _WRITERS.get(str(document.get("kind", "")), ("", None))
    return writer if writer is not None and str(document.get("apiVersion", "")).startswith(prefix) else None


def _write_beside(drafts: list[Draft], document: dict[str, Any]) -> None:
    """An object beside the workloads: a Service or autoscaler belongs to the only workload, others are not read."""
    kind = document.get("kind")
    if kind in kubernetes.BESIDE and len(drafts) == 1:
        kubernetes.write_beside(drafts[0], document)
        return
    why = "it belongs to one of several workloads" if kind in kubernetes.BESIDE else "this kind is not read"
    drafts[0].lose(_called(document), why)


def _image_in(value: Any) -> str | None:
    """The first engine image below a document, for the version that its flags are judged by."""
    if isinstance(value, Mapping):
        image = value.get("image")
        if isinstance(image, str) and "vllm" in image:
            return image
        return next((found for item in value.values() if (found := _image_in(item))), None)
    if isinstance(value, list):
        return next((found for item in value if (found := _image_in(item))), None)
    return None
