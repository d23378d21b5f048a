"""Flags that mean something only together: adapters, speculation, media, tools, templates, long context, KV offload.

Each function takes its flags out of those that remain and writes one group of the resource; what a group has no word for is said
to be lost, key by key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from typing import Any

from plimsoll.cli.importing.argv import Given
from plimsoll.cli.importing.draft import Draft, ImportProblem, leaves
from plimsoll.cli.importing.sources import model_source
from plimsoll.cli.importing.values import (
    BadValueError,
    compact,
    decimal,
    digits,
    gibibytes,
    integer,
    json_object,
    parsed_json,
)

Remaining = dict[str, list[Given]]

_METHODS = {
    "ngram": "ngram",
    "draft_model": "draft",
    "draft": "draft",
    "eagle": "eagle",
    "eagle3": "eagle3",
    "mtp": "mtp",
}
_ROPE_TYPES = ("yarn", "linear", "dynamic", "llama3", "longrope")


def write_features(draft: Draft, remaining: Remaining) -> None:
    """Take the flags that belong to a group out of those that remain, and write the groups."""
    for write in (_adapters, _speculation, _media, _tools, _grammar, _rope, _kv_offload, _task, _template):
        _guarded(draft, write, remaining)


def _guarded(draft: Draft, write: Callable[[Draft, Remaining], None], remaining: Remaining) -> None:
    """Let a group be written; where its values cannot be read, the flags that it took are lost with the reason."""
    before = {name: list(items) for name, items in remaining.items()}
    try:
        write(draft, remaining)
    except (BadValueError, ImportProblem) as error:
        for name, items in before.items():
            if name not in remaining:
                for given in items:
                    draft.lose(given.what, str(error))


def _take(remaining: Remaining, name: str) -> Given | None:
    """The one flag of a name, the last of several."""
    found = remaining.pop(name, None)
    return found[-1] if found else None


def _take_object(remaining: Remaining, name: str) -> tuple[dict[str, Any], str]:
    """A JSON flag, whole or by dotted paths, as one object; and its words."""
    merged: dict[str, Any] = {}
    items = remaining.pop(name, [])
    for given in items:
        if given.path is None:
            merged.update(json_object(given.text))
            continue
        *parents, last = given.path.rstrip("+").split(".")
        holder = merged
        for part in parents:
            holder = holder.setdefault(part, {})
        holder[last] = given.text.split(",") if given.path.endswith("+") else _loose(given.text)
    return merged, " ".join(given.what for given in items)


def _loose(text: str) -> Any:
    try:
        return parsed_json(text)
    except BadValueError:
        return text


def _rest(draft: Draft, what: str, left: dict[str, Any], why: str) -> None:
    """Say of a group's keys that no field has that they are lost."""
    for path, value in leaves(left, ""):
        if path:
            draft.lose(f"{what}: {path} {value}", why)


def _adapters(draft: Draft, remaining: Remaining) -> None:
    enable, modules = _take(remaining, "--enable-lora"), _take(remaining, "--lora-modules")
    numbers = {
        "maxLoaded": _take(remaining, "--max-loras"),
        "maxOnHost": _take(remaining, "--max-cpu-loras"),
        "maxRank": _take(remaining, "--max-lora-rank"),
    }
    said = [given for given in (enable, modules, *numbers.values()) if given is not None]
    if not said:
        return
    if (enable is not None and not enable.on) or (enable is None and modules is None):
        for given in said:
            draft.lose(given.what, "without --enable-lora there are no adapters")
        return
    items = [_adapter(draft, word) for word in modules.words] if modules is not None else []
    if modules is not None:
        draft.put("adapters.items", items, modules.what)
    if enable is not None and items:
        draft.drop(enable.what, "spec.adapters")
    elif enable is not None:
        draft.translate(
            "adapters.runtimeLoading",
            True,
            enable.what,
            "no adapter is named, so they are loaded while it runs",
        )
    for key, number in numbers.items():
        if number is not None:
            draft.put(f"adapters.{key}", integer(number.text), number.what)


def _adapter(draft: Draft, word: str) -> dict[str, Any]:
    """A word of --lora-modules as an adapter: NAME=PATH, or an object of JSON."""
    if word.startswith("{"):
        told = json_object(word)
        name, path = told.get("name"), told.get("path")
    else:
        name, _, path = word.partition("=")
    if not name or not path:
        raise BadValueError(f"{word!r} names no adapter; write NAME=PATH")
    return {"name": str(name), "source": model_source(str(path), draft.mounts)}


def _speculation(draft: Draft, remaining: Remaining) -> None:
    short = {
        "method": _take(remaining, "--spec-method"),
        "model": _take(remaining, "--spec-model"),
        "num_speculative_tokens": _take(remaining, "--spec-tokens"),
    }
    told, what = (
        _take_object(remaining, "--speculative-config") if "--speculative-config" in remaining else ({}, "")
    )
    for key, given in short.items():
        if given is not None:
            told[key] = given.text
            what = f"{what} {given.what}".strip()
    if told:
        write_speculation(draft, told, what)


def write_speculation(draft: Draft, told: dict[str, Any], what: str, *, translated: bool = False) -> None:
    """Speculation as the engine's own configuration says it."""
    left = dict(told)
    model = left.pop("model", None)
    name = str(left.pop("method", None) or _guess_method(model))
    method = _METHODS.get(name, "mtp" if name.endswith("_mtp") else None)
    if method is None:
        draft.lose(what, f"spec.speculative knows {', '.join(sorted(set(_METHODS.values())))}, not {name}")
        return
    written: dict[str, Any] = {"method": method}
    if method in ("draft", "eagle", "eagle3"):
        if not model:
            raise BadValueError(f"speculation by {name} needs a model")
        written["model"] = model_source(str(model), draft.mounts)
    elif model:
        left["model"] = model
    keys = {
        "num_speculative_tokens": "tokens",
        "draft_tensor_parallel_size": "tensor",
        "prompt_lookup_max": "lookupMax",
        "prompt_lookup_min": "lookupMin",
    }
    for key, field in keys.items():
        if key in left and (method == "ngram" or not field.startswith("lookup")):
            written[field] = integer(str(left.pop(key)))
    if left.get("revision"):
        written["revision"] = str(left.pop("revision"))
    if translated:
        draft.translate("speculative", written, what, "one group holds what several flags said")
    else:
        draft.put("speculative", written, what)
    _rest(draft, what.partition(" ")[0], left, "spec.speculative has no field for it")


def _guess_method(model: Any) -> str:
    """The engine's own rule: no model is ngram's form, [ngram] too, else the name of the head tells."""
    text = str(model or "ngram").lower()
    if text in ("ngram", "[ngram]"):
        return "ngram"
    return next((name for name in ("eagle3", "eagle", "mtp") if name in text), "draft_model")


def _media(draft: Draft, remaining: Remaining) -> None:
    if "--limit-mm-per-prompt" not in remaining:
        return
    items = remaining["--limit-mm-per-prompt"]
    if len(items) == 1 and items[0].path is None and re.fullmatch(r"\w+=\d+(,\w+=\d+)*", items[0].text):
        remaining.pop("--limit-mm-per-prompt")
        pairs = (part.split("=") for part in items[0].text.split(","))
        told: dict[str, Any] = {key: int(count) for key, count in pairs}
        _limits(draft, told, items[0].what, "the engine takes JSON now")
        return
    told, what = _take_object(remaining, "--limit-mm-per-prompt")
    _limits(draft, told, what, None)


def _limits(draft: Draft, told: dict[str, Any], what: str, translated: str | None) -> None:
    left: dict[str, Any] = {}
    written: dict[str, int] = {}
    for key, value in told.items():
        count = value.get("count") if isinstance(value, dict) else value
        if key not in ("image", "video", "audio") or not isinstance(count, int):
            left[key] = value
            continue
        written[f"{key}s"] = count
        if isinstance(value, dict):
            left |= {f"{key}.{name}": item for name, item in value.items() if name != "count"}
    if written:
        draft.put_group("multimodal", dict(sorted(written.items())), what, translated or "")
    if not written and not left:
        draft.drop(what, "nothing: it says no limit")
    _rest(draft, "--limit-mm-per-prompt", left, "spec.multimodal counts images, videos and audios only")


def _tools(draft: Draft, remaining: Remaining) -> None:
    auto, parser = _take(remaining, "--enable-auto-tool-choice"), _take(remaining, "--tool-call-parser")
    if parser is None:
        if auto is not None:
            why = "it needs --tool-call-parser, and the engine does not start without"
            draft.lose(auto.what, why if auto.on else "there is no tool parser to switch off")
        return
    plugin = "--tool-parser-plugin" in remaining
    if parser.flag.values and parser.text not in parser.flag.values and not plugin:
        near = difflib.get_close_matches(parser.text, parser.flag.values, n=2)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        draft.lose(parser.what, f"vLLM {draft.facts.facts_version} has no such tool parser{hint}")
        if auto is not None:
            draft.lose(auto.what, "it needs a tool parser, and the engine does not start without")
        return
    draft.put("toolCalling.parser", parser.text, parser.what)
    chosen = auto is not None and auto.on
    if auto is not None:
        draft.put("toolCalling.autoChoice", chosen, auto.what)
    else:
        draft.spec["toolCalling"]["autoChoice"] = False


def _grammar(draft: Draft, remaining: Remaining) -> None:
    if "--structured-outputs-config" not in remaining:
        return
    told, what = _take_object(remaining, "--structured-outputs-config")
    backend = told.get("backend")
    if backend and len(told) == 1:
        draft.put("structuredOutput.backend", str(backend), what)
    elif told:
        draft.pass_on(("--structured-outputs-config", compact(told)), what)
    else:
        draft.drop(what, "nothing: it says nothing")


def _rope(draft: Draft, remaining: Remaining) -> None:
    if "--hf-overrides" not in remaining:
        return
    first = remaining["--hf-overrides"][-1]
    if first.path is None and not first.text.lstrip().startswith("{"):
        return
    told, what = _take_object(remaining, "--hf-overrides")
    rope = told.pop("rope_parameters", None) or told.pop("rope_scaling", None)
    if isinstance(rope, dict):
        write_rope(draft, rope, what, translated=False)
        _rest(
            draft,
            "--hf-overrides",
            told,
            "spec.longContext is told through the same flag, which the engine reads once",
        )
    elif told:
        draft.pass_on(("--hf-overrides", compact(told)), what)
    else:
        draft.drop(what, "nothing: it overrides nothing")


def write_rope(draft: Draft, told: dict[str, Any], what: str, *, translated: bool) -> None:
    """RoPE scaling as a model's config.json says it."""
    left = dict(told)
    kind = str(left.pop("rope_type", None) or left.pop("type", ""))
    left.pop("type", None)
    factor, original = left.pop("factor", None), left.pop("original_max_position_embeddings", None)
    if kind not in _ROPE_TYPES or factor is None:
        draft.lose(what, f"spec.longContext needs rope_type, one of {', '.join(_ROPE_TYPES)}, and factor")
        return
    written: dict[str, Any] = {"ropeType": kind, "factor": digits(decimal(str(factor)))}
    if original is not None:
        written["originalTokens"] = integer(str(original))
    if translated:
        draft.translate("longContext", written, what, "the engine takes it through --hf-overrides now")
    else:
        draft.put("longContext", written, what)
    _rest(draft, "rope", left, "spec.longContext has no field for it")


def _kv_offload(draft: Draft, remaining: Remaining) -> None:
    amount, backend = _take(remaining, "--kv-offloading-size"), _take(remaining, "--kv-offloading-backend")
    if amount is None:
        if backend is not None:
            draft.lose(backend.what, "without --kv-offloading-size nothing is offloaded")
        return
    quantity = gibibytes(amount.text)
    if quantity is None:
        draft.drop(amount.what, "nothing: 0 offloads nothing")
    else:
        draft.put("memory.kvOffload.size", quantity, amount.what)
    if backend is not None and quantity is not None:
        draft.put("memory.kvOffload.backend", backend.text, backend.what)
    elif backend is not None:
        draft.lose(backend.what, "nothing is offloaded")


def _task(draft: Draft, remaining: Remaining) -> None:
    runner, convert = remaining.get("--runner"), remaining.get("--convert")
    words = (runner[-1].text if runner else "auto", convert[-1].text if convert else "auto")
    task = {
        ("pooling", "embed"): "embed",
        ("pooling", "classify"): "classify",
        ("generate", "auto"): "generate",
    }.get(words)
    if task is None:
        return
    for name in ("--runner", "--convert"):
        given = _take(remaining, name)
        if given is not None and draft.get("model.task") is None:
            draft.put("model.task", task, given.what)
        elif given is not None:
            draft.drop(given.what, "spec.model.task")


def _template(draft: Draft, remaining: Remaining) -> None:
    given = _take(remaining, "--chat-template")
    if given is None:
        return
    if "{%" in given.text or "{{" in given.text:
        draft.put("chatTemplate.inline", given.text, given.what)
        return
    for mount in draft.mounts:
        inner = mount.inner(given.text)
        if mount.config_map is not None and inner is not None:
            key = inner or (mount.sub_path or "")
            draft.put("chatTemplate.configMap", {"name": mount.config_map, "key": key}, given.what)
            mount.used = True
            return
    draft.lose(
        given.what, "the file is not here: put it into a ConfigMap and name that in chatTemplate.configMap"
    )
