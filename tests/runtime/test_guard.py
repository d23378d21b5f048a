"""What is told of an address: nothing that could be a password or a signature."""

from __future__ import annotations

import pytest

from plimsoll_runtime.sources.guard import parts_of
from plimsoll_runtime.sources.trouble import FetchFailed


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://ci:S3cr3t/Pass@mirror.corp/a?sig=S3cr3t", "'mirror.corp/a' is no address"),
        ("https://ci:S3cr3t?Pass@mirror.corp/a", "'mirror.corp/a' is no address"),
        ("https://mirror.corp:port/a?sig=S3cr3t", "'https://mirror.corp:port/a' is no address"),
        ("https://mirror.corp:99999/a", "'https://mirror.corp:99999/a' is no address"),
    ],
)
def test_what_is_no_address_is_told_without_its_secrets(url, told):
    with pytest.raises(FetchFailed) as caught:
        parts_of(url)
    assert str(caught.value) == told
    assert caught.value.__cause__ is None
