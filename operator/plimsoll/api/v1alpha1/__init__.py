"""plimsoll.dev/v1alpha1: the resource that users write."""

from plimsoll.api.v1alpha1.deployment import LLMDeployment, ObjectMeta
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec
from plimsoll.api.v1alpha1.status import Condition, LLMDeploymentStatus

__all__ = ["Condition", "LLMDeployment", "LLMDeploymentSpec", "LLMDeploymentStatus", "ObjectMeta"]
