"""Whether engines close connections after each answer, so that a Service chooses a replica for each request."""

import pytest

from tests.render.building import config, engine_of, frozen, resource
from tests.render.cases import KINDS

PICKED = {"gateway": {"name": "front", "endpointPicker": {"service": "picker"}}}
ROUTED = {"gateway": {"name": "front"}}
UNPOOLED = {"gateway": {**PICKED["gateway"], "inferencePool": False}}


def closes(template) -> bool:
    words = engine_of(template)["args"]
    return "--close-connections" in words[: words.index("--")] if "--" in words else False


@pytest.mark.parametrize(
    ("networking", "admin", "closed"),
    [
        ({}, {}, True),
        (ROUTED, {}, True),
        (UNPOOLED, {}, True),
        (PICKED, {}, False),
        ({}, {"closeConnections": False}, False),
        ({}, {"enabled": False}, False),
    ],
    ids=[
        "a Service alone",
        "a route to a Service",
        "a picker that no pool asks",
        "a picker chooses for each request anyway",
        "the admin keeps them",
        "no supervisor",
    ],
)
def test_connections_are_closed_where_a_service_chooses_and_the_admin_lets_them(networking, admin, closed):
    revision = frozen(resource(networking=networking), admin=config(runtime=admin))
    assert closes(revision.leader) is closed


@pytest.mark.parametrize("kind", [kind for kind, (_, chosen) in KINDS.items() if chosen.pods_per_replica > 1])
def test_of_a_group_only_pods_that_answer_requests_close_them(kind):
    said, chosen = KINDS[kind]
    revision = frozen(resource(**said), chosen=chosen)
    assert closes(revision.leader)
    assert revision.worker is None or not closes(revision.worker)


def test_a_set_keeps_its_name_whatever_becomes_of_its_connections():
    """What a route or an admin says of later sets replaces no pod."""
    named = {
        frozen(resource(networking=networking), admin=config(runtime=admin)).name
        for networking, admin in (({}, {}), (PICKED, {}), ({}, {"closeConnections": False}))
    }
    assert len(named) == 1
