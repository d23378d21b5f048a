"""Traffic of which only numbers over time are known, as dashboards and tables of counts have them."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random

import pytest

from plimsoll.load.trace_rates import Rate
from plimsoll.load.traces import Rates, open_trace, read_trace
from tests.load.reading import refused, trace


def rates(text: str) -> Rates:
    found = trace(text)
    assert isinstance(found, Rates)
    return found


@pytest.mark.parametrize(
    ("column", "first"),
    [
        ("rate_rps", 120.0),
        ("RPS", 120.0),
        ("requests_per_second", 120.0),
        ("req/s", 120.0),
        ("qps", 120.0),
        ("rate_rpm", 2.0),
        ("rpm", 2.0),
        ("Requests per Minute", 2.0),
        ("requests/min", 2.0),
        ("rate_rph", 120 / 3600),
        ("requests_per_hour", 120 / 3600),
    ],
)
def test_a_rate_is_a_second_s_a_minute_s_or_an_hour_s_by_its_name(column: str, first: float):
    found = list(rates(f"time,{column}\n0,120\n600,0\n").lines)
    assert found[0].per_second == pytest.approx(first)
    assert [one.at for one in found] == [0.0, 600.0]


@pytest.mark.parametrize("column", ["requests", "count", "Request Count", "hits", "count(*)"])
def test_counts_are_of_the_time_until_the_next_line_and_the_last_as_long_as_others(column: str):
    found = rates(f"timestamp,{column}\n2026-11-23T10:00,60\n2026-11-23T10:01,120\n2026-11-23T10:02,30\n")
    assert list(found.lines) == [Rate(0, 1, 1), Rate(60, 2, 1), Rate(120, 0.5, 1)]
    assert found.notes == (
        "requests are counted by 60 seconds, and how many come in each, and when, is drawn by chance around the count",
    )


def test_where_a_table_leaves_out_empty_intervals_nobody_is_taken_to_come():
    found = rates("time,requests\n0,60\n60,60\n120,60\n600,60\n660,60\n")
    assert list(found.lines) == [
        Rate(0, 1, 1),
        Rate(60, 1, 1),
        Rate(120, 1, 1),
        Rate(180, 0, 1),
        Rate(600, 1, 1),
        Rate(660, 1, 1),
    ]
    assert "it leaves out 1 stretch of time, in which nobody is taken to come" in found.notes[0]


@pytest.mark.parametrize(
    "times",
    [
        pytest.param(
            "0 7 8 311 420 900",
            id="all of them at times of their own, by which the shortest gap is no interval",
        ),
        pytest.param("0 61.5 400 1300 1333 4000", id="as somebody looked now and then"),
        pytest.param("0 60 100 2000 4500 9000", id="with nothing in common"),
    ],
)
def test_counts_at_irregular_times_are_refused_as_nothing_says_of_how_long_they_are(times: str):
    """A count of 600 is ten a second or one in six, by whether the gap before it or after it is its own."""
    said = refused("time,requests\n" + "".join(f"{at},600\n" for at in times.split()))
    assert said.startswith("x.csv: counts stand at irregular times, ")
    assert said.endswith(
        "so nothing says of how long each is, since the line before or until the next: write rates (rate_rps), or count by one interval, with "
        "0 where nobody came"
    )


@pytest.mark.parametrize(
    ("times", "usual"),
    [
        pytest.param("0 180 420 900 960 1800", 60, id="by the minute, most of them empty"),
        pytest.param("0 120 180 300 900 960", 60, id="half of them"),
        pytest.param("0 58.9 120.2 179.5 240.1", 60, id="about every minute"),
        pytest.param("0 2678400 5097600 7776000 10368000", 2419200, id="by the month"),
        pytest.param("0 86400 172800 255600 342000", 86400, id="by the day, of which one has 23 hours"),
        pytest.param("0 60 120 180 240 300 617 677 737", 60, id="in two parts, off beat"),
    ],
)
def test_counts_by_an_interval_are_read_though_lines_are_left_out_or_not_on_time(times: str, usual: float):
    found = rates("time,requests\n" + "".join(f"{at},600\n" for at in times.split()))
    assert max(one.per_second for one in found.lines) == pytest.approx(600 / usual, rel=0.05)


def test_large_numbers_may_be_shortened_as_dashboards_do_and_days_be_dates():
    found = rates("Date,Requests\n2026-11-23,1.2 K\n2026-11-24,2.4 Mil\n")
    assert [86400 * one.per_second for one in found.lines] == pytest.approx([1200, 2.4e6])
    assert "Requests is '12 m'" in refused("Date,Requests\n2026-11-23,12 m\n2026-11-24,1\n"), (
        "of milli or million"
    )


def test_counts_that_are_not_in_order_are_of_the_same_intervals():
    found = rates("time,requests\n120,30\n0,60\n60,120\n")
    assert sorted((one.at, one.per_second) for one in found.lines) == [(-120, 1), (-60, 2), (0, 0.5)]


def test_counts_of_intervals_shorter_than_a_millisecond_are_read():
    found = rates("time,count\n0,5\n0.0001,5\n0.0002,4\n")
    assert [one.per_second for one in found.lines] == pytest.approx([50_000, 50_000, 40_000])


def test_a_single_count_says_not_of_how_long():
    assert "is one count alone, and nothing says of how long; add the next, or name a rate" in refused(
        "time,requests\n0,60\n"
    )


GRAFANA = '"Time","{model=""chat""}"\n"2026-11-23 10:00:00",1.25\n"2026-11-23 10:01:00",2.5\n'


def test_a_column_of_a_dashboard_is_taken_for_requests_a_second_and_that_is_said():
    found = rates(GRAFANA)
    assert list(found.lines) == [Rate(0, 1.25, 1), Rate(60, 2.5, 1)]
    (note,) = found.notes
    assert note == (
        'nothing says what {model="chat"} counts: requests a second are taken, as rate() gives them; name it rate_rps, or else '
        "rate_rpm (a minute) or requests (counted by interval)"
    )


@pytest.mark.parametrize(
    ("column", "first"),
    [("chat (req/s)", 120.0), ("requests/min, chat", 2.0), ("requests per hour of chat", 120 / 3600)],
)
def test_a_unit_that_stands_within_the_name_of_a_dashboard_s_column_counts(column: str, first: float):
    found = rates(f'"Time","{column}"\n0,120\n60,90\n')
    assert next(found.lines).per_second == pytest.approx(first)
    assert not found.notes


def test_series_that_stand_below_each_other_are_told_to_be_several():
    said = refused("Series,Time,Value\na,0,1.5\na,60,2.5\nb,0,1.5\nb,60,2\n")
    assert "line 4: is of the same time as a line above" in said
    assert said.endswith("so of several series keep one, or add them up")


def test_a_separator_that_is_told_to_a_spreadsheet_does_no_harm():
    assert list(rates("sep=,\n" + GRAFANA).lines) == list(rates(GRAFANA).lines)


@pytest.mark.parametrize(
    ("value", "per_second"),
    [
        ("1.25 req/s", 1.25),
        ("90 req/m", 1.5),
        ("1.2 K req/s", 1200.0),
        ("2.5k reqps", 2500.0),
        ("864 requests/day", 0.01),
    ],
)
def test_a_unit_that_stands_beside_the_value_counts(value: str, per_second: float):
    found = rates(f"Time,Value\n0,{value}\n60,{value}\n")
    assert next(found.lines).per_second == pytest.approx(per_second)
    assert not found.notes


def test_a_unit_beside_the_value_says_that_a_column_called_requests_is_of_rates():
    found = rates("Time,Requests\n0,12.5 req/s\n60,1.2 K req/m\n")
    assert list(found.lines) == [Rate(0, 12.5, 1), Rate(60, 20, 1)]
    assert not found.notes
    assert "line 3: Requests is '12.5 req/s'" in refused("Time,Requests\n0,12\n60,12.5 req/s\n")


def test_a_sign_before_a_rate_does_no_harm():
    assert list(rates("t_s,rate_rps\n0,-0.0\n60,+5\n").lines) == [Rate(0, 0, 1), Rate(60, 5, 1)]
    assert "rate_rps is '-1'" in refused("t_s,rate_rps\n0,-1\n")


def test_lines_of_a_dashboard_without_a_value_are_passed_over_and_counted():
    found = rates("Time,rate_rps\n0,1.5\n60,\n120,NaN\n180,2\n")
    assert list(found.lines) == [Rate(0, 1.5, 1), Rate(180, 2, 1)]
    assert found.notes == ("2 lines hold no value: the rate before them is taken to go on",)


def answered(*series: Mapping[str, object]) -> dict[str, object]:
    return {"status": "success", "data": {"resultType": "matrix", "result": list(series)}}


def prometheus(*values: tuple[float, str]) -> str:
    return json.dumps(answered({"metric": {}, "values": [list(one) for one in values]}))


@pytest.mark.parametrize(
    ("text", "lasts"),
    [
        pytest.param("time,requests\n0,60\n60,60\n120,60\n28800,60\n", 60, id="counts, after hours of nobody"),
        pytest.param("time,requests\n28800,60\n0,60\n60,60\n120,60\n", 60, id="in another order"),
        pytest.param("t_s,rate_rps\n0,2\n60,2\n120,\n180,NaN\n240,2\n", 60, id="rates, after lines without a value"),
        pytest.param("t_s,rate_rps\n240,2\n180,\n60,2\n0,2\n", 60, id="the latest first"),
        pytest.param("Time,rate_rps\n2026-11-23T10:00,2\n2026-11-23T10:01,\n2026-11-23T10:02,2\n", 60, id="by dates"),
        pytest.param("t_s,rate_rps\n0,2\n60,2\n360,2\n", 300, id="rates, of which the one before lasted longer"),
        pytest.param("t_s,rate_rps\n5,2\n", 600, id="a single rate"),
        pytest.param(prometheus((60, "2"), (120, "2"), (660, "2")), 60, id="Prometheus', after a stretch that it left out"),
        pytest.param(prometheus((60, "2"), (120, "NaN"), (180, "2")), 60, id="Prometheus', after what is no number"),
        pytest.param(prometheus((60, "2")), 600, id="a single one of Prometheus'"),
    ],
)  # fmt: skip
def test_the_last_line_holds_as_long_as_a_line_does_and_not_as_long_as_a_hole_before_it(
    text: str, lasts: float
):
    assert rates(text).last_s == lasts


def test_whole_numbers_of_which_nothing_says_what_they_count_are_refused():
    said = refused("Time,Value\n0,120\n60,90\n")
    assert (
        "nothing says what Value counts, and whole numbers may be rates or counts: name it rate_rps" in said
    )


FORMS = (
    "a trace has requests (arrival_s,input_tokens,output_tokens[,prefix_block_ids]), their times alone (arrival_s), rates "
    "(t_s,rate_rps[,cv]; rate_rpm is a minute's, rate_rph an hour's), counts by interval (time,requests), or is what Prometheus answers to query_range "
    "or Grafana shows as the JSON of a panel's data"
)


@pytest.mark.parametrize(
    "text",
    [
        "time,user\n0,ann\n",
        "time\n0\n",
        "time,pod-a,pod-b\n0,1.5,2\n",
        '{"t_s": 0}\n',
        "a,b,c\n0,1,2\n",
        "minute,requests\n0,5\n1,6\n",
        "Time,p95 latency\n0,1.25\n60,1.5\n",
        "Time,generation tokens/s\n0,1.25\n60,1.5\n",
        "Time,kv cache usage\n0,0.25\n60,0.5\n",
    ],
)
def test_of_what_is_not_read_all_forms_that_are_get_named(text: str):
    assert refused(text).endswith(FORMS)


def test_what_holds_lengths_is_one_of_requests_whatever_else_it_holds():
    head = "time,count,input_tokens,output_tokens\n"
    found = read_trace([head, "0,1,2,3\n"], "x")
    assert not isinstance(found, Rates)
    assert not found.notes
    assert "no column is output_tokens" in refused("time,count,input_tokens\n0,1,2\n")


def test_of_lines_that_sum_up_several_requests_it_is_said_that_each_is_taken_for_one():
    found = read_trace(
        ["time,Requests,prompt_tokens,completion_tokens\n", "0,1,5,6\n", "60,120,48000,9000\n"], "x"
    )
    assert found.notes == (
        "Requests is above 1, and each line is taken for one request all the same; leave the tokens out to have the counts replayed",
    )
    assert len(list(found.lines)) == 2


ONE = {"metric": {"model": "chat"}, "values": [[1790000000, "1.5"], [1790000060, "2"], [1790000120.0, "0"]]}
TWO = {"metric": {"model": "code"}, "values": [[1790000060, "1"], [1790000120, "NaN"]]}


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize(
    "form",
    [
        answered,
        lambda *series: list(series),
        lambda *series: {"status": "success", "isPartial": False, "data": answered(*series)["data"]},
        lambda *series: {"status": "success", "data": {"result": list(series), "resultType": "matrix"}},
    ],
    ids=["the API's", "promtool's", "VictoriaMetrics'", "with its fields in another order"],
)
def test_what_prometheus_answers_to_a_range_is_read(
    form: Callable[..., object], indent: int | None, tmp_path: Path
):
    file = tmp_path / "range.json"
    file.write_text(json.dumps(form(ONE), indent=indent))
    with open_trace(file) as found:
        assert isinstance(found, Rates)
        assert list(found.lines) == [Rate(0, 1.5, 1), Rate(60, 2, 1), Rate(120, 0, 1)]
    assert "requests a second are taken, as rate() gives them" in found.notes[0]


def test_a_stretch_without_values_is_told():
    holed = {"metric": {}, "values": [[60.0 * at, "1.5"] for at in (0, 1, 2, 9, 10, 11)]}
    found = rates(json.dumps(answered(holed)))
    assert len(list(found.lines)) == 6
    assert "1 stretch of time without a value: the rate before it is taken to go on" in " ".join(found.notes)


def test_series_of_several_replicas_are_added_up_and_that_is_said():
    found = rates(json.dumps(answered(ONE, TWO)))
    assert list(found.lines) == [Rate(0, 1.5, 1), Rate(60, 3, 1), Rate(120, 0, 1)]
    assert (
        '2 series are added up ({model="chat"}, {model="code"}); keep the one that is meant if they are not of one model\'s requests'
        in " ".join(found.notes)
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (json.dumps(answered()), "holds no series: the query found nothing in that time"),
        (
            json.dumps({"status": "error", "error": "parse error", "data": {"resultType": "matrix"}}),
            "is Prometheus' answer that the query failed: parse error",
        ),
        (
            json.dumps({"status": "success", "data": {"resultType": "vector", "result": []}}),
            "is of one moment (vector): ask query_range",
        ),
        (
            json.dumps(answered({**ONE, "metric": {"__name__": "vllm:request_success_total"}})),
            "holds the counter vllm:request_success_total itself; ask for sum(rate(vllm:request_success_total[1m]))",
        ),
        (
            '{"status":"error","errorType":"bad_data","error":"parse error"}',
            "is Prometheus' answer that the query failed: parse error",
        ),
        (json.dumps(answered({"metric": {}, "values": [[1, "x"]]})), "a value of its series is 'x'"),
        (json.dumps(answered({"metric": {}, "values": [5]})), "a value of its series is 5"),
        (json.dumps(answered(ONE))[:-9], "is no JSON"),
    ],
)
def test_an_answer_that_is_no_rate_over_time_is_told_what_to_ask(text: str, said: str):
    assert said in refused(text)


@pytest.mark.parametrize("seed", range(8))
def test_counts_of_a_quiet_service_are_of_the_interval_on_whose_grid_they_stand(seed: int):
    random = Random(seed)
    minutes = [0, 1, *(minute for minute in range(2, 400) if random.random() < 0.15)]
    read = rates("time,requests\n" + "".join(f"{60 * minute},3\n" for minute in minutes))
    assert read.notes[0].startswith("requests are counted by 60 seconds, ")
    assert {one.per_second for one in read.lines} == {3 / 60, 0.0}


@pytest.mark.parametrize(
    ("cvs", "said"),
    [
        ((0.5, 1, 10), None),
        ((2, 46, 1), None),
        ((11, 12, 1), "cv is above 10 in 2 lines, and up to 12"),
        ((1, 120, 1), "cv is above 10 in 1 line, and up to 120"),
        ((1000, 120, 1), "cv is above 10 in 2 lines, and up to 1,000"),
    ],
)
def test_gaps_that_hardly_any_traffic_has_are_replayed_as_they_are_said_to_be_with_a_note(
    cvs: tuple[float, ...], said: str | None
):
    rows = "".join(f"{60 * place},2,{cv}\n" for place, cv in enumerate(cvs))
    found = rates("t_s,rate_rps,cv\n" + rows)
    assert [one.cv for one in found.lines] == list(cvs)
    if said is None:
        assert not found.notes
    else:
        (note,) = found.notes
        assert note == (
            f"{said}: gaps between requests would then be so uneven that hours of nobody and crowds at one moment take turns; recorded traffic "
            "has 0.5 to 10, rarely up to 50, 1 is requests by chance, and 120% is 1.2"
        )
