from datetime import date

import pytest

from plimsoll.facts.engine_versions import Version, parse_version, release
from plimsoll.facts.engines import engine_profile

RELEASES = {release(text): day for text, day in engine_profile("vllm").releases.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0.33.0", "0.33.0"),
        ("v0.18.0+vendor.7", "0.18.0"),
        ("v0.14.1+vendor4", "0.14.1"),
        ("0.13.1.dev8+g2841a84ac", "0.13.1.dev"),
        ("0.11.0rc2.dev98+g393de22d2", "0.11.0"),
        ("0.11 nightly (2025-09-29)", "0.11.0.dev"),
        ("0.21 dev (2026-05-14)", "0.21.0.dev"),
        ("0.6.5 dev", "0.6.5"),
        ("0.6.6/0.7 dev", "0.6.6"),
        ("0.6.x", "0.6.0"),
        ("0.11.x (2025-11-19)", "0.11.1"),
        ("0.9-0.10 (2025-07-23)", "0.9.2"),
        ("0.9-0.10 (2025-08-31)", "0.10.1"),
        ("0.10-0.11 (2025-10-03)", "0.11.0"),
        ("0.10.1 (line numbers)", "0.10.1"),
        ("0.11.0 (2025-10-06)", "0.11.0"),
        ("2026-08 latest image", "0.27.0"),
        ("2026-09/10 build", "0.29.0"),
        ("2026-08 (gpu_worker.py:789)", "0.27.0"),
        ("2026 V1", "0.24.0"),
        ("vllm/vllm-openai:v0.33.0-cu129", "0.33.0"),
    ],
)
def test_a_version_text_means_a_release(text, expected):
    assert str(parse_version(text, RELEASES)) == expected


@pytest.mark.parametrize(
    "text", [None, "", "V1", "latest", "0.1.dev19754 (qwen38 image)", "2019-01", "2026-13", "nightly"]
)
def test_a_text_that_says_nothing_stays_unknown(text):
    assert parse_version(text, RELEASES) is None


def test_a_build_on_the_way_to_a_release_sorts_just_below_it():
    assert Version(0, 20, 2) < Version(0, 21, 0, released=False) < Version(0, 21, 0) < Version(0, 21, 1)


def test_a_date_alone_needs_the_calendar_of_releases():
    assert parse_version("2026-08") is None
    assert parse_version("2026-08", {Version(1, 0): date(2026, 8, 1)}) == Version(1, 0)
