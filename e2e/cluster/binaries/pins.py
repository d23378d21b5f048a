"""Which programs, in which versions. This file pins them; the module files under tools/ say what they are built from.

A program found on the machine counts when its minor version is the pinned one: patches change nothing that is looked at here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

KUBERNETES: Final = "1.35.4"
ETCD: Final = "3.6.16"
KWOK: Final = "0.8.0"
PROMETHEUS: Final = "3.15.0"
ALERTMANAGER: Final = "0.31.1"
"""The last whose module holds its pages; without them later ones do not build."""
COREDNS: Final = "1.15.0"
HELM: Final = "3.22.0"
REGISTRY: Final = "3.1.2"
S3_FOLDER: Final = "1.8.0"
"""Of the gateway that it is made of."""
GO: Final = "1.26"
"""The oldest Go that all module files accept."""

TOOLS: Final = Path(__file__).parent.parent / "tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One program."""

    name: str
    version: str
    folder: str
    """Its module file's folder under tools/."""
    package: str
    """What is built."""
    version_args: tuple[str, ...] = ("--version",)
    """How the program is asked for its version."""
    variables: tuple[str, ...] = ()
    """Set by the linker; a program built from modules does not know its version otherwise."""
    module_version: str = ""
    """Where the module counts otherwise than the program."""
    tags: tuple[str, ...] = ()
    """What is left out of, or put into, the program."""
    in_envtest: bool = False
    """Whether setup-envtest brings it."""

    @property
    def module_folder(self) -> Path:
        return TOOLS / self.folder

    @property
    def minor(self) -> str:
        """The version without its patch."""
        return self.version.rpartition(".")[0]

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def _kubernetes(
    name: str, *, in_envtest: bool = False, version_args: tuple[str, ...] = ("--version",)
) -> Pin:
    major, minor, _ = KUBERNETES.split(".")
    about = "k8s.io/component-base/version"
    return Pin(
        name=name,
        version=KUBERNETES,
        folder="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        version_args=version_args,
        variables=(
            f"{about}.gitVersion=v{KUBERNETES}",
            f"{about}.gitMajor={major}",
            f"{about}.gitMinor={minor}",
        ),
        in_envtest=in_envtest,
    )


def _prometheus(
    name: str, version: str, folder: str, *, module_version: str = "", tags: tuple[str, ...] = ()
) -> Pin:
    # A minor version that differs is not taken, here for one more reason: what distributions pack may lack the discovery of pods.
    return Pin(
        name=name,
        version=version,
        folder=folder,
        package=f"github.com/prometheus/{folder}/cmd/{name}",
        variables=(f"github.com/prometheus/common/version.Version={version}",),
        module_version=module_version,
        tags=tags,
    )


PODS_ONLY: Final = ("remove_all_sd", "enable_kubernetes_sd")
"""Without the clouds' clients, whose discoveries nothing here asks for."""

_ALL = (
    Pin(name="etcd", version=ETCD, folder="etcd", package="go.etcd.io/etcd/server/v3", in_envtest=True),
    _kubernetes("kube-apiserver", in_envtest=True),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kubectl", in_envtest=True, version_args=("version", "--client")),
    Pin(name="kwok", version=KWOK, folder="kwok", package="sigs.k8s.io/kwok/cmd/kwok"),
    _prometheus("prometheus", PROMETHEUS, "prometheus", module_version="0.315.0", tags=PODS_ONLY),
    _prometheus("promtool", PROMETHEUS, "prometheus", module_version="0.315.0", tags=PODS_ONLY),
    _prometheus("alertmanager", ALERTMANAGER, "alertmanager"),
    _kubernetes("kubelet"),
    _kubernetes("kube-proxy"),
    Pin(
        name="coredns",
        version=COREDNS,
        folder="coredns",
        package=".",
        version_args=("-version",),
    ),
    Pin(
        name="helm",
        version=HELM,
        folder="helm",
        package="helm.sh/helm/v3/cmd/helm",
        version_args=("version", "--short"),
        variables=(f"helm.sh/helm/v3/internal/version.version=v{HELM}",),
    ),
    Pin(name="registry", version=REGISTRY, folder="registry", package="."),
    Pin(name="s3-folder", version=S3_FOLDER, folder="s3", package="."),
    Pin(name="pause", version="1.0.0", folder="pause", package="."),
)
PINS: Final[Mapping[str, Pin]] = MappingProxyType({pin.name: pin for pin in _ALL})
STORES: Final = ("registry", "s3-folder")
"""Where models are fetched from; no part of a cluster."""
