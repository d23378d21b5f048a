"""The index of children: what a change wakes, and in whatever order answers and events of our own writes come."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from plimsoll import names
from plimsoll.kube.child import read_child
from plimsoll.kube.children import Children, _ChildrenSink
from plimsoll.kube.door import Door
from plimsoll.kube.kinds import CHILDREN, STATEFUL_SET, Kind, kind_of
from plimsoll.kube.watching import WHATEVER_IS_KNOWN
from plimsoll.objects import Ref

Object = dict[str, Any]
OWNER = "team/chat"
KINDS = {kind.name: kind for kind in CHILDREN}


def item(kind: str = "ConfigMap", *, version: int = 1, uid: str = "u1", **metadata: Any) -> Object:
    """By its metadata, as the API gives it; `generation` only where the kind counts them."""
    about: Object = {
        "name": "chat-x",
        "namespace": "team",
        "uid": uid,
        "resourceVersion": str(version),
        "creationTimestamp": "2026-11-21T10:00:00Z",
        "labels": {names.LABEL_MANAGED_BY: names.MANAGED_BY, names.LABEL_DEPLOYMENT: "chat"},
        "annotations": {names.ANNOTATION_HASH: "h1"},
        "ownerReferences": [
            {
                "apiVersion": names.API_VERSION,
                "kind": names.KIND,
                "name": "chat",
                "uid": "owner",
                "controller": True,
            }
        ],
        "managedFields": [{"manager": names.MANAGER_CHILDREN, "operation": "Apply"}],
    }
    return {"metadata": about | metadata, **({"spec": {"replicas": 2}} if kind == "Deployment" else {})}


class Index:
    """An index of one child, told what a watch and a writer tell it."""

    def __init__(self, kind: str = "ConfigMap") -> None:
        self.woken: Counter[str] = Counter()
        self.kind = KINDS[kind]
        self.ref = Ref(self.kind.api_version, kind, "team", "chat-x")
        self.children = Children(cast("Door", None), self._wake)

    def _wake(self, owner: str) -> None:
        self.woken[owner] += 1

    def sees(self, **metadata: Any) -> None:
        self._tell(as_of=None, first=False, **metadata)

    def lists(self, *, first: bool = True, as_of: int = 100, **metadata: Any) -> None:
        self._tell(as_of=as_of, first=first, **metadata)

    def _tell(self, *, as_of: int | None, first: bool, **metadata: Any) -> None:
        child = read_child(self.kind, item(self.kind.name, **metadata))
        assert child is not None
        self.children.seen(child, as_of=as_of, first=first)

    def sees_refused(self, version: int, **condition: str) -> None:
        child = read_child(self.kind, refused_deployment(version, **condition))
        assert child is not None
        self.children.seen(child, as_of=None, first=False)

    def loses(self, **metadata: Any) -> None:
        child = read_child(self.kind, item(self.kind.name, **metadata))
        assert child is not None
        self.children.gone(child)

    def answers(self, **metadata: Any) -> None:
        self.children.wrote(self.ref, item(self.kind.name, **metadata))

    @property
    def there(self) -> bool:
        return self.ref in self.children.of(OWNER)

    @property
    def clean(self) -> bool:
        return self.children.of(OWNER)[self.ref].clean


def test_our_write_wakes_nobody_when_its_answer_comes_first() -> None:
    index = Index()
    index.children.writing(index.ref)
    index.answers(version=5)
    index.sees(version=5)
    assert index.clean
    assert not index.woken


def test_our_write_wakes_nobody_when_its_event_comes_first() -> None:
    index = Index()
    index.lists(version=3)
    index.children.writing(index.ref)
    index.sees(version=5)
    assert not index.woken
    index.answers(version=5)
    assert index.clean
    assert not index.woken


def test_an_edit_that_our_write_went_over_wakes_nobody_when_it_is_told_late() -> None:
    index = Index()
    index.lists(version=3)
    index.children.writing(index.ref)
    index.answers(version=5)
    index.sees(version=4)
    index.sees(version=5)
    assert index.clean
    assert not index.woken


def test_an_edit_after_our_write_wakes_even_if_it_is_told_before_the_answer() -> None:
    index = Index()
    index.lists(version=3)
    index.children.writing(index.ref)
    index.sees(version=5)
    index.sees(version=6)
    index.answers(version=5)
    assert not index.clean
    assert index.woken[OWNER] == 1


def test_a_status_after_our_write_wakes_nobody_even_if_it_is_told_before_the_answer() -> None:
    index = Index("Deployment")
    index.children.writing(index.ref)
    index.sees(version=5, generation=1)
    index.sees(version=6, generation=1)
    index.answers(version=5, generation=1)
    assert index.clean
    assert not index.woken
    index.sees(version=6, generation=1)
    assert not index.woken


def test_what_comes_in_the_place_of_our_write_wakes_even_if_it_is_told_before_the_answer() -> None:
    index = Index("Deployment")
    index.children.writing(index.ref)
    index.sees(version=5, generation=1)
    index.loses(version=6, generation=1)
    index.sees(version=7, generation=1, uid="u2")
    index.answers(version=5, generation=1)
    assert index.woken[OWNER] == 1


@pytest.mark.parametrize("answer", [4, 5])
def test_a_refusal_that_is_told_before_the_answer_to_our_write_wakes(answer: int) -> None:
    index = Index("Deployment")
    index.lists(version=3, generation=1)
    index.children.writing(index.ref)
    index.sees_refused(5)
    index.children.wrote(
        index.ref, refused_deployment(5) if answer == 5 else item("Deployment", version=4, generation=1)
    )
    assert index.woken[OWNER] == 1
    assert index.clean


def test_what_was_deleted_right_after_our_write_is_gone_even_if_it_is_told_before_the_answer() -> None:
    index = Index()
    index.children.writing(index.ref)
    index.sees(version=5)
    index.loses(version=6)
    index.answers(version=5)
    assert not index.there
    assert index.woken[OWNER] == 1


def test_a_write_without_an_answer_leaves_it_to_what_is_seen() -> None:
    index = Index()
    index.children.writing(index.ref)
    index.sees(version=5)
    index.children.wrote(index.ref, None)
    assert index.woken[OWNER] == 1
    assert index.there


@pytest.mark.parametrize("done", [True, False])
def test_what_we_delete_wakes_nobody_when_it_goes(*, done: bool) -> None:
    index = Index()
    index.lists(version=3)
    index.children.deleting(index.ref)
    index.loses(version=4)
    index.children.deleted(index.ref, done=done)
    assert not index.there
    assert not index.woken


def test_what_we_delete_counts_as_leaving_until_it_is_gone() -> None:
    index = Index()
    index.lists(version=3)
    index.children.deleting(index.ref)
    index.children.deleted(index.ref, done=True)
    index.sees(version=3)
    assert index.children.of(OWNER)[index.ref].leaving
    index.loses(version=4)
    assert not index.there
    assert not index.woken


def test_what_we_could_not_delete_wakes_as_before() -> None:
    index = Index()
    index.lists(version=3)
    index.children.deleting(index.ref)
    index.children.deleted(index.ref, done=False)
    index.sees(version=4)
    assert index.woken[OWNER] == 1


def test_what_somebody_deletes_wakes_and_so_does_what_comes_in_its_place() -> None:
    index = Index()
    index.lists(version=3)
    index.loses(version=4)
    assert index.woken[OWNER] == 1
    index.sees(version=5, uid="u2")
    assert index.woken[OWNER] == 2


@pytest.mark.parametrize(
    ("change", "wakes"),
    [
        ({"version": 4}, False),
        ({"version": 4, "generation": 2}, True),
        ({"version": 4, "labels": {names.LABEL_DEPLOYMENT: "chat"}}, True),
        ({"version": 4, "annotations": {}}, True),
        ({"version": 4, "ownerReferences": []}, True),
        ({"version": 4, "deletionTimestamp": "2026-11-21T10:00:00Z"}, True),
        (
            {
                "version": 4,
                "annotations": {names.ANNOTATION_HASH: "h1", "deployment.kubernetes.io/revision": "2"},
            },
            False,
        ),
    ],
    ids=["status", "spec", "labels", "annotations", "owners", "deletion", "the controller's own"],
)
def test_of_a_kind_with_a_status_only_other_changes_wake(change: Object, *, wakes: bool) -> None:
    index = Index("Deployment")
    index.lists(version=3, generation=1)
    index.sees(**{"generation": 1, **change})
    assert bool(index.woken) == wakes
    assert index.clean == (not wakes)


def test_of_a_kind_without_generations_any_change_wakes() -> None:
    index = Index()
    index.lists(version=3)
    index.sees(version=4)
    assert index.woken[OWNER] == 1
    assert not index.clean


def test_a_first_list_wakes_nobody_and_a_later_one_whoever_was_changed_unseen() -> None:
    index = Index()
    index.lists(version=3)
    assert not index.woken
    index.lists(version=3, first=False)
    assert not index.woken
    index.lists(version=4, first=False)
    assert index.woken[OWNER] == 1


def test_a_list_that_is_older_than_our_write_does_not_undo_it() -> None:
    index = Index()
    index.lists(version=3)
    index.children.writing(index.ref)
    index.answers(version=9)
    index.lists(version=3, as_of=8, first=False)
    assert index.children.of(OWNER)[index.ref].version == "9"
    assert index.clean
    assert not index.woken


def test_what_we_made_while_a_list_was_on_its_way_is_not_gone_for_not_being_in_it() -> None:
    index = Index()
    sink = _ChildrenSink(index.children, index.kind, "")
    index.children.writing(index.ref)
    index.answers(version=9)
    sink.keep_only(set(), as_of=8)
    assert index.there
    assert not index.woken
    sink.keep_only(set(), as_of=9)
    assert index.woken[OWNER] == 1


def test_that_an_earlier_object_of_the_name_is_gone_says_nothing_of_ours() -> None:
    index = Index()
    index.children.writing(index.ref)
    index.answers(version=9, uid="u2")
    index.loses(version=8, uid="u1")
    assert index.there
    assert not index.woken


def test_where_versions_have_gone_back_a_list_is_taken_as_it_is() -> None:
    index = Index()
    index.lists(version=9)
    index.lists(version=3, as_of=WHATEVER_IS_KNOWN, first=False)
    assert index.children.of(OWNER)[index.ref].version == "3"
    assert index.woken[OWNER] == 1


@pytest.mark.parametrize(
    ("fields", "clean"),
    [
        ([], True),
        ([{"manager": names.MANAGER_CHILDREN, "operation": "Apply"}], True),
        ([{"manager": "kube-controller-manager", "operation": "Update", "subresource": "status"}], True),
        ([{"manager": "kwok", "operation": "Update", "subresource": "status"}], True),
        ([{"manager": "kubectl-edit", "operation": "Update"}], False),
        ([{"manager": "argocd", "operation": "Apply"}], False),
    ],
)
def test_at_a_start_field_managers_tell_whether_somebody_else_wrote(
    fields: list[Object], *, clean: bool
) -> None:
    index = Index()
    index.lists(version=3, managedFields=fields)
    assert index.clean == clean


def test_a_child_belongs_to_its_controller_whatever_its_label_says() -> None:
    index = Index()
    index.lists(version=3)
    index.sees(version=4, labels={names.LABEL_DEPLOYMENT: "another"})
    assert [len(index.children.of(key)) for key in (OWNER, "team/another")] == [1, 0]
    index.sees(version=5, labels={names.LABEL_DEPLOYMENT: "another"}, ownerReferences=[])
    assert [len(index.children.of(key)) for key in (OWNER, "team/another")] == [0, 1]


def test_what_belongs_to_nobody_of_ours_is_not_kept() -> None:
    assert read_child(KINDS["ConfigMap"], item(labels={}, ownerReferences=[])) is None


def test_a_stateful_set_is_a_part_of_the_replica_that_it_is_numbered_with() -> None:
    labels = {names.LABEL_DEPLOYMENT: "chat", names.LABEL_GROUP: "3"}
    child = read_child(STATEFUL_SET, {**item(labels=labels), "spec": {"replicas": 4}})
    assert child is not None
    assert child.workload == (1, 4, 3)


@pytest.mark.parametrize("kind", CHILDREN, ids=lambda kind: kind.name)
def test_every_kind_of_child_has_a_path_of_its_own(kind: Kind) -> None:
    assert kind_of(Ref(kind.api_version, kind.name, "team", "x")) is kind
    assert kind.path("team", "x").endswith(f"/namespaces/team/{kind.plural}/x")
    with pytest.raises(ValueError, match=r"kinds\.CHILDREN"):
        kind_of(Ref("example.com/v1", kind.name, "team", "x"))


REFUSED = 'pods "chat-x-5d9c7-abcde" is forbidden: exceeded quota: gpus, requested: pods=1, used: pods=1, limited: pods=1'


def refused_deployment(version: int, **condition: str) -> Object:
    found = item("Deployment", version=version, generation=1)
    status = {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": REFUSED} | condition]}
    return found | {"status": status}


def test_pods_that_are_refused_are_told_without_the_name_of_the_one_that_was_tried() -> None:
    kind = KINDS["Deployment"]
    child = read_child(kind, refused_deployment(1))
    assert child is not None
    assert child.refused.startswith("exceeded quota: gpus")
    assert "abcde" not in child.refused
    over = read_child(kind, refused_deployment(1, status="False"))
    assert over is not None
    assert over.refused == ""


def test_a_refusal_wakes_the_owner_and_is_no_edit() -> None:
    index = Index("Deployment")
    index.lists(version=3, generation=1)
    for version, status in ((4, "True"), (5, "True"), (6, "False")):
        index.sees_refused(version, status=status)
    assert index.woken[OWNER] == 2
    assert index.clean


def test_a_refusal_that_the_answer_to_our_write_tells_first_wakes_as_well() -> None:
    index = Index("Deployment")
    index.lists(version=3, generation=1)
    index.children.writing(index.ref)
    index.children.wrote(index.ref, refused_deployment(5))
    assert index.woken[OWNER] == 1
    assert index.clean
