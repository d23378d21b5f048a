"""How the programs of a control plane are told: arguments only, as a default cluster has them, apart from what a test machine needs.

That is: tokens from a file, no leader election, an etcd that does not sync, ports that are shared with their holder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SERVICES: Final = "10.250.0.0/16"
ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
ADMIN: Final = "admin"
USERS: Final[Mapping[str, str]] = {
    ADMIN: "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
}
"""Who has a token from the start, and in which group."""
AUDIT_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [{"level": "Metadata"}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Files and ports of one control plane."""

    folder: Path
    etcd_port: int
    peer_port: int
    api_port: int
    manager_port: int
    scheduler_port: int
    address: str = "127.0.0.1"
    """Where the API server listens."""
    services: str = SERVICES
    users: Mapping[str, str] = field(default_factory=lambda: USERS)
    """Who has a token from the start, and in which group."""
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, bool] = field(default_factory=dict)
    audit: bool = False
    node_grace_seconds: int | None = None
    """How long a node may be silent before it counts as lost; None: for ever."""

    @property
    def server(self) -> str:
        return f"https://{self.address}:{self.api_port}"

    @property
    def certificates(self) -> Path:
        return self.folder / "certificates"

    @property
    def ca(self) -> Path:
        """What the API server makes for itself, with the authority that signed it."""
        return self.certificates / "apiserver.crt"

    @property
    def account_key(self) -> Path:
        """Signs the tokens of service accounts."""
        return self.folder / "service-accounts.key"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens.csv"

    @property
    def audit_log(self) -> Path:
        return self.folder / "logs" / "audit.log"

    @property
    def audit_policy(self) -> Path:
        return self.folder / "audit-policy.json"

    def kubeconfig(self, user: str) -> Path:
        return self.folder / "kubeconfigs" / f"{user.replace(':', '-')}.yaml"


def write_files(at: Layout, tokens: Mapping[str, str]) -> None:
    """What the programs read at start, beside kubeconfigs and keys."""
    lines = [f'{token},{user},{user},"{at.users[user]}"' for user, token in tokens.items()]
    at.tokens.touch(mode=0o600)
    at.tokens.write_text("\n".join(lines) + "\n")
    if at.audit:
        at.audit_policy.write_text(json.dumps(AUDIT_POLICY))


def etcd(at: Layout) -> list[str]:
    client, peer = f"http://127.0.0.1:{at.etcd_port}", f"http://127.0.0.1:{at.peer_port}"
    return [
        f"--data-dir={at.folder / 'etcd'}",
        "--unsafe-no-fsync",  # nothing here outlives the machine
        "--socket-reuse-port",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--logger=zap",
        "--log-level=error",
    ]


def kube_apiserver(at: Layout) -> list[str]:
    args = [
        f"--etcd-servers=http://127.0.0.1:{at.etcd_port}",
        f"--bind-address={at.address}",
        f"--secure-port={at.api_port}",
        "--permit-port-sharing",
        f"--cert-dir={at.certificates}",
        f"--service-account-issuer={ISSUER}",
        f"--service-account-key-file={at.account_key}",
        f"--service-account-signing-key-file={at.account_key}",
        f"--service-cluster-ip-range={at.services}",
        f"--token-auth-file={at.tokens}",
        "--authorization-mode=Node,RBAC",
        "--allow-privileged",
        "--kubelet-preferred-address-types=InternalIP",  # names of real nodes are known to nobody but the cluster
        "--enable-admission-plugins=NodeRestriction",  # beside the defaults, Pod Security among them
        *_switches("feature-gates", at.feature_gates),
        *_switches("runtime-config", at.runtime_config),
    ]
    if at.audit:
        args += [f"--audit-policy-file={at.audit_policy}", f"--audit-log-path={at.audit_log}"]
    return args


def kube_controller_manager(at: Layout) -> list[str]:
    user = at.kubeconfig("system:kube-controller-manager")
    return [
        *_client(at, user, at.manager_port),
        "--use-service-account-credentials",
        f"--service-account-private-key-file={at.account_key}",
        f"--root-ca-file={at.ca}",
        *_patience(at.node_grace_seconds),
        *_switches("feature-gates", at.feature_gates),
    ]


def _patience(seconds: int | None) -> list[str]:
    """With silent nodes. Heartbeats of a thousand nodes cost a fifth of a core, so there are none where nobody looks at them."""
    if seconds is None:
        return ["--node-monitor-grace-period=8760h"]
    return [f"--node-monitor-grace-period={seconds}s", f"--node-monitor-period={max(1, seconds // 10)}s"]


def kube_scheduler(at: Layout) -> list[str]:
    user = at.kubeconfig("system:kube-scheduler")
    return [*_client(at, user, at.scheduler_port), *_switches("feature-gates", at.feature_gates)]


def _client(at: Layout, user: Path, port: int) -> list[str]:
    return [
        f"--kubeconfig={user}",
        f"--authentication-kubeconfig={user}",
        f"--authorization-kubeconfig={user}",
        "--leader-elect=false",
        "--authentication-skip-lookup",  # there is no front proxy whose authority it would look for
        "--kube-api-qps=500",  # the default of 20 makes it take 4 s longer to start
        "--kube-api-burst=1000",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        "--permit-port-sharing",
        f"--cert-dir={at.certificates}",
    ]


def _switches(flag: str, values: Mapping[str, bool]) -> list[str]:
    pairs = ",".join(f"{key}={str(value).lower()}" for key, value in sorted(values.items()))
    return [f"--{flag}={pairs}"] if pairs else []
