import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.facts.report import AdapterSeen, Fetching, Report, ReportUnreadable, Warned, read_report
from plimsoll_runtime.failure import Warned as Told

TOLD = {
    "schema": 1,
    "state": "serving",
    "phase": "warmup",
    "engine": {"name": "vllm", "version": "0.33.0"},
    "phases": [{"name": "load", "seconds": 12.4}, {"name": "compile", "seconds": 30}],
    "progress": None,
    "measured": {
        "weightsBytes": 1000,
        "activationBytes": 200,
        "graphsBytes": 50,
        "kvBytes": 4096,
        "kvTokens": 64,
        "blocks": 4,
        "blockSize": 16,
        "compileCache": "cold",
    },
    "failure": None,
    "argv": ["vllm", "serve"],
}


def read(**changes):
    return read_report(json.dumps({**TOLD, **changes}).encode())


def test_a_start_is_read_whole():
    assert read() == Report(
        state="serving", phase="warmup", start_seconds=42, weights_bytes=1000,
        kv_bytes=4096, kv_tokens=64, blocks=4, block_size=16, cold=True,
    )  # fmt: skip
    assert read().serves


def test_a_download_is_told_as_far_as_it_is_known():
    found = read(state="fetching", progress={"bytes": 5, "of": None, "rate": 2})
    assert found.fetching == Fetching(done=5, rate=2)
    assert not found.serves


@pytest.mark.parametrize(
    "figure", [None, 0, -3, True, "7", 1e300, 10**400, float("nan"), float("inf"), [], {}]
)
def test_a_figure_that_was_not_seen_or_makes_no_sense_is_not_told(figure):
    found = read(measured={"kvBytes": figure, "kvTokens": figure}, phases=[{"seconds": figure}])
    assert (found.kv_bytes, found.kv_tokens, found.cold, found.start_seconds) == (None, None, None, None)


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b'{"schema": 2, "state": "serving"}', b'{"schema": 1}', b"[" * 50_000]
)
def test_what_is_no_report_is_refused(text):
    with pytest.raises(ReportUnreadable):
        read_report(text)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_answer_of_a_pod_breaks_who_reads_it(value):
    for field in ("phase", "phases", "progress", "measured"):
        assert read(**{field: value}).state == "serving"


def test_adapters_are_read_and_how_far_a_fetch_is_is_no_news():
    told = [
        {"name": "a", "id": "1", "state": "Fetching", "word": None, "message": "3 of 9 MiB", "remedy": None},
        {
            "name": "b",
            "id": "2",
            "state": "Failed",
            "word": "AdapterRank",
            "message": "m" * 999,
            "remedy": "r",
        },
        "none",
    ]
    found = read(adapters=told).adapters
    assert found is not None
    assert found[0] == AdapterSeen(name="a", id="1", state="Fetching")
    assert (found[1].reason, len(found[1].message) <= 240, found[1].remedy) == ("AdapterRank", True, "r")
    assert [one.settled for one in found] == [False, True, False]
    assert read().adapters is None
    assert read(adapters={}).adapters is None
    assert read(adapters=[]).adapters == ()
    assert len(read(adapters=told * 99).adapters or ()) == 64


def test_a_supervisor_s_warnings_are_read_as_it_tells_them():
    told = Told("NoNvlink", "slow", "other nodes").told()
    assert read(warnings=[told]).warnings == (Warned(word="NoNvlink", message="slow", remedy="other nodes"),)


def test_warnings_are_read_as_plain_text_of_a_length_and_a_number():
    whole = {"word": "NoNvlink", "message": "slow", "remedy": "other nodes"}
    assert str(read(warnings=[whole]).warnings[0]) == "NoNvlink: slow. Remedy: other nodes"
    (long,) = read(warnings=[{"word": "W" * 999, "message": "\x1b[31mm" * 999, "remedy": "r" * 999}]).warnings
    assert max(len(long.word), len(long.message), len(long.remedy)) <= 240
    assert "\x1b" not in long.message
    assert len(read(warnings=[whole] * 99).warnings) == 8


@pytest.mark.parametrize("told", [None, {}, "x", 7, [], [None, 7, "x"], [{"word": "W"}, {"message": "m"}]])
def test_what_is_no_warning_is_none(told):
    assert read(warnings=told).warnings == ()
