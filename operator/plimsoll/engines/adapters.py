"""Adapters that come and go while an engine runs: what the supervisor is told of them, and what its pods must have for them.

The list reaches pods that are there, so it belongs to no set. What a pod can only have from its birth does: the claims that adapters
lie on, so the first adapter on a claim makes a new set, as does the last one that goes from it.
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
"""Of the adapters' own hub token, where they have one."""
ID_LENGTH: Final = 12


def come_and_go(spec: LLMDeploymentSpec) -> bool:
    return spec.adapters is not None and spec.adapters.runtime_loading is True


def adapter_id(item: Adapter) -> str:
    """Another one where its files may be others."""
    return codec.digest((item.source, item.revision))[:ID_LENGTH]


def adapter_list(spec: LLMDeploymentSpec) -> str:
    """The file that the supervisor reads."""
    items = sorted(spec.adapters.items if spec.adapters is not None else (), key=lambda item: item.name)
    body = {"schema": SCHEMA, "adapters": [_told(item) for item in items]}
    return json.dumps(body, indent=1, ensure_ascii=False) + "\n"


def _told(item: Adapter) -> dict[str, str]:
    told = {"name": item.name, "id": adapter_id(item), "source": item.source}
    if item.revision is not None:
        told["revision"] = item.revision
    match scheme_of(item.source):
        case "pvc":
            told["path"] = word_of(item.source, claim_folder(claim_of(item.source)[0]))
        case "path":
            told["path"] = item.source
    return told


def adapter_claims(spec: LLMDeploymentSpec) -> tuple[str, ...]:
    """That adapters lie on which come and go."""
    if spec.adapters is None or not come_and_go(spec):
        return ()
    sources = [item.source for item in spec.adapters.items]
    return tuple(sorted({claim_of(source)[0] for source in sources if scheme_of(source) == "pvc"}))


def claim_folder(claim: str) -> str:
    return f"{ADAPTER_FOLDER}/{claim}"


def adapter_token(spec: LLMDeploymentSpec) -> dict[str, SecretKey]:
    """For the supervisor; engines have one token for all that they fetch."""
    if spec.adapters is None or not come_and_go(spec) or spec.adapters.token_secret is None:
        return {}
    return {TOKEN: spec.adapters.token_secret}
