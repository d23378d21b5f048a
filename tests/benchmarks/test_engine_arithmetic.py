"""The comparison with the engine's own arithmetic starts as its first lines say."""

import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "engine_arithmetic.py"


def test_it_starts_without_any_path_told_to_it():
    words = [sys.executable, "-E", str(PROGRAM), "--help"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "--tensor" in done.stdout
