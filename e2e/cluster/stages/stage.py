"""A stage as a value, and as the document that kwok reads."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

Document = dict[str, Any]
HERE: Final = Path(__file__).parent

EVENT: Final = """
apiVersion: v1
kind: Event
metadata: {generateName: {{ printf "%%s." .metadata.name | Quote }}, namespace: {{ or .metadata.namespace "default" | Quote }}}
involvedObject:
  apiVersion: v1
  kind: %(kind)s
  name: {{ .metadata.name | Quote }}
  namespace: {{ or .metadata.namespace "" | Quote }}
  uid: {{ .metadata.uid | Quote }}
type: %(type)s
reason: %(reason)s
message: {{ %(message)s | Quote }}
firstTimestamp: {{ now | date "2006-01-02T15:04:05Z07:00" | Quote }}
lastTimestamp: {{ now | date "2006-01-02T15:04:05Z07:00" | Quote }}
count: 1
source: {component: kubelet, host: {{ or .spec.nodeName .metadata.name | Quote }}}
reportingComponent: kubelet
reportingInstance: {{ or .spec.nodeName .metadata.name | Quote }}
"""


@dataclass(frozen=True, slots=True)
class Event:
    """What the kubelet would tell beside the status."""

    type: Literal["Normal", "Warning"]
    reason: str
    message: str
    """An expression of a Go template over the object."""

    def document(self, kind: str) -> Document:
        said = {"kind": kind, "type": self.type, "reason": self.reason, "message": self.message}
        return {"apply": {"template": EVENT % said}}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One change of state. It plays when the program of its kind answers with its name."""

    kind: Literal["Pod", "Node"]
    name: str
    events: tuple[Event, ...] = ()
    change: str = ""
    """Template of a patch of the object itself."""
    status: str = ""
    """Template of a patch of its status."""
    delete: bool = False

    def document(self) -> Document:
        ask = (HERE / f"{self.kind.lower()}s.jq").read_text()
        return {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "Stage",
            "metadata": {"name": f"{self.kind.lower()}-{self.name}"},
            "spec": {
                "resourceRef": {"apiGroup": "v1", "kind": self.kind},
                "selector": {
                    "matchExpressions": [
                        {"jq": {"key": f"{ask} | .stage", "operator": "In", "values": [self.name]}}
                    ]
                },
                "delay": {"durationMilliseconds": 0, "durationFrom": {"jq": {"expression": f"{ask} | .due"}}},
                "steps": self._steps(),
            },
        }

    def _steps(self) -> list[Document]:
        steps = [event.document(self.kind) for event in self.events]
        if self.change:
            steps.append({"patch": {"template": self.change}})
        if self.status:
            steps.append({"patch": {"subresource": "status", "root": "status", "template": self.status}})
        if self.delete:
            steps.append({"delete": True})
        return steps
