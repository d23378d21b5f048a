"""How replicas move from the sets that serve to the sets that should: surge, replace, canary, hold, rollback."""

from plimsoll.control.rollout.moves import move
from plimsoll.control.rollout.rules import Rules, rules_of
from plimsoll.control.rollout.targets import Rollout, Target

__all__ = ["Rollout", "Rules", "Target", "move", "rules_of"]
