"""The program: `python -m plimsoll_runtime`, and what the zip file of it runs."""

from __future__ import annotations

import os
import sys

from plimsoll_runtime.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))  # noqa: TID251 - this is the entry point
