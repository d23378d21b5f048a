"""How an operator hears alerts: the shipped rules, which fire sooner, and the webhook where Alertmanager tells of them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from cluster.metrics import Webhook
from cluster.processes import free_port
from plimsoll.kube.certificates import made

RULES: Final = Path(__file__).parent.parent / "charts" / "plimsoll" / "files" / "rules.yaml"
TOKEN: Final = "a-token-of-some-length"


def shipped(lasting: str = "0s", *, alert: str | None = None) -> dict[str, Any]:
    """The rules of the chart, which fire once they have held for so long and as long after, in place of minutes; one alert's alone, where it is
    named."""
    text = re.sub(
        r"^( *)((?:keep_firing_)?for): .*$", rf"\1\2: {lasting}", RULES.read_text(), flags=re.MULTILINE
    )
    rules: dict[str, Any] = yaml.safe_load(text.replace("interval: 1m", "interval: 1s"))
    for group in rules["groups"]:
        group["rules"] = [one for one in group["rules"] if alert is None or one.get("alert", alert) == alert]
    return rules


def hearing(folder: Path, *, again_s: int | None = None) -> tuple[tuple[str, ...], Webhook]:
    """Arguments by which an operator hears alerts, and where they go; once more after so long, where they still fire."""
    pair, authority = made(["127.0.0.1"], datetime.now(UTC))  # noqa: TID251 - the handshake looks at the clock
    texts = {"tls.crt": pair.certificate, "tls.key": pair.key, "ca.crt": authority, "token": TOKEN}
    for name, text in texts.items():
        (folder / name).write_text(text)
    port = free_port()
    hears = (f"--alerts-port={port}", f"--alerts-certificate={folder}", f"--alerts-token={folder / 'token'}")
    where = Webhook(
        url=f"https://127.0.0.1:{port}/alerts", token=TOKEN, ca_file=folder / "ca.crt", again_s=again_s
    )
    return hears, where
