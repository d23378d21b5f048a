"""What to do about an end, where more than one way leads to it."""

from __future__ import annotations

ASK_FOR_GPUS = "check the pod's GPU request and the device plugin: kubectl describe node"
SHOW_THE_GPUS = "take these variables out of spec.engine.env, or of the image: which GPUs a pod has, the node's device plugin says"
OPEN_THE_DEVICES = (
    "let the node's device plugin bring all of them, and the pod be of the group that owns them on the node (ls -ln): "
    "spec.podPatches at /spec/securityContext/supplementalGroups"
)
CORDON_THE_NODE = "cordon the node (kubectl cordon) until nvidia-smi there shows this GPU again; dmesg may say why it does not"
FREE_THE_GPU = "end what else uses this GPU (nvidia-smi on the node), or lower spec.memory.utilizationPercent"
LARGER_SHARED_MEMORY = (
    "a larger memory-backed volume at /dev/shm (spec.podPatches); Kubernetes gives 64 MiB without one"
)
LARGER_DISK = "a larger spec.storage.weights or spec.storage.cache"
WRITABLE_FOLDER = (
    "a volume there that the pod's user may write: spec.storage.cache, or fsGroup by spec.podPatches"
)
MORE_HOST_MEMORY = (
    "a smaller spec.memory.kvOffload or spec.memory.cpuOffload, or a larger memory limit by spec.podPatches"
)
FETCH_AGAIN = "fetch the weights again, or correct spec.model.source and spec.model.revision"
