"""What kwok plays: how simulated nodes and the pods on them behave, in health and in each kind of failure.

A stage is one change of state. Which comes next follows from the object alone (`pods.jq`, `nodes.jq`), so kwok may be ended and
started at any time. What a pod is to do is said by its annotations, or for all pods of a node by the node's labels (`habits`).
"""

from __future__ import annotations

import json

from cluster.stages.habits import Habits, stage_of
from cluster.stages.nodes import NODE_STAGES
from cluster.stages.pods import POD_STAGES


def config(habits: Habits) -> str:
    """The file that kwok is started with: JSON documents, which are YAML too."""
    documents = [*(one.document() for one in (*NODE_STAGES, *POD_STAGES)), *stage_of(habits)]
    return "".join(f"---\n{json.dumps(one, indent=1)}\n" for one in documents)
