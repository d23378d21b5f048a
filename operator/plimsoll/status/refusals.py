"""Why pods are not even made, in words that a person can act on: the API server refuses them to the controller that makes them.

The workload itself shows only that it has fewer replicas than it asks for. The API server's own sentence is kept, since it names the
quota, the limit or the field; what is added is the remedy.
"""

from __future__ import annotations

import re
from typing import Final

from plimsoll.facts.serving import SetSeen
from plimsoll.status.pod_words import PodWords, Waits

_PATCH: Final = "by spec.podPatches"


def refusal_words(seen: SetSeen) -> PodWords | None:
    """Why pods of a set are refused; None where none are, or where all pods are there by now."""
    if not seen.refused or not seen.missing:
        return None
    return words_of_refusal(seen.name, seen.refused)


def words_of_refusal(whose: str, text: str) -> PodWords:
    for pattern, reason, remedy, waits in _KNOWN:
        match = pattern.search(text)
        if match is not None:
            return PodWords(
                reason=reason,
                message=f"pods of {whose} are refused: {text}",
                remedy=remedy.format(*match.groups()),
                waits=waits,
            )
    return PodWords(
        reason="Refused",
        message=f"pods of {whose} are refused: {text}",
        remedy="kubectl get events --field-selector reason=FailedCreate shows each attempt",
    )


_KNOWN: Final[tuple[tuple[re.Pattern[str], str, str, Waits], ...]] = (
    (
        re.compile(r"exceeded quota: ([^,\s]+)"),
        "Quota",
        "raise ResourceQuota {0}, end something else in the namespace, or ask for fewer or smaller replicas",
        "quota",
    ),
    (
        re.compile(r"failed quota: ([^:\s]+): must specify ([^;\s]+)"),
        "QuotaNeedsValues",
        f"ResourceQuota {{0}} wants {{1}} on every container: give defaults by a LimitRange, or set it {_PATCH}",
        "nothing",
    ),
    (
        re.compile(
            r"(?:maximum|minimum) \S+ usage per \w+ is|limit to request ratio per|must be less than or equal to \w+ limit"
        ),
        "LimitRange",
        f"change the LimitRange of the namespace (kubectl describe limitrange), or what the pods ask for {_PATCH}",
        "nothing",
    ),
    (
        re.compile(r"violates PodSecurity \"([a-z]+)"),
        "PodSecurity",
        (
            "pods pass Pod Security restricted unless something is added: take back what podPatches, a volume or RDMA "
            "adds, or let the namespace have it by the label pod-security.kubernetes.io/enforce"
        ),
        "nothing",
    ),
    (
        re.compile(r"service ?account \S+ not found|service account .*\"([^\"]+)\" not found"),
        "NoServiceAccount",
        "make that ServiceAccount, or correct spec.scheduling.serviceAccount",
        "nothing",
    ),
    (
        re.compile(r"no PriorityClass with name (\S+) was found"),
        "NoPriorityClass",
        "make PriorityClass {0}, or correct spec.scheduling.priorityClass",
        "nothing",
    ),
    (
        re.compile(r"RuntimeClass \"?([^\s\"]+)\"? not found"),
        "NoRuntimeClass",
        f"make RuntimeClass {{0}}, or take it out {_PATCH}",
        "nothing",
    ),
    (
        re.compile(r"failed calling webhook \"([^\"]+)\""),
        "WebhookDown",
        "webhook {0} does not answer: look at the pods of its service, which its configuration names",
        "nothing",
    ),
    (
        re.compile(r"admission webhook \"([^\"]+)\" denied the request"),
        "WebhookDenied",
        "webhook {0} has a rule against it: ask who runs it, or change what it names",
        "nothing",
    ),
    (
        re.compile(r"ValidatingAdmissionPolicy '([^']+)'"),
        "PolicyDenied",
        "ValidatingAdmissionPolicy {0} has a rule against it: ask who keeps it, or change what it names",
        "nothing",
    ),
)
