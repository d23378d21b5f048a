"""A claim is written with no less than it asks for already, since volumes never shrink.

A smaller model needs less, and a person may have given a claim more by hand. The API server refuses a smaller request with each write anew,
so that a deployment that serves would never be done; and where it allows one, the volume stays as large as it is.
"""

from __future__ import annotations

from typing import Final

from plimsoll.facts.amounts import whole
from plimsoll.kube.door import Object
from plimsoll.objects import Manifest

CLAIM: Final = "PersistentVolumeClaim"


def no_smaller(wanted: Manifest, there: Object) -> Manifest:
    """The claim as wanted, with the larger of the request in it and that of the claim which is there."""
    spec = wanted.body["spec"]
    resources, has = spec["resources"], _request(there["spec"])
    if whole(has) <= whole(_request(spec)):
        return wanted
    requests = {**resources["requests"], "storage": has}
    return Manifest(
        wanted.ref, {**wanted.body, "spec": {**spec, "resources": {**resources, "requests": requests}}}
    )


def _request(spec: Object) -> str:
    return str(spec["resources"]["requests"]["storage"])
