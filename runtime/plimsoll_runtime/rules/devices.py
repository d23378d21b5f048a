"""GPUs, their driver, and the way between them."""

from __future__ import annotations

from plimsoll_runtime.remedies import ASK_FOR_GPUS
from plimsoll_runtime.rules.rule import rule

DEVICES = (
    rule(
        "GpuFault",
        r"uncorrectable (?:ECC|NVLink) error|illegal memory access|device-side assert"
        r"|CUDA error: (?:unspecified launch failure|an illegal instruction|misaligned address|hardware stack error)",
        "the GPU reports a fault: {line}",
        "look at the node's GPU (nvidia-smi -q, dmesg); cordon the node if it happens again",
    ),
    rule(
        "GpuFault",
        r"device\(s\) is/are busy or unavailable",
        "the GPU lets nobody in, since another process has it for itself or it fails: {line}",
        "see on the node who holds the GPU (nvidia-smi) and set its compute mode to Default; cordon the node only if nobody holds it",
    ),
    rule(
        "Driver",
        r"system not yet initialized",
        "the node's GPUs wait for a service of their driver: {line}",
        "start nvidia-fabricmanager on the node, or choose other nodes by spec.topology.nodeSelector",
    ),
    rule(
        "Driver",
        r"driver on your system is too old|driver version is insufficient|no CUDA-capable device|Found no NVIDIA driver"
        r"|Failed to infer device type|libcuda\.so|CUDA driver initialization failed|CUDA unknown error"
        r"|forward compatibility was attempted|PTX was compiled with an unsupported toolchain",
        "the engine finds no usable GPU driver: {line}",
        "update the node's driver, or choose other nodes by spec.topology.nodeSelector",
    ),
    rule(
        "GpuTooOld",
        r"not supported for the current GPU|only supported on GPUs with compute capability|Min(?:imum)? capability",
        "this GPU is too old for what is asked of it: {line}",
        "another precision (spec.quantization) or a newer class of GPU (spec.topology.gpuProducts)",
    ),
    rule(
        "TooFewGpus",
        r"World size \((?P<asked>\d+)\) is larger than the number of available GPUs \((?P<there>\d+)\)",
        "the plan needs {asked} GPUs, and the container sees {there}",
        ASK_FOR_GPUS,
    ),
    rule(
        "TooFewGpus",
        r"Current node has no (?P<what>\w+) available\.",
        "Ray finds no {what} in this pod",
        ASK_FOR_GPUS,
    ),
    rule(
        "TooFewGpus",
        r"CUDA error: invalid device ordinal",
        "the engine asks for a GPU that the container does not see",
        ASK_FOR_GPUS,
    ),
    rule(
        "Nccl",
        r"NCCL error|ncclUnhandledCudaError|ncclSystemError|ncclRemoteError|ncclInternalError|NCCL WARN .*(?:error|fail|no socket interface)"
        r"|Watchdog caught collective operation timeout|DistNetworkError|client socket has timed out"
        r"|No node info found for head node in GCS|Gloo connectFullMesh failed",
        "ranks of this replica cannot speak with one another: {line}",
        "let all ports pass between pods of a replica (NetworkPolicy), and name the interface by NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME",
    ),
)
