"""The part of `make demo` that needs a cluster: one of 200 simulated nodes, the operator on it, and resources that come to serve.

Each step is shown as the command a person would type. The cluster stays; `make demo-down` ends it.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

from cluster.__main__ import main as cluster
from cluster.binaries import Places
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


def main() -> int:
    if failed := cluster(["up", "--name", NAME, "--fleet", FLEET, "--operator"]):
        return failed
    environ = dict(os.environ)  # noqa: TID251 - a person's own
    standing = Standing(Places.of(environ).cache / "clusters" / NAME)
    about = standing.read()
    if about is None:
        print(f"the cluster ended; see {standing.holder_log}", file=sys.stderr)
        return 1
    folders = (str(Path(sys.executable).parent), str(Path(about["kubectl"]).parent), environ.get("PATH", ""))
    environ |= {"KUBECONFIG": about["kubeconfig"], "PATH": os.pathsep.join(folders)}
    # kubectl remembers by address what a server knows, and another cluster may have had this one.
    environ["KUBECACHEDIR"] = str(standing.folder / "kubectl")

    def shown(*argv: str, answers: tuple[int, ...] = (0,)) -> None:
        print(f"\n$ {shlex.join(argv)}", flush=True)
        done = subprocess.run(argv, cwd=ROOT, env=environ, check=False)
        if done.returncode not in answers:
            raise SystemExit(f"ended with {done.returncode}")

    for namespace, example in EXAMPLES.items():
        there = ["kubectl", "get", "namespace", namespace]
        if subprocess.run(there, env=environ, check=False, capture_output=True).returncode:
            shown("kubectl", "create", "namespace", namespace)
        shown("kubectl", "apply", "--server-side", "-f", example)
    shown("kubectl", "wait", "--for=condition=Ready", "llm", "--all", "--all-namespaces", "--timeout=180s")
    shown("kubectl", "get", "llm", "--all-namespaces")
    chat = EXAMPLES["support"]
    # What cannot be is refused by the API server itself, in words that say what would be right.
    wrong = '{"spec":{"scaling":{"min":5}}}'
    shown("kubectl", "patch", "llm", "chat", "-n", "support", "--type=merge", "-p", wrong, answers=(1,))
    shown("plimsoll", "plan", "--context", "--config", str(standing.config), "-f", chat, answers=FITS)
    shown("kubectl", "get", "pods,services", "-n", "support")
    print(
        f"""
The cluster and the operator stay; its nodes are simulated, its API server is real. To look further:
  export KUBECONFIG={about["kubeconfig"]}
  kubectl describe llm chat -n support          conditions, plan, events
  kubectl scale llm chat -n support --replicas=3
  kubectl edit llm chat -n support              workload.contextTokens: 8192 moves it to another set
  tail -f {standing.cluster_folder}/logs/operator.log
  make demo-down"""
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
