"""A Kubernetes control plane for the time of a `with`: etcd, API server, controller manager, scheduler, in a folder of its own.

Several may live at once, as nothing is shared but the programs' files. Simulated nodes are `simulator`'s.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from cluster import control_plane
from cluster.api import Api, ApiError, Object
from cluster.audit import Audit
from cluster.binaries import Places, ensure
from cluster.binaries.progress import Progress
from cluster.faults import FaultProxy
from cluster.fleet import Fleet
from cluster.growth import Growth
from cluster.images import Recipe, ensure_images
from cluster.kubeconfig import write_kubeconfig
from cluster.metrics import PodDiscovery, Prometheus
from cluster.node import RealNode, RealNodes
from cluster.others import crds_of
from cluster.processes import ClusterFailed, Ports, Processes
from cluster.simulator import Simulator

PROGRAMS: Final = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
CRDS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
READY_SECONDS: Final = 120.0
"""2 s on an idle machine; the limit is for one with far more to do than it has cores."""
TOKEN_SECONDS: Final = 24 * 3600


class Cluster:
    """Use it with `with`. What is in its folder is gone afterwards, unless the folder was given: then its logs stay."""

    def __init__(
        self,
        *,
        folder: Path | None = None,
        feature_gates: Mapping[str, bool] | None = None,
        runtime_config: Mapping[str, bool] | None = None,
        audit: bool = False,
        node_grace_seconds: int | None = None,
        real_nodes: int = 0,
        images: Sequence[Recipe] = (),
        places: Places | None = None,
        progress: Progress | None = None,
    ) -> None:
        self._given = folder
        self._feature_gates = feature_gates or {}
        self._runtime_config = runtime_config or {}
        self._audit = audit
        self._node_grace_seconds = node_grace_seconds
        self._real_nodes = real_nodes
        self._images = images
        self._real: RealNodes | None = None
        self._places = places or Places.of(os.environ)  # noqa: TID251 - the default of an entry point
        self._progress = progress or Progress(sys.stderr)
        self._ports = Ports()

    def __enter__(self) -> Self:
        self.programs = ensure(PROGRAMS, self._places, self._progress)
        ensure_images(self._images, self._places, self._progress)
        if self._given is not None:
            self._given.mkdir(parents=True, exist_ok=True)
            if any(self._given.iterdir()):
                raise ClusterFailed(f"{self._given} is not empty; a cluster needs a folder of its own")
            self.folder = self._given.absolute()
        else:
            self.folder = Path(tempfile.mkdtemp(prefix="plimsoll-"))
        self.processes = Processes(self.folder)
        try:
            if self._real_nodes:
                self._real = RealNodes.prepare(self._real_nodes, self.processes, self._places, self._progress)
            self._start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    @property
    def server(self) -> str:
        """The API server's address."""
        return self.layout.server

    @property
    def kubeconfig(self) -> Path:
        """The admin's."""
        return self.layout.kubeconfig(control_plane.ADMIN)

    @property
    def nodes(self) -> tuple[RealNode, ...]:
        """The real ones."""
        return tuple(self._real.nodes) if self._real else ()

    @property
    def audit_log(self) -> Path:
        """One JSON object a line for each request; only of clusters that were asked for it."""
        return self.layout.audit_log

    @property
    def audit(self) -> Audit:
        """The same, read."""
        return Audit(self.audit_log)

    def kubeconfig_for(self, namespace: str, account: str) -> Path:
        """A service account's own, with what RBAC gives it and no more."""
        token = self.token_of(namespace, account)
        name = f"system:serviceaccount:{namespace}:{account}"
        file = self.layout.kubeconfig(name)
        return write_kubeconfig(
            file, server=self.server, ca=self.layout.ca, user=name, token=token, namespace=namespace
        )

    def api_as(self, namespace: str, account: str) -> Api:
        """The API as a service account sees it."""
        return Api(server=self.server, token=self.token_of(namespace, account), ca=self.layout.ca)

    def token_of(self, namespace: str, account: str) -> str:
        """A token of a service account, for a day. The default one of a new namespace is made a moment after it."""
        account_path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}"
        self.processes.wait("kube-controller-manager", lambda: self._is_there(account_path), READY_SECONDS)
        request = {"spec": {"expirationSeconds": TOKEN_SECONDS}}
        return str(self.api.create(f"{account_path}/token", request)["status"]["token"])

    def new_namespace(self, prefix: str, **labels: str) -> str:
        """One whose name begins so, once pods can be made in it: they are refused before it has its default account."""
        body: Object = {"metadata": {"generateName": f"{prefix}-", "labels": labels}}
        name = str(self.api.create("/api/v1/namespaces", body)["metadata"]["name"])
        account_path = f"/api/v1/namespaces/{name}/serviceaccounts/default"
        self.processes.wait("kube-controller-manager", lambda: self._is_there(account_path), READY_SECONDS)
        return name

    def kubectl(self, *args: str, input: str | None = None) -> subprocess.CompletedProcess[str]:  # noqa: A002
        """As the admin; the caller looks at the exit code."""
        return subprocess.run(
            [str(self.programs["kubectl"]), f"--kubeconfig={self.kubeconfig}", *args],
            input=input,
            capture_output=True,
            text=True,
            check=False,
            # kubectl keeps what it discovers under HOME, by address: another cluster may have had this port.
            env={"HOME": str(self.folder), "PATH": os.defpath},
        )

    def proxy(self) -> FaultProxy:
        """One before the API server, to be used with `with`."""
        return FaultProxy(self.server, certificate=self.layout.ca, key=self.layout.ca.with_suffix(".key"))

    def prometheus(
        self,
        *,
        selector: str = "",
        namespaces: Sequence[str] = (),
        port: str = "",
        stand_in: str = "",
        drop: str = "",
        **more: Any,
    ) -> Prometheus:
        """One that discovers this cluster's pods, to be used with `with`; further settings are `Prometheus`'s own."""
        pods = PodDiscovery(
            kubeconfig=self.kubeconfig,
            selector=selector,
            namespaces=namespaces,
            port=port,
            stand_in=stand_in,
            drop=drop,
        )
        return Prometheus(pods=pods, places=self._places, progress=self._progress, **more)

    @contextmanager
    def fleet(self, fleet: Fleet) -> Iterator[Fleet]:
        """Its nodes are there and ready inside the `with`."""
        simulator = self.simulator
        simulator.load(fleet)
        try:
            yield fleet
        finally:
            simulator.unload(fleet)

    @contextmanager
    def growing(
        self, fleet: Fleet, *, after_seconds: float = 1.0, empty_seconds: float | None = None
    ) -> Iterator[Growth]:
        """Like `fleet`; what more its pools can have is made when a pod waits for it."""
        growth = Growth(
            simulator=self.simulator, fleet=fleet, after_seconds=after_seconds, empty_seconds=empty_seconds
        )
        with self.fleet(fleet), growth.running():
            yield growth

    @cached_property
    def simulator(self) -> Simulator:
        """Loads fleets that stay; needs one program more than a cluster without."""
        (program,) = ensure(["kwok"], self._places, self._progress).values()
        return Simulator(
            api=self.api,
            processes=self.processes,
            program=program,
            kubeconfig=self.kubeconfig,
            node_grace_seconds=self._node_grace_seconds,
        )

    def install(self, file: Path) -> None:
        """Apply a CRD and wait until the API server serves it."""
        self._install([yaml.safe_load(file.read_text())])

    def install_others(self, *names: str) -> None:
        """Other people's CRDs, such as "gateway-api"; which there are is `others`' to say."""
        self._install([crd for name in names for crd in crds_of(name, self.api, self._places)])

    def stop(self) -> None:
        """End everything and clear the folder."""
        self.processes.stop()
        if hasattr(self, "api"):  # or it never came so far
            self.api.close()
        self._ports.release()
        if self._real is not None:
            self._real.stop()
        if self._given is None:
            shutil.rmtree(self.folder, ignore_errors=True)
            return
        for left in self.folder.iterdir():
            if left.is_file():
                left.unlink()
            elif left.name != "logs":
                shutil.rmtree(left, ignore_errors=True)

    def _start(self) -> None:
        take, real = self._ports.take, self._real
        self.layout = at = control_plane.Layout(
            folder=self.folder,
            etcd_port=take(),
            peer_port=take(),
            api_port=take(),
            # Programs on a real node reach the host by an address of its own; else nobody else's network matters.
            **({"address": real.addresses.host, "services": real.addresses.services} if real else {}),
            users={**control_plane.USERS, **(real.users if real else {})},
            manager_port=take(),
            scheduler_port=take(),
            feature_gates=self._feature_gates,
            runtime_config=self._runtime_config,
            audit=self._audit,
            node_grace_seconds=self._node_grace_seconds,
        )
        tokens = {user: secrets.token_hex(16) for user in at.users}
        control_plane.write_files(at, tokens)
        make_key(at.account_key)
        for user, token in tokens.items():
            write_kubeconfig(at.kubeconfig(user), server=at.server, ca=at.ca, user=user, token=token)
        self._run("etcd", control_plane.etcd(at))
        self._run("kube-apiserver", control_plane.kube_apiserver(at))
        self.processes.wait("kube-apiserver", at.ca.exists, READY_SECONDS)
        self.api = Api(server=at.server, token=tokens[control_plane.ADMIN], ca=at.ca)
        self.processes.wait("kube-apiserver", self.api.is_ready, READY_SECONDS)
        self._run("kube-controller-manager", control_plane.kube_controller_manager(at))
        self._run("kube-scheduler", control_plane.kube_scheduler(at))
        self.processes.wait("kube-controller-manager", self._has_default_account, READY_SECONDS)
        if real is not None:
            real.join(self.api, at.kubeconfig, self.kubeconfig_for)
        self.processes.check()

    def _install(self, crds: Sequence[Object]) -> None:
        for crd in crds:
            self.api.apply(f"{CRDS}/{crd['metadata']['name']}", crd, force=True)
        self.until_served(crds)

    def until_served(self, crds: Sequence[Object]) -> None:
        """Whoever applied them: a resource made a moment after its CRD is answered 404."""
        for crd in crds:
            path, spec = f"{CRDS}/{crd['metadata']['name']}", crd["spec"]
            version = next(one["name"] for one in spec["versions"] if one["served"])
            served = f"/apis/{spec['group']}/{version}/{spec['names']['plural']}"
            self.processes.wait("kube-apiserver", partial(self._serves, path, served), READY_SECONDS)

    def _serves(self, crd: str, collection: str) -> bool:
        conditions = (self.api.get(crd).get("status") or {}).get("conditions") or ()
        said = {one["type"]: one["status"] for one in conditions}
        if said.get("NamesAccepted") == "False":
            raise ClusterFailed(f"{crd}: the API server refuses the names: {conditions}")
        if said.get("Established") != "True":
            return False
        try:
            self.api.get(collection, limit="1")
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True

    def _run(self, name: str, args: list[str]) -> None:
        self.processes.start(name, [self.programs[name], *args])

    def _has_default_account(self) -> bool:
        """The controller manager makes it first thing; without it no pod can be made."""
        return self._is_there("/api/v1/namespaces/default/serviceaccounts/default")

    def _is_there(self, path: str) -> bool:
        try:
            self.api.get(path)
        except ApiError as error:
            if error.status != 404:
                raise
            return False
        return True


def make_key(file: Path) -> None:
    """A key that signs tokens: elliptic, since an RSA key takes up to a second to find."""
    program = shutil.which("openssl")
    if program is None:
        raise ClusterFailed("openssl is not on PATH; it makes the key that signs tokens, so install it")
    done = subprocess.run(
        [program, "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ClusterFailed(f"openssl made no key: {done.stderr.strip()}")
    file.chmod(0o600)
