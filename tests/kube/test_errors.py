"""Which answers may pass by themselves, and which are the object's own fault."""

from __future__ import annotations

import pytest

from plimsoll.kube.errors import Conflict, Gone, Invalid, NotFound, Refused, refusal

UNDECLARED = ".spec.portt: field not declared in schema"


@pytest.mark.parametrize(
    ("status", "message", "kind", "passes"),
    [
        (400, "", Invalid, False),
        (401, "", Refused, True),
        (403, "", Refused, False),
        (404, "", NotFound, False),
        (409, "", Conflict, True),
        (410, "", Gone, True),
        (422, "", Invalid, False),
        (429, "", Refused, True),
        (500, "etcdserver: request timed out", Refused, True),
        (500, f"failed to create typed patch object (a/b; v1, Kind=Service): {UNDECLARED}", Invalid, False),
        (503, "", Refused, True),
    ],
)
def test_an_answer_passes_or_is_the_objects_fault(
    status: int, message: str, kind: type[Refused], passes: bool
) -> None:
    error = refusal(status, {"message": message})
    assert (type(error), error.passes) == (kind, passes)
