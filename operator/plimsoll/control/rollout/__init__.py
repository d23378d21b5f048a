"""How replicas move from the sets that serve to the sets that should: surge, replace, canary, hold, rollback."""

from plimsoll.control.rollout.moves import Rollout, Target, move
from plimsoll.control.rollout.rules import Rules, rules_of

__all__ = ["Rollout", "Rules", "Target", "move", "rules_of"]
