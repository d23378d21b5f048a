"""One control plane for all tests of a session; each test has a namespace of its own in it.

The end of each program's log goes into the report of a test that failed, since the answer is often there.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from cluster import Cluster
from cluster.images import TOOLS, VLLM_CPU, Recipe, supervisor, vllm_cpu_supervised
from cluster.node import Unavailable
from common import ROOT
from plimsoll import names
from real import Namespace, left_out
from rights import beyond
from stores import Bucket, Registry

MARKERS: Final = {
    "real_node": "needs a node whose pods run: root on Linux",
    "real_engine": "needs the real engine, which takes minutes to fetch",
    "real_store": "needs real servers of models, which take minutes to build",
}
CLUSTER: Final = pytest.StashKey[Cluster]()


def pytest_configure(config: pytest.Config) -> None:
    for name, about in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {about}")


@pytest.fixture(scope="session")
def crd_file() -> Path:
    return ROOT / "crds" / "llmdeployments.plimsoll.dev.yaml"


@pytest.fixture(scope="session")
def cluster(request: pytest.FixtureRequest, crd_file: Path) -> Iterator[Cluster]:
    """With Plimsoll's CRD. Whatever operators do there, none lacks a right."""
    with Cluster(audit=True) as running:
        request.config.stash[CLUSTER] = running
        running.install(crd_file)
        yield running
        assert beyond(running) == []


@pytest.fixture(scope="session")
def supervisor_image(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """In all real nodes where the real engine is."""
    return supervisor(tmp_path_factory.mktemp("supervisor"))


@pytest.fixture(scope="session")
def bundled_image(tmp_path_factory: pytest.TempPathFactory) -> Recipe:
    """The engine on CPUs with the supervisor in front of it; in all real nodes where a test takes it."""
    return vllm_cpu_supervised(tmp_path_factory.mktemp("bundled"))


@pytest.fixture(scope="session")
def real_cluster(
    request: pytest.FixtureRequest, crd_file: Path, supervisor_image: Recipe
) -> Iterator[Cluster]:
    """With Plimsoll's CRD and two nodes whose pods run; without root the test is left out, or fails where that must not be."""
    # What takes minutes is made only for those who use it.
    engines = any(item.get_closest_marker("real_engine") for item in request.session.items)
    bundled = any("bundled_image" in getattr(item, "fixturenames", ()) for item in request.session.items)
    images = [TOOLS]
    images += [VLLM_CPU, supervisor_image] if engines else []
    images += [request.getfixturevalue("bundled_image")] if bundled else []
    with ExitStack() as stack:
        try:
            running = stack.enter_context(Cluster(real_nodes=2, images=images))
        except Unavailable as why:
            left_out(str(why))
        request.config.stash[CLUSTER] = running
        running.install(crd_file)
        yield running


@pytest.fixture
def real_namespace(real_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Namespace]:
    """For pods without rights."""
    made = Namespace.create(real_cluster, plain_name(request))
    yield made
    made.remove()


def plain_name(request: pytest.FixtureRequest) -> str:
    """Of the test, as a name of Kubernetes."""
    return re.sub(r"[^a-z0-9]+", "-", request.node.name.lower()).strip("-")[:40].strip("-")


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """Named after the test, so that what is left in a log can be told apart."""
    name = cluster.new_namespace(plain_name(request))
    yield name
    # A namespace takes seconds to end, but the planner reads the whole cluster: nothing it reads may be left for the next test.
    cluster.api.delete(f"/apis/{names.API_VERSION}/namespaces/{name}/{names.PLURAL}")
    cluster.api.delete(f"/api/v1/namespaces/{name}")
    # Pods that wait here would be scheduled on the next test's fleet. In a namespace that ends no new ones are made, and those that
    # are left may be bound to nodes that are gone, where nobody but the collector of lost pods, in 40 s, would end them.
    pods = f"/api/v1/namespaces/{name}/pods"
    while cluster.api.items(pods):
        cluster.api.delete(f"{pods}?gracePeriodSeconds=0")


@pytest.fixture
def registry() -> Iterator[Registry]:
    """Of the test's own: what it spoils is found by its sum by whoever has the same file."""
    with Registry() as one:
        yield one


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with Bucket() as one:
        yield one


@pytest.fixture
def place(tmp_path: Path) -> str:
    """A name of the test's own in a store."""
    return f"acme/m{hashlib.sha256(bytes(tmp_path)).hexdigest()[:12]}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    running = item.config.stash.get(CLUSTER, None)
    if report.failed and running is not None:
        for name in running.processes.names:
            report.sections.append((f"log of {name}", running.processes.tail(name)))
    return report
