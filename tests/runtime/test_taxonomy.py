"""What engines say before they end, and what is made of it."""

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
from tests.runtime.engine_lines import LINES, LONG, NO_CAUSES

CORE = "(EngineCore pid=24426) ERROR 11-21 20:26:01 [core.py:1510] "
VAGUE = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"
EVERY_LINE = [(origin, said) for origin, lines in LINES.items() for said in lines]


@pytest.mark.parametrize(("origin", "said"), EVERY_LINE, ids=lambda one: getattr(one, "word", None))
def test_last_words_become_a_word_a_sentence_and_a_remedy(origin, said):
    for text in (said.line, CORE + said.line):
        failure = explained(["INFO all is well", text, VAGUE], said.phase, 1)
        assert failure.word == said.word, origin
        assert said.told in failure.message
        assert failure.remedy
        assert not re.search(r"\{\w+\}", failure.message)
        assert "\n" not in failure.message


@pytest.mark.parametrize(("origin", "line"), NO_CAUSES.items())
def test_what_only_reads_like_a_word_s_line_is_not_told_by_that_word(origin, line):
    for text in (line, CORE + line):
        assert explained([text], "weights", 1).word == "EngineEnded", origin


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.word} {rule.pattern.pattern[:40]}")
def test_a_real_line_reaches_every_way_that_a_rule_is_fitted(rule):
    for way in ways(rule.pattern.pattern):
        reached = [
            one for _, one in EVERY_LINE if one.word == rule.word and re.search(way, one.line, re.IGNORECASE)
        ]
        assert reached, way


def ways(pattern: str) -> list[str]:
    """What stands between the bars of a pattern that are in no brackets."""
    found, depth = [""], 0
    for token in re.findall(r"\\.|\[(?:\\.|[^]\\])+\]|.", pattern):
        depth += (token == "(") - (token == ")")
        if token == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += token
    return found


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


@pytest.mark.parametrize(
    ("value", "line"),
    [
        ("http://svc-llm:S3cr3t/Pass@proxy.corp:3128", "cannot connect to {}"),
        ("http://svc-llm:S3cr3t/Pass@proxy.corp:3128", "Port could not be cast to integer value as 'S3cr3t'"),
        ("http://me@corp.com:S3cr3t@Pass@proxy.corp:3128", "cannot connect to {}"),
        ("https://ci:S3c@mirror.corp", "401 of {}"),
        ("https://S3cr3tToken@mirror.corp", "401 of {}"),
        ("HTTP://S3cr3tToken@proxy.corp:3128", "cannot connect to {}"),
        ("https://S3cr3tToken:@mirror.corp", "401 of {}, not of S3cr3tToken"),
        ("svc:/S3cr3tPass@proxy.corp:3128", "cannot connect to {}"),
        ("svc-llm:S3cr3t/Pass@proxy.corp:3128", "Port could not be cast to integer value as 'S3cr3t'"),
        ('{"a": "redis://u:S3cr3t@h1", "b": "redis://u:Pass99@h2"}', "{}"),
        (
            '{"a":"redis://u:S3cr3t@h1","b":"redis://u:Pass99@h2"}',
            "redis://u:S3cr3t@h1 and redis://u:Pass99@h2",
        ),
    ],
)
def test_no_password_in_an_address_of_the_environment_is_told(value, line):
    told = scrubbed(Failure("Word", line.format(value), "ask", (line.format(value),)), {"SOMEWHERE": value})
    assert "***" in told.message
    assert not any(word in str(told) for word in ("S3c", "Pass"))


def test_addresses_without_a_password_are_told():
    told = Failure(
        "Word", "http://collector:4317 and https://hub.example/a are away, and image:v0.33.0@sha256:1", "ask"
    )
    environment = {"A": "http://collector:4317", "B": "https://hub.example/a", "C": "image:v0.33.0@sha256:1"}
    assert scrubbed(told, environment) == told


def test_a_digest_makes_no_password_of_what_stands_before_it():
    source = "oci://registry.corp:5000/models/llama@sha256:0123"
    told = Failure("Word", f"{source} has no layers", "check models/llama", ("GET registry.corp:5000",))
    assert scrubbed(told, {"MODEL": source, "OTHER": "hf://org/llama-chat@release"}) == told
