"""Environment variables of an engine's process as fields of the resource.

Some variables are settings in disguise, some hold secrets, some belong to the machine they were written for. The rest
goes to `engine.env`, where the admin's lists decide. No value of a secret is ever printed or written.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

from plimsoll.cli.importing.draft import Draft, is_secret
from plimsoll.cli.importing.values import BadValueError, gibibytes, truth


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvValue:
    """A variable: its text, the Secret that holds it, or what else it comes from."""

    value: str | None = None
    secret: tuple[str, str] | None = None
    other: str | None = None


Environment = Mapping[str, EnvValue]

HUB_TOKENS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HUGGINGFACE_HUB_TOKEN")
_DEVICES = "the device plugin says which devices a pod has"
_PLACES = "spec.storage says where weights and caches live"
_MACHINE = "it belongs to the machine or shell it was written for"
_GROUP = "Plimsoll writes it for each pod"
_LOST: Mapping[str, str] = {
    "CUDA_VISIBLE_DEVICES": _DEVICES,
    "NVIDIA_VISIBLE_DEVICES": _DEVICES,
    "NVIDIA_DRIVER_CAPABILITIES": _DEVICES,
    "HIP_VISIBLE_DEVICES": _DEVICES,
    "ROCR_VISIBLE_DEVICES": _DEVICES,
    "HABANA_VISIBLE_DEVICES": _DEVICES,
    "HF_HOME": _PLACES,
    "HF_HUB_CACHE": _PLACES,
    "HUGGINGFACE_HUB_CACHE": _PLACES,
    "TRANSFORMERS_CACHE": _PLACES,
    "VLLM_CACHE_ROOT": _PLACES,
    "TRITON_CACHE_DIR": _PLACES,
    "TORCHINDUCTOR_CACHE_DIR": _PLACES,
    "FLASHINFER_WORKSPACE_BASE": _PLACES,
    "XDG_CACHE_HOME": _PLACES,
    "HOME": _MACHINE,
    "USER": _MACHINE,
    "PATH": _MACHINE,
    "PWD": _MACHINE,
    "SHELL": _MACHINE,
    "LD_LIBRARY_PATH": _MACHINE,
    "PYTHONPATH": _MACHINE,
    "VIRTUAL_ENV": _MACHINE,
    "VLLM_HOST_IP": _GROUP,
    "VLLM_PORT": _GROUP,
    "MASTER_ADDR": _GROUP,
    "MASTER_PORT": _GROUP,
    "POD_IP": _GROUP,
}


def write_environment(draft: Draft, environment: Environment) -> None:
    """Give every variable its place."""
    for name, told in environment.items():
        what = said_of(name, told)
        try:
            _write_one(draft, name, told, what)
        except BadValueError as error:
            draft.lose(what, str(error))


def _write_one(draft: Draft, name: str, told: EnvValue, what: str) -> None:
    secret = {"name": told.secret[0], "key": told.secret[1]} if told.secret else None
    if field := secret_field(name):
        _put_secret(draft, field, secret, what)
    elif name in _LOST:
        draft.lose(what, _LOST[name])
    elif told.other is not None:
        draft.lose(what, f"it comes from {told.other}, which engine.env does not offer")
    elif secret is None and is_secret(name):
        draft.lose(what, "it looks like a secret: put it into a Secret and name that in engine.env")
    elif name in draft.facts.profile.stale_environment and name not in draft.facts.environment:
        _stale(draft, name, told.value or "", what)
    elif name.startswith("VLLM_") and name not in draft.facts.environment:
        near = difflib.get_close_matches(name, sorted(draft.facts.environment), n=2, cutoff=0.8)
        hint = f"; the nearest are {', '.join(near)}" if near else ""
        draft.lose(what, f"vLLM {draft.facts.facts_version} reads no such variable{hint}")
    elif secret is None and _setting(draft, name, told.value or "", what):
        return
    else:
        item = {"name": name, "secret": secret} if secret else {"name": name, "value": told.value or ""}
        draft.put_variable(item, what)


def secret_field(name: str) -> str:
    """The field that names the Secret of a variable which the engine reads a key from; empty for all others."""
    if name in HUB_TOKENS:
        return "model.tokenSecret"
    return "networking.apiKeySecret" if name == "VLLM_API_KEY" else ""


def _put_secret(draft: Draft, path: str, secret: dict[str, str] | None, what: str) -> None:
    if secret is None:
        draft.lose(what, f"secrets have no place in a resource: put it into a Secret and name that in {path}")
    else:
        draft.put(path, secret, what)


def _stale(draft: Draft, name: str, value: str, what: str) -> None:
    instead = draft.facts.profile.stale_environment[name]
    if name == "VLLM_ATTENTION_BACKEND" and value:
        stale = draft.facts.profile.stale_values.get("--attention-backend", {})
        if value in stale:
            draft.lose(what, f"vLLM {draft.facts.facts_version} does not know {value}; use {stale[value]}")
        else:
            draft.translate("engine.attentionBackend", value, what, "it is a flag now")
    elif name == "VLLM_LOG_LEVEL" and value:
        draft.put_variable({"name": "VLLM_LOGGING_LEVEL", "value": value}, what, "it has another name")
    elif name == "VLLM_USE_DUMMY_WEIGHTS" and value == "1":
        draft.translate("model.loadFormat", "dummy", what, "it is a load format now")
    elif instead.startswith("nothing"):
        draft.drop(what, instead)
    else:
        draft.lose(what, f"vLLM {draft.facts.facts_version} does not read it; instead: {instead}")


def _setting(draft: Draft, name: str, value: str, what: str) -> bool:
    """Variables that are settings of the resource; False where the variable is not one of them."""
    if name == "VLLM_CPU_KVCACHE_SPACE":
        amount = gibibytes(value)
        if amount is not None:
            draft.put("topology.cpu.kvCacheSize", amount, what)
        else:
            draft.drop(what, "nothing: 0 is the engine's own choice")
    elif name == "VLLM_ALLOW_RUNTIME_LORA_UPDATING":
        if truth(value):
            draft.put("adapters.runtimeLoading", True, what)
        else:
            draft.drop(what, "nothing: it is off by default")
    elif name == "VLLM_USE_MODELSCOPE":
        if truth(value):
            draft.drop(what, "a model.source of modelscope://")
        else:
            draft.drop(what, "nothing: it is off by default")
    elif name == "HF_HUB_OFFLINE" and not truth(value):
        draft.drop(what, "nothing: it is off by default")
    else:
        return False
    return True


def said_of(name: str, told: EnvValue) -> str:
    """A variable as messages show it."""
    if told.secret is not None:
        return f"{name} from Secret {told.secret[0]}"
    if told.other is not None:
        return f"{name} from {told.other}"
    return f"{name}=(hidden)" if is_secret(name) else f"{name}={told.value or ''}"
