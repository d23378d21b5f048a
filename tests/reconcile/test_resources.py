"""Resources are kept packed, and only what we did not write ourselves counts as new."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from plimsoll.reconcile.resources import Resources

BODY: dict[str, Any] = {
    "apiVersion": "plimsoll.dev/v1alpha1",
    "kind": "LLMDeployment",
    "metadata": {
        "name": "chat",
        "namespace": "a",
        "uid": "1",
        "resourceVersion": "5",
        "generation": 1,
        "managedFields": [{"manager": "kubectl"}],
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 1000, "mine": "1"},
    },
    "spec": {"model": {"source": "hf://a/b"}},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """As an API server tells of it: no two contents have one version."""
    body: dict[str, Any] = deepcopy(BODY)
    body["metadata"]["resourceVersion"] = "6"
    inner = body
    *parents, last = path.split(".")
    for part in parents:
        inner = inner.setdefault(part, {})
    inner[last] = value
    return body


@pytest.mark.parametrize(
    ("path", "value", "news"),
    [
        ("status.ready", "1/1", False),
        ("metadata.resourceVersion", "6", False),
        ("metadata.managedFields", [], False),
        ("metadata.generation", 2, True),
        ("metadata.annotations.mine", "2", True),
        ("metadata.deletionTimestamp", "2026-01-01T00:00:00Z", True),
        ("metadata.uid", "2", True),
        ("spec.replicas", 2, True),
    ],
)
def test_a_change_is_news_unless_it_is_of_the_status(path: str, value: object, news: bool) -> None:
    kept = Resources()
    assert kept.put("a/chat", BODY)
    assert kept.put("a/chat", changed(path, value)) is news


def test_what_is_kept_is_what_came_without_what_nobody_reads() -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    found = kept.get("a/chat")
    assert found is not None
    assert found["spec"] == BODY["spec"]
    assert found["metadata"]["annotations"] == {"mine": "1"}
    assert "managedFields" not in found["metadata"]


def test_what_a_list_tells_again_is_no_news_and_takes_nothing_back_that_was_written_since() -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    kept.put_status("a/chat", {"ready": "1/1"}, uid="1", version=6)
    assert not kept.put("a/chat", deepcopy(BODY))
    found = kept.get("a/chat")
    assert found is not None
    assert found["status"] == {"ready": "1/1"}


def test_a_status_stands_that_we_wrote_after_an_edit_that_is_told_after_our_write() -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    kept.put_status("a/chat", {"ready": "1/1"}, uid="1", version=7)
    assert kept.put("a/chat", changed("spec.replicas", 2))
    found = kept.get("a/chat")
    assert found is not None
    assert (found["spec"]["replicas"], found["status"]) == (2, {"ready": "1/1"})
    theirs = changed("status", {"ready": "0/1"})
    theirs["metadata"]["resourceVersion"] = "8"
    kept.put("a/chat", theirs)
    found = kept.get("a/chat")
    assert found is not None
    assert found["status"] == {"ready": "0/1"}


def test_a_status_is_not_that_of_a_resource_that_has_the_name_since() -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    kept.put("a/chat", changed("metadata.uid", "2"))
    kept.put_status("a/chat", {"ready": "1/1"}, uid="1", version=5)
    found = kept.get("a/chat")
    assert found is not None
    assert "status" not in found


def test_what_is_gone_is_gone() -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    kept.remove("a/chat", uid="1")
    assert (kept.get("a/chat"), len(kept), list(kept)) == (None, 0, [])


@pytest.mark.parametrize("told_first", [False, True], ids=["then it is told of", "it was told of before"])
def test_where_versions_have_gone_back_a_status_counts_that_is_told_in_a_lower_one(told_first: bool) -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    kept.put_status("a/chat", {"ready": "1/1"}, uid="1", version=9)
    back = changed("status.ready", "0/1")
    back["metadata"]["resourceVersion"] = "3"
    if told_first:
        kept.put("a/chat", back)
    kept.restored("a/chat", 3)
    assert kept.version("a/chat") == (3 if told_first else 0), "else it counts as missed, until it is told of"
    kept.put("a/chat", back)
    back["metadata"]["resourceVersion"] = "4"
    kept.put("a/chat", back)
    assert (kept.get("a/chat") or {})["status"] == {"ready": "0/1"}
    assert kept.version("a/chat") == 4


def test_what_is_told_late_of_one_that_had_the_name_before_changes_nothing() -> None:
    kept = Resources()
    kept.put("a/chat", BODY)
    again = changed("metadata.uid", "2")
    again["metadata"] |= {"resourceVersion": "7", "creationTimestamp": "2026-01-01T00:00:00Z"}
    assert kept.put("a/chat", again)
    assert not kept.put("a/chat", changed("metadata.resourceVersion", "6"))
    kept.remove("a/chat", uid="1")
    bearer = kept.bearer("a/chat")
    assert bearer is not None
    assert (bearer.uid, bearer.born) == ("2", 1767225600.0)
