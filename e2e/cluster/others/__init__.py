"""Other people's APIs, for objects that are written for them: their own CRDs where a registry has them, else schemas of ours."""

from __future__ import annotations

from typing import Any, Final

from cluster.api import Api
from cluster.binaries import Places
from cluster.others.modules import MODULES, a_go
from cluster.others.schemas import OWN, own_crd

OTHERS: Final = (*sorted(MODULES), *sorted(OWN))
"""By the name that a test asks for."""


def crds_of(name: str, api: Api, places: Places) -> list[dict[str, Any]]:
    """All that belong to one of them."""
    if name in MODULES:
        return MODULES[name].crds(a_go(places))
    if name not in OWN:
        raise LookupError(f"nothing is known of {name!r}; there are {', '.join(OTHERS)}")
    published = api.get("/openapi/v3/api/v1")["components"]["schemas"]
    return [own_crd(name, published)]


__all__ = ["OTHERS", "crds_of"]
