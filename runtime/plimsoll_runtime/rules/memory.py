"""Memory and disks: what they are too small for, and what ran out."""

from __future__ import annotations

from plimsoll_runtime.remedies import FREE_THE_GPU, LARGER_DISK, LARGER_SHARED_MEMORY
from plimsoll_runtime.rules.rule import BEFORE_WEIGHTS, GRAPHS, LOADING, PROFILING, rule

_NUMBER = r"[\d.,]+"
_SPENT = r"(?:CUDA|HIP) (?:error: out of memory|failure (?:\d+ )?'out of memory')"
"""As the driver says it, by torch and by NCCL."""
_OOM = rf"(?:CUDA|HIP|XPU) out of memory(?: occurred|\.(?: Tried to allocate (?P<wanted>[\d.]+ \w+)\.)?)|{_SPENT}"
_LESS_CONTEXT = "lower spec.workload.contextTokens, or give the model more GPUs or larger ones"

MEMORY = (
    rule(
        "SharedMemory",
        r"insufficient shared memory|Insufficient space in /dev/shm|/dev/shm\S* .*No space left|unable to open shared memory object"
        r"|unable to allocate shared memory|unable to mmap \d+ bytes from file </torch_",
        "the memory that workers share is too small: {line}",
        LARGER_SHARED_MEMORY,
    ),
    rule(
        "DiskFull",
        r"No space left on device|Disk quota exceeded|Not enough free disk space",
        "a disk is full: {line}",
        LARGER_DISK,
    ),
    rule(
        "GpuMemoryTaken",
        rf"Free memory on device \S* ?\((?P<free>{_NUMBER})/(?P<total>{_NUMBER}) GiB\) on startup is less than",
        "only {free} of {total} GiB of the device were free when the engine started",
        FREE_THE_GPU,
    ),
    rule(
        "GpuMemoryTaken",
        r"Error in memory profiling",
        "another process gave GPU memory back while this engine measured it",
        "keep other programs off this GPU; a new start may pass",
    ),
    rule(
        "GpuMemoryTaken",
        _SPENT,
        "the GPU's memory ran out before the engine put any weights into it",
        "end what else uses this GPU (nvidia-smi on the node)",
        BEFORE_WEIGHTS,
    ),
    rule(
        "RequestLongerThanPool",
        rf"max seq len \((?P<length>\d+)\), \(?(?P<needed>{_NUMBER}) GiB KV cache is needed, which is larger than the"
        rf" available KV cache memory \((?P<free>{_NUMBER}) GiB\)\.(?:.*estimated maximum model length is (?P<fits>\d+))?",
        "one request of {length} tokens needs {needed} GiB of KV cache, and {free} GiB are there{fits}",
        _LESS_CONTEXT,
    ),
    rule(
        "NoKvRoom",
        r"No available memory for the cache blocks",
        "weights and working memory leave no room for the KV cache",
        "more GPUs or larger ones, a smaller precision, or fewer sequences at once (spec.engine.maxSequences)",
    ),
    rule(
        "NoKvRoom",
        rf"\((?P<free>{_NUMBER})/{_NUMBER} GiB\) on kv cache allocation is less than requested memory for kv"
        rf" \((?P<needed>{_NUMBER})",
        "a KV cache of {needed} GiB is asked for, and {free} GiB of the machine's memory are free",
        "a smaller spec.topology.cpu.kvCacheSize, or a larger spec.topology.cpu.memory",
    ),
    rule(
        "HostMemoryTaken",
        rf"Available memory on node \d+ \((?P<free>{_NUMBER})/(?P<total>{_NUMBER}) GiB\) on startup is less than",
        "only {free} of {total} GiB of the machine's memory were free when the engine started",
        "a larger spec.topology.cpu.memory, or a node with less on it",
    ),
    rule(
        "TooManySequences",
        r"max_num_seqs \((?P<asked>\d+)\) exceeds available Mamba cache blocks \((?P<fits>\d+)\)",
        "{asked} sequences at once are asked for, and there is state for {fits}",
        "spec.engine.maxSequences of at most that number",
    ),
    rule(
        "WeightsDoNotFit",
        _OOM,
        "the weights do not fit into the GPU's memory{wanted}",
        "more GPUs a replica (spec.topology), larger ones, or a smaller precision",
        LOADING,
    ),
    rule(
        "ProfileOutOfMemory",
        _OOM,
        "the first run of the model did not fit beside its weights{wanted}",
        "lower spec.engine.maxBatchedTokens or spec.engine.maxSequences, or give the model more GPUs",
        PROFILING,
    ),
    rule(
        "GraphCapture",
        r"out of memory occurred when warming up (?P<what>.+) dummy requests",
        "warming up the {what} requests did not fit beside weights and KV cache",
        "lower spec.memory.utilizationPercent or spec.engine.maxSequences",
        GRAPHS,
    ),
    rule(
        "GraphCapture",
        _OOM,
        "capturing CUDA graphs did not fit beside weights and KV cache{wanted}",
        "lower spec.memory.utilizationPercent or the largest captured batch, or set spec.engine.eager",
        GRAPHS,
    ),
    rule(
        "CudaOutOfMemory",
        _OOM,
        "the GPU's memory ran out while requests were answered{wanted}",
        "lower spec.memory.utilizationPercent by a few, or spec.engine.maxBatchedTokens",
    ),
    rule(
        "GraphCapture",
        r"CUDA error: operation (?:not permitted when stream is capturing|failed due to a previous error during capture)",
        "capturing CUDA graphs ended in an error: {line}",
        "set spec.engine.eager, or another spec.engine.version",
        GRAPHS,
    ),
)
