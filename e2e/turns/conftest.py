"""One operator for all tests of a file that do not need to stop it, beside one fleet of GPUs.

Neither stays for the next file: others look at the same cluster, and at deployments and nodes of the same names.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator

import pytest

from cluster import Cluster
from cluster.fleet import read_fleet
from plimsoll import names
from rights import beyond
from turns.crashes import laboratory
from turns.running import Desk, Operator


@pytest.fixture(scope="module")
def gpus(cluster: Cluster) -> Iterator[None]:
    with cluster.fleet(read_fleet("h100")):
        yield


@pytest.fixture(scope="module")
def operator(
    cluster: Cluster,
    gpus: None,  # noqa: ARG001 - there before it looks
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Operator]:
    with Operator(cluster, tmp_path_factory.mktemp("operator")) as running:
        yield running


@pytest.fixture
def desk(
    cluster: Cluster,
    namespace: str,
    operator: Operator,  # noqa: ARG001 - runs while it is used
) -> Desk:
    return Desk(cluster, namespace)


@pytest.fixture(scope="session")
def lab() -> Iterator[Cluster]:
    """A cluster of its own for tests that end, disturb or double the operator; each brings the operators that it needs, and none of
    them lacks a right."""
    with laboratory() as running:
        yield running
        assert beyond(running) == []


@pytest.fixture
def whole_lab(lab: Cluster) -> Iterator[Cluster]:
    """For a test that fills it: what it made, in namespaces of its own, is nobody's to look after when the next file's operators come."""
    yield lab
    resources = f"/apis/{names.API_VERSION}"
    for space in {one["metadata"]["namespace"] for one in lab.api.items(f"{resources}/{names.PLURAL}")}:
        lab.api.delete(f"{resources}/namespaces/{space}/{names.PLURAL}")


@pytest.fixture
def place(lab: Cluster, request: pytest.FixtureRequest) -> Iterator[Desk]:
    """A namespace there, whose resources are gone when the test ends."""
    stem = re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")
    name = lab.new_namespace(stem)
    desk = Desk(lab, name)
    yield desk
    lab.api.delete(f"/apis/{names.API_VERSION}/namespaces/{name}/{names.PLURAL}")
    # Those that a test made itself hold nodes that the next one wants.
    lab.api.delete(f"/api/v1/namespaces/{name}/pods?gracePeriodSeconds=0")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    running = getattr(item, "funcargs", {}).get("operator")
    if report.failed and isinstance(running, Operator):
        report.sections.append(("log of the operator", running.tail()))
    return report
