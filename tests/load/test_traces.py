"""Traces in both forms, gzipped or not; what is wrong is named by its line."""

import gzip
from pathlib import Path

import pytest

from plimsoll.load.lengths import Fixed
from plimsoll.load.problems import LoadError
from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import Arrived, Rates, Requests, open_trace, read_trace
from plimsoll.load.workload import Ask, Replay, Workload, asks

REQUESTS = "arrival_s,input_tokens,output_tokens\n10.0,374,44\n10.5,396,109\n14.0,0,0\n"
BLOCKS = "arrival_s,input_tokens,output_tokens,prefix_block_ids\n0.0,1100,500,0 1 2\n0.5,600,4,0 7\n"
RATES = "t_s,rate_rps,cv\n0,2.5,1.1\n600,0,0\n1200,4,2\n"


def written(folder: Path, text: str, name: str = "trace.csv") -> Path:
    path = folder / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize("name", ["trace.csv", "trace.csv.gz"])
def test_requests_are_read_from_their_first_moment_on(tmp_path: Path, name: str):
    with open_trace(written(tmp_path, REQUESTS, name)) as trace:
        assert isinstance(trace, Requests)
        assert list(trace.lines) == [Arrived(0.0, 374, 44), Arrived(0.5, 396, 109), Arrived(4.0, 1, 1)]


def test_blocks_that_prompts_share_are_read():
    trace = read_trace(BLOCKS.splitlines(), "x")
    assert [one.blocks for one in trace.lines if isinstance(one, Arrived)] == [(0, 1, 2), (0, 7)]


def test_rates_are_read():
    trace = read_trace(RATES.splitlines(), "x")
    assert isinstance(trace, Rates)
    assert list(trace.lines) == [Rate(0, 2.5, 1.1), Rate(600, 0, 0), Rate(1200, 4, 2)]


AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""
AZURE_2024 = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.009930+00:00,374,44\n2024-05-10 00:00:04.32+00:00,396,109\n"
MOONCAKE = """{"timestamp": 0, "input_length": 374, "output_length": 44, "hash_ids": [0, 1]}

{"timestamp": 4310, "input_length": 396, "output_length": 109, "hash_ids": [0, 14]}
"""
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,374,44,418,Conversation log
9.31,ChatGPT,396,109,505,Conversation log
"""
BAILIAN = """{"chat_id": 1, "parent_chat_id": -1, "timestamp": 61.1, "input_length": 374, "output_length": 44, "hash_ids": [0]}
{"chat_id": 2, "parent_chat_id": 1, "timestamp": 65.41, "input_length": 396, "output_length": 109, "hash_ids": [0, 3]}
"""
LITELLM = """request_id,spend,prompt_tokens,completion_tokens,startTime,endTime
a,0.1,374,44,2026-11-23T10:00:00Z,2026-11-23T10:00:09Z
b,0.1,396,109,2026-11-23T11:00:04.31+01:00,2026-11-23T10:00:09Z
"""
PLAIN = "arrival_s,input_tokens,output_tokens\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(AZURE, id="as Azure publishes them, to a tenth of a microsecond"),
        pytest.param(AZURE_2024, id="as Azure publishes them since 2024, with a zone"),
        pytest.param(
            MOONCAKE, id="as Mooncake publishes them, a line of JSON each, in ms, with an empty line"
        ),
        pytest.param(
            BAILIAN, id="as Qwen-Bailian publishes them, in seconds, with blocks of another size than ours"
        ),
        pytest.param(BURSTGPT, id="as BurstGPT publishes them, with columns that nobody needs"),
        pytest.param(LITELLM, id="as a gateway logs them, in two zones"),
        pytest.param(PLAIN + "1790000000,374,44\n1790000004.31,396,109\n", id="Unix seconds"),
        pytest.param(PLAIN + "1790000000000,374,44\n1790000004310,396,109\n", id="Unix ms"),
        pytest.param(PLAIN + "1790000000000000,374,44\n1790000004310000,396,109\n", id="Unix us"),
        pytest.param(
            "arrival_ms,prompt_tokens,completion_tokens\n0,374,44\n4310,396,109\n", id="ms that say so"
        ),
        pytest.param(PLAIN + "0,374,44,\n4.31,396,109,\n", id="a comma at the end of each line"),
        pytest.param(
            "  " + MOONCAKE.replace(', "hash_ids": [0, 1]', "").replace(', "hash_ids": [0, 14]', ""),
            id="JSON after blanks",
        ),
        pytest.param(PLAIN + "0,374.0,44.0\n4.31,396.0,109.0\n", id="whole numbers that a table made floats"),
        pytest.param((PLAIN + "0,374,44\n4.31,396,109\n").replace(",", ";"), id="semicolons"),
        pytest.param((PLAIN + "0,374,44\n4.31,396,109\n").replace(",", "\t"), id="tabs"),
        pytest.param(
            "\ufeff" + PLAIN + "0,374,44\r\n4.31,396,109\r\n", id="a mark of byte order, and Windows' lines"
        ),
    ],
)
@pytest.mark.parametrize("name", ["trace.csv", "trace.jsonl.gz", "packed"])
def test_requests_are_known_under_the_names_that_others_give_them(tmp_path: Path, text: str, name: str):
    packed = gzip.compress(text.encode()) if name == "packed" else None
    path = written(tmp_path, text, name)
    if packed:
        path.write_bytes(packed)
    with open_trace(path) as trace:
        first, second = trace.lines
    assert isinstance(first, Arrived)
    assert isinstance(second, Arrived)
    assert (first.at, first.input_tokens, first.output_tokens) == (0.0, 374, 44)
    assert (round(second.at, 1), second.input_tokens, second.output_tokens) == (4.3, 396, 109)
    assert (first.blocks, second.blocks) == (((0, 1), (0, 14)) if text is MOONCAKE else ((), ()))


def test_rates_without_a_coefficient_are_of_independent_arrivals_and_may_have_dates():
    dated = read_trace("t_s,rate_rps\n2026-11-23T10:00,2\n2026-11-23T10:10,3\n".splitlines(), "x")
    assert list(dated.lines) == [Rate(0, 2, 1), Rate(600, 3, 1)]


@pytest.mark.parametrize("head", ["timestamp_ms", "arrival_ms"])
def test_rates_whose_times_say_that_they_are_ms_are_no_thousand_times_longer(head: str):
    slow = read_trace(f"{head},rate_rps\n0,1\n60000,2\n".splitlines(), "x")
    assert list(slow.lines) == [Rate(0, 1, 1), Rate(60, 2, 1)]


@pytest.mark.parametrize(
    ("times", "second_s", "said"),
    [
        ("0 3000 4310", 3.0, "ms are taken, as in Mooncake's traces"),
        ("0 0 0", 0.0, "ms are taken"),
        ("0.0 3000.0 4310.0", 3.0, "ms are taken"),
        ("0.2 3.2 4.1", 3.0, "seconds are taken, as it holds fractions"),
        ("0 3 5", 3.0, "seconds are taken, as by ms 400 requests/s would come"),
        ("1790000000 1790000003 1790009000", 3.0, "seconds are taken, as it holds Unix times"),
        ("1790000000000 1790000003000 1790009000000", 3.0, None),
        ("2026-11-23T10:00:00 2026-11-23T10:00:03 2026-11-23T10:00:09", 3.0, None),
    ],
)
def test_whether_times_that_do_not_say_it_are_ms_or_seconds_is_seen_from_them_and_told(
    times: str, second_s: float, said: str | None
):
    """Mooncake's names, which others write too: a thousand times too fast would be no load that ever was."""
    lines = (f"{time},374,44" for time in times.split())
    trace = read_trace(["timestamp,input_length,output_length", *lines], "x.csv")
    assert isinstance(trace, Requests)
    assert len(trace.notes) == (0 if said is None else 1)
    for note in trace.notes:
        assert note.startswith(f"nothing says what timestamp counts: {said}"), (
            "whoever tells it names the file"
        )
        assert note.endswith("name it arrival_s or arrival_ms to say which")
    assert [one.at for one in trace.lines][1] == pytest.approx(second_s)


def test_times_whose_unit_is_told_by_a_name_need_no_word():
    for head in (
        PLAIN,
        "timestamp,prompt_tokens,completion_tokens\n",
        "arrival_ms,input_length,output_length\n",
    ):
        trace = read_trace(f"{head}0,1,1\n1,1,1\n".splitlines(), "x")
        assert isinstance(trace, Requests)
        assert not trace.notes


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty; a trace has requests (arrival_s,input_tokens,output_tokens[,prefix_block_ids])"),
        ("\n\n", "is empty"),
        ("time,in,out\n1,2,3\n", "the head is 'time,in,out': no column is input_tokens or output_tokens"),
        ("timestamp,prompt_tokens\n1,2\n", "no column is output_tokens"),
        ("t_s,in,out\n1,2,3\n", "the head is 't_s,in,out': no column is rate_rps"),
        ('{"t_s": 0}\n', "no column is rate_rps"),
        ("0,100,20\n1,100,20\n", "the first line is '0,100,20', and should name the columns"),
        ("2026-11-02T08:00:00,100,20,u1\n", "and should name the columns"),
        (
            "time,promt_tokens,output_tokens\n1,2,3\n",
            "no column is input_tokens ('promt_tokens' is near it: call it so)",
        ),
        ("time,prompt,completion\n1,2,3\n", "no column is input_tokens or output_tokens"),
        (
            "time,prompt_tokens,completion\n1,2,3\n",
            "no column is output_tokens ('completion' is near it: call it so);",
        ),
        (
            "timestmp,prompt_tokens,output_tokens\n1,2,3\n",
            "no column is arrival_s ('timestmp' is near it: call it so);",
        ),
        ("time,inputtokens\n1,2\n", "no column is output_tokens; without inputtokens too, lengths are drawn"),
        ("rate_rps,cv\n1,1\n", "no column says when"),
        ("minute,requests\n1,1\n", "no column says when, as time does; a trace has"),
        (
            '{\n  "results": {}\n}\n',
            "is a JSON document over several lines; write one object a line, as jq -c does",
        ),
        ('{"timestamp": 0, "input_length": 6}\n', "no column is output_tokens"),
        ('[{"timestamp": 0}]', "is one JSON list; write one object a line"),
        ('{"timestamp": 0, "input_length": 6, "output_length": 5}\n{"timest', "line 2: is no JSON"),
        ('{"timestamp": 0, "input_length": 6, "output_length": 5}\n5\n', "line 2: must be a JSON object"),
        (PLAIN + "0,5,5\n1,x,5\n", "line 3: input_tokens is 'x'; it must be a whole number of tokens"),
        (PLAIN + "0,5,5\n1,nan,5\n", "line 3: input_tokens is 'nan'"),
        (PLAIN + "0,5,5\n1,-3,5\n", "line 3: input_tokens is '-3'"),
        (PLAIN + "0,5,5\n1,2.5,5\n", "line 3: input_tokens is '2.5'"),
        (PLAIN + "0,5,1e23\n", "line 2: output_tokens is '1e23'; it must be a whole number of tokens, 0 to"),
        (PLAIN + "0,5\n", "line 2: output_tokens is missing"),
        (PLAIN + "0,1,024,50\n", "line 2: has more fields than the head names; quote what holds a separator"),
        ("\n\n" + PLAIN + "0,5,5\n1,x,5\n", "line 5: input_tokens is 'x'"),
        ('\n\n{"timestamp": 0, "input_length": 6, "output_length": 5}\n{"timest', "line 4: is no JSON"),
        ("t_s,rate_rps\n5,1\n5,2\n", "line 3: is of the same time as a line above"),
        ('{"timestamp": 0, "input_length": ' + "[" * 100_000, "line 1: is nested too deep"),
        (
            '{"timestamp": 0, "input_length": 6, "output_length": 5}\n' + "[" * 100_000,
            "line 2: is nested too deep",
        ),
        (PLAIN + "0,,5\n", "line 2: input_tokens is missing"),
        (PLAIN + "5,5,5\n4,5,5\n", "line 3: is before the line above; sort it by time"),
        (PLAIN + "nan,5,5\n", "arrival_s is 'nan'; it must be a number that is not negative, or a date"),
        (PLAIN + "-1,5,5\n", "arrival_s is '-1'; it must be a number that is not negative, or a date"),
        (PLAIN + "soon,5,5\n", "arrival_s is 'soon'; it must be seconds, a Unix time or a date as 2026-"),
        (
            "arrival_s,input_tokens,output_tokens,prefix_block_ids\n0,5,5,a b\n",
            "line 2: prefix_block_ids is 'a b'",
        ),
        ("t_s,rate_rps,cv\n0,-1,1\n", "rate_rps is '-1'; it must be a number that is not negative"),
        (
            "t_s,rate_rps,cv\n0,1e9,1\n",
            "rate_rps is '1e9'; it must be a number that is not negative, at most 1,000,000",
        ),
        ("t_s,rate_rps,cv\n0,1,inf\n", "cv is 'inf'"),
        (
            "arrival_s,input_tokens,Input Tokens,output_tokens\n0,5,6,5\n",
            "two columns are called input_tokens and Input Tokens; keep the one that is meant",
        ),
        ("t_s,rate_rps,rate_rps\n0,1,2\n", "two columns are called rate_rps and rate_rps"),
        (
            PLAIN + '0,5,5\n1,"5"6,5\n',
            "line 3: is no CSV: ',' expected after '\"'; is a quote left open, or not written twice within a value?",
        ),
        ('"arrival_s" ,input_tokens,output_tokens\n0,5,5\n', "line 1: is no CSV"),
        (
            '{"timestamp": 0, "input_length": 6, "output_length": 5}\n{"timestamp": 0,\n',
            "line 2: is no JSON: Expecting property name enclosed in double quotes at character 17",
        ),
    ],
)
def test_what_is_wrong_is_named_by_its_line_and_column_with_what_would_be_right(text: str, said: str):
    with pytest.raises(LoadError) as caught:
        list(read_trace(text.splitlines(keepends=True), "x.csv").lines)
    assert said in str(caught.value)
    assert str(caught.value).startswith("x.csv")


def test_a_file_that_cannot_be_read_is_said_to_be_one(tmp_path: Path):
    cut, noise = tmp_path / "cut.csv.gz", tmp_path / "noise.csv"
    cut.write_bytes(gzip.compress(REQUESTS.encode() * 100)[:-20])
    noise.write_bytes(b"\xc7\x00\xff" * 99)
    for path in (tmp_path / "no.csv", cut, noise, tmp_path):
        with pytest.raises(LoadError, match=path.name), open_trace(path) as trace:
            list(trace.lines)


@pytest.mark.parametrize("ends", [b"", b"\xff" * 8], ids=["cut off", "damaged"])
def test_a_gzipped_file_that_is_not_whole_is_not_said_to_be_of_another_form(tmp_path: Path, ends: bytes):
    path, packed = tmp_path / "cut.csv.gz", gzip.compress(REQUESTS.encode())
    path.write_bytes(packed[:-8] + ends)
    said = r"is gzipped, and cut off or damaged .*; copy it anew"
    with pytest.raises(LoadError, match=said), open_trace(path) as trace:
        list(trace.lines)


def test_a_file_of_utf_16_is_said_to_be_one(tmp_path: Path):
    path = tmp_path / "sheet.csv"
    path.write_bytes(REQUESTS.encode("utf-16"))
    with pytest.raises(LoadError, match=r"is text in UTF-16, .* save it as UTF-8"), open_trace(path):
        pass


def test_columns_that_are_called_alike_do_no_harm_where_they_are_not_read():
    trace = read_trace(
        "arrival_s,who,Who,timestamp,Timestamp,input_tokens,output_tokens\n3,a,b,5,6,374,44\n".splitlines(),
        "x",
    )
    assert list(trace.lines) == [Arrived(0.0, 374, 44)]


def test_spaces_between_columns_do_no_harm():
    spaced = 'arrival_s, "input_tokens", output_tokens, who\n0.0, 374, 44, "a, b"\n4, "396", 109, c\n'
    trace = read_trace(spaced.splitlines(keepends=True), "x")
    assert list(trace.lines) == [Arrived(0.0, 374, 44), Arrived(4.0, 396, 109)]


def test_what_fails_beside_a_trace_is_not_said_to_be_the_trace(tmp_path: Path):
    with pytest.raises(ConnectionResetError), open_trace(written(tmp_path, REQUESTS)):
        raise ConnectionResetError


def test_a_file_is_unpacked_for_what_it_is_and_not_for_its_name(tmp_path: Path):
    plain = tmp_path / "plain.csv.gz"
    plain.write_bytes(REQUESTS.encode())
    with open_trace(plain) as trace:
        assert len(list(trace.lines)) == 3


def played(path: Path, speed: float = 1.0) -> list[Ask]:
    workload = Workload(pattern=Replay(path, speed), input_tokens=Fixed(9), output_tokens=Fixed(3))
    with asks(workload) as wanted:
        return list(wanted)


def test_a_trace_is_played_at_its_speed_with_its_lengths(tmp_path: Path):
    found = played(written(tmp_path, REQUESTS), speed=2.0)
    assert [(one.at, one.input_tokens, one.output_tokens) for one in found] == [
        (0.0, 374, 44),
        (0.25, 396, 109),
        (2.0, 1, 1),
    ]


def test_rates_are_played_with_the_lengths_that_were_asked_for(tmp_path: Path):
    found = played(written(tmp_path, RATES), speed=10.0)
    times = [one.at or 0 for one in found]
    assert sum(time < 60 for time in times) == pytest.approx(2.5 * 600, rel=0.1)
    assert {(one.input_tokens, one.output_tokens) for one in found} == {(9, 3)}
    assert not [time for time in times if 60 < time < 120]


@pytest.mark.parametrize(
    ("text", "lasts"),
    [
        (RATES, 600),
        ("t_s,rate_rps\n0,4\n", 600),
        ("time,requests\n0,240\n60,240\n120,240\n600,240\n", 60),
        ("t_s,rate_rps\n0,4\n60,\n120,4\n", 60),
    ],
)
@pytest.mark.parametrize("speed", [1.0, 5.0])
def test_the_last_rate_is_played_as_long_as_it_holds(text: str, lasts: float, speed: float, tmp_path: Path):
    path = written(tmp_path, text)
    with open_trace(path) as trace:
        assert isinstance(trace, Rates)
        begin = list(trace.lines)[-1].at
    times = [speed * (one.at or 0) for one in played(path, speed)]
    assert sum(time >= begin for time in times) == pytest.approx(4 * lasts, rel=0.2)
    assert begin + 0.9 * lasts < max(times) < begin + lasts


def test_a_trace_of_nothing_is_no_request(tmp_path: Path):
    assert played(written(tmp_path, "arrival_s,input_tokens,output_tokens\n")) == []
