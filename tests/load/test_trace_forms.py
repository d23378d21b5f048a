"""What gateways, tracers and tools make of a log of requests, read as it is; and what is said of what is not read."""

import bz2
import lzma
from pathlib import Path

import pytest

from plimsoll.load.problems import LoadError
from plimsoll.load.traces import Arrived, Requests, open_trace, read_trace

OPENAI = """{"id": "a", "created": 1790000000, "model": "m", "usage": {"prompt_tokens": 374, "completion_tokens": 44, "total_tokens": 418}}
{"id": "b", "created": 1790000004, "model": "m", "usage": {"prompt_tokens": 396, "completion_tokens": 109, "total_tokens": 505}}
"""
ENVOY = """{"start_time": "2026-11-23T10:00:00Z", "duration": 900, "gen_ai.usage.input_tokens": 374, "gen_ai.usage.output_tokens": 44}
{"start_time": "2026-11-23T10:00:04Z", "duration": 700, "gen_ai.usage.input_tokens": 396, "gen_ai.usage.output_tokens": 109}
"""
FLATTENED = "@timestamp,body.usage.prompt_tokens,body.usage.completion_tokens\n2026-11-23T10:00:00Z,374,44\n2026-11-23T10:00:04Z,396,109\n"
INNER = """{"timestamp": 0.0, "input_tokens": 374, "output_tokens": 44, "meta": {"timestamp": 9, "input_tokens": 8}}
{"timestamp": 4.0, "input_tokens": 396, "output_tokens": 109, "meta": {"timestamp": 9, "input_tokens": 8}}
"""
ANSWERED = """{"status": "success", "created": 1790000000, "prompt_tokens": 374, "completion_tokens": 44}
{"status": "success", "created": 1790000004, "prompt_tokens": 396, "completion_tokens": 109}
"""
WARNED = """{"created": 1790000000, "usage": {"prompt_tokens": 374, "completion_tokens": 44}}
{"created": 1790000004, "usage": {"prompt_tokens": 396, "completion_tokens": 109}, "retried": {"timestamp": 7, "prompt_tokens": 8}}
"""
TIMES = "{},input_tokens,output_tokens\n1790000000,374,44\n1790000004,396,109\n"
TWO_FILES = "time,input_tokens,output_tokens\n0,374,44\ntime,input_tokens,output_tokens\n4,396,109\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(OPENAI, id="answers of an OpenAI API, with usage in an object"),
        pytest.param(ENVOY, id="an access log by OpenTelemetry's names"),
        pytest.param(FLATTENED, id="JSON that was made a table"),
        pytest.param(INNER, id="names that occur within an object too"),
        pytest.param(ANSWERED, id="a log that begins with a status, as Prometheus' answers do"),
        pytest.param(WARNED, id="lines of which some have fields of the same names within others"),
        *(pytest.param(TIMES.format(name), id=name) for name in ("created", "created_at", "time", "ts")),
        pytest.param(TWO_FILES, id="two files in one, each with its head"),
    ],
)
def test_logs_are_read_as_gateways_write_them(text: str):
    trace = read_trace(text.splitlines(keepends=True), "x")
    assert list(trace.lines) == [Arrived(0.0, 374, 44), Arrived(4.0, 396, 109)]


@pytest.mark.parametrize(
    "later",
    [
        "2026-11-23 10:00:04 UTC",
        "2026-11-23 10:00:04.000 +0000 UTC",
        "2026-11-23 11:00:04 +0100",
        "2026-11-23 05:00:04 -05:00",
        "2026-11-23 10:00:04,000",
    ],
)
def test_dates_are_read_as_databases_and_languages_write_them(later: str):
    lines = ["time;input_tokens;output_tokens", "2026-11-23T10:00:00Z;374;44", f"{later};396;109"]
    assert list(read_trace(lines, "x").lines) == [Arrived(0.0, 374, 44), Arrived(4.0, 396, 109)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '{"time": 0, "ask": {"input_tokens": 1}, "all": {"input_tokens": 2}, "output_tokens": 3}\n',
            "two columns are called ask.input_tokens and all.input_tokens; keep the one that is meant",
        ),
        (
            '{"time": 0, "usage": {"input_tokens": 1, "output_tokens": 2}}\n{"time": 1, "usage": null}\n',
            "line 2: usage.input_tokens is missing",
        ),
        (
            '{"timestamp": 0, "input_length": 6, "output_length": 5, "more": '
            + '{"a":' * 2000
            + "1"
            + "}" * 2001,
            "line 1: is nested too deep",
        ),
        ('[{"timestamp": 0}]', "is one JSON list; write one object a line, as jq -c '.[]' does"),
    ],
)
def test_what_is_wrong_within_objects_is_named_by_its_path(text: str, said: str):
    with pytest.raises(LoadError) as caught:
        list(read_trace(text.splitlines(keepends=True), "x.jsonl").lines)
    assert said in str(caught.value)


def test_a_log_whose_first_lines_are_of_something_else_is_known_by_those_that_follow():
    """Such as a failure, which has no usage. What such a line lacks is told by its number."""
    lines = [
        '{"ts": 1790000000, "usage": null}\n',
        '{"ts": 1790000001, "usage": {"prompt_tokens": 5, "completion_tokens": 6}}\n',
    ]
    with pytest.raises(LoadError) as caught:
        list(read_trace(lines, "x.jsonl").lines)
    assert (
        str(caught.value)
        == "x.jsonl, line 1: usage.prompt_tokens is missing; each line needs one; jq -c 'select(.usage.prompt_tokens)' keeps those that have it"
    )


def test_of_lines_with_unlike_fields_one_that_names_shared_beginnings_tells_the_columns():
    usual = '{"ts": 0, "input_tokens": 600, "output_tokens": 6}\n'
    shared = '{"ts": 1, "input_tokens": 600, "output_tokens": 6, "hash_ids": [7, 8]}\n'
    assert list(read_trace([usual, shared], "x").lines) == [
        Arrived(0.0, 600, 6),
        Arrived(1.0, 600, 6, (7, 8)),
    ]


@pytest.mark.parametrize(
    ("models", "said"),
    [
        ("a a", None),
        (
            "a b",
            "Model names several models ('a', 'b'), and all requests are taken for one's; keep the lines of the one that is meant",
        ),
        ("d c b a", "('a', 'b', 'c' and 1 more)"),
    ],
)
def test_requests_of_several_models_are_not_taken_for_those_of_one_unsaid(models: str, said: str | None):
    lines = (f"{at},{name},5,6" for at, name in enumerate(models.split()))
    trace = read_trace(["Timestamp,Model,Request tokens,Response tokens", *lines], "x.csv")
    assert isinstance(trace, Requests)
    assert len(trace.notes) == (0 if said is None else 1)
    assert (said or "") in "".join(trace.notes)
    assert len(list(trace.lines)) == len(models.split())


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        (b"\x28\xb5\x2f\xfd", "is packed with zstd; unpack it, as with zstd -dc"),
        (lzma.compress(b"x"), "is packed with xz; unpack it, as with xz -dc"),
        (bz2.compress(b"x"), "is packed with bzip2; unpack it, as with bzip2 -dc"),
        (b"PK\x03\x04", "is a zip archive or a workbook; unpack it, or save it as CSV"),
        (b"PAR1", "is Parquet; write it as CSV"),
    ],
    ids=["zstd", "xz", "bzip2", "zip", "Parquet"],
)
def test_a_file_of_another_form_is_said_to_be_one(tmp_path: Path, begins: bytes, said: str):
    path = tmp_path / "trace.csv"
    path.write_bytes(begins + b"\xff" * 20)
    with pytest.raises(LoadError) as caught, open_trace(path):
        pass
    assert str(caught.value) == f"{path}: {said}"
