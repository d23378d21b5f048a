"""What engines say before they end, and what each of it means: a table.

The first rule that any line fits is the answer, so what is most certain of its cause comes first and what only repeats it
("engine core initialization failed") last. The words are conditions' reasons; they do not change.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from plimsoll_runtime.startup import PHASES, PROFILE, WARMUP, WEIGHTS

_START = frozenset(PHASES)
"""What is wrong with a model shows here; while an engine serves, such words are of an adapter, or of what a request names."""
_BEFORE_WEIGHTS = frozenset(PHASES[: PHASES.index(WEIGHTS)])
_LOADING = frozenset(PHASES[: PHASES.index("prepare")])
_PROFILING = frozenset(PHASES[PHASES.index("prepare") : PHASES.index(PROFILE) + 1])
_GRAPHS = frozenset(PHASES[PHASES.index(WARMUP) :])
SERVING = "serving"


class Rule(NamedTuple):
    word: str
    pattern: re.Pattern[str]
    message: str
    """Groups of the pattern by name."""
    remedy: str
    phases: frozenset[str] | None = None
    """Only while the engine is in one of them."""


def _rule(word: str, pattern: str, message: str, remedy: str, phases: frozenset[str] | None = None) -> Rule:
    return Rule(word, re.compile(pattern, re.IGNORECASE), message, remedy, phases)


_NUMBER = r"[\d.,]+"
_OOM = r"(?:OutOfMemoryError: )?(?:CUDA|HIP|XPU) (?:out of memory\.|error: out of memory)(?: Tried to allocate (?P<wanted>[\d.]+ \w+)\.)?"
_FLAGS = "correct the plan's engine flags: spec.engine.extraArgs, or spec.engine.version if this release has no such flag"
_LESS_CONTEXT = "lower spec.workload.contextTokens, or give the model more GPUs or larger ones"

RULES = (
    _rule(
        "BadFlag",
        r"error: (?P<what>(?:unrecognized arguments|ambiguous option|argument \S+|the following arguments are required): ?.+)",
        "the engine refuses its command line: {what}",
        _FLAGS,
    ),
    _rule("BadFlag", r"\bserve: error: (?P<what>.+)", "the engine refuses its command line: {what}", _FLAGS),
    _rule(
        "BadEnvironment",
        r"VLLM_PORT '(?P<what>[^']*)' appears to be a URI",
        "VLLM_PORT is {what}: a Service called vllm puts it there",
        "rename the Service vllm of this namespace, or set enableServiceLinks: false by spec.podPatches",
    ),
    _rule(
        "BadEnvironment",
        r"Error: Unknown vLLM environment variable detected: (?P<what>\S+)",
        "this release of the engine has no environment variable {what}",
        "remove it from spec.engine.env",
    ),
    _rule(
        "BadEnvironment",
        r"Token authentication is enabled but no authentication token was found",
        "Ray asks for a token, and none was given to it",
        "RAY_AUTH_MODE=token and RAY_AUTH_TOKEN from a Secret by spec.engine.env, or RAY_AUTH_MODE=disabled there",
    ),
    _rule(
        "SharedMemory",
        r"insufficient shared memory|Insufficient space in /dev/shm|unable to open shared memory object|/dev/shm\S* .*No space left"
        r"|No space left on device.*/dev/shm|creating shared memory segment|unable to mmap \d+ bytes from file </torch_",
        "the memory that workers share is too small: {line}",
        "a larger memory-backed volume at /dev/shm (spec.podPatches); Kubernetes gives 64 MiB without one",
    ),
    _rule(
        "DiskFull",
        r"No space left on device|Disk quota exceeded|Not enough free disk space",
        "a disk is full: {line}",
        "a larger spec.storage.weights or spec.storage.cache",
    ),
    _rule(
        "GpuMemoryTaken",
        rf"Free memory on device \S* ?\((?P<free>{_NUMBER})/(?P<total>{_NUMBER}) GiB\) on startup is less than",
        "only {free} of {total} GiB of the device were free when the engine started",
        "end what else uses this GPU (nvidia-smi on the node), or lower spec.memory.utilizationPercent",
    ),
    _rule(
        "GpuMemoryTaken",
        r"Error in memory profiling",
        "another process gave GPU memory back while this engine measured it",
        "keep other programs off this GPU; a new start may pass",
    ),
    _rule(
        "GpuMemoryTaken",
        r"(?:CUDA|HIP) error: out of memory",
        "the GPU's memory ran out before the engine put any weights into it",
        "end what else uses this GPU (nvidia-smi on the node)",
        _BEFORE_WEIGHTS,
    ),
    _rule(
        "RequestLongerThanPool",
        rf"max seq len \((?P<length>\d+)\), \(?(?P<needed>{_NUMBER}) GiB KV cache is needed, which is larger than the"
        rf" available KV cache memory \((?P<free>{_NUMBER}) GiB\)\.(?:.*estimated maximum model length is (?P<fits>\d+))?",
        "one request of {length} tokens needs {needed} GiB of KV cache, and {free} GiB are there{fits}",
        _LESS_CONTEXT,
    ),
    _rule(
        "RequestLongerThanPool",
        r"max seq len \((?P<length>\d+)\) is larger than the maximum number of tokens that can be stored in KV cache"
        r" \((?P<fits>\d+)\)",
        "one request of {length} tokens is longer than the KV cache{fits}",
        _LESS_CONTEXT,
    ),
    _rule(
        "NoKvRoom",
        r"No available memory for the cache blocks",
        "weights and working memory leave no room for the KV cache",
        "more GPUs or larger ones, a smaller precision, or fewer sequences at once (spec.engine.maxSequences)",
    ),
    _rule(
        "NoKvRoom",
        rf"\((?P<free>{_NUMBER})/{_NUMBER} GiB\) on kv cache allocation is less than requested memory for kv"
        rf" \((?P<needed>{_NUMBER})",
        "a KV cache of {needed} GiB is asked for, and {free} GiB of the machine's memory are free",
        "a smaller spec.topology.cpu.kvCacheSize, or a larger spec.topology.cpu.memory",
    ),
    _rule(
        "HostMemoryTaken",
        rf"Available memory on node \d+ \((?P<free>{_NUMBER})/(?P<total>{_NUMBER}) GiB\) on startup is less than",
        "only {free} of {total} GiB of the machine's memory were free when the engine started",
        "a larger spec.topology.cpu.memory, or a node with less on it",
    ),
    _rule(
        "TooManySequences",
        r"max_num_seqs \((?P<asked>\d+)\) exceeds available Mamba cache blocks \((?P<fits>\d+)\)",
        "{asked} sequences at once are asked for, and there is state for {fits}",
        "spec.engine.maxSequences of at most that number",
    ),
    _rule(
        "WeightsDoNotFit",
        _OOM,
        "the weights do not fit into the GPU's memory{wanted}",
        "more GPUs a replica (spec.topology), larger ones, or a smaller precision",
        _LOADING,
    ),
    _rule(
        "ProfileOutOfMemory",
        _OOM,
        "the first run of the model did not fit beside its weights{wanted}",
        "lower spec.engine.maxBatchedTokens or spec.engine.maxSequences, or give the model more GPUs",
        _PROFILING,
    ),
    _rule(
        "GraphCapture",
        _OOM
        + r"|Graph capture (?:failed|error)|cudaErrorStreamCapture|operation not permitted when stream is capturing",
        "capturing CUDA graphs did not fit beside weights and KV cache{wanted}",
        "lower spec.memory.utilizationPercent or the largest captured batch, or set spec.engine.eager",
        _GRAPHS,
    ),
    _rule(
        "CudaOutOfMemory",
        _OOM,
        "the GPU's memory ran out while requests were answered{wanted}",
        "lower spec.memory.utilizationPercent by a few, or spec.engine.maxBatchedTokens",
    ),
    _rule(
        "GpuFault",
        r"uncorrectable ECC error|illegal memory access|device-side assert|GPU has fallen off the bus|\bXid\b"
        r"|CUDA error: (?:unspecified launch failure|an illegal instruction|misaligned address|hardware stack error)",
        "the GPU reports a fault: {line}",
        "look at the node's GPU (nvidia-smi -q, dmesg); cordon the node if it happens again",
    ),
    _rule(
        "Driver",
        r"system not yet initialized",
        "the node's GPUs wait for a service of their driver: {line}",
        "start nvidia-fabricmanager on the node, or choose other nodes by spec.topology.nodeSelector",
    ),
    _rule(
        "Driver",
        r"driver on your system is too old|driver version is insufficient|no CUDA-capable device|Found no NVIDIA driver"
        r"|Failed to infer device type|libcuda\.so|CUDA driver initialization failed",
        "the engine finds no usable GPU driver: {line}",
        "update the node's driver, or choose other nodes by spec.topology.nodeSelector",
    ),
    _rule(
        "GpuTooOld",
        r"not supported for the current GPU|only supported on GPUs with compute capability|Min(?:imum)? capability",
        "this GPU is too old for what is asked of it: {line}",
        "another precision (spec.quantization) or a newer class of GPU (spec.topology.gpuProducts)",
    ),
    _rule(
        "TooFewGpus",
        r"World size \((?P<asked>\d+)\) is larger than the number of available GPUs \((?P<there>\d+)\)",
        "the plan needs {asked} GPUs, and the container sees {there}",
        "check the pod's GPU request and the device plugin: kubectl describe node",
    ),
    _rule(
        "TooFewGpus",
        r"Current node has no (?P<what>\w+) available\.",
        "Ray finds no {what} in this pod",
        "check the pod's GPU request and the device plugin: kubectl describe node",
    ),
    _rule(
        "Nccl",
        r"NCCL error|ncclUnhandledCudaError|ncclSystemError|ncclRemoteError|ncclInternalError|NCCL WARN .*(?:error|fail)"
        r"|Watchdog caught collective operation timeout|DistNetworkError|client socket has timed out"
        r"|No node info found for head node in GCS|Gloo connectFullMesh failed",
        "ranks of this replica cannot speak with one another: {line}",
        "let all ports pass between pods of a replica (NetworkPolicy), and name the interface by NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME",
    ),
    _rule(
        "GatedModel",
        r"(?<!private or )gated repo|GatedRepo|40[13] Client Error|Client error '40[13]|Access to model .* is restricted",
        "the hub does not let this token read the model",
        "accept the model's terms, and name a token that may read it in spec.model.tokenSecret",
        _START,
    ),
    _rule(
        "ModelNotFound",
        r"Repository Not Found|Revision Not Found|is not a valid (?:model|git) identifier|Invalid repository ID or local directory"
        r"|No such file or directory: '(?P<what>[^']*(?:config\.json|params\.json))'|Entry Not Found",
        "there is no such model: {line}",
        "correct spec.model.source and spec.model.revision; a private one also needs spec.model.tokenSecret",
        _START,
    ),
    _rule(
        "RemoteCode",
        r"trust_remote_code=True|contains custom code which must be executed",
        "the model brings code of its own, which is not trusted here",
        "spec.model.trustRemoteCode, where the admin's trust.remoteCode lists the repository",
        _START,
    ),
    _rule(
        "UnknownArchitecture",
        r"Model architectures? .* (?:are not supported|failed to be inspected)|does not recognize this architecture",
        "this release of the engine does not know the model's architecture: {line}",
        "a newer spec.engine.version",
        _START,
    ),
    _rule(
        "BadCheckpoint",
        r"SafetensorError|HeaderTooLarge|MetadataIncompleteBuffer|InvalidHeader|Error while deserializing header"
        r"|size mismatch for|There is no module or parameter named|were not initialized from checkpoint"
        r"|Cannot find any model weights|PytorchStreamReader failed|Missing keys|Attempted to load weight \("
        r"|referenced in index but missing|is not a valid JSON file|Can't load tokenizer|instantiate the backend tokenizer",
        "the model's files cannot be loaded: {line}",
        "fetch the weights again, or correct spec.model.source and spec.model.revision",
        _START,
    ),
    _rule(
        "BadCheckpoint",
        r"^(?:\([^)]*\) )*(?:ERROR [\d: -]+\[[^]]*\] )?\s*assert \S+\.(?:shape|size\(\)) == loaded_weight\.(?:shape|size\(\))",
        "a tensor of the model's files has another shape than its config.json says",
        "fetch the weights again, or correct spec.model.source and spec.model.revision",
        _START,
    ),
    _rule(
        "BadCheckpoint",
        r"(?:Value error, |JSONDecodeError: )(?P<what>.+: line \d+ column \d+)|codec can't decode byte",
        "one of the model's JSON files, or a header of its weights, cannot be read: {what}",
        "fetch the weights again, or correct spec.model.source and spec.model.revision",
        _START,
    ),
    _rule(
        "BadCheckpoint",
        r", in (?:parse_safetensors_file_metadata|_read_safetensors_metadata_in_dir)\b",
        "a safetensors file of the model begins with what is no header",
        "fetch the weights again, or correct spec.model.source and spec.model.revision",
        _START,
    ),
    _rule(
        "Download",
        r"name resolution|Name or service not known|Failed to resolve|Max retries exceeded|Network is unreachable"
        r"|couldn't connect to|LocalEntryNotFound|outgoing traffic has been disabled|IncompleteRead|ReadTimeoutError"
        r"|5\d\d Server Error|Server error '5\d\d|429 (?:Client Error|Too Many Requests)|Client error '4\d\d|httpx\d?\.(?:Connect|Read|RemoteProtocol)\w+",
        "the model cannot be fetched: {line}",
        "let the pods reach the hub (proxy, mirror, NetworkPolicy, DNS), or keep the weights in a volume: spec.storage.weights",
        _START,
    ),
    _rule(
        "NoEngine",
        r"No module named '?vllm'?$|No such file or directory: '(?:ray|vllm)'$",
        "the image has no engine: {line}",
        "an image that has the engine (spec.engine.image), with the program on its PATH",
    ),
    _rule(
        "NotWritable",
        r"Read-only file system|Permission denied: '(?!\S*\.(?:json|jinja|safetensors|bin|model)')",
        "a folder that the engine writes into cannot be written: {line}",
        "a volume there that the pod's user may write: spec.storage.cache, or fsGroup by spec.podPatches",
    ),
    _rule(
        "MissingLibrary",
        r"(?P<what>lib[\w.+-]+\.so[\w.]*): (?:cannot open shared object file|file too short|invalid ELF header)"
        r"|error while loading shared libraries|'_OpNamespace' '_C\w*' object has no attribute"
        r"|CUDA error: no kernel image is available|Failed to find C compiler|nvcc: not found|RuntimeError: Could not find nvcc"
        r"|No such file or directory: '(?:\S*/)?(?:nvcc|ninja)'|Ninja is required to load C\+\+ extensions"
        r"|GLIBC(?:XX)?_[\d.]+' not found|undefined symbol|Failed to import Ray|ModuleNotFoundError: No module named '(?P<module>[^']+)'",
        "the image lacks something that the engine needs: {line}",
        "an image that has it: spec.engine.image",
    ),
    _rule(
        "BadSetting",
        r"^(?:\([^)]*\) )*(?:ERROR [\d: -]+\[[^]]*\] )?\s*(?:Value error, (?P<what>.+?)(?: \[type=.*)?$|(?P<input>Input should be) )",
        "the engine refuses its configuration: {what}",
        _FLAGS,
        _START,
    ),
    _rule(
        "BadSetting",
        r"must be divisible by tensor parallel size|is greater than the derived max_model_len|validation errors? for \w+Config"
        r"|Unknown (?:quantization method|attention backend|load_?format)|is smaller than max_model_len|Invalid attention backend"
        r"|Load format \S+ is not supported|supplied chat template|No adapter found for|does not support ray"
        r"|No valid attention backend found",
        "the engine refuses its configuration: {what}",
        _FLAGS,
        _START,
    ),
    _rule(
        "PortTaken",
        r"Address already in use|EADDRINUSE",
        "the engine's port is taken within the pod",
        "another container of this pod listens there: see spec.podPatches",
        _START,
    ),
    _rule(
        "StartTimeout",
        r"Timed out waiting for engine|Did not receive response from front-end process",
        "the engine gave itself up: its workers were not ready in time",
        "a larger VLLM_ENGINE_READY_TIMEOUT_S in spec.engine.env together with spec.rollout.deadlineSeconds, or faster storage",
    ),
    _rule(
        "StartTimeout",
        r"The current node timed out during startup",
        "Ray gave itself up: its own processes were not there in time",
        "more cores for the pods, or a node with less on it: it waits 30 seconds",
    ),
    _rule(
        "StartTimeout",
        r"No node info found matching attributes|Failed to connect to Ray cluster",
        "the engine finds no node of Ray in its own pod: {line}",
        "kubectl logs --previous shows what became of Ray there; RAY_ADDRESS and VLLM_HOST_IP are not for spec.engine.env",
        _START,
    ),
    _rule(
        "StartTimeout",
        r"Cannot provide a placement group|waiting for clients\. \d+/\d+ clients joined",
        "not all of this replica came in time, with the GPUs that its engine needs: {line}",
        "kubectl get pods shows which one has not started; let all ports pass between them (NetworkPolicy)",
        _START,
    ),
    _rule(
        "HostOutOfMemory",
        r"Cannot allocate memory|^MemoryError|std::bad_alloc|DefaultCPUAllocator: can't allocate memory",
        "the machine's memory ran out: {line}",
        "a smaller spec.memory.kvOffload or spec.memory.cpuOffload, or a larger memory limit by spec.podPatches",
    ),
    _rule(
        "Hang",
        r"RPC call to (?P<what>\w+) timed out",
        "the engine's workers did not end a step ({what}) in the time that it gives them",
        "it is started again; if that repeats, look for a stuck worker or collective: kubectl logs --previous",
    ),
    _rule(
        "WorkerLost",
        r"Worker proc (?P<what>\S+) died unexpectedly(?: \(exit code: -(?P<signal>\d+)\))?"
        r"|RayWorkerProc rank=\S+ died|ActorDiedError",
        "a worker of the engine was lost: {line}",
        "kubectl logs --previous shows its last lines; look for faults of the GPU and for memory pressure on the node",
    ),
    _rule(
        "WorkerLost",
        r"BEGIN (?P<what>\w+)\.(?:out|err) tail \(exit code\(s\)=(?P<ended>\d+|-\d+ \(signal (?P<signal>\d+)\))\)",
        "a process of Ray ended in this pod: {what}, exit code {ended}",
        "kubectl logs --previous shows its last lines; look for memory pressure on the node",
    ),
    _rule(
        "WorkerLost",
        r"Some Ray subprocesses exited unexpectedly",
        "a process of Ray ended in this pod",
        "kubectl logs --previous shows which",
    ),
    _rule(
        "WorkerLost",
        r"Engine core proc(?:ess)? \S+ died unexpectedly|EngineDeadError",
        "the engine's core process ended{cause}",
        "kubectl logs --previous shows its last lines; look for faults of the GPU, for memory pressure on the node and for who else"
        " kills there (kubectl describe pod and node, dmesg)",
    ),
)
