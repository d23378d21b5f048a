"""`python -m plimsoll.cli`: the command `plimsoll` where nothing is installed, as with only a clone on the PYTHONPATH."""

from __future__ import annotations

from plimsoll.cli.main import main

if __name__ == "__main__":
    main()
