"""What engines say before they end, and what is made of it. The lines are written after what vLLM, torch and the hub's client print."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll_runtime.failure import MOST_BYTES, Failure, scrubbed, termination_message
from plimsoll_runtime.rules import RULES
from plimsoll_runtime.supervisor import memory_kills
from plimsoll_runtime.taxonomy import explained

CORE = "(EngineCore pid=24426) ERROR 11-21 20:26:01 [core.py:1510] "
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total capacity of 79.25 GiB of which"
    " 1.30 GiB is free."
)
VAGUE = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
LONG = (
    "ValueError: To serve at least one request with the model's max seq len (4096), (0.02 GiB KV cache is needed, which is"
    " larger than the available KV cache memory (0.0 GiB). Based on the available memory, the estimated maximum model length"
    " is 896. Try increasing"
)


@pytest.mark.parametrize(
    ("word", "phase", "line", "said"),
    [
        ("BadFlag", "imports", "vllm: error: unrecognized arguments: --swap-space 4", "--swap-space 4"),
        ("BadFlag", "imports", "vllm serve: error: argument --max-num-seqs: invalid int value: 'x'", "--max-num-seqs"),
        ("BadFlag", "imports", "vllm serve: error: ambiguous option: --device could match --device-ids", "--device"),
        ("BadFlag", "imports", "vllm serve: error: --enable-auto-tool-choice requires --tool-call-parser", "requires"),
        ("BadEnvironment", "imports", "ValueError: VLLM_PORT 'tcp://10.0.0.7:80' appears to be a URI. This", "tcp://10.0.0.7:80"),
        ("BadEnvironment", "imports", "ValueError: Unknown vLLM environment variable detected: VLLM_USE_V1", "VLLM_USE_V1"),
        ("BadSetting", "config", "ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).", "28"),
        ("BadSetting", "config", "  Value error, Unknown quantization method: squeezellm. Must be one of ['awq']", "squeezellm"),
        ("TooFewGpus", "config", "ValueError: World size (8) is larger than the number of available GPUs (4) in this node.", "8 GPUs"),
        ("GpuTooOld", "config", "ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89.", "fp8"),
        ("UnknownArchitecture", "config", "ValueError: Model architectures ['FooForCausalLM'] are not supported for now. Supported", "Foo"),
        ("RemoteCode", "config", "ValueError: Please pass the argument `trust_remote_code=True` to allow custom code to be run.", "trusted"),
        ("ModelNotFound", "config", "OSError: acme/nothing is not a local folder and is not a valid model identifier listed on", "acme"),
        ("ModelNotFound", "config", "If you are trying to access a private or gated repo, make sure you are authenticated. Repository Not Found for url: http://hub/api/models/acme/nothing.", "acme/nothing"),
        ("GatedModel", "config", "OSError: You are trying to access a gated repo.", "token"),
        ("GatedModel", "config", "huggingface_hub.errors.GatedRepoError: 403 Client Error. Cannot access gated repo for url", "token"),
        ("GatedModel", "config", "httpx2.HTTPStatusError: Client error '401 Unauthorized' for url 'http://hub/acme/x/resolve/main/config.json'", "token"),
        ("Download", "config", "Client error '407 Proxy Authentication Required' for url 'http://hub/acme/x/resolve/main/config.json'", "407"),
        ("Download", "weights", "requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub', port=443): Max retries exceeded", "hub"),
        ("Download", "config", "httpx2.HTTPStatusError: Server error '503 Service Unavailable' for url 'http://hub/api/models/acme/x'", "503"),
        ("Download", "weights", "huggingface_hub.errors.HfHubHTTPError: 429 Too Many Requests for url: http://hub/acme/x/resolve/main/model.safetensors", "429"),
        ("Download", "config", "httpx2.ConnectError: [Errno 111] Connection refused", "Connection refused"),
        ("NoEngine", "imports", "/usr/bin/python3: No module named vllm", "no engine"),
        ("NoEngine", "imports", "ModuleNotFoundError: No module named 'vllm'", "no engine"),
        ("NoEngine", "imports", "FileNotFoundError: [Errno 2] No such file or directory: 'ray'", "'ray'"),
        ("MissingLibrary", "config", "  Value error, Failed to import Ray: No module named 'ray'.Please install Ray with `pip install ray`. [type=value_error", "Ray"),
        ("BadSetting", "engine", "ValueError: current platform cpu does not support ray.", "platform cpu"),
        ("BadEnvironment", "imports", "ray.exceptions.AuthenticationError: Token authentication is enabled but no authentication token was found. Please", "a token"),
        ("NotWritable", "imports", "OSError: [Errno 30] Read-only file system: '/home/vllm/.cache'", "/home/vllm/.cache"),
        ("NotWritable", "imports", "PermissionError: [Errno 13] Permission denied: '/.config'", "/.config"),
        ("MissingLibrary", "imports", "ModuleNotFoundError: No module named 'cv2'", "cv2"),
        ("MissingLibrary", "imports", "Failed to import from vllm._C: ImportError('/lib/x86_64-linux-gnu/libnuma.so.1: file too short')", "libnuma.so.1"),
        ("MissingLibrary", "engine", "AttributeError: '_OpNamespace' '_C' object has no attribute 'init_cpu_memory_env'", "_C"),
        ("Driver", "engine", "RuntimeError: The NVIDIA driver on your system is too old (found version 12040).", "12040"),
        ("MissingLibrary", "engine", "ImportError: libnuma.so.1: cannot open shared object file: No such file or directory", "libnuma.so.1"),
        ("GpuMemoryTaken", "engine", "ValueError: Free memory on device cuda:0 (12.5/79.25 GiB) on startup is less than desired GPU memory utilization (0.92, 72.91 GiB).", "12.5 of 79.25"),
        ("GpuMemoryTaken", "profile", "AssertionError: Error in memory profiling. Initial free memory 70.1 GiB, current free memory 75.0 GiB.", "gave"),
        ("WeightsDoNotFit", "weights", OOM, "another 1.96 GiB"),
        ("ProfileOutOfMemory", "profile", OOM, "first run"),
        ("GraphCapture", "warmup", OOM, "graphs"),
        ("CudaOutOfMemory", "serving", OOM, "requests were answered"),
        ("NoKvRoom", "profile", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`", "no room"),
        ("NoKvRoom", "profile", "ValueError: Available memory on node 0 (20.1/23.54 GiB) on kv cache allocation is less than requested memory for kv (64.0 GiB).", "64.0 GiB is asked"),
        ("HostMemoryTaken", "engine", "ValueError: Available memory on node 0 (3.1/23.54 GiB) on startup is less than desired CPU memory utilization (0.92", "3.1 of 23.54"),
        ("RequestLongerThanPool", "profile", LONG, "4096 tokens needs 0.02 GiB of KV cache, and 0.0 GiB are there; 896 tokens would fit"),
        ("RequestLongerThanPool", "profile", "ValueError: The model's max seq len (29000) is larger than the maximum number of tokens that can be stored in KV cache (23648).", "23648 tokens would fit"),
        ("TooManySequences", "profile", "ValueError: max_num_seqs (1024) exceeds available Mamba cache blocks (939). Each", "939"),
        ("BadCheckpoint", "weights", "safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge", "HeaderTooLarge"),
        ("BadCheckpoint", "weights", "AssertionError: Attempted to load weight (torch.Size([512])) into parameter (torch.Size([256]))", "512"),
        ("BadCheckpoint", "weights", "    assert param_data.shape == loaded_weight.shape", "another shape"),
        ("BadCheckpoint", "weights", "(Worker pid=7) ERROR 11-22 [multiproc_executor.py:953] ValueError: Following weights were not initialized from checkpoint: {'model.layers.3.input_layernorm.weight'}", "input_layernorm"),
        ("BadCheckpoint", "weights", "FileNotFoundError: Weight files referenced in index but missing: {'model-2.safetensors'}", "model-2"),
        ("BadCheckpoint", "config", "OSError: It looks like the config file at '/model/config.json' is not a valid JSON file.", "config.json"),
        ("BadCheckpoint", "config", "OSError: Can't load tokenizer for '/model'. If you were trying to load it from", "tokenizer"),
        ("BadCheckpoint", "config", "  Value error, Expecting value: line 1 column 93 (char 92) [type=value_error, input_value=ArgsKwargs((), {'model_co", "line 1 column 93"),
        ("BadCheckpoint", "config", "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)", "line 1 column 1"),
        ("BadSetting", "weights", "ValueError: Load format `nope` is not supported", "nope"),
        ("BadCheckpoint", "weights", "RuntimeError: Cannot find any model weights with `/model`", "/model"),
        ("DiskFull", "weights", "OSError: [Errno 28] No space left on device: '/cache/hub/blob.incomplete'", "/cache"),
        ("SharedMemory", "engine", "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of insufficient shared memory", "share"),
        ("SharedMemory", "engine", "(EngineCore pid=7) ERROR 11-22 [core.py:1510] RuntimeError: Insufficient space in /dev/shm for shared-memory allocation: 160 MiB required, 0 MiB free. Increase", "160 MiB required"),
        ("Nccl", "engine", "torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:3384, unhandled system error", "NCCL"),
        ("Nccl", "engine", "torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (a, 29501).", "29501"),
        ("StartTimeout", "weights", "TimeoutError: Timed out waiting for engine core processes to start. This is often caused", "in time"),
        ("StartTimeout", "imports", "Exception: The current node timed out during startup. This could happen because some of the raylet", "Ray"),
        ("StartTimeout", "engine", "RuntimeError: No node info found matching attributes: '10.0.0.7' when trying to resolve node to connect to.", "no node of Ray"),
        ("StartTimeout", "engine", "ConnectionError: Failed to connect to Ray cluster at 10.0.0.7:6379", "no node of Ray"),
        ("StartTimeout", "engine", "ValueError: Cannot provide a placement group requiring 16 GPUs (placement_group_specs=[{'GPU': 1.0}]) within 1800 seconds.", "16 GPUs"),
        ("TooFewGpus", "engine", "ValueError: Current node has no GPU available. current_node_resource={'CPU': 8.0}. vLLM engine cannot start without GPU.", "no GPU in this pod"),
        ("Nccl", "imports", "Exception: No node info found for head node in GCS. Did the head node or gcs start successfully?", "head node"),
        ("PortTaken", "server", "OSError: [Errno 98] Address already in use", "port"),
        ("WorkerLost", "serving", "ERROR 11-21 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly (exit code: -9), shutting down executor.", "VllmWorker-0"),
        ("WorkerLost", "serving", "ERROR 11-22 [core_client.py:600] Engine core proc EngineCore_DP0 died unexpectedly, shutting down client.", "core process ended"),
        ("WorkerLost", "serving", "2026-11-22 18:06:30,960	ERR scripts.py:118 -- ----- BEGIN raylet.out tail (exit code(s)=-9 (signal 9)) -----", "raylet, exit code -9 (signal 9)"),
        ("WorkerLost", "serving", "2026-11-22 18:06:30,959	ERR scripts.py:1307 -- Some Ray subprocesses exited unexpectedly:", "a process of Ray ended"),
        ("Hang", "serving", "TimeoutError: RPC call to execute_model timed out.", "a step (execute_model)"),
        ("GpuMemoryTaken", "engine", "torch.AcceleratorError: CUDA error: out of memory", "before the engine put any weights"),
        ("WeightsDoNotFit", "weights", "torch.AcceleratorError: CUDA error: out of memory", "weights do not fit"),
        ("CudaOutOfMemory", "serving", "torch.AcceleratorError: CUDA error: out of memory", "requests were answered"),
        ("WeightsDoNotFit", "engine", OOM, "another 1.96 GiB"),
        ("StartTimeout", "engine", "torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.", "1/2 clients"),
        ("Nccl", "engine", "RuntimeError: Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:144] no error", "connectFullMesh"),
        ("MissingLibrary", "profile", "torch.AcceleratorError: CUDA error: no kernel image is available for execution on the device", "no kernel image"),
        ("MissingLibrary", "profile", "RuntimeError: Failed to find C compiler. Please specify via CC environment variable or set triton.knobs.build.impl.", "C compiler"),
        ("MissingLibrary", "profile", "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found", "nvcc"),
        ("MissingLibrary", "profile", "RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist", "nvcc"),
        ("MissingLibrary", "profile", "FileNotFoundError: [Errno 2] No such file or directory: 'ninja'", "'ninja'"),
        ("MissingLibrary", "profile", "RuntimeError: Ninja is required to load C++ extensions (pip install ninja to get it)", "Ninja"),
        ("Driver", "imports", "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized", "wait for a service"),
        ("Driver", "engine", "RuntimeError: CUDA driver initialization failed, you might not have a CUDA gpu.", "initialization failed"),
        ("BadSetting", "engine", "ValueError: No valid attention backend found for cuda with AttentionSelectorConfig(head_size=80). Reasons: {", "head_size=80"),
        ("GpuFault", "serving", "torch.AcceleratorError: CUDA error: an illegal memory access was encountered", "illegal memory access"),
        ("HostOutOfMemory", "weights", "RuntimeError: [enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 6 bytes", "memory ran out"),
    ],
)  # fmt: skip
def test_last_words_become_a_word_a_sentence_and_a_remedy(word, phase, line, said):
    for text in (line, CORE + line):
        failure = explained(["INFO all is well", text, VAGUE], phase, 1)
        assert failure.word == word
        assert said in failure.message
        assert failure.remedy
        assert not re.search(r"\{\w+\}", failure.message)
        assert "\n" not in failure.message


def test_a_step_that_took_too_long_is_no_lost_worker_and_one_whose_worker_met_a_fault_is_no_hang():
    late = ["TimeoutError: RPC call to sample_tokens timed out.", DEAD]
    assert explained(late, "serving", 1).word == "Hang"
    assert explained([*late, "NCCL error: unhandled system error"], "serving", 1).word == "Nccl"


def test_gpus_that_wait_for_their_fabric_are_told_with_the_service_that_they_wait_for():
    waits = "UserWarning: CUDA initialization: Unexpected error. Error 802: system not yet initialized"
    told = explained([waits, "RuntimeError: Failed to infer device type"], "imports", 1)
    assert (told.word, "nvidia-fabricmanager" in told.remedy) == ("Driver", True)


def test_what_is_said_of_a_line_leaves_out_who_logged_it_where():
    failure = explained(
        [CORE + "OSError: acme/x is not a local folder and is not a valid model identifier"], "config", 1
    )
    assert failure.message.startswith("there is no such model: OSError: acme/x")
    warned = "/x/huggingface_hub/file_download.py:773: UserWarning: Not enough free disk space to download the file."
    assert explained([warned], "weights", 1).message.startswith("a disk is full: Not enough free disk space")


@pytest.mark.parametrize("before", ["", CORE])
def test_what_an_error_says_is_told_and_not_the_line_of_the_program_that_says_it(before):
    lines = [
        '  File "/x/transformers/configuration_utils.py", line 733, in _get_config_dict',
        "    raise OSError(f\"It looks like the config file at '{resolved_config_file}' is not a valid JSON file.\")",
        "OSError: It looks like the config file at '/model/config.json' is not a valid JSON file.",
    ]
    failure = explained([before + line for line in lines], "config", 1)
    assert failure.word == "BadCheckpoint"
    assert failure.message.endswith(
        "OSError: It looks like the config file at '/model/config.json' is not a valid JSON file."
    )
    assert explained(lines[:2], "config", 1).word == "BadCheckpoint"  # where nothing else is left of it


@pytest.mark.parametrize("before", ["", CORE])
@pytest.mark.parametrize("frozen", [False, True])
def test_what_a_traceback_quotes_is_no_cause_while_something_else_was_said(before, frozen):
    """The rule for a full disk comes before that for a bad checkpoint."""
    quote = "    raise OSError(errno.ENOSPC, 'No space left on device') if full else load(name)"
    lines = [
        *(['  File "<frozen importlib._bootstrap>", line 1331, in _find_and_load'] if frozen else []),
        '  File "/x/vllm/loader.py", line 7, in load_weights',
        *([] if frozen else [quote]),
        "ValueError: There is no module or parameter named 'mlp' in X",
    ]
    assert explained([before + line for line in lines], "weights", 1).word == "BadCheckpoint"
    assert explained([before + line for line in lines[:-1]], "weights", 1).word == (
        "EngineEnded" if frozen else "DiskFull"
    )


def test_an_assertion_says_its_own_line_and_comes_before_what_only_follows_from_it():
    lines = [
        CORE + '  File "/x/vllm/linear.py", line 431, in weight_loader',
        CORE + "    assert param_data.shape == loaded_weight.shape",
        CORE + "AssertionError",
        "ERROR 11-21 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly",
    ]
    assert explained(lines, "weights", 1).word == "BadCheckpoint"


@pytest.mark.parametrize(
    "line",
    [
        "requests.exceptions.HTTPError: 403 Client Error: Forbidden for url: http://pictures/cat.png",
        "HTTPSConnectionPool(host='pictures', port=443): Max retries exceeded",
        "ValueError: There is no module or parameter named 'mlp' in the adapter",
        "json.decoder.JSONDecodeError: Expecting value: line 1 column 1 (char 0)",
    ],
)
def test_what_is_said_of_a_request_or_an_adapter_does_not_end_an_engine_that_serves(line):
    died = "ERROR 11-21 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly"
    assert explained([line, died], "serving", 1).word == "WorkerLost"


def test_a_header_that_asks_for_all_of_memory_is_a_bad_file_and_no_small_machine():
    lines = [
        '  File "/x/vllm/transformers_utils/utils.py", line 113, in parse_safetensors_file_metadata',
        '    metadata = json.loads(f.read(length_of_metadata).decode("utf-8"))',
        "MemoryError",
    ]
    assert explained(lines, "config", 1).word == "BadCheckpoint"
    assert explained(lines[2:], "config", 1).word == "HostOutOfMemory"


def test_a_kernel_that_killed_for_memory_is_believed_before_any_line():
    failure = explained(["EngineDeadError: EngineCore encountered an issue"], "serving", 137, memory_kills=1)
    assert failure.word == "HostOutOfMemory"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("memory.events", "low 0\noom 3\noom_kill 2\noom_group_kill 0\n"),
        ("memory/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n"),
    ],
)
def test_kills_for_memory_are_counted_in_either_hierarchy_of_control_groups(file, text, tmp_path):
    assert memory_kills(tmp_path) == 0
    path = tmp_path / "sys/fs/cgroup" / file
    path.parent.mkdir(parents=True)
    path.write_text(text)
    assert memory_kills(tmp_path) == 2


def test_an_end_that_nobody_explains_is_told_with_its_code_its_phase_and_its_last_error():
    failure = explained(["KeyError: 'x'", "bye"], "weights", 1)
    assert failure.word == "EngineEnded"
    assert (
        failure.message
        == "the engine ended with exit code 1 in the phase weights of its start: KeyError: 'x'"
    )
    assert explained([], "serving", 139).message == "the engine was killed by signal 11 while it served"


@pytest.mark.parametrize(
    ("number", "cure"), [(4, "nodeSelector"), (7, "/dev/shm"), (9, "kubectl describe"), (11, "kubectl logs")]
)
def test_an_engine_that_a_signal_killed_is_told_with_what_sends_such_a_signal(number, cure):
    assert cure in explained([], "serving", 128 + number).remedy
    worker = f"ERROR 11-21 [multiproc_executor.py:316] Worker proc VllmWorker-0 died unexpectedly (exit code: -{number}), shutting"
    failure = explained([worker], "weights", 1)
    assert failure.word == "WorkerLost"
    assert cure in failure.remedy


DEAD = "(APIServer pid=7) ERROR 11-22 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See"


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ([], "the engine's core process ended without a word"),
        (["ERROR 11-22 [core.py:9] KeyError: 'x'"], "the engine's core process ended: KeyError: 'x'"),
    ],
)
def test_a_core_that_is_gone_is_told_with_its_last_error_and_not_with_where_to_look_for_one(before, said):
    failure = explained([*before, DEAD], "serving", 1)
    assert (failure.word, failure.message) == ("WorkerLost", said)
    assert "kubectl describe" in failure.remedy
    assert "EngineDeadError" in failure.evidence[0]


def test_what_a_configuration_is_refused_for_is_told_and_not_how_many_errors_it_has():
    lines = [
        "pydantic_core._pydantic_core.ValidationError: 1 validation error for VllmConfig",
        "  Value error, max_num_batched_tokens (64) must be larger [type=value_error, input_value=ArgsKwargs(())]",
    ]
    told = "the engine refuses its configuration: max_num_batched_tokens (64) must be larger"
    assert explained(lines, "config", 1).message == told


@pytest.mark.parametrize("before", ["", "(EngineCore pid=7) ERROR 11-22 07:38:39 [core.py:953] "])
def test_every_field_that_cannot_be_so_is_named_with_what_it_is(before):
    lines = [
        "pydantic_core._pydantic_core.ValidationError: 2 validation errors for SchedulerConfig",
        "max_num_batched_tokens",
        "  Input should be greater than or equal to 1 [type=greater_than_equal, input_value=0, input_type=int]",
        "    For further information visit https://errors.pydantic.dev/2.14/v/greater_than_equal",
        "max_num_seqs",
        "  Input should be less than or equal to 1 [type=less_than_equal, input_value='a b', input_type=str]",
    ]
    failure = explained([before + line for line in lines], "config", 1)
    assert failure.word == "BadSetting"
    assert failure.message == (
        "the engine refuses its configuration: max_num_batched_tokens is 0: it should be greater than or equal to 1;"
        " max_num_seqs is 'a b': it should be less than or equal to 1"
    )
    assert "max_num_seqs" in explained([*lines[:2], lines[2], *lines[4:]], "config", 1).message


def test_the_line_that_tells_comes_first_in_the_evidence():
    lines = ["RuntimeError: first", CORE + LONG, VAGUE]
    assert (
        explained(lines, "profile", 1).evidence[0].endswith("Try increasing") is False
    )  # long lines are cut
    assert "4096" in explained(lines, "profile", 1).evidence[0]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.word)
def test_words_are_reasons_that_conditions_may_have(rule):
    assert rule.word.isalnum()
    assert rule.word[0].isupper()
    assert not rule.remedy.endswith(".")
    assert not rule.message.endswith(".")


@given(st.lists(st.text(max_size=3000), max_size=60), st.text(max_size=3000))
def test_a_termination_message_fits_and_is_json_whatever_an_engine_says(lines, text):
    failure = explained([*lines, f"vllm: error: unrecognized arguments: {text}"], "imports", 2)
    told = termination_message(failure)
    assert len(told.encode()) <= MOST_BYTES
    assert set(json.loads(told)) == {"word", "message", "remedy", "evidence"}


def test_colours_and_control_characters_do_not_reach_the_message():
    told = termination_message(Failure("Word", "a\x1b[31mb\x07", "r", ("\x1b[1;36m(x)\x1b[0m y",)))
    assert json.loads(told)["message"] == "ab"
    assert json.loads(told)["evidence"] == ["(x) y"]


def test_what_the_environment_keeps_secret_is_not_told():
    failure = Failure("Word", "401 for hf_abcdef", "ask", ("GET /x?token=hf_abcdef", "tokenizer none"))
    told = scrubbed(failure, {"HF_TOKEN": "hf_abcdef", "TOKENIZERS_PARALLELISM": "none", "HOME": "ask"})
    assert told == Failure("Word", "401 for ***", "ask", ("GET /x?token=***", "tokenizer none"))


def test_no_line_of_what_the_environment_keeps_secret_is_told_either():
    secret = "hf_first\nhf_second\n"
    failure = Failure("Word", f"{secret!r} is refused", "hf_second", (secret,))
    told = scrubbed(failure, {"HF_TOKEN": secret, "OCI_REGISTRY_AUTH": "me:mypass"})
    assert told == Failure("Word", r"'***\n***\n' is refused", "***", ("***",))
    assert (
        scrubbed(failure._replace(message="me:mypass"), {"OCI_REGISTRY_AUTH": "me:mypass"}).message == "***"
    )
