"""What a deployment may not ask for: what the admin's lists do not allow, and flags that the plan itself decides.

`api.trust` judges by the admin's lists; the engine's data file says which flags Plimsoll writes. Where no admin's config is known, as
on a laptop, what the lists would have to allow is a warning and no error.
"""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.api.config import OperatorConfig
from plimsoll.api.trust import untrusted
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.facts.engines import EngineFacts
from plimsoll.planning.plan import Finding, Severity


def check_trust(
    spec: LLMDeploymentSpec, namespace: str, config: OperatorConfig | None, engine: EngineFacts
) -> Iterator[Finding]:
    yield from _apart(spec)
    yield from _owned_flags(spec, engine)
    for problem in untrusted(spec, namespace, config or OperatorConfig(), flags=engine.flags):
        yield Finding(
            severity=Severity.WARNING if config is None else Severity.ERROR,
            reason="NotTrusted",
            message=problem.message if config is not None else f"by the admin's defaults, {problem.message}",
            field=problem.field.removeprefix("spec."),
            value=problem.value,
            remedy=problem.cure.removeprefix("spec.") or "trust in the admin's config, or leave it out",
        )


def _apart(spec: LLMDeploymentSpec) -> Iterator[Finding]:
    """Each entry is one word for the engine, as no shell is between: of a flag with its value in one word the engine knows nothing."""
    for number, word in enumerate(spec.engine.extra_args):
        flag, _, rest = word.partition("=")[0].partition(" ")
        if not (flag.startswith("--") and rest.strip()):
            continue
        yield Finding(
            severity=Severity.ERROR,
            reason="FlagNotApart",
            message=f"{flag} and what follows it are one word there, and the engine looks for a flag of that whole name",
            field=f"engine.extraArgs[{number}]",
            value=flag,  # without its value, which may be a secret
            remedy=f"{flag} and its value as two entries, or as one with = between them",
        )


def _owned_flags(spec: LLMDeploymentSpec, engine: EngineFacts) -> Iterator[Finding]:
    for number, word in enumerate(spec.engine.extra_args):
        name = word.partition("=")[0]
        match = engine.flags.find(name) if word.startswith("-") else None
        if match is not None and match.flag.name in engine.profile.owned:
            yield Finding(
                severity=Severity.ERROR,
                reason="FlagOwned",
                message=f"{match.flag.name} is written by Plimsoll from the resource's own fields; a second one would "
                "contradict the plan",
                field=f"engine.extraArgs[{number}]",
                value=name,  # without its value, which may be a secret
                remedy="the field that `plimsoll import` makes of the flag",
            )
