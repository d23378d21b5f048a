"""The part of `make demo` that needs a cluster: one of 200 simulated nodes, the operator on it, resources that come to serve, and
at its end a token of a real engine, from a real node where this machine can have one.

Each step is shown as the command a person would type, and is held to what it is to show: where one does not, or no token comes, the
demonstration ends with that and is no success. The cluster stays; `make demo-down` ends it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import first_token
from cluster.__main__ import main as cluster
from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.standing import Standing

ROOT: Final = Path(__file__).parent.parent
NAME: Final = "demo"
FLEET: Final = "mixed-200"
EXAMPLES: Final = {
    "support": "examples/02-chat.yaml",
    "tools": "examples/03-code-completion.yaml",
    "search": "examples/06-embeddings.yaml",
}
"""By namespace."""
FITS: Final = (0, 2)
"""It fits, or it does not: both are answers of the planner."""
REFUSED: Final = "min must not be above max"


class Stages:
    """How long each part took."""

    def __init__(self) -> None:
        self._took: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        yield
        self._took[name] = time.monotonic() - began

    def __str__(self) -> str:
        return ", ".join(f"{name} {seconds:.0f} s" for name, seconds in self._took.items())


def main(*, real: bool = True) -> int:
    """`real`: with an engine, whose image takes minutes and gigabytes the first time."""
    environ = dict(os.environ)  # noqa: TID251 - a person's own
    places, progress, stage = Places.of(environ), Progress(sys.stderr), Stages()
    with stage("images of a real node"):
        unavailable = first_token.prepare(places, progress) if real else "not asked for"
    up = ["up", "--name", NAME, "--fleet", FLEET, "--operator"]
    with stage("the cluster and the operator"):
        failed = cluster(up if unavailable else [*up, "--real-node"])
        if failed and not unavailable:  # a container may be root and yet have no right to namespaces
            unavailable = "it does not start on this machine, see above"
            failed = cluster(up)
    if failed:
        return failed
    standing = Standing(places.cache / "clusters" / NAME)
    about = standing.read()
    if about is None:
        print(f"the cluster ended; see {standing.holder_log}", file=sys.stderr)
        return 1
    folders = (str(Path(sys.executable).parent), str(Path(about["kubectl"]).parent), environ.get("PATH", ""))
    environ |= {"KUBECONFIG": about["kubeconfig"], "PATH": os.pathsep.join(folders)}
    # kubectl remembers by address what a server knows, and another cluster may have had this one.
    environ["KUBECACHEDIR"] = str(standing.folder / "kubectl")

    def shown(*argv: str, answers: tuple[int, ...] = (0,), complaint: str = "") -> None:
        print(f"\n$ {shlex.join(argv)}", flush=True)
        done = subprocess.run(argv, cwd=ROOT, env=environ, check=False, stderr=subprocess.PIPE, text=True)
        print(done.stderr, end="", file=sys.stderr, flush=True)
        if done.returncode not in answers:
            raise SystemExit(f"{argv[0]} ended with {done.returncode}")
        if complaint not in done.stderr:
            raise SystemExit(f"{argv[0]} was to say: {complaint}")

    with stage("three models that come to serve"):
        for namespace, example in EXAMPLES.items():
            there = ["kubectl", "get", "namespace", namespace]
            if subprocess.run(there, env=environ, check=False, capture_output=True).returncode:
                shown("kubectl", "create", "namespace", namespace)
            shown("kubectl", "apply", "--server-side", "-f", example)
        shown(
            "kubectl", "wait", "--for=condition=Ready", "llm", "--all", "--all-namespaces", "--timeout=600s"
        )
    shown("kubectl", "get", "llm", "--all-namespaces")
    chat = EXAMPLES["support"]
    # What cannot be is refused by the API server itself, in words that say what would be right.
    wrong = '{"spec":{"scaling":{"min":5}}}'
    shown(
        "kubectl",
        "patch",
        "llm",
        "chat",
        "-n",
        "support",
        "--type=merge",
        "-p",
        wrong,
        answers=(1,),
        complaint=REFUSED,
    )
    shown("plimsoll", "plan", "--context", "--config", str(standing.config), "-f", chat, answers=FITS)
    shown("kubectl", "get", "pods,services", "-n", "support")
    missing = ""
    if real:
        with stage("a token of a real engine"):
            missing = _token(shown, unavailable, standing, environ)
    print(
        f"""
The cluster and the operator stay; its GPU nodes are simulated, its API server is real. To look further:
  export KUBECONFIG={about["kubeconfig"]}
  kubectl describe llm chat -n support          conditions, plan, events
  kubectl scale llm chat -n support --replicas=3
  kubectl edit llm chat -n support              workload.contextTokens: 8192 moves it to another set
  tail -f {standing.cluster_folder}/logs/operator.log
  make demo-down

Took: {stage}"""
    )
    if missing:
        print(f"\nNo token of a real engine came: {missing}", file=sys.stderr)
    return 1 if missing else 0


def _token(
    shown: Callable[..., None], unavailable: str | None, standing: Standing, environ: dict[str, str]
) -> str:
    """From a pod, or from a process where no node can be had; why none came, or nothing."""
    if unavailable:
        print(
            f"\nNo real node here: {unavailable}\nThe same engine as a plain process, with the words of the same plan:"
        )
        return first_token.by_process(standing.folder, Places.of(environ), Progress(sys.stderr)) or ""
    print(
        "\nAll those pods are simulated, as their GPUs are. This one is not: a real node, a real engine, a tiny model "
        "(of made-up weights, so it babbles)."
    )
    shown("kubectl", "apply", "--server-side", "-f", str(first_token.storage(standing.folder)))
    shown("kubectl", "apply", "--server-side", "-f", str(first_token.RESOURCE.relative_to(ROOT)))
    shown("kubectl", "wait", "--for=condition=Ready", "llm/hello", "-n", "hello", "--timeout=600s")
    shown("kubectl", "get", "llm,pods,services", "-n", "hello")
    where = ["kubectl", "get", "service", "hello", "-n", "hello", "-o", "jsonpath={.spec.clusterIP}"]
    address = subprocess.run(where, env=environ, check=True, capture_output=True, text=True).stdout
    try:
        first_token.ask(f"http://{address}")
    except OSError as why:
        return str(why)
    return ""


if __name__ == "__main__":
    sys.exit(main())
