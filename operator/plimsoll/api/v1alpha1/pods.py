"""What a user may say about the pods themselves: a bounded list of patches in place of a pod template."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, JsonValue

from plimsoll.api.base import ApiModel, LabelName, LabelValue, ObjectName, Rule, field


class PodPatch(ApiModel):
    """One JSON patch (RFC 6902) on the pod that Plimsoll renders, applied last and checked against the admin's lists."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="patch-value",
            cel="(self.op == 'remove') != has(self.value)",
            holds=lambda m: (m.op == "remove") != ("value" in m.model_fields_set),
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
            cel="!self.path.contains('hostPath')",
            holds=lambda m: "hostPath" not in m.path and not _mentions(m.value, "hostPath"),
            message="hostPath volumes are not offered; use spec.storage with a claim",
            field="path",
        ),
    )

    op: Literal["add", "replace", "remove", "test"] = Field(description="Operation.")
    path: Annotated[str, Field(min_length=2, max_length=512, pattern=r"^/[!-~]+$")] = Field(
        description="JSON pointer into the pod: /spec/..., /metadata/labels/... or /metadata/annotations/..."
    )
    value: JsonValue = Field(default=None, description="The value, in the form of the Kubernetes field.")


def _mentions(value: Any, key: str) -> bool:
    if isinstance(value, dict):
        return key in value or any(_mentions(item, key) for item in value.values())
    if isinstance(value, list):
        return any(_mentions(item, key) for item in value)
    return False


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
