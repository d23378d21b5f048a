"""`python -m plimsoll`: the operator. Everything that a person asks is the command `plimsoll`."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import sys
import time
from pathlib import Path

import click

from plimsoll.api.config import OperatorConfig
from plimsoll.api.loading import load_config
from plimsoll.api.problems import SpecError
from plimsoll.facts.engine_files import handed_in
from plimsoll.handlers.admission import WebhookOptions
from plimsoll.handlers.alerted import AlertsOptions
from plimsoll.handlers.ending import LeaseLost
from plimsoll.handlers.life import Life
from plimsoll.handlers.options import Options
from plimsoll.kube.errors import KubeError


class JsonLines(logging.Formatter):
    """Writes each record as one JSON object on a line of its own, for log collectors."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        deployment = getattr(record, "deployment", None)
        if deployment is not None:
            line["deployment"] = deployment
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


class Operator(click.Command):
    """Takes options alone. Who begins with a word means the command `plimsoll`, and would read the help or the errors of another program."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and not args[0].startswith("-"):
            ctx.fail(
                f"this is the operator, which is asked nothing: python -m plimsoll.cli {args[0]} is the command plimsoll"
            )
        return super().parse_args(ctx, args)


@click.command(cls=Operator, context_settings={"show_default": True})
@click.option(
    "--config", type=click.Path(path_type=Path, exists=True, dir_okay=False), help="The admin's file."
)
@click.option(
    "--context", help="Context of the kubeconfig; absent: the pod's own account, else the current context."
)
@click.option(
    "--kubeconfig",
    type=click.Path(exists=True, dir_okay=False),
    help="Kubeconfig; absent: the pod's own account, else as kubectl finds it.",
)
@click.option("--namespace", "namespaces", multiple=True, help="Watch only this namespace; may be repeated.")
@click.option(
    "--lease-namespace", help="Namespace of the Lease; absent: the pod's own, else no Lease is taken."
)
@click.option("--standalone", is_flag=True, help="Take no Lease: nobody else runs.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, help="Health and metrics; 0 for none.")
@click.option(
    "--webhook-port", type=click.IntRange(1, 65535), help="Answer admission reviews here; absent: none."
)
@click.option(
    "--webhook-host",
    "webhook_hosts",
    multiple=True,
    help="Name or address under which the API server calls the webhook; may be repeated.",
)
@click.option("--webhook-secret", default="plimsoll-webhook", help="Secret with the webhook's certificate.")
@click.option(
    "--webhook-configuration",
    help="ValidatingWebhookConfiguration that is told of the certificate, which is then made here; absent: others keep both.",
)
@click.option(
    "--alerts-port", type=click.IntRange(1, 65535), help="Hear Alertmanager here, with TLS; absent: not."
)
@click.option(
    "--alerts-certificate",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder with tls.crt and tls.key for it.",
)
@click.option(
    "--alerts-token",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File with the bearer token that it must send.",
)
@click.option("--offline", is_flag=True, help="Never ask a model hub.")
@click.option("--log-format", type=click.Choice(["json", "text"]), default="json")
@click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), default="info")
def main(
    *,
    config: Path | None,
    context: str | None,
    kubeconfig: str | None,
    namespaces: tuple[str, ...],
    lease_namespace: str | None,
    standalone: bool,
    port: int,
    webhook_port: int | None,
    webhook_hosts: tuple[str, ...],
    webhook_secret: str,
    webhook_configuration: str | None,
    alerts_port: int | None,
    alerts_certificate: Path | None,
    alerts_token: Path | None,
    offline: bool,
    log_format: str,
    log_level: str,
) -> None:
    """Run the operator: watch LLMDeployments and make what they ask for so.

    Everything that a person asks (plan, explain, doctor, ...) is the command plimsoll, which is `python -m plimsoll.cli` too.
    """
    _log(log_format, log_level)
    pod_namespace = os.environ.get("POD_NAMESPACE")  # noqa: TID251 - an entry point
    try:
        admin = OperatorConfig() if config is None else _config(config)
    except SpecError as error:
        sys.exit("\n".join(map(str, error.problems)))
    own_namespace = lease_namespace or pod_namespace
    webhook = None
    if webhook_port is not None:
        if own_namespace is None:
            sys.exit(
                "--webhook-port: where its Secret lies must be said too: --lease-namespace, or POD_NAMESPACE"
            )
        webhook = _webhook(webhook_port, webhook_hosts, webhook_secret, webhook_configuration)
    options = Options(
        context=context,
        kubeconfig=kubeconfig,
        namespaces=namespaces,
        config=admin,
        own_namespace=own_namespace,
        lease_namespace=None if standalone else own_namespace,
        webhook=webhook,
        alerts=_alerts(alerts_port, alerts_certificate, alerts_token),
        identity=f"{socket.gethostname()}-{os.getpid()}",
        port=port or None,
        offline=offline,
        signals=True,
    )
    try:
        asyncio.run(Life(options).run())
    except LeaseLost as error:
        sys.exit(f"{error}: ending, so that only one acts")
    except KubeError as error:
        sys.exit(f"the cluster cannot be reached: {error}")


def _webhook(port: int, hosts: tuple[str, ...], secret: str, configuration: str | None) -> WebhookOptions:
    if configuration is not None and not hosts:
        sys.exit("--webhook-configuration: whom the certificate is for must be said too: --webhook-host")
    return WebhookOptions(port=port, hosts=hosts, secret=secret, configuration=configuration)


def _alerts(port: int | None, certificate: Path | None, token: Path | None) -> AlertsOptions | None:
    if port is None:
        return None
    if certificate is None or token is None:
        sys.exit(
            "--alerts-port: it needs a certificate and a token too: --alerts-certificate, --alerts-token"
        )
    return AlertsOptions(port=port, certificate=certificate, token=token)


def _config(file: Path) -> OperatorConfig:
    return handed_in(load_config(file.read_bytes(), file=str(file)))


def _log(form: str, level: str) -> None:
    handler = logging.StreamHandler()
    handler.setFormatter(
        JsonLines() if form == "json" else logging.Formatter("%(asctime)s %(levelname)s %(message)s")
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("kopf").setLevel(logging.WARNING)


if __name__ == "__main__":
    main()
