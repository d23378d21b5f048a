"""Where a model is, in the words of others: a repository's name, a URI, a path inside a pod, a Helm value."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from plimsoll.cli.importing.draft import ImportProblem

_REPOSITORY = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
_KEPT = ("hf://", "s3://", "oci://", "pvc://", "modelscope://")


@dataclass(slots=True, kw_only=True)
class Mount:
    """A volume of a pod at its place in the engine's container."""

    path: str
    claim: str | None = None
    sub_path: str | None = None
    config_map: str | None = None
    image: str | None = None
    source: str | None = None
    """What is downloaded to it before the engine starts."""
    scratch: bool = False
    """Whether it is empty until somebody fills it."""
    used: bool = False
    """Whether anything was read from it."""

    @property
    def order(self) -> tuple[int, bool, bool]:
        """The innermost mount holds a path; of several at one place what was downloaded, and what is empty last."""
        return -len(self.path.rstrip("/")), self.source is None, self.scratch

    def inner(self, path: str) -> str | None:
        """The part of a path that lies inside this mount, or None."""
        base = self.path.rstrip("/")
        if path.rstrip("/") == base:
            return ""
        return path[len(base) + 1 :].strip("/") if path.startswith(f"{base}/") else None


def model_source(text: str, mounts: Iterable[Mount] = (), *, modelscope: bool = False) -> str:
    """A model's name or place as `model.source`; raises ImportProblem where no source can say it."""
    name = text.strip()
    if name.startswith(_KEPT):
        return name.rstrip("/") if not name.startswith("oci://") else name
    if name.startswith("/"):
        return _in_mount(name.rstrip("/") or "/", mounts)
    if "://" in name:
        raise ImportProblem(
            f"the model is {name!r}, and {name.partition('://')[0]}:// is no source of models; "
            "known are hf://, modelscope://, s3://, oci://, pvc:// and absolute paths"
        )
    if _REPOSITORY.fullmatch(name):
        return f"{'modelscope' if modelscope else 'hf'}://{name}"
    raise ImportProblem(
        f"the model is {name!r}, which is neither ORG/NAME of a hub nor an absolute path; write one of them"
    )


def _in_mount(path: str, mounts: Iterable[Mount]) -> str:
    """A path on a claim is the claim's own source, so that it can be read without the pod; of what was downloaded it is the place that it came from."""
    holding = [(mount, inner) for mount in mounts if (inner := mount.inner(path)) is not None]
    for mount, inner in sorted(holding, key=lambda pair: pair[0].order):
        mount.used = bool(mount.source or mount.claim or mount.image)
        tail = "/".join(part.strip("/") for part in (mount.sub_path or "", inner) if part.strip("/"))
        if mount.source is not None:
            return _part(mount.source, tail)
        if mount.claim is not None:
            return _part(f"pvc://{mount.claim}", tail)
        if mount.image is not None:
            return _part(f"oci://{mount.image}", tail)
        if mount.scratch:
            raise ImportProblem(
                f"the model is {path!r}, and that volume is empty until something fills it, which is not read: "
                "write where the model comes from in its place"
            )
        return path
    return path


def _part(source: str, folder: str) -> str:
    """A source, or the folder in it where such a source has any."""
    whole = model_source(source)
    if folder and not whole.startswith(("s3://", "pvc://")):
        raise ImportProblem(
            f"the model is the folder {folder!r} of {whole}, and only the whole can be a source"
        )
    return f"{whole.rstrip('/')}/{folder}" if folder else whole
