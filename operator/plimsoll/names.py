"""Every name that leaves the program: API group, labels, annotations, field managers, condition types.

One small module, so that a name is spelled once and can be searched for. It holds no logic beyond the
arithmetic of name lengths and imports nothing; what the names mean is said where they are used.
"""

from typing import Final

GROUP: Final = "plimsoll.dev"
VERSION: Final = "v1alpha1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KIND: Final = "LLMDeployment"
PLURAL: Final = "llmdeployments"
SINGULAR: Final = "llmdeployment"
SHORT_NAME: Final = "llm"
CATEGORY: Final = "plimsoll"
CRD_NAME: Final = f"{PLURAL}.{GROUP}"
CONFIG_KIND: Final = "OperatorConfig"

LABEL_NAME: Final = "app.kubernetes.io/name"
LABEL_INSTANCE: Final = "app.kubernetes.io/instance"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
OPERATOR: Final = "operator"
"""The operator's own pods have this as their component, a label that other projects use too, and as their role, a label that only we use."""
LABEL_MANAGED_BY: Final = "app.kubernetes.io/managed-by"
MANAGED_BY: Final = "plimsoll"
LABEL_DEPLOYMENT: Final = f"{GROUP}/deployment"
LABEL_SET: Final = f"{GROUP}/set"
LABEL_ROLE: Final = f"{GROUP}/role"
"""What a pod is there for: SERVING, FACTS (these two are watched separately), or OPERATOR on the operator's own pods."""
SERVING: Final = "serving"
FACTS: Final = "facts"
LABEL_LEADER: Final = f"{GROUP}/leader"
LABEL_GROUP: Final = f"{GROUP}/group"
"""Number of the replica, on the objects and pods of a replica that has several pods; a pod's rank is LABEL_RANK's value."""
LABEL_RANK: Final = "apps.kubernetes.io/pod-index"
"""The label that Kubernetes itself sets on every pod of a StatefulSet: a group's leader is 0, its workers are counted from 1."""
LABEL_POOL: Final = f"{GROUP}/pool"

ANNOTATION_HASH: Final = f"{GROUP}/hash"
ANNOTATION_REPLAN: Final = f"{GROUP}/replan"
ANNOTATION_RESET: Final = f"{GROUP}/clear-autotune-pause"
ANNOTATION_WAKE: Final = f"{GROUP}/wake"
ANNOTATION_RAMP: Final = f"{GROUP}/ramp"
"""What a ramp measured, handed in to be learned from."""
ANNOTATION_FAILED: Final = f"{GROUP}/failed"
"""On the revision of a set that was given up: why it was. Such a set is not started again."""
ANNOTATION_ADMINS_IMAGE: Final = f"{GROUP}/admins-image"
"""On the revision of a set that runs an admin's image which the operator may replace: the name of that image."""
ANNOTATION_GROUP_RESTARTS: Final = f"{GROUP}/group-restarts"
"""On the revision of a set that a LeaderWorkerSet carries: its restart policy, where that is not `RecreateGroupOnPodRestart`."""
ANNOTATION_TURN: Final = f"{GROUP}/turn"
"""On the pinned plan: the digest of everything that the last turn left behind. As long as it is the same, there is nothing to do."""
ANNOTATION_PLAN_DIGEST: Final = f"{GROUP}/plan-digest"
ANNOTATION_TICKET: Final = f"{GROUP}/ticket"
"""On a pod that reads a model: the name of this reading."""
ANNOTATION_ATTEMPT: Final = f"{GROUP}/attempt"
"""On a pod that reads a model: which attempt at this reading it is, counted from 1."""
ANNOTATION_WATCHES: Final = f"{GROUP}/watches"
"""On the Lease: which namespaces its holder watches, in words."""
ANNOTATION_UNTIL_READY: Final = f"{GROUP}/until-ready"
"""On a pod that has the annotations STAY only while it loads: the operator removes this and those once the pod is ready."""
STAY: Final = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
}
"""Annotations by which a pod asks the nodes' autoscalers not to take its node away."""
LABEL_QUEUE: Final = "kueue.x-k8s.io/queue-name"
"""Kueue's: the LocalQueue from which a workload's pods are admitted."""
OWNED_PREFIXES: Final = (f"{GROUP}/", "app.kubernetes.io/", "kubernetes.io/", "k8s.io/")

MANAGER_CHILDREN: Final = "plimsoll"
MANAGER_STATUS: Final = "plimsoll-status"
LEASE: Final = "plimsoll-operator"
LEARNED: Final = "plimsoll-learned"
LEARNED_SEED: Final = "plimsoll-learned-seed"
LEARNED_KEY: Final = "learned.json"
PLAN_KEY: Final = "plan.json"
"""Key, in the plan's ConfigMap, of the whole pinned plan."""

# Condition types. What each one says, and its reasons, stand in api/conditions.py.
READY: Final = "Ready"
RECONCILING: Final = "Reconciling"
STALLED: Final = "Stalled"
FITS: Final = "Fits"
PLACED: Final = "Placed"
PROGRESSING: Final = "Progressing"
DEGRADED: Final = "Degraded"
MODEL_FACTS: Final = "ModelFacts"
BETTER_PLAN: Final = "BetterPlanAvailable"
METRICS: Final = "MetricsAvailable"
SCALING: Final = "ScalingLimited"
SLO: Final = "SLOAttainable"
AUTOSCALER_CONFLICT: Final = "AutoscalerConflict"
AUTOTUNE_PAUSED: Final = "AutotunePaused"
RETUNING: Final = "Retuning"

# Names are capped so that everything made from one fits a DNS label of 63 characters:
#
#   a pod of a Deployment      NAME-hhhhhhhh-tttttttttt-xxxxx   8 hash, 10 template hash, 5 random: 26 more
#   a group's controller       NAME-hhhhhhhh-RRR                3 digits of the replica: 13 more, and its
#     revision label           NAME-hhhhhhhh-RRR-tttttttttt     10 of revision hash: 24 more
#   the workers of a group     NAME-hhhhhhhh-RRR-w-tttttttttt   2 more for their controller: 26 more
#   a pod of a group           NAME-hhhhhhhh-RRR-w-PPP          3 digits of the rank: 19 more
#   a facts pod                NAME-facts-hhhhhhhh              15 more
#   a Service, ConfigMap, ...  NAME-SUFFIX                      at most 10 more
#
# The longest takes 26, which leaves 37 for the name itself.
LABEL_MAX: Final = 63
SET_HASH_LENGTH: Final = 8
TEMPLATE_HASH_LENGTH: Final = 10
POD_SUFFIX_LENGTH: Final = 5
REPLICA_DIGITS: Final = 3
RANK_DIGITS: Final = 3
MAX_REPLICAS: Final = 10**REPLICA_DIGITS
MAX_GROUP: Final = 10**RANK_DIGITS
WORKERS: Final = "-w"
CHILD_SUFFIXES: Final = ("headless", "plan", "adapters", "netpol", "route", "weights", "cache")

_SET: Final = 1 + SET_HASH_LENGTH
LONGEST_SUFFIX: Final = max(
    _SET + 1 + TEMPLATE_HASH_LENGTH + 1 + POD_SUFFIX_LENGTH,
    _SET + 1 + REPLICA_DIGITS + len(WORKERS) + 1 + TEMPLATE_HASH_LENGTH,
    _SET + 1 + REPLICA_DIGITS + len(WORKERS) + 1 + RANK_DIGITS,
    1 + len(FACTS) + _SET,
    *(1 + len(suffix) for suffix in CHILD_SUFFIXES),
)
NAME_MAX: Final = LABEL_MAX - LONGEST_SUFFIX


def set_name(deployment: str, digest: str) -> str:
    """The name of a serving set: the deployment's name and the head of the set's digest."""
    return f"{deployment}-{digest[:SET_HASH_LENGTH]}"


def group_name(set_: str, replica: int) -> str:
    """The name of one replica that spans nodes: its set's name and its number."""
    return f"{set_}-{replica}"


def workers_name(set_: str, replica: int) -> str:
    """The name of the object that holds the workers of a replica that spans nodes."""
    return f"{group_name(set_, replica)}{WORKERS}"


def facts_pod_name(deployment: str, digest: str) -> str:
    """The name of a pod that reads a model."""
    return f"{deployment}-{FACTS}-{digest[:SET_HASH_LENGTH]}"


def child_name(deployment: str, suffix: str) -> str:
    """The name of an object of which a deployment has exactly one."""
    if suffix not in CHILD_SUFFIXES:
        raise ValueError(f"{suffix!r} is no known suffix; the name budget counts {', '.join(CHILD_SUFFIXES)}")
    return f"{deployment}-{suffix}"
