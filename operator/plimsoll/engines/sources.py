"""Where a pod finds what a resource names by a source: the word that the engine is given, and what must be mounted.

The supervisor fetches repositories and buckets, or the engine itself where there is no supervisor. Claims and images are mounted, each
in a folder of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from plimsoll.api.problems import Problem, SpecError
from plimsoll.api.v1alpha1.source import HUBS, claim_of, location_of, scheme_of, with_scheme
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec

MODEL_FOLDER: Final = "/models"
TOKENIZER_FOLDER: Final = "/tokenizer"
DRAFT_FOLDER: Final = "/draft"
ADAPTER_FOLDER: Final = "/adapters"
TOKENS: Final = {"hf": "HF_TOKEN", "modelscope": "MODELSCOPE_API_TOKEN"}
"""By hub: the variable with the token for its private repositories."""
STREAMED: Final = ("runai_streamer", "runai_streamer_sharded", "tensorizer")
"""Load formats with which an engine reads from a bucket itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """One source that a resource names."""

    name: str
    """Name of its volume."""
    field: str
    """The field of the resource that names it."""
    source: str
    folder: str
    """Where it is mounted, if it is."""


def word_of(source: str, folder: str) -> str:
    """The word by which the engine finds a source: a repository, a bucket, or a folder."""
    match scheme_of(source):
        case "pvc":
            return f"{folder}/{claim_of(source)[1]}".rstrip("/")
        case "oci":
            return folder
        case "s3":
            return source
    return location_of(source)


def sources(spec: LLMDeploymentSpec) -> Iterator[Named]:
    """All sources that a resource names, the model's first."""
    yield Named(name="model", field="spec.model.source", source=spec.model.source, folder=MODEL_FOLDER)
    if spec.model.tokenizer is not None:
        field = "spec.model.tokenizer"
        yield Named(name="tokenizer", field=field, source=spec.model.tokenizer, folder=TOKENIZER_FOLDER)
    if spec.speculative is not None and spec.speculative.model is not None:
        field = "spec.speculative.model"
        yield Named(name="draft", field=field, source=spec.speculative.model, folder=DRAFT_FOLDER)
    if spec.adapters is not None and not spec.adapters.runtime_loading:
        for number, item in enumerate(spec.adapters.items):
            field, folder = f"spec.adapters.items[{number}].source", adapter_folder(number)
            yield Named(name=f"adapter-{number}", field=field, source=item.source, folder=folder)


def hub_of(spec: LLMDeploymentSpec) -> str:
    """The hub from which the engine fetches repositories: that of the model, else the default."""
    return spec.model.scheme if spec.model.scheme in HUBS else "hf"


def adapter_folder(number: int) -> str:
    return f"{ADAPTER_FOLDER}/{number}"


def fetched_first(spec: LLMDeploymentSpec) -> tuple[str, ...]:
    """What a supervisor fetches before the engine starts, each as SOURCE or SOURCE#REVISION.

    Claims and images are mounted and not fetched. The engine reads a bucket itself where a load format that streams was asked for, or
    where there is no place to keep what was fetched.
    """
    weights = spec.storage.weights
    mounted = weights is not None and weights.image is not None
    keeps = not mounted and not (weights is not None and weights.is_read_only)
    draft = spec.speculative.revision if spec.speculative is not None else None
    revisions = {"model": spec.model.revision, "draft": draft}
    found = []
    for one in sources(spec):
        scheme = scheme_of(one.source)
        is_model = one.name == "model"
        if scheme in HUBS and not (is_model and mounted):
            source, revision = with_scheme(one.source), revisions.get(one.name)
            found.append(source if revision is None else f"{source}#{revision}")
        elif scheme == "s3" and is_model and keeps and spec.model.load_format not in STREAMED:
            found.append(one.source)
    return tuple(found)


def check_sources(spec: LLMDeploymentSpec) -> None:
    """Raises SpecError with every source that no pod could get."""
    hub, problems = hub_of(spec), []
    _, *others = sources(spec)
    for one in others:
        scheme = scheme_of(one.source)
        if scheme == "s3":
            message = "only the model itself is read from a bucket; put this on a claim (pvc://), in an image (oci://) or on a hub"
            problems.append(Problem(one.field, one.source, message))
        elif scheme in HUBS and scheme != hub:
            message = f"the engine fetches from one hub, and model.source makes that {hub}"
            problems.append(Problem(one.field, one.source, message))
    if problems:
        raise SpecError(*problems)
