"""Traces in both forms, gzipped or not; what is wrong is named by its line."""

import gzip
from pathlib import Path

import pytest

from plimsoll.load.lengths import Fixed
from plimsoll.load.problems import LoadError
from plimsoll.load.traces import Arrived, Rate, Rates, Requests, open_trace, read_trace
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


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the head is ''"),
        ("time,in,out\n1,2,3\n", "the head is 'time,in,out'"),
        ("arrival_s,input_tokens,output_tokens\n0,5,5\n1,x,5\n", "line 3: invalid literal"),
        ("arrival_s,input_tokens,output_tokens\n0,5\n", "line 2:"),
        ("arrival_s,input_tokens,output_tokens\n5,5,5\n4,5,5\n", "line 3: is before the line above"),
        ("arrival_s,input_tokens,output_tokens\nnan,5,5\n", "arrival_s is 'nan'"),
        ("t_s,rate_rps,cv\n0,-1,1\n", "rate_rps is '-1'; it must be a number that is not negative"),
    ],
)
def test_what_is_wrong_is_named_by_its_line(text: str, said: str):
    with pytest.raises(LoadError) as caught:
        list(read_trace(text.splitlines(), "x.csv").lines)
    assert said in str(caught.value)
    assert str(caught.value).startswith("x.csv")


def test_a_file_that_cannot_be_read_is_said_to_be_one(tmp_path: Path):
    cut = tmp_path / "cut.csv.gz"
    cut.write_bytes(gzip.compress(REQUESTS.encode() * 100)[:-20])
    plain = tmp_path / "plain.csv.gz"
    plain.write_bytes(REQUESTS.encode())
    for path in (tmp_path / "no.csv", cut, plain):
        with pytest.raises(LoadError, match=path.name), open_trace(path) as trace:
            list(trace.lines)


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
    assert len(found) == pytest.approx(2.5 * 600, rel=0.1)
    assert {(one.input_tokens, one.output_tokens) for one in found} == {(9, 3)}
    assert max(one.at or 0 for one in found) <= 60


def test_a_trace_of_nothing_is_no_request(tmp_path: Path):
    assert played(written(tmp_path, "arrival_s,input_tokens,output_tokens\n")) == []
