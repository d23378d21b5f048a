"""Images without a container engine: made from recipes, kept between runs, and in every real node from its start."""

from cluster.images.make import ensure_images
from cluster.images.recipes import TOOLS, VLLM_CPU, VLLM_CPU_VERSION, Recipe
from cluster.images.supervisor import supervisor, supervisor_reference, vllm_cpu_supervised

__all__ = [
    "TOOLS",
    "VLLM_CPU",
    "VLLM_CPU_VERSION",
    "Recipe",
    "ensure_images",
    "supervisor",
    "supervisor_reference",
    "vllm_cpu_supervised",
]
