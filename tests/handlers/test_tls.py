"""What a server presents: the newest pair that is one, whatever comes after it."""

from __future__ import annotations

import asyncio
import base64
import ssl
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast

import pytest

from plimsoll.handlers import tls
from plimsoll.handlers.admission import Admission, ReviewCounts, WebhookOptions
from plimsoll.handlers.webhook import Webhook
from plimsoll.kube.certificates import Pair, made

HOST = "127.0.0.1"
NOW = datetime.now(UTC)  # noqa: TID251 - the handshake looks at the clock
PAIR, AUTHORITY = made([HOST], NOW)
NO_PAIRS = [
    Pair(made([HOST], NOW)[0].certificate, PAIR.key),
    Pair(made([HOST], NOW)[0].certificate, "no key"),
    Pair("no certificate", "no key"),
]
IDS = ["of two pairs", "no key", "no text of the kind"]


def written(pair: Pair, folder: Path) -> tuple[Path, Path]:
    for name, text in (("crt", pair.certificate), ("key", pair.key)):
        (folder / name).write_text(text)
    return folder / "crt", folder / "key"


async def connects(port: int) -> None:
    """Raises where what is shown is not trusted."""
    trusting = ssl.create_default_context(cadata=AUTHORITY)
    _, writer = await asyncio.open_connection(HOST, port, ssl=trusting)
    writer.close()
    await writer.wait_closed()


@pytest.mark.parametrize("spoiled", NO_PAIRS, ids=IDS)
def test_what_was_shown_stays_shown_where_the_next_is_no_pair(tmp_path: Path, spoiled: Pair) -> None:
    shown = tls.context()
    tls.present(shown, *written(PAIR, tmp_path))
    with pytest.raises(OSError, match=r"\[|PEM"):
        tls.present(shown, *written(spoiled, tmp_path))

    async def main() -> None:
        server = await asyncio.start_server(lambda _, writer: writer.close(), HOST, 0, ssl=shown)
        async with server:
            await connects(server.sockets[0].getsockname()[1])

    asyncio.run(main())


class Kept:
    """A Secret that others keep, and no review that is asked for."""

    def __init__(self, pair: Pair) -> None:
        self.pair, self.counts = pair, ReviewCounts()

    async def get(self, _path: str) -> dict[str, Any]:
        texts = {"tls.crt": self.pair.certificate, "tls.key": self.pair.key}
        return {"data": {name: base64.b64encode(text.encode()).decode() for name, text in texts.items()}}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("spoiled", NO_PAIRS, ids=IDS)
def test_a_webhook_says_what_is_wrong_with_its_certificate_and_goes_on(
    spoiled: Pair, caplog: pytest.LogCaptureFixture
) -> None:
    secret = Kept(spoiled)
    webhook = Webhook(
        cast(Admission, secret),
        cast(Any, secret),
        WebhookOptions(port=0, hosts=(HOST,), secret="webhook"),
        namespace="plimsoll",
        host=HOST,
        leads=lambda: False,
        now=lambda: 0.0,
    )

    async def main() -> None:
        await webhook.look()
        assert "no certificate" in (webhook.unheard or "")
        assert "tls.crt and tls.key of Secret webhook in plimsoll cannot be shown" in caplog.text
        secret.pair = PAIR
        await webhook.look()
        assert webhook.unheard is None
        await webhook.close()

    asyncio.run(main())
