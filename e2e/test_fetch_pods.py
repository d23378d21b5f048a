"""Pods bring their model from a hub: replicas that share a volume fetch once, what a killed pod had is gone on with, and a flag that
the engine does not know ends a pod whose model has not come."""

from __future__ import annotations

import contextlib
import http.client
import json
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest

import models
from asking import Engine
from cluster import Cluster
from cluster.api import Object
from cluster.images import VLLM_CPU_VERSION, Recipe
from common import is_ready
from plimsoll import names
from plimsoll.render.start import RUNTIME_PORT
from plimsoll_runtime.sources.lease import owner_of
from plimsoll_runtime.sources.stores import OWN
from real import Namespace, bundled_engine
from surroundings import dense_shapes, noise
from tests.runtime.hub_site import TOKEN, Cdn, HubSite, Repository
from turns.running import Desk, Operator

pytestmark = [pytest.mark.real_node, pytest.mark.real_engine]

REPOSITORY: Final = "acme/dense"
WEIGHTS: Final = "model.safetensors"
HEADERS: Final = 1 << 20
"""Whoever only reads what a file of weights holds asks for less."""
PATIENCE_SECONDS: Final = 900.0


def until(desk: Desk, name: str, holds: Callable[[], bool]) -> None:
    """Engines and their pods take their time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds():
        if time.monotonic() > deadline:
            pods = [(one["metadata"]["name"], one["status"]) for one in desk.items("v1/pods")]
            pytest.fail(json.dumps([desk.get(name).get("status"), pods], indent=1))
        time.sleep(0.5)


@pytest.fixture(scope="module")
def space(real_cluster: Cluster) -> Iterator[Namespace]:
    made = Namespace.create(real_cluster, "fetching")
    token = {"metadata": {"name": "hub"}, "stringData": {"token": TOKEN}}
    real_cluster.api.create(f"/api/v1/namespaces/{made.name}/secrets", token)
    yield made
    made.remove()


@pytest.fixture
def cdn(real_cluster: Cluster) -> Iterator[Cdn]:
    """Where weights lie; more than a header of them comes when a test lets it."""
    site = Cdn(urlsplit(real_cluster.server).hostname)
    site.hold, site.held_above, site.trickles = threading.Event(), HEADERS, True
    yield site
    site.close()


@pytest.fixture
def hub(cdn: Cdn) -> Iterator[HubSite]:
    files = {**models.dense().files, WEIGHTS: noise(dense_shapes())}
    site = HubSite({REPOSITORY: Repository(files, gated=True)}, cdn, cdn.host)
    yield site
    site.close()


@pytest.fixture
def volume(space: Namespace, tmp_path: Path) -> Iterator[Path]:
    """A folder that pods on all nodes share and write to, by a claim of the namespace's name."""
    folder = tmp_path / "volume"
    folder.mkdir()
    folder.chmod(0o777)
    lent, claimed = models.volume(folder, space.name, space.name)
    for one in (lent, claimed):
        one["spec"]["accessModes"] = ["ReadWriteMany"]
    api = space.cluster.api
    volumes, claims = "/api/v1/persistentvolumes", f"/api/v1/namespaces/{space.name}/persistentvolumeclaims"
    api.create(volumes, lent)
    api.create(claims, claimed)
    yield folder
    api.delete(f"{claims}/{space.name}")
    api.delete(f"{volumes}/{space.name}")


@pytest.fixture
def desk(
    space: Namespace, hub: HubSite, supervisor_image: Recipe, bundled_image: Recipe, tmp_path: Path
) -> Iterator[Desk]:
    config = {
        "apiVersion": names.API_VERSION,
        "kind": names.CONFIG_KIND,
        "engines": bundled_engine(bundled_image),
        "registry": {"runtimeImage": supervisor_image.reference},
        "network": {"hubEndpoint": hub.url},
        "trust": {"extraArgs": {"allow": ["*"]}},
    }
    file = tmp_path / "admin.json"
    file.write_text(json.dumps(config))
    args = ("--standalone", f"--lease-namespace={space.name}", f"--config={file}")
    with Operator(space.cluster, tmp_path, args=args):
        yield Desk(space.cluster, space.name)


def spec(**more: Any) -> dict[str, Any]:
    engine = {
        "version": VLLM_CPU_VERSION,
        "eager": True,
        "env": [{"name": "OMP_WAIT_POLICY", "value": "PASSIVE"}],
    }
    return {
        "model": {"source": f"hf://{REPOSITORY}", "servedNames": ["tiny"], "tokenSecret": {"name": "hub"}},
        "workload": {"contextTokens": 4096},
        "topology": {"cpu": {"cores": 1, "memory": "5Gi", "kvCacheSize": "1Gi"}},
        **more,
        "engine": {**engine, **more.get("engine", {})},
    }  # fmt: skip


def gone(desk: Desk, name: str) -> None:
    """The next engine needs the memory."""
    desk.cluster.api.delete(desk.path(name))
    pods = f"/api/v1/namespaces/{desk.namespace}/pods"
    while desk.cluster.api.items(pods):
        desk.cluster.api.delete(f"{pods}?gracePeriodSeconds=0")
        time.sleep(0.2)


def fetching(volume: Path) -> str:
    """The pod that holds the place, as the volume says; empty where none does, or the file goes as it is read."""
    with contextlib.suppress(OSError):
        for file in volume.rglob(f"{OWN}/lock"):
            return owner_of(file.read_text()).host
    return ""


def holder(desk: Desk, volume: Path) -> str:
    """Which of the pods that are there; whoever takes the place of one that is slow leaves none in it for a moment."""
    names_seen: list[str] = []

    def holds() -> bool:
        names_seen.append(fetching(volume))
        return names_seen[-1] in [pod["metadata"]["name"] for pod in desk.pods()]

    until(desk, "shares", holds)
    return names_seen[-1]


def asked_for_weights(cdn: Cdn) -> list[int]:
    """Where each answer to a request for more than a header began."""
    starts = []
    for one in cdn.asked:
        first, _, last = one.headers.get("range", "").removeprefix("bytes=").partition("-")
        if not last or int(last) - int(first) >= HEADERS:
            starts.append(int(first or 0))
    return starts


def test_a_flag_that_the_engine_does_not_know_ends_a_pod_whose_model_has_not_come(
    desk: Desk, cdn: Cdn
) -> None:
    def refused() -> bool:
        conditions = (desk.get("mistaken").get("status") or {}).get("conditions") or ()
        return any(
            one["reason"] == "BadFlag" and "--no-such-flag" in one["message"]
            for one in conditions
            if one["type"] == names.READY
        )

    desk.apply("mistaken", **spec(engine={"extraArgs": ["--no-such-flag=7"]}))
    until(desk, "mistaken", refused)
    assert cdn.hold is not None
    assert not cdn.hold.is_set(), "no weights were let out"
    gone(desk, "mistaken")


def test_replicas_that_share_a_volume_fetch_once_and_go_on_with_what_a_killed_pod_had(
    desk: Desk, cdn: Cdn, volume: Path
) -> None:
    size = len(noise(dense_shapes()))

    def told() -> bool:
        """By whichever is the slower of the two just then."""
        said = (desk.get("shares").get("status") or {}).get("progress") or {}
        return bool(size // 3 < said.get("bytesDone", 0) < size <= said.get("bytesTotal", 0))

    def described() -> str:
        where = f"--namespace={desk.namespace}"
        return desk.cluster.kubectl("describe", names.PLURAL, "shares", where).stdout

    desk.apply("shares", **spec(replicas=2, storage={"weights": {"claim": {"name": desk.namespace}}}))
    until(desk, "shares", told)
    until(desk, "shares", lambda: "Bytes Done:" in described())

    until(desk, "shares", lambda: [state(pod) for pod in desk.pods()] == ["fetching", "fetching"])
    assert all("initContainers" not in pod["spec"] for pod in desk.pods()), "the image has its supervisor"
    first, asked = holder(desk, volume), len(asked_for_weights(cdn))
    desk.cluster.api.delete(f"/api/v1/namespaces/{desk.namespace}/pods/{first}?gracePeriodSeconds=0")
    until(desk, "shares", lambda: fetching(volume) not in ("", first))
    until(desk, "shares", lambda: len(asked_for_weights(cdn)) > asked)
    assert asked_for_weights(cdn)[-1] > size // 3, "what was there is not asked for again"

    assert cdn.hold is not None
    cdn.hold.set()
    until(desk, "shares", lambda: desk.condition(names.READY, "shares") == ("True", "Serving"))
    until(desk, "shares", lambda: [is_ready(pod) for pod in desk.pods()] == [True, True])
    assert asked_for_weights(cdn).count(0) == 1, "one of them fetched, and nobody from the beginning again"
    service = desk.cluster.api.get(f"/api/v1/namespaces/{desk.namespace}/services/shares")
    engine = Engine(url=f"http://{service['spec']['clusterIP']}")
    assert engine.answers(PATIENCE_SECONDS)
    assert engine.complete("tiny", "once", 4)
    gone(desk, "shares")


def state(pod: Object) -> str:
    """Of its supervisor; empty before that answers."""
    address = pod["status"].get("podIP")
    try:
        with urllib.request.urlopen(f"http://{address}:{RUNTIME_PORT}/facts", timeout=60) as answer:
            return str(json.load(answer)["state"])
    except (OSError, http.client.HTTPException):
        return ""
