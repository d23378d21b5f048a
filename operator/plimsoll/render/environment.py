"""The variables of an engine's container: where it may write, how it reaches the outside, and its secrets by reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from plimsoll import names
from plimsoll.api.config import Network
from plimsoll.api.v1alpha1.model import SecretKey
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.engines.command import EngineCommand
from plimsoll.engines.vllm_groups import NODE_ADDRESS
from plimsoll.planning.plan import PlanSet
from plimsoll.render.start import verbatim
from plimsoll.render.volumes import CA_FILE, CACHES, HOME, MODELS

USER: Final = "plimsoll"
GROUP: Final = "PLIMSOLL_GROUP"
LEADER: Final = "PLIMSOLL_LEADER"
RANK: Final = "PLIMSOLL_RANK"
_WRITABLE: Final = {
    "HOME": HOME,
    # torch asks for the user's name, and an arbitrary user id has none.
    "USER": USER,
    "LOGNAME": USER,
    "XDG_CACHE_HOME": CACHES,
    "XDG_CONFIG_HOME": f"{HOME}/.config",
    "HF_HOME": MODELS,
    "MODELSCOPE_CACHE": f"{MODELS}/modelscope",
    "VLLM_CACHE_ROOT": f"{CACHES}/vllm",
    "TORCHINDUCTOR_CACHE_DIR": f"{CACHES}/inductor",
    "TRITON_CACHE_DIR": f"{CACHES}/triton",
    "FLASHINFER_WORKSPACE_BASE": CACHES,
    "NUMBA_CACHE_DIR": f"{CACHES}/numba",
    "CUDA_CACHE_PATH": f"{CACHES}/cuda",
}
_MODULES: Final = {"HF_MODULES_CACHE": f"{HOME}/modules"}
"""Where code of a model is copied to before it is run, also that of a model in a folder. By itself that is below HF_HOME."""


def environment(
    spec: LLMDeploymentSpec,
    chosen: PlanSet,
    engine: EngineCommand,
    network: Network,
    *,
    start_seconds: int,
    grouped: bool,
) -> list[dict[str, Any]]:
    """The variables, sorted by name. The kubelet expands $(NAME) only of variables that come before, and PLIMSOLL_GROUP does so by its name."""
    values = {
        **_WRITABLE,
        **(_MODULES if _only_reads(spec) else {}),
        **outside(network),
        "VLLM_ENGINE_READY_TIMEOUT_S": str(start_seconds),
        **(_threads(chosen) if chosen.hardware.vendor == "cpu" else {}),
        **engine.env,
    }
    if _is_offline(spec, network):
        values["HF_HUB_OFFLINE"] = "1"
    listed: dict[str, dict[str, Any]] = {name: {"value": verbatim(value)} for name, value in values.items()}
    for name, secret in engine.secret_env.items():
        listed[name] = from_secret(secret)
    if grouped:
        listed[NODE_ADDRESS] = {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}
    return [{"name": name, **listed[name]} for name in sorted(listed)]


def member_variables(set_name: str, headless: str, namespace: str, *, ranked: bool) -> list[dict[str, Any]]:
    """Variables by which Kubernetes tells a pod of a StatefulSet its group, its rank and its leader's address. `ranked`: its label has the
    rank; without it the rank is 0."""
    rank: dict[str, Any] = {"name": RANK, "value": "0"}
    if ranked:
        rank = {"name": RANK, **_label(names.LABEL_RANK)}
    address = f"{set_name}-$({GROUP})-0.{headless}.{namespace}.svc"
    return [{"name": GROUP, **_label(names.LABEL_GROUP)}, {"name": LEADER, "value": address}, rank]


def _label(key: str) -> dict[str, Any]:
    return {"valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": f"metadata.labels['{key}']"}}}


def outside(network: Network) -> dict[str, str]:
    """Variables for the way out of the cluster: proxies (in both spellings, as programs differ in which they read), endpoints, authorities."""
    asked: Mapping[str, str | None] = {
        "HTTP_PROXY": network.http_proxy,
        "HTTPS_PROXY": network.https_proxy,
        "NO_PROXY": ",".join(network.no_proxy) or None,
    }
    found = {name: value for name, value in asked.items() if value}
    found |= {name.lower(): value for name, value in found.items()}
    modelscope = network.modelscope_endpoint
    endpoints = {
        "HF_ENDPOINT": network.hub_endpoint,
        # Its own client puts https:// before it; the supervisor does where there is no scheme, and so asks by http too.
        "MODELSCOPE_DOMAIN": modelscope and modelscope.removeprefix("https://").rstrip("/"),
        "AWS_ENDPOINT_URL": network.s3_endpoint,
    }
    found |= {name: value for name, value in endpoints.items() if value}
    if network.ca_bundle is not None:
        found |= dict.fromkeys(("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "AWS_CA_BUNDLE"), CA_FILE)
    return found


def from_secret(secret: SecretKey) -> dict[str, Any]:
    """A variable that refers to a Secret: no value of a Secret ever passes through the operator."""
    return {"valueFrom": {"secretKeyRef": {"name": secret.name, "key": secret.key}}}


def _is_offline(spec: LLMDeploymentSpec, network: Network) -> bool:
    return bool(network.offline) or _only_reads(spec)


def _only_reads(spec: LLMDeploymentSpec) -> bool:
    """Whether the folder of what is fetched from hubs cannot be written."""
    return spec.storage.weights is not None and spec.storage.weights.is_read_only


def _threads(chosen: PlanSet) -> dict[str, str]:
    """Keeps the engine from binding threads to cores: it would take the first cores of the host, and two replicas there the same ones."""
    cores = chosen.resources.cpu_millis // 1000 // max(1, chosen.resources.devices)
    return {"VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": str(max(1, cores))}
