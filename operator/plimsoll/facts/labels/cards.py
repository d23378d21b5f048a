"""Cards that node feature discovery sees on a node's PCI bus, whether or not anything hands them out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from plimsoll.facts.labels.device import Problem, ProblemReason

_PREFIX: Final = "feature.node.kubernetes.io/pci-"
_CARDS: Final = re.compile(r"(?:(?:0302_|0300_)?(10de)|(?:0380_|1200_)(1002)|1200_(1da3))\.present")
"""Device classes and vendors of cards that compute. Other vendors' display adapters are on many mainboards and are left out."""
_VENDORS: Final = {
    "10de": (
        "an NVIDIA",
        "nvidia.com/gpu",
        "the NVIDIA GPU operator, or driver, container toolkit and device plugin",
    ),
    "1002": ("an AMD", "amd.com/gpu", "the AMD GPU operator, or driver and device plugin"),
    "1da3": ("a Gaudi", "habana.ai/gaudi", "the Gaudi base operator, or driver and device plugin"),
}


def unused(labels: Mapping[str, str]) -> tuple[Problem, ...]:
    """The problem of a node that offers no devices although it has a card."""
    for label in sorted(labels):
        if label.startswith(_PREFIX) and (found := _CARDS.fullmatch(label, len(_PREFIX))):
            which, resource, cure = _VENDORS[next(filter(None, found.groups()))]
            message = f"the PCI bus has {which} card, but the node offers no {resource}: install {cure}"
            return (Problem(ProblemReason.NO_DRIVER, message),)
    return ()
