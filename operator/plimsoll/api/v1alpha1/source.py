"""A source, the word by which a user says where a model lies: how it may be spelled, and what its spelling says."""

from typing import Annotated, Final

from pydantic import Field

from plimsoll.api.base import Rule

HUBS: Final = ("hf", "modelscope")
FETCHED: Final = (*HUBS, "s3")
"""Schemes of what comes over the network; what has another lies in a claim, an image or the engine's own file system."""

_REPO = r"([A-Za-z0-9][A-Za-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*"
SPELLING: Final = (
    rf"^((hf|modelscope)://{_REPO}"
    r"|[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*"
    r"|(s3|oci)://[A-Za-z0-9](:?[A-Za-z0-9._@+=-]|/)*"
    r"|pvc://[a-z0-9]([-a-z0-9.]*[a-z0-9])?(/[A-Za-z0-9._+=/-]*)?"
    r"|/[A-Za-z0-9._+=/-]*)$"
)

Source = Annotated[str, Field(min_length=1, max_length=512, pattern=SPELLING)]
Revision = Annotated[str, Field(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")]


def climbs(name: str, *, optional: bool = False) -> Rule:
    """A path that climbs would leave what is mounted for it."""
    clean = f"!self.{name}.contains('..')"
    return Rule(
        name=f"{name}-climbs",
        cel=f"!has(self.{name}) || {clean}" if optional else clean,
        holds=lambda m: ".." not in (getattr(m, name) or ""),
        message=f"{name} must not contain '..'; name the folder itself",
        field=name,
    )


def scheme_of(source: str) -> str:
    """hf, modelscope, s3, oci, pvc, or path."""
    if source.startswith("/"):
        return "path"
    scheme, separator, _ = source.partition("://")
    return scheme if separator else "hf"


def location_of(source: str) -> str:
    """The source without its scheme."""
    return source.partition("://")[2] or source


def with_scheme(source: str) -> str:
    """One spelling for one place: ORG/NAME alone is hf://ORG/NAME, and a path is path:///PATH."""
    return f"{scheme_of(source)}://{location_of(source)}"


def claim_of(source: str) -> tuple[str, str]:
    """Of a pvc source: the claim, and the folder in it, which is empty where it is the whole volume."""
    claim, _, folder = location_of(source).partition("/")
    return claim, folder
