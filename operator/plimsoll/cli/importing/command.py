"""An engine's command, wherever it stood, written into a draft: words, variables, image, mounts."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from plimsoll.cli.importing.argv import Given, parse_argv
from plimsoll.cli.importing.draft import Draft, ImportProblem
from plimsoll.cli.importing.environment import Environment, EnvValue, write_environment
from plimsoll.cli.importing.features import Remaining, write_features
from plimsoll.cli.importing.fields import write_flag
from plimsoll.cli.importing.keys import KEYED, write_keys
from plimsoll.cli.importing.sources import Mount, model_source
from plimsoll.cli.importing.stale import write_stale
from plimsoll.cli.importing.values import BadValueError, truth
from plimsoll.facts.engine_versions import parse_version, release
from plimsoll.facts.engines import EngineFacts, engine_facts, listed_versions

_STOCK = re.compile(r"(docker\.io/)?vllm/vllm-openai(-cpu|-rocm)?")
_VARIABLE = re.compile(r"\$\((\w+)\)|\$\{(\w+)(?::?-([^}]*))?\}|\$(\w+)")

FOREIGN: Mapping[str, Mapping[str, str]] = {
    "dynamo": {
        "--dyn-*": "it is Dynamo's own, which Plimsoll does without",
        "--is-decode-worker": "prefill and decode are one deployment here",
        "--is-prefill-worker": "prefill and decode are one deployment here",
        "--disaggregation-mode": "prefill and decode are one deployment here",
        "--connector": "it is Dynamo's own; KV transfer goes through --kv-transfer-config",
        "--endpoint": "it is Dynamo's own, which Plimsoll does without",
        "--migration-limit": "it is Dynamo's own, which Plimsoll does without",
        "--request-plane": "it is Dynamo's own, which Plimsoll does without",
        "--event-plane": "it is Dynamo's own, which Plimsoll does without",
        "--store-kv": "it is Dynamo's own, which Plimsoll does without",
        "--custom-jinja-template": "the file is not here: put it into a ConfigMap and name that in chatTemplate.configMap",
    },
    "kserve": {
        "--backend": "it is KServe's own, which Plimsoll does without",
        "--model_dir": "it is KServe's own, which Plimsoll does without",
        "--model-dir": "it is KServe's own, which Plimsoll does without",
        "--http-port": "it is KServe's own, which Plimsoll does without",
        "--enable-docs-url": "it is KServe's own, which Plimsoll does without",
        "--return-token-type-ids": "it is KServe's own, which Plimsoll does without",
        "--return-probabilities": "it is KServe's own, which Plimsoll does without",
        "--disable-lower-case": "it is KServe's own, which Plimsoll does without",
    },
}
_SAME: Mapping[str, Mapping[str, str]] = {
    "kserve": {
        "--model-id": "--model",
        "--model-name": "--served-model-name",
        "--max-length": "--max-model-len",
    },
    "dynamo": {
        "--dyn-tool-call-parser": "--tool-call-parser",
        "--dyn-reasoning-parser": "--reasoning-parser",
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What starts one engine."""

    argv: tuple[str, ...]
    """The words behind `vllm serve`."""
    environment: Environment = field(default_factory=dict)
    image: str | None = None
    mounts: tuple[Mount, ...] = ()
    model: str | None = None
    """Where it is said outside the command line, which then need not say it."""
    dialect: str = "vllm"


def facts_for(image: str | None, version: str | None) -> EngineFacts:
    """The facts to judge a command by: of the version asked for, else of the image's, where its flags are listed."""
    listed = engine_facts("vllm", version or image_version(image))
    return listed if listed.flags_version is None or _is_listed(listed) else engine_facts("vllm")


def _is_listed(facts: EngineFacts) -> bool:
    """Whether the flags that would be used are not those of a newer version."""
    return release(str(facts.flags_version)) <= release(facts.facts_version)


def image_version(image: str | None) -> str | None:
    """The release of vLLM that an image's tag names, or None: tags of other products count their own releases."""
    name, _, tag = (image or "").partition("@")[0].rpartition(":")
    repository = name.rpartition("/")[2]
    if "vllm" not in repository or "runtime" in repository or "dynamo" in name:
        return None
    found = parse_version(tag)
    if found is None or not found.released or found.major > 0 or not re.search(r"\d\.\d", tag):
        return None
    return str(found)


def write_command(draft: Draft, command: Command) -> None:
    """Read a command into a draft."""
    dialect = command.dialect
    words = [_expand(word, command.environment) for word in command.argv]
    if any(word.startswith("--dyn-tool-call-parser") for word in words):
        words.append("--enable-auto-tool-choice")  # Dynamo's frontend always lets the model choose
    line = parse_argv(
        [_renamed(word, _SAME.get(dialect, {})) for word in words],
        draft.facts.flags,
        {item.flag: item for item in draft.facts.profile.stale_flags},
        FOREIGN.get(dialect),
        draft.facts.facts_version,
    )
    draft.said = frozenset(given.flag.name for given in line.given)
    draft.mounts = command.mounts
    _write_image(draft, command.image)
    remaining: Remaining = {}
    for given in line.given:
        remaining.setdefault(given.flag.name, []).append(given)
    _write_model(draft, command, line.positionals, remaining)
    _later_wins(draft, remaining)
    environment = write_keys(draft, command.environment, remaining)
    write_features(draft, remaining)
    _weights_place(draft, command, remaining)
    for items in remaining.values():
        for given in items:
            if given.flag.name not in KEYED and any(_VARIABLE.search(word) for word in given.words):
                draft.lose(given.what, "it holds a variable whose value is not here")
            else:
                write_flag(draft, given)
    write_stale(draft, line.stale)
    for item in line.unread:
        draft.lose(item.what, item.why)
    write_environment(
        draft, {name: told for name, told in environment.items() if name not in draft_only(draft)}
    )


def draft_only(draft: Draft) -> frozenset[str]:
    """Variables that were already read as places of weights."""
    return frozenset(
        fate.what.partition("=")[0] for fate in draft.fates if fate.to.startswith("spec.storage.")
    )


def _write_image(draft: Draft, image: str | None) -> None:
    if not image:
        return
    version = image_version(image)
    name = image.partition("@")[0].rpartition(":")[0] or image
    if version is not None and draft.facts.flags_version and release(version) < release(_oldest()):
        draft.lose(
            f"image {image}",
            f"vLLM {version} is older than {_oldest()}, the oldest version whose flags are known: the admin's default is used",
        )
        return
    if _STOCK.fullmatch(name):
        if version is not None:
            draft.put("engine.version", version, f"image {image}")
        else:
            draft.drop(f"image {image}", "the image of the admin's default version")
        if name.endswith("-cpu"):
            draft.spec.setdefault("topology", {}).setdefault("cpu", {})
        return
    draft.put("engine.image", image, f"image {image}")
    if version is not None:
        draft.spec["engine"]["version"] = version
        draft.warn(f"vLLM {version} was read from the tag of {image}; say engine.version if it is another")
    else:
        draft.warn(f"the image {image} names no version of vLLM: say engine.version, which memory depends on")


def _oldest() -> str:
    """The oldest version whose flags are known."""
    return listed_versions("vllm")[0]


def _write_model(draft: Draft, command: Command, positionals: Sequence[str], remaining: Remaining) -> None:
    flags = remaining.pop("--model", [])
    names = [*positionals[:1], *(given.text for given in flags)]
    what = positionals[0] if positionals else flags[-1].what if flags else f"model {command.model}"
    text = names[-1] if names else command.model
    for extra in positionals[1:]:
        draft.lose(extra, "it belongs to no flag, and the engine takes one model")
    for given in flags[:-1] if positionals == [] else flags:
        if given.text != text:
            draft.lose(given.what, "the model is said twice; the last word counts")
    if text is None:
        return
    if _VARIABLE.search(text):
        raise ImportProblem(f"the model is {text!r}, and the value of that variable is not in the text")
    modelscope = command.environment.get("VLLM_USE_MODELSCOPE", EnvValue()).value
    source = model_source(text, command.mounts, modelscope=_true(modelscope))
    if flags and positionals == []:
        draft.put("model.source", source, flags[-1].what)
    else:
        draft.put("model.source", source, what)


def _true(text: str | None) -> bool:
    try:
        return truth(text or "0")
    except BadValueError:
        return False


def _later_wins(draft: Draft, remaining: Remaining) -> None:
    """Of a flag that is said twice the last counts, as for the engine. Dotted paths of one flag add up."""
    for name, items in remaining.items():
        whole = [given for given in items if given.path is None]
        for given in whole[:-1]:
            draft.lose(given.what, f"{name} is said again later; the last word counts")
        remaining[name] = whole[-1:] + [given for given in items if given.path is not None]


def _weights_place(draft: Draft, command: Command, remaining: Remaining) -> None:
    """A claim that the weights are downloaded to is the storage of the deployment."""
    places: list[tuple[str, str, Given | None]] = [
        (given.text, given.what, given) for given in remaining.get("--download-dir", ())
    ]
    for name in ("HF_HOME", "HF_HUB_CACHE"):
        told = command.environment.get(name)
        if told is not None and told.value:
            places.append((told.value, f"{name}={told.value}", None))
    if not places and command.mounts:
        places = [("/root/.cache/huggingface", "", None)]
    for path, what, given in places:
        for mount in command.mounts:
            inner = mount.inner(path)
            if mount.claim is None or inner is None or draft.get("storage.weights") is not None:
                continue
            claim = {"name": mount.claim} | ({"subPath": mount.sub_path} if mount.sub_path else {})
            draft.put("storage.weights", {"claim": claim}, what or f"volume at {mount.path}")
            mount.used = True
            if given is not None:
                remaining.pop("--download-dir", None)


def _expand(word: str, environment: Environment) -> str:
    """Put in the variables whose values stand in the same text."""

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2] or match[4]
        told = environment.get(name)
        if told is not None and told.value is not None:
            return told.value
        if told is not None and told.secret is not None:
            return match[0]  # a default counts only where the variable is not set
        return match[3] if match[3] is not None else match[0]

    return _VARIABLE.sub(value, word)


def _renamed(word: str, same: Mapping[str, str]) -> str:
    head, equals, tail = word.partition("=")
    return same.get(head.replace("_", "-"), head) + equals + tail if head.startswith("--") else word
