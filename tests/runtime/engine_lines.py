"""Last words of real engines, each with who prints it: a release and its file, or "reported" where people showed it in public.

Names, figures and paths in them are ours; the words between are those of the program.
"""

from __future__ import annotations

from typing import NamedTuple


class Said(NamedTuple):
    word: str
    phase: str
    line: str
    told: str
    """What a person is to find in the message."""


OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 79.25 GiB of which"
    " 1.30 GiB is free."
)
LONG = (
    "ValueError: To serve at least one request with the model's max seq len (4096), (0.02 GiB KV cache is needed, which is"
    " larger than the available KV cache memory (0.0 GiB). Based on the available memory, the estimated maximum model length"
    " is 896. Try increasing"
)
SAMPLER = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. Please try lowering"
    " `max_num_seqs` or `gpu_memory_utilization` when initializing the engine."
)
COUNT = "RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? "

NO_CAUSES: dict[str, str] = {
    "vLLM 0.33.0, config/parallel.py": "WARNING 11-22 [parallel.py:750] Address already in use. Retrying with a new port.",
    "vLLM 0.33.0, models/jina.py": "WARNING 11-22 [jina.py:242] No adapter found for task 'a' in 'b'. Loading raw base weights.",
    "vLLM 0.33.0, models/cohere_asr.py": "ValueError: Failed to resolve the CohereASR decoder control tokens with the configured tokenizer.",
    "vLLM 0.33.0, distributed/ec_transfer": "ValueError: EC source size mismatch for mm_hash=7",
    "vLLM 0.33.0, distributed/device_communicators/shm_object_storage.py": "MemoryError: Not enough space in the data buffer, try calling free_buf() to free up space",
    "torch 2.13.0, ao/quantization/observer.py": "Exception: Missing keys for observer 7 in state_dict",
}
"""Lines that read like one of a word's, and are of something else."""

LINES: dict[str, tuple[Said, ...]] = {
    "Python 3.11, argparse": (
        Said("BadFlag", "imports", "vllm: error: unrecognized arguments: --swap-space 4", "--swap-space 4"),
        Said("BadFlag", "imports", "vllm serve: error: argument --max-num-seqs: invalid int value: 'x'", "--max-num-seqs"),
        Said("BadFlag", "imports", "vllm serve: error: ambiguous option: --device could match --device-ids", "--device"),
        Said("BadFlag", "imports", "vllm: error: the following arguments are required: model_tag", "model_tag"),
    ),
    "vLLM 0.33.0, entrypoints/openai/cli_args.py": (
        Said("BadFlag", "imports", "vllm serve: error: --enable-auto-tool-choice requires --tool-call-parser", "requires"),
    ),
    "vLLM 0.33.0, envs.py and platforms/interface.py": (
        Said("BadEnvironment", "imports", "ValueError: VLLM_PORT 'tcp://10.0.0.7:80' appears to be a URI. This", "tcp://10.0.0.7:80"),
        Said("BadEnvironment", "imports", "ValueError: Unknown vLLM environment variable detected: VLLM_USE_V1", "VLLM_USE_V1"),
    ),
    "vLLM 0.33.0, config": (
        Said("BadSetting", "config", "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).", "28"),
        Said("BadSetting", "config", "  Value error, Unknown quantization method: squeezellm. Must be one of ['awq']", "squeezellm"),
        Said("BadSetting", "config", "ValueError: User-specified max_model_len (100000) is greater than the derived max_model_len", "100000"),
        Said("BadSetting", "config", "ValueError: max_num_batched_tokens (64) is smaller than max_model_len (4096).", "(64)"),
        Said("TooFewGpus", "config", "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.", "8 GPUs"),
        Said("GpuTooOld", "config", "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89.", "fp8"),
        Said("Driver", "imports", "RuntimeError: Failed to infer device type, please set the environment variable", "infer device type"),
        Said("TooManySequences", "profile", "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (939). Each", "939"),
    ),
    "vLLM 0.33.0, platforms/cuda.py and platforms/xpu.py": (
        Said("GpuTooOld", "config", "ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has 7.5.", "Tesla T4"),
        Said("BadSetting", "engine", "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=80). Reasons: {", "head_size=80"),
        Said("BadSetting", "engine", "ValueError: Invalid attention backend for xpu, with use_mla: True", "xpu"),
    ),
    "vLLM 0.33.0, quantization/compressed_tensors": (
        Said("GpuTooOld", "weights", "RuntimeError: Quantization scheme is not supported for the current GPU. Min capability: 89. Current capability: 80.", "80"),
    ),
    "vLLM 0.33.0, v1/attention/backends/registry.py": (
        Said("BadSetting", "config", "ValueError: Unknown attention backend: 'NOPE'. Valid options are: FLASH_ATTN", "NOPE"),
    ),
    "vLLM 0.33.0, renderers/chat_utils and exceptions.py": (
        Said("BadSetting", "server", "VLLMValidationError: The supplied chat template string (/nowhere.jinja) appears path-like, but doesn't exist!", "/nowhere.jinja"),
        Said("BadSetting", "server", "Loading lora a failed: No adapter found for /nowhere", "/nowhere"),
    ),
    "vLLM 0.33.0, model_executor": (
        Said("UnknownArchitecture", "config", "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported", "Foo"),
        Said("BadSetting", "weights", "ValueError: Load format `nope` is not supported", "nope"),
        Said("BadSetting", "weights", "ValueError: Unknown load_format: nope", "nope"),
        Said("BadCheckpoint", "weights", "RuntimeError: Cannot find any model weights with `/model`", "/model"),
        Said("BadCheckpoint", "weights", "AssertionError: Attempted to load weight (torch.Size([512])) into parameter (torch.Size([256]))", "512"),
        Said("BadCheckpoint", "weights", "    assert param_data.shape == loaded_weight.shape", "another shape"),
        Said("BadCheckpoint", "weights", "ValueError: Following weights were not initialized from checkpoint: {'model.layers.3.input_layernorm.weight'}", "input_layernorm"),
        Said("BadCheckpoint", "weights", "ValueError: There is no module or parameter named 'mlp.other_proj' in LlamaForCausalLM.", "other_proj"),
        Said("BadCheckpoint", "weights", "FileNotFoundError: Weight files referenced in index but missing: {'model-2.safetensors'}", "model-2"),
        Said("BadCheckpoint", "weights", "ValueError: Missing keys ('lm_head.weight',) in loaded state!", "lm_head"),
    ),
    "vLLM 0.33.0, transformers_utils": (
        Said("ModelNotFound", "config", "ValueError: Invalid repository ID or local directory specified: '/nowhere/model'.", "/nowhere/model"),
        Said("BadCheckpoint", "config", '  File "/x/vllm/transformers_utils/utils.py", line 113, in parse_safetensors_file_metadata', "no header"),
    ),
    "vLLM 0.33.0, v1/worker": (
        Said("GpuMemoryTaken", "engine", "ValueError: Free memory on device cuda:0 (12.5/79.25 GiB) on startup is less than desired GPU memory utilization (0.92, 72.91 GiB).", "12.5 of 79.25"),
        Said("GpuMemoryTaken", "profile", "AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free memory 75.0 GiB.", "gave"),
        Said("NoKvRoom", "profile", "ValueError: Available memory on node 0 (20.1/23.54 GiB) on kv cache allocation is less than requested memory for kv (64.0 GiB).", "64.0 GiB is asked"),
        Said("GraphCapture", "warmup", SAMPLER, "sampler with 1024"),
        Said("GraphCapture", "server", "RuntimeError: CUDA out of memory occurred when warming up pooler (task='embed') with 64 dummy requests.", "pooler (task='embed') with 64"),
        Said("ProfileOutOfMemory", "profile", SAMPLER, "first run"),
    ),
    "vLLM 0.32.0, v1/worker/cpu_worker.py": (
        Said("HostMemoryTaken", "engine", "ValueError: Available memory on node 0 (3.1/23.54 GiB) on startup is less than desired CPU memory utilization (0.92", "3.1 of 23.54"),
    ),
    "vLLM 0.33.0, v1/core/kv_cache_planning.py": (
        Said("NoKvRoom", "profile", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "no room"),
        Said("RequestLongerThanPool", "profile", LONG, "4096 tokens needs 0.02 GiB of KV cache, and 0.0 GiB are there; 896 tokens would fit"),
    ),
    "vLLM 0.33.0, distributed": (
        Said("SharedMemory", "engine", "RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 0 MiB free. Increase", "160 MiB required"),
        Said("Nccl", "engine", "RuntimeError: NCCL error: unhandled cuda error (run with NCCL_DEBUG=INFO for details)", "unhandled cuda error"),
    ),
    "vLLM 0.33.0, v1/engine": (
        Said("StartTimeout", "weights", "TimeoutError: Timed out waiting for engine core processes to start. This is often caused", "in time"),
        Said("StartTimeout", "weights", "RuntimeError: Did not receive response from front-end process within 5 minutes", "in time"),
        Said("WorkerLost", "serving", "ERROR 11-22 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", "core process ended"),
        Said("WorkerLost", "serving", "vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above)", "core process ended"),
    ),
    "vLLM 0.33.0, v1/executor": (
        Said("WorkerLost", "serving", "ERROR 11-21 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.", "VllmWorker-0"),
        Said("WorkerLost", "serving", "ERROR 11-21 [ray_executor_v2.py:522] RayWorkerProc rank=1 died unexpectedly, shutting down executor.", "rank=1"),
        Said("Hang", "serving", "TimeoutError: RPC call to execute_model timed out.", "a step (execute_model)"),
        Said("BadSetting", "engine", "ValueError: current platform cpu does not support ray.", "platform cpu"),
        Said("MissingLibrary", "config", "  Value error, Failed to import Ray: No module named 'ray'.Please install Ray with `pip install ray`. [type=value_error", "Ray"),
        Said("StartTimeout", "engine", "ValueError: Cannot provide a placement group requiring 16 GPUs (placement_group_specs=[{'GPU': 1.0}]) within 1800 seconds.", "16 GPUs"),
    ),
    "vLLM 0.32.0, v1/executor/ray_utils.py": (
        Said("TooFewGpus", "engine", "ValueError: Current node has no GPU available. current_node_resource={'CPU': 8.0}. vLLM engine cannot start without GPU.", "no GPU in this pod"),
    ),
    "vLLM 0.32.0 on a CPU, seen": (
        Said("MissingLibrary", "imports", "Failed to import from vllm._C: ImportError('/lib/x86_64-linux-gnu/libnuma.so.1: file too short')", "libnuma.so.1"),
        Said("MissingLibrary", "engine", "AttributeError: '_OpNamespace' '_C' object has no attribute 'init_cpu_memory_env'", "_C"),
        Said("DiskFull", "engine", "zmq.error.ZMQError: No space left on device (addr='ipc:///mnt/e8699212')", "disk is full"),
        Said("BadSetting", "config", "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig", "VllmConfig"),
    ),
    "torch 2.13.0, libc10_cuda": (
        Said("WeightsDoNotFit", "weights", OOM, "another 1.96 GiB"),
        Said("WeightsDoNotFit", "engine", OOM, "another 1.96 GiB"),
        Said("ProfileOutOfMemory", "profile", OOM, "first run"),
        Said("GraphCapture", "warmup", OOM, "graphs"),
        Said("CudaOutOfMemory", "serving", OOM, "requests were answered"),
        Said("Driver", "engine", "RuntimeError: The NVIDIA driver on your system is too old (found version 12040).", "12040"),
        Said("Driver", "engine", "RuntimeError: Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU", "Found no"),
        Said("Driver", "engine", "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.", "initialization failed"),
        Said("Driver", "engine", "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment, e.g. changing", "unknown error"),
    ),
    "CUDA 13.0's runtime, as torch 2.13.0 passes it on": (
        Said("Driver", "imports", COUNT + "Error 802: system not yet initialized", "wait for a service"),
        Said("Driver", "imports", COUNT + "Error 804: forward compatibility was attempted on non supported HW", "forward compatibility"),
        Said("Driver", "engine", "torch.AcceleratorError: CUDA error: CUDA driver version is insufficient for CUDA runtime version", "insufficient"),
        Said("Driver", "engine", "torch.AcceleratorError: CUDA error: no CUDA-capable device is detected", "no CUDA-capable"),
        Said("Driver", "profile", "torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain.", "PTX"),
        Said("TooFewGpus", "engine", "torch.AcceleratorError: CUDA error: invalid device ordinal", "does not see"),
        Said("GpuMemoryTaken", "engine", "torch.AcceleratorError: CUDA error: out of memory", "before the engine put any weights"),
        Said("WeightsDoNotFit", "weights", "torch.AcceleratorError: CUDA error: out of memory", "weights do not fit"),
        Said("ProfileOutOfMemory", "profile", "torch.AcceleratorError: CUDA error: out of memory", "first run"),
        Said("CudaOutOfMemory", "serving", "torch.AcceleratorError: CUDA error: out of memory", "requests were answered"),
        Said("GraphCapture", "warmup", "torch.AcceleratorError: CUDA error: operation not permitted when stream is capturing", "ended in an error"),
        Said("GraphCapture", "warmup", "torch.AcceleratorError: CUDA error: operation failed due to a previous error during capture", "ended in an error"),
        Said("MissingLibrary", "profile", "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device", "no kernel image"),
        Said("GpuFault", "serving", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "illegal memory access"),
        Said("GpuFault", "serving", "torch.AcceleratorError: CUDA error: device-side assert triggered", "device-side assert"),
        Said("GpuFault", "serving", "torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered", "ECC"),
        Said("GpuFault", "serving", "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution", "NVLink"),
        Said("GpuFault", "serving", "torch.AcceleratorError: CUDA error: unspecified launch failure", "launch failure"),
        Said("GpuFault", "engine", "torch.AcceleratorError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "has it for itself"),
    ),
    "torch 2.13.0, libtorch": (
        Said("Nccl", "engine", "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (a, 29501).", "29501"),
        Said("StartTimeout", "engine", "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", "1/2 clients"),
        Said("Nccl", "engine", "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error", "connectFullMesh"),
        Said("Nccl", "engine", "torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:94, unhandled system error", "NCCL"),
        Said("Nccl", "engine", "ncclUnhandledCudaError: Call to CUDA function failed.", "CUDA function"),
        Said("Nccl", "engine", "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error. ", "socket"),
        Said("Nccl", "engine", "ncclInternalError: Internal check failed.", "Internal check"),
        Said("Nccl", "serving", "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.", "remote process"),
        Said("Nccl", "serving", "[rank1]:[E] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, OpType=ALLREDUCE", "timeout"),
        Said("HostOutOfMemory", "weights", "RuntimeError: [enforce fail at alloc_cpu.cpp:127] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 6 bytes", "memory ran out"),
        Said("SharedMemory", "engine", "RuntimeError: unable to open shared memory object </torch_7_1> in read-write mode: No space left on device (28)", "share"),
        Said("SharedMemory", "engine", "RuntimeError: unable to allocate shared memory(shm) for file </torch_7_1>: No space left on device (28)", "share"),
        Said("SharedMemory", "engine", "RuntimeError: unable to mmap 1024 bytes from file </torch_7_1>: Cannot allocate memory (12)", "share"),
        Said("SharedMemory", "engine", "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).", "share"),
        Said("BadCheckpoint", "weights", "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory", "zip archive"),
        Said("BadCheckpoint", "weights", "\tsize mismatch for lm_head.weight: copying a param with shape torch.Size([8]) from checkpoint", "lm_head"),
        Said("MissingLibrary", "profile", "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)", "Ninja"),
    ),
    "NCCL 2.29.7": (
        Said("SharedMemory", "engine", "pod:47:93 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes, error: No space left on device (28)", "nccl-WU88OE"),
        Said("SharedMemory", "engine", "pod:47:93 [0] misc/shmutils.cc:132 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-WU88OE (size 9637888), error: No space left on device (28)", "9637888"),
        Said("Nccl", "engine", "pod:47:93 [0] bootstrap.cc:88 NCCL WARN Bootstrap : no socket interface found", "no socket interface"),
        Said("Nccl", "engine", "pod:47:93 [0] transport/net_ib.cc:3 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory", "ibv_reg_mr"),
        Said("GpuMemoryTaken", "engine", "pod:47:93 [0] include/alloc.h:228 NCCL WARN Cuda failure 2 'out of memory'", "before the engine put any weights"),
        Said("GraphCapture", "warmup", "pod:47:93 [0] enqueue.cc:43 NCCL WARN Cuda failure 'out of memory'", "graphs"),
    ),
    "Triton 3.7.1": (
        Said("MissingLibrary", "profile", "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.", "C compiler"),
    ),
    "FlashInfer, reported": (
        Said("MissingLibrary", "profile", "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found", "nvcc"),
        Said("MissingLibrary", "profile", "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist", "nvcc"),
        Said("MissingLibrary", "profile", "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", "'ninja'"),
    ),
    "Ray 2.60.0": (
        Said("BadEnvironment", "imports", "ray.exceptions.AuthenticationError: Token authentication is enabled but no authentication token was found. Please", "a token"),
        Said("StartTimeout", "imports", "Exception: The current node timed out during startup. This could happen because some of the raylet", "Ray"),
        Said("StartTimeout", "engine", "RuntimeError: No node info found matching attributes: '10.0.0.7' when trying to resolve node to connect to.", "no node of Ray"),
        Said("StartTimeout", "engine", "ConnectionError: Failed to connect to Ray cluster at 10.0.0.7:6379", "no node of Ray"),
        Said("Nccl", "imports", "Exception: No node info found for head node in GCS. Did the head node or gcs start successfully?", "head node"),
        Said("WorkerLost", "serving", "2026-11-22 18:06:30,960\tERR scripts.py:118 -- ----- BEGIN raylet.out tail (exit code(s)=-9 (signal 9)) -----", "raylet, exit code -9 (signal 9)"),
        Said("WorkerLost", "serving", "2026-11-22 18:06:30,959\tERR scripts.py:1307 -- Some Ray subprocesses exited unexpectedly:", "a process of Ray ended"),
        Said("WorkerLost", "serving", "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.", "actor died"),
    ),
    "transformers 5.19.0": (
        Said("RemoteCode", "config", "ValueError: Please pass the argument `trust_remote_code=True` to allow custom code to be run.", "trusted"),
        Said("RemoteCode", "config", "The repository acme/x contains custom code which must be executed to correctly load the model.", "trusted"),
        Said("ModelNotFound", "config", "OSError: acme/nothing is not a local folder and is not a valid model identifier listed on", "acme"),
        Said("ModelNotFound", "config", "OSError: nope is not a valid git identifier (branch name, tag name or commit id) that exists for this model name.", "nope"),
        Said("GatedModel", "config", "OSError: You are trying to access a gated repo.", "token"),
        Said("UnknownArchitecture", "config", "ValueError: The checkpoint you are trying to load has model type `foo` but Transformers does not recognize this architecture.", "`foo`"),
        Said("Download", "config", "OSError: We couldn't connect to 'http://hub' to load the files, and couldn't find them in the cached files.", "http://hub"),
        Said("BadCheckpoint", "config", "OSError: It looks like the config file at '/model/config.json' is not a valid JSON file.", "config.json"),
        Said("BadCheckpoint", "config", "OSError: Can't load tokenizer for '/model'. If you were trying to load it from", "tokenizer"),
        Said("BadCheckpoint", "config", "ValueError: Couldn't instantiate the backend tokenizer from one of: ", "backend tokenizer"),
    ),
    "huggingface_hub 2.4.0": (
        Said("ModelNotFound", "config", "If you are trying to access a private or gated repo, make sure you are authenticated. Repository Not Found for url: http://hub/api/models/acme/nothing.", "acme/nothing"),
        Said("ModelNotFound", "config", "Revision Not Found for url: http://hub/api/models/acme/x/revision/nope.", "revision/nope"),
        Said("ModelNotFound", "config", "Entry Not Found for url: http://hub/acme/x/resolve/main/config.json.", "config.json"),
        Said("GatedModel", "config", "huggingface_hub.errors.GatedRepoError: 403 Client Error. Cannot access gated repo for url", "token"),
        Said("GatedModel", "config", "Access to model acme/x is restricted and you are not in the authorized list.", "token"),
        Said("Download", "weights", "huggingface_hub.errors.HfHubHTTPError: 429 Too Many Requests for url: http://hub/acme/x/resolve/main/model.safetensors", "429"),
        Said("Download", "config", "huggingface_hub.errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub", "locate"),
        Said("Download", "config", "Cannot find the requested files in the disk cache and outgoing traffic has been disabled.", "outgoing traffic"),
        Said("DiskFull", "weights", "UserWarning: Not enough free disk space to download the file. The expected file size is: 9.98 MB.", "9.98 MB"),
    ),
    "httpx2 2.16 and requests 2": (
        Said("GatedModel", "config", "httpx2.HTTPStatusError: Client error '401 Unauthorized' for url 'http://hub/acme/x/resolve/main/config.json'", "token"),
        Said("ModelNotFound", "config", "httpx2.HTTPStatusError: Client error '404 Not Found' for url 'http://hub/acme/x/resolve/main/config.json'", "404"),
        Said("ModelNotFound", "config", "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: http://hub/acme/x/resolve/main/config.json", "404"),
        Said("Download", "config", "Client error '407 Proxy Authentication Required' for url 'http://hub/acme/x/resolve/main/config.json'", "407"),
        Said("Download", "config", "httpx2.HTTPStatusError: Server error '503 Service Unavailable' for url 'http://hub/api/models/acme/x'", "503"),
        Said("Download", "config", "requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: http://hub/api/models/acme/x", "503"),
        Said("Download", "config", "httpx2.ConnectError: [Errno 111] Connection refused", "Connection refused"),
        Said("Download", "config", "httpx.ConnectError: [Errno -3] Temporary failure in name resolution", "name resolution"),
        Said("Download", "config", "httpx.ConnectError: [Errno -2] Name or service not known", "Name or service"),
        Said("Download", "config", "OSError: [Errno 101] Network is unreachable", "unreachable"),
        Said("Download", "weights", "HTTPSConnectionPool(host='hub', port=443): Max retries exceeded with url: / (Caused by NewConnectionError)", "hub"),
        Said("Download", "weights", "(\"Failed to resolve 'hub.invalid' ([Errno -2] no such name)\")", "hub.invalid"),
        Said("Download", "weights", "urllib3.exceptions.IncompleteRead: IncompleteRead(7 bytes read, 9 more expected)", "more expected"),
        Said("Download", "weights", "urllib3.exceptions.ReadTimeoutError: HTTPSConnectionPool(host='hub', port=443): Read timed out.", "Read timed out"),
    ),
    "hf_xet, reported": (
        Said("Download", "weights", "RuntimeError: Data processing error: CAS service error : ReqwestMiddleware Error: Request failed after 5 retries", "5 retries"),
    ),
    "hf_xet 1.8.0": (
        Said("Download", "weights", "RuntimeError: CAS Client Error: Request error", "CAS Client Error"),
    ),
    "safetensors 0.8.0": (
        Said("BadCheckpoint", "weights", "safetensors_rust.SafetensorError: Error while deserializing header: invalid header length", "invalid header"),
    ),
    "Python 3.11, its C library, and numpy": (
        Said("BadCheckpoint", "config", "  Value error, Expecting value: line 1 column 93 (char 92) [type=value_error, input_value=ArgsKwargs((), {'model_co", "line 1 column 93"),
        Said("BadCheckpoint", "config", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "line 1 column 1"),
        Said("BadCheckpoint", "config", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte", "0xff"),
        Said("ModelNotFound", "config", "FileNotFoundError: [Errno 2] No such file or directory: '/model/config.json'", "config.json"),
        Said("NoEngine", "imports", "/usr/bin/python3: No module named vllm", "no engine"),
        Said("NoEngine", "imports", "ModuleNotFoundError: No module named 'vllm'", "no engine"),
        Said("NoEngine", "imports", "FileNotFoundError: [Errno 2] No such file or directory: 'ray'", "'ray'"),
        Said("MissingLibrary", "server", "ModuleNotFoundError: No module named 'plimsoll_runtime'", "does not look where $PYTHONPATH says"),
        Said("MissingLibrary", "imports", "ModuleNotFoundError: No module named 'cv2'", "cv2"),
        Said("MissingLibrary", "engine", "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory", "libnuma.so.1"),
        Said("Driver", "imports", "ImportError: libcuda.so.1: cannot open shared object file: No such file or directory", "libcuda.so.1"),
        Said("MissingLibrary", "imports", "/usr/bin/python3: error while loading shared libraries: libz.so.1: cannot open", "libz.so.1"),
        Said("MissingLibrary", "imports", "ImportError: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.34' not found (required by /x/_C.abi3.so)", "GLIBC_2.34"),
        Said("MissingLibrary", "imports", "ImportError: /x/vllm/_C.abi3.so: undefined symbol: _ZN3c106detail14torchCheckFail", "undefined symbol"),
        Said("NotWritable", "imports", "OSError: [Errno 30] Read-only file system: '/home/vllm/.cache'", "/home/vllm/.cache"),
        Said("NotWritable", "imports", "PermissionError: [Errno 13] Permission denied: '/.config'", "/.config"),
        Said("DiskFull", "weights", "OSError: [Errno 28] No space left on device: '/cache/hub/blob.incomplete'", "/cache"),
        Said("DiskFull", "weights", "OSError: [Errno 122] Disk quota exceeded", "quota"),
        Said("PortTaken", "server", "OSError: [Errno 98] Address already in use", "port"),
        Said("HostOutOfMemory", "weights", "OSError: [Errno 12] Cannot allocate memory", "memory ran out"),
        Said("HostOutOfMemory", "weights", "MemoryError", "memory ran out"),
        Said("HostOutOfMemory", "weights", "(EngineCore pid=7) MemoryError", "memory ran out"),
        Said("HostOutOfMemory", "weights", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 3.00 GiB for an array", "3.00 GiB"),
        Said("HostOutOfMemory", "serving", "terminate called after throwing an instance of 'std::bad_alloc'", "bad_alloc"),
    ),
}  # fmt: skip
