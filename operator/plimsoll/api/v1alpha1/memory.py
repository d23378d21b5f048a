"""How much of a GPU the engine may take, what is quantized, and what spills to the host."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from plimsoll.api.base import ApiModel, Int, Quantity, Rule, Word, field


class KVOffload(ApiModel):
    """KV blocks that spill to host memory instead of being computed again."""

    size: Quantity = Field(description="Host memory for it, over all GPUs of a replica.")
    backend: Literal["native", "lmcache"] | None = field("What moves the blocks. Absent: native.")


class Memory(ApiModel):
    """The budget of GPU memory. What is absent is computed by the ledger."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            name="pool-or-utilization",
            cel="!has(self.kvCacheSize) || !has(self.utilizationPercent)",
            holds=lambda m: m.kv_cache_size is None or m.utilization_percent is None,
            message="only one of kvCacheSize and utilizationPercent may be set: a fixed pool ignores the utilization",
        ),
        Rule(
            name="utilization-within-tenancy",
            cel="!has(self.tenancySharePercent) || !has(self.utilizationPercent) || "
            "self.utilizationPercent <= self.tenancySharePercent",
            holds=lambda m: (
                m.tenancy_share_percent is None
                or m.utilization_percent is None
                or m.utilization_percent <= m.tenancy_share_percent
            ),
            message="utilizationPercent counts the whole GPU and must not be above tenancySharePercent",
            field="utilizationPercent",
        ),
    )

    utilization_percent: Annotated[Int, Field(ge=1, le=100)] | None = field(
        "Share of each GPU's total memory that the engine takes. Absent: computed, with headroom kept."
    )
    tenancy_share_percent: Annotated[Int, Field(ge=1, le=100)] | None = field(
        "Share of a time-sliced GPU that belongs to this deployment; at most one part of the sharing factor. Absent: one part."
    )
    kv_cache_size: Quantity | None = field("KV pool of each GPU, fixed. Absent: what the budget leaves.")
    kv_cache_dtype: Word | None = field(
        "Type of KV entries, as the engine spells it (auto, fp8, ...). Absent: auto, the model's own."
    )
    cpu_offload: Quantity | None = field(
        "Weights of each GPU kept in host memory. Costs speed. Absent: none."
    )
    kv_offload: KVOffload | None = field("Spill KV blocks to host memory.")
    headroom: Quantity | None = field("Memory of each GPU to keep free of everything. Absent: by GPU class.")


class Quantization(ApiModel):
    """How weights are quantized."""

    method: Word | None = field(
        "Method, as the engine spells it (fp8_per_tensor, awq, gptq, ...). Absent: what the checkpoint says."
    )
