import pytest

from plimsoll.facts.dtypes import Dtype
from plimsoll.facts.gpus import MIB, LinkKind, gpu_named
from plimsoll.facts.labels.mig import MigProfile, slice_of


@pytest.mark.parametrize(
    ("card", "profile", "shown_mib"),
    [
        ("A100-SXM-40GB", "1g.5gb", 4864),
        ("A100-SXM-40GB", "2g.10gb", 9856),
        ("A100-SXM-40GB", "3g.20gb", 19968),
        ("A100-SXM-80GB", "1g.10gb", 9728),
        ("A100-SXM-80GB", "3g.40gb", 40192),
        ("H100-SXM-80GB", "3g.40gb", 40320),
        ("A30-24GB", "1g.6gb", 5952),
    ],
)
def test_a_slice_shows_about_the_memory_that_labellers_have_reported(card, profile, shown_mib):
    parsed = MigProfile.parse(profile)
    assert parsed is not None
    part = slice_of(gpu_named(card), parsed)
    assert part is not None
    assert part.memory_bytes / MIB == pytest.approx(shown_mib, rel=0.03)


@pytest.mark.parametrize(
    ("card", "profile", "memory", "compute"),
    [
        ("H100-SXM-80GB", "1g.10gb", 1 / 8, 1 / 7),
        ("H100-SXM-80GB", "1g.20gb", 2 / 8, 1 / 7),
        ("H100-SXM-80GB", "3g.40gb", 4 / 8, 3 / 7),
        ("H100-SXM-80GB", "7g.80gb", 1, 1),
        ("H200-SXM-141GB", "1g.18gb", 1 / 8, 1 / 7),
        ("B200-SXM", "1g.23gb", 1 / 8, 1 / 7),
        ("RTX-PRO-6000-Server", "2g.48gb", 1 / 2, 1 / 2),
    ],
)
def test_bandwidth_follows_memory_slices_and_arithmetic_compute_slices(card, profile, memory, compute):
    gpu, parsed = gpu_named(card), MigProfile.parse(profile)
    assert parsed is not None
    part = slice_of(gpu, parsed)
    assert part is not None
    assert part.bandwidth == pytest.approx(gpu.bandwidth * memory)
    assert part.flops[Dtype.BFLOAT16] == pytest.approx(gpu.flops[Dtype.BFLOAT16] * compute)
    assert part.memory_bytes < gpu.memory_bytes
    assert (part.link.kind, part.link.domain) == (LinkKind.PCIE, 1)


@pytest.mark.parametrize(
    ("card", "profile"),
    [
        ("L4-24GB", "1g.5gb"),
        ("H100-SXM-80GB", "8g.80gb"),
        ("A30-24GB", "5g.24gb"),
        ("A100-SXM-40GB", "7g.5gb"),
        ("A100-SXM-80GB", "1g.5gb"),
        ("H200-SXM-141GB", "1g.10gb"),
    ],
)
def test_a_card_has_no_slices_it_cannot_be_cut_into(card, profile):
    parsed = MigProfile.parse(profile)
    assert parsed is not None
    assert slice_of(gpu_named(card), parsed) is None


@pytest.mark.parametrize("text", ["", "3g", "3g.gb", "g.40gb", "three", "3g.40"])
def test_what_is_no_profile_is_none(text):
    assert MigProfile.parse(text) is None


def test_a_profile_keeps_its_attributes_in_its_name():
    assert str(MigProfile.parse("1g.10gb+me")) == "1g.10gb+me"
