"""Adapters that are loaded and unloaded while an engine runs: what the supervisor is told of them, and what its pods need for them.

The list of adapters reaches running pods, so changing it makes no new set. But a pod can only mount a claim when it is created, so
the first adapter on a claim makes a new set, and so does taking away the last one.
"""

from __future__ import annotations

import json
from typing import Final

from plimsoll.api.v1alpha1.features import Adapter
from plimsoll.api.v1alpha1.model import SecretKey
from plimsoll.api.v1alpha1.source import claim_of, scheme_of
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.sources import ADAPTER_FOLDER, word_of
from plimsoll.planning import codec

SCHEMA: Final = 1
LIST_FOLDER: Final = "/etc/plimsoll/adapters"
LIST_KEY: Final = "adapters.json"
TOKEN: Final = "HF_TOKEN_ADAPTERS"  # noqa: S105 - a variable's name
"""The variable with the adapters' own hub token, where they have one."""
ID_LENGTH: Final = 12


def come_and_go(spec: LLMDeploymentSpec) -> bool:
    """Whether adapters are loaded and unloaded while the engine runs."""
    return spec.adapters is not None and spec.adapters.runtime_loading is True


def adapter_id(item: Adapter) -> str:
    """A short digest that changes where the adapter's files may be other ones."""
    return codec.digest((item.source, item.revision))[:ID_LENGTH]


def adapter_list(spec: LLMDeploymentSpec) -> str:
    """The text of the file from which the supervisor reads its adapters."""
    items = sorted(spec.adapters.items if spec.adapters is not None else (), key=lambda item: item.name)
    body = {"schema": SCHEMA, "adapters": [_entry(item) for item in items]}
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _entry(item: Adapter) -> dict[str, str]:
    entry = {"name": item.name, "id": adapter_id(item), "source": item.source}
    if item.revision is not None:
        entry["revision"] = item.revision
    match scheme_of(item.source):
        case "pvc":
            entry["path"] = word_of(item.source, claim_folder(claim_of(item.source)[0]))
        case "path":
            entry["path"] = item.source
    return entry


def adapter_claims(spec: LLMDeploymentSpec) -> tuple[str, ...]:
    """The claims that hold adapters which are loaded while the engine runs."""
    if spec.adapters is None or not come_and_go(spec):
        return ()
    sources = [item.source for item in spec.adapters.items]
    return tuple(sorted({claim_of(source)[0] for source in sources if scheme_of(source) == "pvc"}))


def claim_folder(claim: str) -> str:
    return f"{ADAPTER_FOLDER}/{claim}"


def adapter_token(spec: LLMDeploymentSpec) -> dict[str, SecretKey]:
    """The adapters' own hub token by its variable, for the supervisor; an engine has only one token for all that it fetches."""
    if spec.adapters is None or not come_and_go(spec) or spec.adapters.token_secret is None:
        return {}
    return {TOKEN: spec.adapters.token_secret}
