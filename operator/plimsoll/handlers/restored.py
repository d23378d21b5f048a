"""What to do once the data of the cluster were restored from a backup: each status is written anew, as an old one stands there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.handlers.life import Life


def restored(life: Life, key: str, uid: str) -> None:
    """Called with namespace/name and uid of each resource that is known."""
    life.world.untold.add(key)
    life.connected.restored(uid)
    life.wakes.wake(key)
