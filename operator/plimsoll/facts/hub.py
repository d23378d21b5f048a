"""Facts of a model from the hub: its config.json and the headers of its tensors, through mirrors and proxies; never weights.

It is a module of its own because the client takes half a second to load, and most plans do not need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import httpx2
from huggingface_hub import HfApi, set_client_factory
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    HFValidationError,
    LocalEntryNotFoundError,
    NotASafetensorsRepoError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
    SafetensorsParsingError,
)

from plimsoll.api.passwords import without_passwords
from plimsoll.api.problems import INLINE
from plimsoll.facts.model import ModelFacts
from plimsoll.facts.resolve import (
    CATALOGUE,
    FOLDER,
    HubAccess,
    ModelNeedsFactsPod,
    ModelUnknown,
    Tensors,
    config_of,
    facts_of,
)


def facts_from_hub(name: str, revision: str | None, access: HubAccess) -> ModelFacts:
    source = f"hf://{name}"
    set_client_factory(_client(access))
    api = HfApi(endpoint=access.endpoint, token=access.token)
    with _said_plainly(name, revision, access):
        info = api.model_info(name, revision=revision, timeout=access.timeout_seconds)
        files = {sibling.rfilename for sibling in info.siblings or ()}
        config = _hub_config(api, name, info.sha, files)
        tensors = _hub_tensors(api, name, info.sha, files, access)
    return facts_of(source, config, tensors, "hub", info.sha)


def _client(access: HubAccess) -> Callable[[], httpx2.Client]:
    return lambda: httpx2.Client(proxy=access.proxy, follow_redirects=True, timeout=access.timeout_seconds)


def _hub_config(api: HfApi, name: str, revision: str | None, files: set[str]) -> Mapping[str, object]:
    wanted = [
        file
        for file in ("config.json", "params.json", "hf_quant_config.json", "sentence_bert_config.json")
        if file in files
    ]
    with TemporaryDirectory(prefix="plimsoll-") as folder:
        for file in wanted:
            api.hf_hub_download(name, file, revision=revision, local_dir=folder)
        return config_of(Path(folder))


def _hub_tensors(
    api: HfApi, name: str, revision: str | None, files: set[str], access: HubAccess
) -> Tensors | None:
    if not any(file.endswith(".safetensors") for file in files):
        return None
    try:
        found = api.get_safetensors_metadata(name, revision=revision, timeout=access.timeout_seconds)
    except (NotASafetensorsRepoError, SafetensorsParsingError):
        return None
    return {
        tensor: (str(about.dtype), about.shape)
        for file in found.files_metadata.values()
        for tensor, about in file.tensors.items()
    }


@contextmanager
def _said_plainly(name: str, revision: str | None, access: HubAccess) -> Iterator[None]:
    """Turns the many errors of the hub's client into ModelUnknown, with what would help in each case."""
    hub = without_passwords(access.endpoint or "the hub")  # a mirror's is no tenant's to read

    def unknown(reason: str, *helps: str) -> ModelUnknown:
        return ModelUnknown(f"hf://{name}", f"{hub} {reason}", helps)

    def private(reason: str, *helps: str) -> ModelUnknown:
        return ModelNeedsFactsPod(f"hf://{name}", f"{hub} {reason}", helps)

    try:
        yield
    except GatedRepoError as error:
        raise private(
            "shows it only to accounts that accepted its licence",
            "accept the licence on the model's page, and set HF_TOKEN where this runs (for the pods: spec.model.tokenSecret)",
            INLINE,
        ) from error
    except RevisionNotFoundError as error:
        raise unknown(
            f"has no revision {revision!r} of it", "name a branch, tag or commit that exists"
        ) from error
    except RepositoryNotFoundError as error:
        raise private(
            "has no such repository",
            "check the spelling, ORG/NAME",
            "if it is private, set HF_TOKEN where this runs (for the pods: spec.model.tokenSecret)",
            INLINE,
        ) from error
    except HFValidationError as error:
        raise unknown("takes no such name", "write ORG/NAME") from error
    except (OfflineModeIsEnabled, LocalEntryNotFoundError, httpx2.TransportError) as error:
        raise unknown(
            f"did not answer ({type(error).__name__})",
            "check network, proxy and mirror",
            INLINE,
            FOLDER,
            CATALOGUE,
        ) from error
    except (RemoteEntryNotFoundError, HfHubHTTPError) as error:
        status = getattr(error.response, "status_code", "an error")
        raise unknown(f"answered {status}", "try again later", INLINE, FOLDER) from error
