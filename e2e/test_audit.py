"""The audit log as tests judge by it: who did what, through whom, and what was refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from cluster import Cluster, ClusterFailed
from cluster.api import ApiError, Object
from cluster.audit import Audit
from cluster.faults import LoseAnswer, Where
from common import eventually
from listening import listening

MAPS: Final = "/api/v1/namespaces/default/configmaps"
ONE: Final[Object] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


@pytest.fixture(scope="module")
def audited() -> Iterator[Cluster]:
    with Cluster(audit=True) as running:
        yield running


def test_every_call_is_told_with_who_what_and_how_it_ended(audited: Cluster) -> None:
    since = audited.audit.mark()
    audited.api.apply(f"{MAPS}/one", ONE, manager="me")
    audited.api.create(MAPS, {"metadata": {"generateName": "some-"}}, dryRun="All")
    audited.api.patch(f"{MAPS}/one", {"data": {"a": "b"}})
    with listening(audited.api, MAPS) as watch, pytest.raises(ApiError):
        audited.api.create(MAPS, ONE)
    assert watch is not None
    found = [
        (one.call.verb, one.call.name, one.call.manager, one.call.dry_run, one.code)
        for one in audited.audit.entries(Where(resources={"configmaps"}), user="admin", since=since)
    ]
    assert found == [
        ("patch", "one", "me", False, 201),
        ("create", "", "", True, 201),
        ("patch", "one", "", False, 200),
        ("list", "", "", False, 200),
        ("watch", "", "", False, 200),
        ("create", "one", "", False, 409),
    ]
    done = [(one.call.verb, one.call.manager) for one in audited.audit.writes(user="admin", since=since)]
    assert done == [("patch", "me"), ("patch", "")]


def test_what_rights_do_not_cover_is_found_by_the_servers_decision(audited: Cluster) -> None:
    since = audited.audit.mark()
    user = "system:serviceaccount:default:default"
    with pytest.raises(ApiError, match="forbidden"):
        audited.api_as("default", "default").items("/api/v1/secrets")
    (refused,) = audited.audit.entries(user=user, codes={403}, since=since)
    assert (refused.call.verb, refused.call.resource) == ("list", "secrets")
    assert audited.audit.forbidden(user=user) == [refused]


def test_what_a_quota_refuses_is_no_want_of_rights(audited: Cluster) -> None:
    namespace = audited.new_namespace("full")
    collection = f"/api/v1/namespaces/{namespace}/configmaps"
    quota = {"metadata": {"name": "none"}, "spec": {"hard": {"count/configmaps": "0"}}}
    audited.api.create(f"/api/v1/namespaces/{namespace}/resourcequotas", quota)

    def refused() -> bool:
        try:
            audited.api.create(collection, {"metadata": {"generateName": "one-"}})
        except ApiError as error:
            return error.status == 403 and "exceeded quota" in str(error)
        return False

    assert eventually(refused)
    assert audited.audit.entries(Where(namespace=namespace), user="admin", codes={403})
    assert audited.audit.forbidden(user="admin") == []


def test_a_write_whose_answer_was_lost_is_in_the_log(audited: Cluster) -> None:
    since = audited.audit.mark()
    body: Object = {"metadata": {"name": "lost"}}
    with audited.proxy() as proxy:
        proxy.add(LoseAnswer())
        with pytest.raises(Exception, match=r"aborted|closed|EOF"):
            proxy.api(audited.api).create(MAPS, body)
    (done,) = audited.audit.writes(user="admin", since=since)
    assert (done.call.verb, done.call.name, done.code) == ("create", "lost", 201)


def test_a_cluster_that_keeps_no_log_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(ClusterFailed, match="audit=True"):
        Audit(tmp_path / "audit.log").entries()
