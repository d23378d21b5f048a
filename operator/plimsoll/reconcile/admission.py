"""Whether a resource may be stored: the verdict for the optional admission webhook.

Pure. It plans with the same function as a turn does, so it turns down what a turn would only tell of in conditions, and the user
hears it at once. An edit is not to blame for errors that were there before it, and what may pass without an edit (no nodes yet, a
hub that does not answer, GPUs in use) is a warning. The user's own rights are judged only here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from plimsoll.api.named import accounts_of, secrets_of, tokens_of
from plimsoll.api.problems import show
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.facts.gpus import Vendor
from plimsoll.facts.inventory import Inventory
from plimsoll.planning.placing.placement import pool_devices
from plimsoll.planning.plan import Finding, Plan, Severity
from plimsoll.status.findings import sentence

LONGEST_WARNING: Final = 250
"""Clients cut what is longer than 256 bytes."""
MOST_WARNINGS: Final = 8
HEALING: Final = frozenset({"ModelReading", "ModelUnreadable"})
"""Errors that may pass without an edit."""
OF_USERS_RIGHTS: Final = frozenset({"NotTrusted", "Forbidden"})
OF_ADMINS_FILE: Final = ("prices.", "budgets.")


@dataclass(frozen=True, slots=True)
class Named:
    """A Secret, a ServiceAccount or a token of one that a resource hands to its pods."""

    field: str
    plural: str
    name: str


@dataclass(frozen=True, slots=True)
class Verdict:
    problems: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    forbidden: bool = False
    """Whether it is refused for lack of a right, and not since it cannot be planned."""

    @property
    def allowed(self) -> bool:
        return not self.problems


def newly_named(deployment: LLMDeployment, before: LLMDeployment | None) -> tuple[Named, ...]:
    """What the user must have a right to. What the resource named before the edit is not asked about again."""
    known = set() if before is None else {(one.plural, one.name) for one in _named(before)}
    return tuple(one for one in _named(deployment) if (one.plural, one.name) not in known)


def _named(deployment: LLMDeployment) -> Iterator[Named]:
    for field, name in secrets_of(deployment.spec):
        yield Named(field, "secrets", name)
    account = deployment.name
    for field, account in accounts_of(deployment.spec):
        yield Named(field, "serviceaccounts", account)
    for field in tokens_of(deployment.spec):
        yield Named(field, "serviceaccounts/token", account)


def forbidden(user: str, namespace: str, lacking: Sequence[Named]) -> tuple[Finding, ...]:
    """What the user hands on without having a right to it."""
    return tuple(
        Finding(
            severity=Severity.ERROR,
            reason="Forbidden",
            message=f"{show(user)} may neither {_RIGHTS[one.plural]} nor create pods in {namespace}, and so may not hand it "
            f"to a model's pods",
            field=one.field.removeprefix("spec."),
            value=show(one.name),
            remedy=f"the right to {_RIGHTS[one.plural]}, or somebody who has it applies this",
        )
        for one in lacking
    )


_RIGHTS: Final = {
    "secrets": "get this Secret",
    "serviceaccounts": "impersonate this ServiceAccount",
    "serviceaccounts/token": "create a token of this ServiceAccount",
}


def judged(
    plan: Plan,
    inventory: Inventory,
    *,
    on_cpu: bool = False,
    before: Plan | None = None,
    rights: Sequence[Finding] = (),
) -> Verdict:
    """The verdict on a plan.

    `on_cpu`: the resource asks for CPUs and not for GPUs. `before` is the plan of the resource as it was before the edit; it is needed
    only where the new plan has errors.
    """
    old = set() if before is None else {_mark(found) for found in before.findings}
    errors = [found for found in plan.findings if found.severity is Severity.ERROR]
    held = [found for found in errors if not _heals(found, inventory, on_cpu) and _mark(found) not in old]
    refused = [*rights, *held]
    told = [found for found in errors if found not in held]
    told += [
        found
        for found in plan.findings
        if found.severity is Severity.WARNING and not (found.field or "").startswith(OF_ADMINS_FILE)
    ]
    return Verdict(
        problems=tuple(sentence(found) for found in refused),
        warnings=tuple(_short(sentence(found)) for found in told[:MOST_WARNINGS]),
        forbidden=any(found.reason in OF_USERS_RIGHTS for found in refused),
    )


def unjudged(plan: Plan, why: str) -> Plan:
    """A plan that was judged without the model's facts, as they took too long: a warning says so, and the source is not blamed."""
    told = Finding(
        severity=Severity.WARNING,
        reason="NotJudged",
        message=f"{why}, so whether it fits is told by its conditions alone",
    )
    findings = [told if found.reason == "ModelUnreadable" else found for found in plan.findings]
    return replace(plan, findings=tuple(findings))


def has_errors(plan: Plan) -> bool:
    return any(found.severity is Severity.ERROR for found in plan.findings)


def _heals(found: Finding, inventory: Inventory, on_cpu: bool) -> bool:
    """Whether an error may pass without an edit. A fleet without any device that takes pods may get some; but where there are devices and none
    of them will do, only an edit helps."""
    asked = (pool for pool in inventory.pools if (pool.gpu.vendor is Vendor.CPU) is on_cpu)
    return found.reason in HEALING or (found.reason == "NoGPUs" and not any(map(pool_devices, asked)))


def _mark(found: Finding) -> tuple[str, str | None, str | None]:
    """What an error is recognised by; its message may hold figures that change."""
    return found.reason, found.field, found.value


def _short(text: str) -> str:
    cut = text.encode()
    if len(cut) <= LONGEST_WARNING:
        return text
    return cut[: LONGEST_WARNING - len("…".encode())].decode(errors="ignore") + "…"
