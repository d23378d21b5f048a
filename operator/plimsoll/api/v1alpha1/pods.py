"""What a user may say about the pods themselves: a bounded list of patches in place of a pod template."""

import math
import re
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import AfterValidator, Field

from plimsoll.api.base import ApiModel, LabelName, LabelValue, ObjectName, Rule, field
from plimsoll.api.plainjson import parsed
from plimsoll.api.plainyaml import MAX_DEPTH, nesting

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')


def _check_json(text: str) -> str:
    # Whoever reads, freezes or writes a value goes down it level by level. A pod has less than twenty.
    if (levels := nesting(_STRING.sub("", text))) > MAX_DEPTH:
        raise ValueError(f"{levels} levels deep; {MAX_DEPTH} are allowed, and a pod has fewer")
    try:
        value = parsed(text)
    except ValueError as error:
        raise ValueError(
            "not JSON text; write a string with its quotes, as '\"64Gi\"', or an object"
        ) from error
    # Python reads them all the same, and no pod can be written down with one.
    if not _is_finite(value):
        raise ValueError(
            "holds a number that JSON cannot say: NaN, or one that is too large; write one as 1.5"
        )
    return text


def _is_finite(value: Any) -> bool:
    match value:
        case float():
            return math.isfinite(value)
        case dict():
            return all(map(_is_finite, value.values()))
        case list():
            return all(map(_is_finite, value))
    return True


class PodPatch(ApiModel):
    """One JSON patch (RFC 6902) on the rendered pod, applied last and checked against the admin's lists."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="patch-value",
            cel="(self.op == 'remove') != has(self.value)",
            holds=lambda m: (m.op == "remove") != (m.value is not None),
            message="value must be set for add, replace and test, and must be absent for remove",
            field="value",
        ),
        Rule(
            name="patch-path",
            cel="self.path.startsWith('/spec/') || self.path.startsWith('/metadata/labels/') || "
            "self.path.startsWith('/metadata/annotations/')",
            holds=lambda m: m.path.startswith(("/spec/", "/metadata/labels/", "/metadata/annotations/")),
            message="path must begin with /spec/, /metadata/labels/ or /metadata/annotations/",
            field="path",
        ),
        Rule(
            name="patch-no-host-path",
            cel="!self.path.contains('hostPath') && (!has(self.value) || !self.value.contains('hostPath'))",
            holds=lambda m: "hostPath" not in m.path and "hostPath" not in (m.value or ""),
            message="hostPath volumes are not offered; use spec.storage with a claim",
            field="path",
        ),
        Rule(
            name="patch-no-escapes",
            cel="!has(self.value) || !self.value.contains('\\\\u')",
            holds=lambda m: "\\u" not in (m.value or ""),
            message="value must not spell characters as \\u....; write them as they are",
            field="value",
        ),
    )

    op: Literal["add", "replace", "remove", "test"] = Field(description="Operation.")
    path: Annotated[str, Field(min_length=2, max_length=512, pattern=r"^/[!-~]+$")] = Field(
        description="JSON pointer into the pod: /spec/..., /metadata/labels/... or /metadata/annotations/..."
    )
    value: Annotated[str, Field(min_length=1, max_length=8192), AfterValidator(_check_json)] | None = field(
        "The value as JSON text, in the form of the Kubernetes field."
    )


class Scheduling(ApiModel):
    """Who schedules the pods, in which order, from which quota."""

    priority_class: ObjectName | None = field("PriorityClass of the pods.")
    queue: Annotated[LabelValue, Field(min_length=1)] | None = field(
        "Kueue LocalQueue from which the pods are admitted."
    )
    scheduler_name: LabelName | None = field("Scheduler. Absent: the cluster's default.")
    service_account: ObjectName | None = field(
        "ServiceAccount of the pods, where the admin allows it. Absent: one without rights, made by Plimsoll."
    )
