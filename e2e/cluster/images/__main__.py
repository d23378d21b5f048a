"""`python -m cluster.images`: make what real nodes need, and say by which names pods ask for it."""

from __future__ import annotations

import os
import sys

from cluster.binaries import Places
from cluster.binaries.progress import Progress
from cluster.images import TOOLS, VLLM_CPU, ensure_images
from cluster.node import Unavailable

RECIPES = (TOOLS, VLLM_CPU)


def main() -> int:
    places = Places.of(os.environ)  # noqa: TID251 - this is the entry point
    try:
        ensure_images(RECIPES, places, Progress(sys.stderr))
    except Unavailable as why:
        print(why, file=sys.stderr)
        return 1
    for recipe in RECIPES:
        print(recipe.reference)
    return 0


if __name__ == "__main__":
    sys.exit(main())
