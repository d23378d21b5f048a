"""A metrics page read line by line, from engines as they are and as they should not be."""

import asyncio
import ssl
import threading
from datetime import UTC, datetime

import pytest

from plimsoll.facts.engines import engine_facts, engine_profile
from plimsoll.kube.certificates import made
from plimsoll.prometheus import pods
from plimsoll.prometheus.exposition import MOST_BOUNDS, sample_of
from plimsoll.prometheus.pods import Page, scrape
from plimsoll.prometheus.vocabulary import vocabulary
from tests.prometheus.serving import server

WORDS = vocabulary(
    [
        *(engine_facts("vllm", version).metrics for version in ("0.9.0", "0.33.0")),
        engine_profile("sglang").metrics,
    ]
)
PAGE = """
# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="m, {odd} \\"name\\""} 3.0
vllm:num_requests_waiting{engine="0",model_name="m"} 1.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:cache_config_info{block_size="16",num_gpu_blocks="200",engine="0"} 1.0
vllm:num_preemptions_total{engine="0"} 5.0
vllm:num_preemptions_created{engine="0"} 1.7e+09
vllm:request_success_total{engine="0",finished_reason="stop"} 10.0
vllm:request_success_total{engine="0",finished_reason="length"} 5.0
vllm:request_success_total{engine="0",finished_reason="error"} 2.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} 4.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="1.0"} 9.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} 10.0
vllm:time_to_first_token_seconds_sum{engine="0"} 3.5
python_gc_objects_collected_total{generation="0"} 1.0
"""


def sample(text, words=WORDS):
    return sample_of(text, words, pod="uid", at=1.0)


def test_a_page_becomes_a_sample():
    said = sample(PAGE)
    assert (said.running, said.waiting, said.kv_fraction) == (3.0, 1.0, 0.25)
    assert (said.kv_tokens, said.block_size, said.preemptions) == (3200, 16, 5.0)
    assert (said.finished, said.errors, said.refused) == (15.0, 2.0, 0.0)
    refusing = sample(f'{PAGE}vllm:admission_rejections_total{{reason="max_num_queued_reqs"}} 4.0\n')
    assert refusing.refused == 4.0
    assert said.ttft is not None
    assert (said.ttft.counts, said.ttft.sum) == ((4.0, 9.0, 10.0), 3.5)
    assert (said.itl, said.prompt_tokens) == (None, None)


@pytest.mark.parametrize(("bounds", "believed"), [(MOST_BOUNDS, True), (MOST_BOUNDS + 1, False)])
def test_a_histogram_has_no_more_bounds_than_engines_have(bounds: int, believed: bool):
    kind = "vllm:time_to_first_token_seconds"
    finite = "".join(f'{kind}_bucket{{le="{bound}"}} {bound}\n' for bound in range(1, bounds))
    said = sample(f'{finite}{kind}_bucket{{le="+Inf"}} {bounds}\n{kind}_sum 3.5\n')
    assert (said.ttft is not None) is believed


def test_pages_are_read_beside_the_loop_which_goes_on(monkeypatch):
    """A page of a megabyte takes a fifth of a second."""
    turned = threading.Event()

    def slowly(text, words, *, pod, at):
        assert turned.wait(60), "the loop stood still"
        return sample_of(text, words, pod=pod, at=at)

    monkeypatch.setattr("plimsoll.prometheus.pods.sample_of", slowly)

    async def run(url):
        found = asyncio.create_task(scrape([Page("uid", f"{url}/metrics")], WORDS, now=7.0, deadline_s=600.0))
        while not found.done():
            await asyncio.sleep(0.01)
            if served:
                turned.set()
        return await found

    served = []

    def answer(path):
        served.append(path)
        return 200, PAGE.encode()

    with server(answer) as url:
        assert len(asyncio.run(run(url)).samples) == 1


@pytest.mark.parametrize("odd", ["\u2028", "\x85", "\x0c", "\r", "}", "{", " # {"])
def test_a_name_of_a_model_may_hold_what_ends_lines_elsewhere(odd: str) -> None:
    assert sample(PAGE.replace("{odd}", odd)) == sample(PAGE)


def test_ranks_of_one_pod_add_up_and_share_their_fullness_while_each_says_the_pool_of_all():
    """vLLM adds the blocks of all ranks up before it says them, once for each rank."""
    second = PAGE.replace('engine="0"', 'engine="1"').replace("0.25", "0.75")
    said = sample(PAGE + second)
    assert (said.running, said.kv_fraction, said.kv_tokens) == (6.0, 0.5, 3200)
    assert said.ttft is not None
    assert said.ttft.count == 20.0


def test_an_old_name_beside_the_new_one_counts_once():
    both = PAGE + 'vllm:gpu_cache_usage_perc{engine="0"} 0.9\n'
    assert sample(both).kv_fraction == 0.25


@pytest.mark.parametrize(
    "after", [" 1700000000.123", ' # {trace_id="a} b"} 0.5', " 1.7e9 # {} 0.5 1.7e9", " # {"]
)
def test_what_stands_behind_a_value_is_no_value(after: str) -> None:
    """A time, or an example, as a page in OpenMetrics has them."""
    lines = [line if not line or line.startswith("#") else f"{line}{after}" for line in PAGE.split("\n")]
    assert sample("\n".join((*lines, "# EOF"))) == sample(PAGE)


def test_another_engine_is_read_by_its_own_words():
    page = (
        'sglang:num_running_reqs{a="b"} 4\nsglang:token_usage 0.5\nsglang:max_total_num_tokens 9000\n'
        "sglang:num_queue_reqs 2\n"
    )
    said = sample(page)
    assert (said.running, said.waiting, said.kv_fraction, said.kv_tokens) == (4.0, 2.0, 0.5, 9000)
    assert said.finished is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\x00\xff<html>",
        "vllm:num_requests_running NaN",
        "vllm:num_requests_running{",
        "vllm:num_requests_running",
        "vllm:kv_cache_usage_perc 55",
        "vllm:kv_cache_usage_perc -1",
        'vllm:time_to_first_token_seconds_bucket{le="1"} 3\nvllm:time_to_first_token_seconds_sum 1',
        'vllm:time_to_first_token_seconds_bucket{le="+Inf"} 3',
        'vllm:cache_config_info{block_size="16",num_gpu_blocks="²"} 1',
        f'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{"9" * 5000}"}} 1',
        "sglang:max_total_num_tokens 1e308\nsglang:max_total_num_tokens 1e308",
        'vllm:time_to_first_token_seconds_bucket{le="x"} 3\nvllm:cache_config_info{num_gpu_blocks="None"} 1',
    ],
)
def test_what_is_no_metric_says_nothing(text):
    said = sample(text)
    assert (said.running, said.kv_fraction, said.ttft, said.kv_tokens) == (None, None, None, None)


def test_pods_are_scraped_side_by_side_and_those_that_fail_say_why():
    def answer(path):
        return {"/good": (200, PAGE.encode()), "/moved": (302, b""), "/broken": (500, b"")}[path]

    async def run(url):
        paths = ("good", "moved", "broken")
        pages = [Page(name, f"{url}/{name}") for name in paths]
        pages.append(Page("nobody", "http://127.0.0.1:9/"))
        return await scrape(pages, WORDS, now=7.0, deadline_s=20.0)

    with server(answer) as url:
        found = asyncio.run(run(url))
    assert [(each.pod, each.running) for each in found.samples] == [("good", 3.0)]
    assert found.errors["moved"] == "its metrics page answers HTTP 302"
    assert found.errors["broken"] == "its metrics page answers HTTP 500"
    assert found.errors["nobody"] == "no connection: Connection refused"


def test_an_engine_that_speaks_no_tls_is_told_as_such_and_without_its_address():
    async def run(url):
        return await scrape([Page("plain", url.replace("http:", "https:"))], WORDS, now=7.0, deadline_s=20.0)

    with server(lambda _: (200, PAGE.encode())) as url:
        found = asyncio.run(run(url))
    assert found.errors == {"plain": "no connection: the pod speaks no TLS, or another one"}


def test_what_is_no_http_is_told_without_its_address():
    async def run():
        async def gibberish(reader, writer):
            await reader.readline()
            writer.write(b"\x15\x03\x03\x00\x02\x02\n\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_server(gibberish, "127.0.0.1", 0) as served:
            port = served.sockets[0].getsockname()[1]
            return await scrape([Page("odd", f"http://127.0.0.1:{port}/")], WORDS, now=7.0, deadline_s=20.0)

    assert asyncio.run(run()).errors == {"odd": "what it answers is no HTTP"}


def test_all_pages_of_a_look_together_are_no_larger_than_memory_has_room_for(monkeypatch):
    monkeypatch.setattr(pods, "LARGEST_LOOK", 3 * len(PAGE))

    async def run(url):
        return await scrape([Page(f"p{n}", f"{url}/{n}") for n in range(5)], WORDS, now=7.0, deadline_s=20.0)

    with server(lambda _: (200, PAGE.encode())) as url:
        found = asyncio.run(run(url))
    assert len(found.samples) == 3
    assert all("set prometheusUrl" in why for why in found.errors.values())


def test_those_that_do_not_answer_keep_nobody_from_being_asked():
    many, come, all_have_come = 80, [], threading.Event()

    def answer(path):
        come.append(path)
        if len(come) == many:
            all_have_come.set()
        all_have_come.wait(20)
        return 200, PAGE.encode()

    async def run(url):
        return await scrape([Page(f"p{n}", f"{url}/{n}") for n in range(many)], WORDS, now=7.0, deadline_s=20)

    with server(answer) as url:
        found = asyncio.run(run(url))
    assert (len(found.samples), found.errors) == (many, {})


def test_a_sample_is_of_the_time_at_which_its_page_was_read():
    def answer(path):
        if path == "/slow":
            threading.Event().wait(0.2)
        return 200, PAGE.encode()

    async def run(url):
        return await scrape([Page(name, f"{url}/{name}") for name in ("slow", "fast")], WORDS, now=7.0)

    with server(answer) as url:
        at = {each.pod: each.at for each in asyncio.run(run(url)).samples}
    assert at["fast"] > 7.0
    assert at["slow"] > 7.1


def test_a_page_that_does_not_come_in_time_is_an_error_of_its_pod():
    released = threading.Event()

    def answer(path):
        if path == "/silent":
            released.wait(600)
        return 200, PAGE.encode()

    async def run(url):
        # Where all have the same deadline the good page must come in it too.
        good = await scrape([Page("good", f"{url}/good")], WORDS, now=7.0, deadline_s=600.0)
        silent = await scrape([Page("silent", f"{url}/silent")], WORDS, now=7.0, deadline_s=0.2)
        released.set()
        return good, silent

    with server(answer) as url:
        good, silent = asyncio.run(run(url))
    assert len(good.samples) == 1
    assert (silent.samples, silent.errors) == ((), {"silent": "no answer within 0.2 s"})


def test_a_page_that_cannot_be_read_is_an_error_of_its_pod(monkeypatch):
    def broken(text, *_, **said):
        if text == "odd":
            raise OverflowError("too much")
        return sample(text)

    monkeypatch.setattr("plimsoll.prometheus.pods.sample_of", broken)

    async def run(url):
        return await scrape([Page(name, f"{url}/{name}") for name in ("good", "odd")], WORDS, now=7.0)

    with server(lambda path: (200, b"odd" if path == "/odd" else PAGE.encode())) as url:
        found = asyncio.run(run(url))
    assert [one.running for one in found.samples] == [3.0]
    assert found.errors == {"odd": "OverflowError: too much"}


def test_a_pod_is_read_by_its_address_whatever_name_its_certificate_has(tmp_path):
    pair, _ = made(["chat.team-a.svc"], datetime(2026, 11, 1, tzinfo=UTC))
    for name, said in (("tls.crt", pair.certificate), ("tls.key", pair.key)):
        (tmp_path / name).write_text(said)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(tmp_path / "tls.crt", tmp_path / "tls.key")
    with server(lambda _: (200, PAGE.encode()), tls) as url:
        found = asyncio.run(scrape([Page("uid", f"{url}/metrics")], WORDS, now=7.0))
    assert found.errors == {}
    assert [one.running for one in found.samples] == [3.0]
