"""Logs that say when requests came and not how long they were: lengths come from where those of rates do."""

from pathlib import Path

import pytest

from plimsoll.load.lengths import Fixed
from plimsoll.load.traces import Came, Times, read_trace
from plimsoll.load.workload import Replay, Workload, asks
from tests.load.reading import refused, trace

LOG = """time,method,path,status,duration_ms
2026-11-23T10:00:00.1Z,POST,/v1/chat/completions,200,950
2026-11-23T10:00:00.4Z,POST,/v1/chat/completions,200,1200
2026-11-23T10:00:03.1Z,POST,/v1/chat/completions,429,2
2026-11-23T10:00:04.1Z,POST,/v1/chat/completions,200,800
"""
DRAWN = (
    "no column holds lengths: each line is taken for one request, of lengths drawn as for rates, around those of spec.workload (simulate) or by "
    "--input-tokens and --output-tokens (bench)"
)


def times(text: str) -> Times:
    found = trace(text)
    assert isinstance(found, Times)
    return found


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LOG, id="a gateway's access log"),
        pytest.param(
            "".join(f'{{"ts": {at}, "user": {{"id": "a"}}}}\n' for at in (0.1, 0.4, 3.1, 4.1)),
            id="JSON lines",
        ),
        pytest.param("time\n0.1\n0.4\n3.1\n4.1\n", id="times and nothing else"),
        pytest.param("time,user\n0.1,\n0.4,ann\n3.1,bob\n4.1,ann\n", id="a name beside, which may lack"),
        pytest.param("arrival_s,status\n0.1,200\n0.4,200\n3.1,429\n4.1,200\n", id="numbers beside arrivals"),
    ],
)
def test_times_of_requests_alone_are_read_and_what_is_taken_is_said(text: str):
    found = times(text)
    assert [round(one.at, 3) for one in found.lines] == [0.0, 0.3, 3.0, 4.0]
    assert found.notes == (DRAWN,)


def test_requests_of_the_same_moment_are_several():
    log = "time,path\n" + "".join(f"1790000{second:03},/v1\n" for second in (0, 0, 0, 3, 4, 4, 9, 11))
    assert [one.at for one in times(log).lines] == [0, 0, 0, 3, 4, 4, 9, 11]


AT_ONCE = "times are of whole seconds, and those of one second are taken to come at once: queues look longer than they are"


def test_where_several_came_in_each_second_it_is_said_that_they_are_taken_to_come_at_once():
    log = "".join(f"10/Oct/2026:13:55:{second:02} +0000,/v1\n" for second in (1, 1, 1, 2, 2, 4, 5, 5, 9))
    assert times(f"time,path\n{log}").notes == (AT_ONCE, DRAWN)
    finer = "".join(f"2026-10-10T13:55:{second:02}.{second}Z,/v1\n" for second in (1, 1, 2, 2, 4, 5, 5, 9))
    assert times(f"time,path\n{finer}").notes == (DRAWN,)
    requests = trace(
        "created,prompt_tokens,completion_tokens\n" + "1790000000,5,6\n1790000001,5,6\n1790000003,5,6\n" * 9
    )
    assert requests.notes == (AT_ONCE,)
    alone = trace(
        "created,prompt_tokens,completion_tokens\n1790000000,5,6\n1790000000,5,6\n1790000001,5,6\n1790000004,5,6\n"
    )
    assert alone.notes == (), "chance alone gives as many"


def test_that_it_began_at_a_date_and_is_of_several_models_is_known_as_of_others():
    found = times("time,model\n2026-11-23T10:00:00,a\n2026-11-23T10:00:03,b\n2026-11-23T10:00:04,a\n")
    assert found.began is not None
    assert found.notes[0].startswith("model names several models ('a', 'b')")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("Time,p95 latency,errors\n0,1.25,0\n60,1.5,1\n120,1.5,2\n", id="a dashboard's"),
        pytest.param(
            "Series,Time,Latency\n" + "".join(f"{pod},{60 * at},1.5\n" for pod in "ab" for at in range(9)),
            id="several series below each other",
        ),
        pytest.param(
            "time,pod-a,pod-b\n" + "".join(f"{60 * at},1,2\n" for at in range(20) if at != 7),
            id="with a hole",
        ),
    ],
)
def test_lines_at_even_times_are_not_taken_for_requests(text: str):
    assert (
        "no column holds lengths, rates or counts, and its lines stand at even times, as samples do; where each is one request, name "
        "their time arrival_s" in refused(text)
    )


def test_lines_at_even_times_are_requests_where_their_name_says_so():
    assert list(times("arrival_s,path\n0,/v1\n60,/v1\n120,/v1\n").lines) == [Came(0), Came(60), Came(120)]


@pytest.mark.parametrize(
    "column", ["in", "n_tokens_out", "prompt_len", "request.content_length", "completion"]
)
def test_lengths_under_another_name_are_not_left_unread_in_silence(column: str):
    assert (
        f"no column is input_tokens or output_tokens, and {column} may hold lengths: name it so, or leave it out to have lengths drawn as for "
        "rates" in refused(f"time,user,{column}\n0,a,5\n7,b,6\n9,c,6\n")
    )


def test_lines_of_too_few_times_to_tell_are_not_said_to_stand_at_even_ones():
    assert "are of 1 time alone, too few to tell" in refused("time,pod-a,pod-b\n0,1,2\n")
    said = refused("time,path\n" + "2026-11-23 10:00,/v1\n" * 9 + "2026-11-23 10:01,/v1\n" * 4)
    assert (
        "and its first lines are of 2 times alone, too few to tell requests from samples; where each is one request, name"
        in said
    )


def test_bytes_are_no_tokens_so_that_an_access_log_is_read_with_them():
    found = read_trace(["time,path,bytes_in,bytes_out\n", "0,/,5,9\n", "7,/,6,9\n", "9,/,6,9\n"], "x")
    assert isinstance(found, Times)
    assert len(list(found.lines)) == 3


def test_where_one_of_two_lengths_is_missing_it_is_told_where_both_would_come_from():
    said = refused("time,input_tokens\n0,5\n7,6\n9,7\n")
    assert (
        "no column is output_tokens; without input_tokens too, lengths are drawn as for rates, around those of spec.workload (simulate) or "
        "by --input-tokens and --output-tokens (bench)" in said
    )


def test_of_whole_numbers_that_nothing_tells_it_is_said_what_to_do_where_each_line_is_a_request():
    assert "where each line is one request, name its time arrival_s" in refused(
        "time,shard\n0,200\n7,200\n9,200\n"
    )


def test_times_are_played_with_the_lengths_that_were_asked_for(tmp_path: Path):
    file = tmp_path / "log.csv"
    file.write_text(LOG)
    workload = Workload(pattern=Replay(file, 2.0), input_tokens=Fixed(9), output_tokens=Fixed(3))
    with asks(workload) as wanted:
        found = [(round(one.at or 0, 3), one.input_tokens, one.output_tokens) for one in wanted]
    assert found == [(0.0, 9, 3), (0.15, 9, 3), (1.5, 9, 3), (2.0, 9, 3)]
