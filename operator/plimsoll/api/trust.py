"""What a deployment names against what the admin allows: code, images, arguments, variables, secrets, patches.

Pure and complete for what the admin's file can say. Which flags belong to Plimsoll is the engine's knowledge and is
checked with it; what the user's own rights are is asked of the API server by admission.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Final

from plimsoll.api.config import OperatorConfig
from plimsoll.api.config_trust import AllowDeny, NamedInNamespace
from plimsoll.api.named import accounts_of, brought, secrets_of
from plimsoll.api.problems import Problem, show
from plimsoll.api.v1alpha1.source import with_scheme
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec

# vLLM before 0.18 ran code of a model's repository although it was told not to (CVE-2026-22807, CVE-2026-27893).
LEAST_ENGINE_VERSION: Final = "0.18.0"

_TAG: Final = re.compile(r"vllm[^/:@]*:v?([0-9]+\.[0-9]+(?:\.[0-9]+)?)")
"""The engine's release in the tag of an image that bears its name."""

_NOWHERE: Final = ""
_PROXY: Final = "network in the admin's config"

# Variables that redirect what is loaded or where traffic goes, each with the field that says the same where there is one; no list of the
# admin's lets them pass.
DENIED_ENV: Final[Mapping[str, str]] = {
    "ALL_PROXY": _PROXY,
    "HF_ENDPOINT": f"{_PROXY} (hubEndpoint)",
    "HF_TOKEN": "spec.model.tokenSecret",
    "HTTPS_PROXY": _PROXY,
    "HTTP_PROXY": _PROXY,
    "KUBERNETES_*": _NOWHERE,
    "LD_*": _NOWHERE,
    "NO_PROXY": _PROXY,
    "PATH": _NOWHERE,
    "PYTHON*": _NOWHERE,
    "VLLM_API_KEY": "spec.networking.apiKeySecret",
    "VLLM_SERVER_DEV_MODE": _NOWHERE,
}

# Fields of a pod that weaken its isolation, or give it an identity (what a CSI driver mounts may be a secret of any store); a pattern
# must name them to let them pass.
GUARDED_FIELDS: Final = frozenset({
    "allowPrivilegeEscalation", "automountServiceAccountToken", "capabilities", "csi", "ephemeralContainers", "flexVolume",
    "hostIPC", "hostNetwork", "hostPID", "hostPath", "hostPort", "hostUsers", "initContainers", "nodeName", "podCertificate",
    "privileged", "procMount", "runtimeClassName", "securityContext", "serviceAccount", "serviceAccountName",
    "serviceAccountToken", "shareProcessNamespace",
})  # fmt: skip


def untrusted(
    spec: LLMDeploymentSpec, namespace: str, config: OperatorConfig, *, flags: Collection[str] = ()
) -> tuple[Problem, ...]:
    """Everything in a deployment that the admin's config does not allow; flags are those that the engine knows."""
    return (
        *_remote_code(spec, config),
        *_engine(spec, config),
        *_arguments(spec, config, flags),
        *_variables(spec, config),
        *_patches(spec, config),
        *_names(spec, namespace, config),
    )


def passes(text: str, lists: AllowDeny) -> bool:
    """Whether a text passes a pair of lists: allowed (by an empty list: all) and not denied."""
    allowed = not lists.allow or any(fnmatchcase(text, pattern) for pattern in lists.allow)
    return allowed and not any(fnmatchcase(text, pattern) for pattern in lists.deny)


def _remote_code(spec: LLMDeploymentSpec, config: OperatorConfig) -> Iterator[Problem]:
    if not spec.model.trust_remote_code:
        return
    source = with_scheme(spec.model.source)
    entries = [entry for entry in config.trust.remote_code if fnmatchcase(source, entry.source)]
    if any(entry.revision in (None, spec.model.revision) for entry in entries):
        return
    if entries:
        pins = ", ".join(str(entry.revision) for entry in entries)
        yield Problem(
            "spec.model.revision", show(spec.model.revision or ""), f"code of {source} may run only at {pins}"
        )
    else:
        yield Problem(
            "spec.model.trustRemoteCode", "true", f"the admin's trust.remoteCode does not list {source}"
        )


def _engine(spec: LLMDeploymentSpec, config: OperatorConfig) -> Iterator[Problem]:
    image, version = spec.engine.image, spec.engine.version
    if image is not None and not any(fnmatchcase(image, pattern) for pattern in config.trust.images):
        yield Problem("spec.engine.image", show(image), "the admin's trust.images does not allow it")
    least = config.trust.least_engine_version or LEAST_ENGINE_VERSION
    tagged = _TAG.search(image or "")
    # What is in the image runs, whatever version the resource says.
    if tagged is not None and _release(tagged[1]) < _release(least):
        yield Problem(
            "spec.engine.image",
            show(image),
            f"must hold at least {least}, by its tag: older ones are not safe",
        )
    said = version or (config.engines.default_version if image is None else None)
    if said is not None and _release(said) < _release(least):
        of_admin = "" if version is not None else "the admin's engines.defaultVersion "
        yield Problem(
            "spec.engine.version", show(said), f"{of_admin}must be at least {least}: older ones are not safe"
        )
    if version is None:
        return
    listed = [entry.version for entry in config.engines.versions]
    if listed and image is None and version not in listed:
        yield Problem(
            "spec.engine.version", show(version), f"must be one of the admin's: {', '.join(listed)}"
        )


def _release(version: str) -> tuple[int, ...]:
    numbers = [part for part in version.split(".")[:3] if part.isdigit()]
    return tuple(int(part) for part in (*numbers, "0", "0"))[:3]


def _arguments(spec: LLMDeploymentSpec, config: OperatorConfig, flags: Collection[str]) -> Iterator[Problem]:
    lists = config.trust.extra_args
    for number, word in enumerate(spec.engine.extra_args):
        name = word.partition("=")[0].partition(".")[0].replace("_", "-")
        if not name.startswith("-") or name.lstrip("-")[:1].isdigit():
            continue
        if _may_mean(name, "--trust-remote-code", flags):
            message = "use spec.model.trustRemoteCode"
        elif (lists.allow or lists.deny) and not name.startswith("--"):
            message = (
                "write the flag's long name, so that it can be compared with the admin's trust.extraArgs"
            )
        elif not passes(name, lists) or any(_may_mean(name, pattern, flags) for pattern in lists.deny):
            message = "the admin's trust.extraArgs does not allow it"
        else:
            continue
        # Without its value, which may be a secret, also where it is in the same word.
        yield Problem(f"spec.engine.extraArgs[{number}]", show(name.partition(" ")[0]), message)


def _may_mean(name: str, flag: str, flags: Collection[str]) -> bool:
    """Engines take unambiguous beginnings for the whole flag, so an unknown name may be a known one cut short."""
    return name == flag or (name not in flags and flag.startswith(name))


def _variables(spec: LLMDeploymentSpec, config: OperatorConfig) -> Iterator[Problem]:
    for number, variable in enumerate(spec.engine.env):
        field = f"spec.engine.env[{number}].name"
        denied = next(
            (pattern for pattern in DENIED_ENV if fnmatchcase(variable.name.upper(), pattern)), None
        )
        if denied is not None:
            instead = DENIED_ENV[denied]
            why = f"{instead} says it" if instead else "it redirects code or traffic"
            yield Problem(field, show(variable.name), f"is never passed on: {why}", instead or "leave it out")
        elif not passes(variable.name, config.trust.env):
            yield Problem(field, show(variable.name), "the admin's trust.env does not allow it")


def _patches(spec: LLMDeploymentSpec, config: OperatorConfig) -> Iterator[Problem]:
    lists = config.trust.pod_patches
    for number, patch in enumerate(spec.pod_patches):
        field = f"spec.podPatches[{number}].path"
        if lists is None:
            yield Problem(
                field, show(patch.path), "the admin's config has no trust.podPatches, so none are allowed"
            )
            continue
        for path, _ in brought(patch):
            guarded = next((part for part in path.split("/") if part in GUARDED_FIELDS), None)
            if not passes(path, lists):
                yield Problem(field, show(path), "the admin's trust.podPatches does not allow it")
            elif guarded and not any(
                guarded in pattern and fnmatchcase(path, pattern) for pattern in lists.allow
            ):
                yield Problem(
                    field, show(path), f"the admin's trust.podPatches must name {guarded} to allow it"
                )
            else:
                continue
            break


def _names(spec: LLMDeploymentSpec, namespace: str, config: OperatorConfig) -> Iterator[Problem]:
    if config.trust.secrets:
        for field, name in secrets_of(spec):
            if not _listed(name, namespace, config.trust.secrets):
                yield Problem(
                    field, show(name), f"the admin's trust.secrets does not list it for {namespace}"
                )
    for field, name in accounts_of(spec):
        if not _listed(name, namespace, config.trust.service_accounts):
            yield Problem(
                field, show(name), f"the admin's trust.serviceAccounts does not list it for {namespace}"
            )


def _listed(name: str, namespace: str, entries: tuple[NamedInNamespace, ...]) -> bool:
    return any(
        fnmatchcase(namespace, entry.namespace) and any(fnmatchcase(name, pattern) for pattern in entry.names)
        for entry in entries
    )
