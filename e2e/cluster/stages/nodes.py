"""Stages of simulated nodes: ready as soon as registered, and reclaimed where they are a cloud's spare capacity.

A node that is lost is none of these: its kubelet stops answering, which is `simulator`'s to do.
"""

from __future__ import annotations

import json
from typing import Final

from cluster.stages.stage import Event, Stage

RECLAIM_TAINT: Final = "karpenter.sh/disrupted"

CONDITIONS: Final = (
    {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
    },
    {
        "type": "MemoryPressure",
        "status": "False",
        "reason": "KubeletHasSufficientMemory",
        "message": "kubelet has sufficient memory available",
    },
    {
        "type": "DiskPressure",
        "status": "False",
        "reason": "KubeletHasNoDiskPressure",
        "message": "kubelet has no disk pressure",
    },
    {
        "type": "PIDPressure",
        "status": "False",
        "reason": "KubeletHasSufficientPID",
        "message": "kubelet has sufficient PID available",
    },
)
_READY: Final = "{{ $now := Now | Quote }}\nconditions:\n" + "".join(
    f"- {json.dumps(one)[:-1]}, lastHeartbeatTime: {{{{ $now }}}}, lastTransitionTime: {{{{ $now }}}}}}\n"
    for one in CONDITIONS
)
_ANNOUNCED: Final = f"""
{{{{ $notice := or (index .metadata.labels "e2e.plimsoll.dev/reclaim-notice") "2m" }}}}
metadata:
  annotations:
    e2e.plimsoll.dev/reclaimed-at: {{{{ now | dateModify (print "+" $notice) | date "2006-01-02T15:04:05Z07:00" | Quote }}}}
spec:
  taints:
  {{{{ range .spec.taints }}}}
  - {{{{ toJson . }}}}
  {{{{ end }}}}
  - {{key: {RECLAIM_TAINT}, effect: NoSchedule}}
"""

NODE_STAGES: Final = (
    Stage(kind="Node", name="ready", status=_READY),
    Stage(
        kind="Node",
        name="reclaim-announced",
        events=(Event("Warning", "SpotInterrupted", '"Spot interruption warning was triggered"'),),
        change=_ANNOUNCED,
    ),
    Stage(kind="Node", name="reclaimed", delete=True),
)
