import pytest

from plimsoll.facts.amounts import millicores, whole


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("8", 8),
        (8, 8),
        ("0", 0),
        ("24Gi", 24 * 2**30),
        ("1.5Ki", 1536),
        ("500M", 500_000_000),
        ("1e3", 1000),
        ("12E2", 1200),
        ("1E", 10**18),
        ("1500m", 2),
        ("100n", 1),
        (".5k", 500),
        ("+3", 3),
    ],
)
def test_every_form_the_api_server_takes_is_read_and_rounded_up(text, amount):
    assert whole(text) == amount


@pytest.mark.parametrize(
    ("text", "amount"), [("1500m", 1500), ("2", 2000), ("250000u", 250), ("100n", 1), ("1e-1", 100)]
)
def test_cores_are_counted_in_thousandths(text, amount):
    assert millicores(text) == amount


@pytest.mark.parametrize(
    "text", ["", "eight", "-1", "1.2.3", "1Kib", "1 Gi", "٣", "1e999", "9" * 500, "0x10", "."]
)
def test_what_is_no_quantity_is_an_error_that_says_what_would_be_right(text):
    with pytest.raises(ValueError, match="24Gi"):
        whole(text)


def test_what_no_cluster_holds_is_capped_as_the_api_server_caps_it():
    most = (1 << 63) - 1
    assert whole("1e99") == millicores("1e99") == most
    assert whole(str(whole("1e99"))) == most
