"""The programs a cluster is made of: found where a machine may have them, else built, and never a wrong version."""

from cluster.binaries.find import BinariesMissing, ensure
from cluster.binaries.pins import PINS, STORES, Pin
from cluster.binaries.places import Places

__all__ = ["PINS", "STORES", "BinariesMissing", "Pin", "Places", "ensure"]
