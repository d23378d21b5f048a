"""A pod's spec: the container that runs the engine, its variables and volumes, and where the pod may run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from plimsoll.cli.importing.command import Command, write_command
from plimsoll.cli.importing.draft import Draft, ImportProblem, leaves
from plimsoll.cli.importing.environment import EnvValue
from plimsoll.cli.importing.reader import Reader
from plimsoll.cli.importing.shell import commands_in, engine_in, find_engines, script_of
from plimsoll.cli.importing.sources import Mount
from plimsoll.cli.importing.volumes import BEFORE, SHARED, read_volumes, without_uri

OWN = "Plimsoll writes the pod by itself"
SIZES = "Plimsoll computes it from the model and the layout"
REASONS: Mapping[str, str] = {
    "livenessProbe": "Plimsoll writes probes from the time that loading takes",
    "readinessProbe": "Plimsoll writes probes from the time that loading takes",
    "startupProbe": "Plimsoll writes probes from the time that loading takes",
    "lifecycle": "Plimsoll drains by itself; rollout.drainSeconds says how long",
    "ports": "networking.service.port is the Service's port",
    "securityContext": "Plimsoll runs the engine without root and without privileges",
    "terminationGracePeriodSeconds": "it follows from rollout.drainSeconds",
    "initContainers": BEFORE,
    "topologySpreadConstraints": "Plimsoll spreads replicas by itself",
    "envFrom": "name the variables one by one in engine.env",
    "hostNetwork": "pods of Plimsoll have addresses of their own",
    "hostIPC": SHARED,
    "runtimeClassName": "pod patches may set it: podPatches, /spec/runtimeClassName",
}
_NOT_SAID = "topology has nodeSelector and gpuProducts, and neither says this"
_PRODUCTS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name", "gpu.intel.com/product")
_DEVICE = re.compile(
    r"(nvidia|amd|intel|habana|gpu\.intel)[\w.]*/(gpu|gaudi|i915|xe|mig-.+|gpu\.shared)|^gpu$"
)


def write_pod(
    draft: Draft,
    pod: Reader,
    *,
    dialect: str = "vllm",
    model: str | None = None,
    extra: tuple[str, ...] = (),
    downloaded: tuple[Mount, ...] = (),
) -> None:
    """Read a pod's spec into a draft; `model`, `extra` words and what is downloaded are what a kind says outside its pod."""
    container = _engine_container(draft, pod)
    volumes = read_volumes(draft, pod, container)
    mounts = (*volumes.mounts, *downloaded)
    command = without_uri(draft, read_container(container, mounts, dialect=dialect, model=model, extra=extra))
    write_resources(draft, container)
    container.put("imagePullPolicy", "engine.imagePullPolicy")
    container.take("name")
    container.leave(OWN, REASONS)
    write_placement(draft, pod)
    write_command(draft, command)
    volumes.leave(draft)
    pod.leave(OWN, REASONS)


def _engine_container(draft: Draft, pod: Reader) -> Reader:
    containers = pod.each("containers")
    if not containers:
        raise ImportProblem(f"{pod.at('containers')}: holds no container")
    chosen = next((one for one in containers if _runs_engine(one)), None)
    if chosen is None:
        raise ImportProblem(
            f"{pod.at('containers')}: none runs vLLM (an image with vllm in its name, or `vllm serve`)"
        )
    for other in containers:
        if other is not chosen:
            draft.lose(
                f"{other.path} {other.take('name') or ''}".strip(), "only the engine's container is read"
            )
    return chosen


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _runs_engine(container: Reader) -> bool:
    words = [str(word) for key in ("command", "args") for word in _list(container.peek(key))]
    text = " ".join(words)
    named = container.peek("name") in ("main", "kserve-container", "vllm")
    return (
        "vllm" in str(container.peek("image") or "")
        or "vllm" in text
        or (named and not container.peek("command"))
    )


def read_container(
    container: Reader,
    mounts: tuple[Mount, ...],
    *,
    dialect: str = "vllm",
    model: str | None = None,
    extra: tuple[str, ...] = (),
) -> Command:
    """The engine's command in a container."""
    environment = read_env(container)
    words = [str(word) for key in ("command", "args") for word in container.items(key)]
    image = container.text("image")
    argv, inner, dialect = _argv(container, words, environment, dialect)
    additional = inner.pop("VLLM_ADDITIONAL_ARGS", None) if dialect == "vllm" else None
    if additional is not None and additional.value:
        argv += [word for line in commands_in(additional.value) for word in line]
    return Command(
        argv=(*extra, *argv), environment=inner, image=image, mounts=mounts, model=model, dialect=dialect
    )


def _argv(
    container: Reader, words: list[str], environment: dict[str, EnvValue], dialect: str
) -> tuple[list[str], dict[str, EnvValue], str]:
    script = script_of(words)
    if script is None and len(words) == 1 and " " in words[0]:
        script = words[0]
    if script is not None:
        engines = find_engines(commands_in(script), environment)
        if not engines:
            raise ImportProblem(
                f"{container.path}: the script {' '.join(script.split())[:120]!r} starts no vLLM"
            )
        for what, why in engines[0].lost:
            container.draft.lose(what, why)
        return engines[0].argv, engines[0].environment, engines[0].dialect
    found = engine_in(words)
    if found is not None:
        return found.argv, {**environment, **found.environment}, found.dialect
    if words[:1] == ["serve"]:
        words = words[1:]
    return words, dict(environment), dialect


def read_env(container: Reader, key: str = "env") -> dict[str, EnvValue]:
    """The variables that a container lists."""
    environment: dict[str, EnvValue] = {}
    for item in container.each(key):
        name = item.text("name")
        if name is None:
            raise ImportProblem(f"{item.path}: a variable needs a name")
        source = item.below("valueFrom")
        secret = source.below("secretKeyRef")
        if "name" in secret:
            environment[name] = EnvValue(
                secret=(str(secret.take("name")), str(secret.take("key") or "token"))
            )
        elif kinds := [kind for kind in source.names() if kind in source]:
            told = [str(value) for _, value in leaves(source.take(kinds[0]), "")]
            environment[name] = EnvValue(other=" ".join((kinds[0], *told)))
        else:
            value = item.take("value")
            environment[name] = EnvValue(value="" if value is None else str(value))
        for part in (secret, source, item):
            part.leave("engine.env has a name, and a value or the key of a Secret")
    return environment


def write_resources(draft: Draft, container: Reader) -> None:
    resources = container.below("resources")
    for key in ("limits", "requests"):
        amounts = resources.below(key)
        for name in [name for name in amounts.names() if _DEVICE.search(name)]:
            write_devices(draft, name, amounts.take(name), amounts.at(name))
        amounts.leave(SIZES)
    resources.leave("device claims follow from the layout")


def write_devices(draft: Draft, name: str, count: Any, path: str) -> None:
    """Devices that a pod asks for; the layout decides how many there will be."""
    if count is None:
        return
    digits = str(count)
    if digits.isdigit():
        draft.gpus = int(digits)
    if "mig-" in name:
        draft.lose(f"{path}: {count}", "say the partition as a product in topology.gpuProducts")
    else:
        draft.lose(f"{path}: {count}", "the layout says how many GPUs a replica takes")


def write_placement(draft: Draft, pod: Reader) -> None:
    """Where the pod may run and who schedules it."""
    write_node_selector(draft, pod, "nodeSelector")
    _affinity(draft, pod)
    tolerations = pod.items("tolerations")
    if tolerations:
        draft.put("topology.tolerations", tolerations, f"{pod.at('tolerations')} ({len(tolerations)})")
    pod.put("priorityClassName", "scheduling.priorityClass")
    pod.put("schedulerName", "scheduling.schedulerName")
    pod.put("serviceAccountName", "scheduling.serviceAccount")
    secrets = [
        str(item["name"])
        for item in pod.items("imagePullSecrets")
        if isinstance(item, Mapping) and "name" in item
    ]
    if secrets:
        draft.put("engine.imagePullSecrets", secrets, f"{pod.at('imagePullSecrets')}: {', '.join(secrets)}")


def write_node_selector(draft: Draft, holder: Reader, key: str) -> None:
    selector = holder.below(key)
    for label in sorted(selector.names()):
        value = selector.text(label)
        what = f"{selector.at(label)}: {value}"
        if value is None:
            continue
        if label in _PRODUCTS:
            draft.put("topology.gpuProducts", [value], what)
        else:
            draft.put_group("topology.nodeSelector", {label: value}, what)


def _affinity(draft: Draft, pod: Reader) -> None:
    affinity = pod.below("affinity")
    node = affinity.below("nodeAffinity")
    required = node.below("requiredDuringSchedulingIgnoredDuringExecution")
    write_node_terms(draft, required.each("nodeSelectorTerms"))
    required.leave(_NOT_SAID)
    node.leave("preferences have no field; nodeSelector and gpuProducts bind")
    affinity.leave("Plimsoll spreads replicas by itself")


def write_node_terms(draft: Draft, terms: list[Reader]) -> None:
    """Required node terms: one term of one expression on the product is a list of products; others have no field."""
    for term in terms:
        for expression in term.each("matchExpressions"):
            key, operator = expression.text("key"), expression.text("operator")
            values = [str(value) for value in expression.items("values")]
            what = f"{term.path}: {key} {operator} {', '.join(values)}"
            if len(terms) == 1 and key in _PRODUCTS and operator == "In":
                draft.put("topology.gpuProducts", values, what)
            elif len(terms) == 1 and operator == "In" and len(values) == 1:
                draft.put_group("topology.nodeSelector", {str(key): values[0]}, what)
            else:
                draft.lose(what, _NOT_SAID)
            expression.leave(_NOT_SAID)
        term.leave(_NOT_SAID)
