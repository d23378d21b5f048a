"""What-ifs: the same plan with another GPU, context, precision, KV type or number of users, side by side.

Each `--what-if` is a column. Its changes are made to the resource or to the fleet, and the planner is called again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from pydantic import ValidationError
from rich.cells import cell_len
from rich.console import RenderableType
from rich.text import Text

from plimsoll.api.config import Prices
from plimsoll.api.problems import problems_of
from plimsoll.api.v1alpha1.deployment import LLMDeployment
from plimsoll.cli import asking, drawing, inputs
from plimsoll.cli.asking import Question
from plimsoll.cli.drawing import count, gib, short
from plimsoll.cli.errors import BadInput, mistakes
from plimsoll.cli.remarks import generates, missed_target
from plimsoll.facts.gpus import Gpu, UnknownGpu, Vendor, gpu_named
from plimsoll.facts.inventory import Inventory
from plimsoll.planning.plan import FleetPlan, Plan, PlanSet, Severity
from plimsoll.status.findings import sentence

KNOBS: Final = ("gpu", "context", "precision", "kv", "users")
PRECISIONS: Final = ("fp8", "int8", "awq", "gptq", "int4", "nvfp4", "mxfp4", "bf16")


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    plans: FleetPlan


def scenario(text: str, question: Question, inventory: Inventory) -> Scenario:
    """Plans under the changes of one `--what-if`."""
    changes = _changes(text)
    gpu = _gpu(text, changes["gpu"]) if "gpu" in changes else None
    offered = {pool.gpu.name for pool in inventory.pools}
    if gpu is not None and gpu.name not in offered:
        inventory = _with_every_gpu(inventory, gpu, question.snapshot.config.prices)
    changed = [_changed(one, changes, gpu, text) for one in question.deployments]
    plans = asking.answer(replace(question, deployments=tuple(changed)), inventory)
    return Scenario(name=text, plans=plans)


def wrong(texts: Sequence[str]) -> list[str]:
    """All that is wrong with these `--what-if`, before anything is planned."""
    found: list[str] = []
    for text in texts:
        try:
            changes = _changes(text)
        except BadInput as error:
            found += error.lines
        else:
            found += mistakes(
                *(partial(_READ[key], text, value) for key, value in changes.items() if key in _READ)
            )
    return found


def _changes(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(",")]
    wrong = [key for key, equals, value in pairs if key not in KNOBS or not equals or not value]
    if wrong:
        raise BadInput(
            *(
                f"--what-if: {key!r} is no change; write {', '.join(f'{knob}=' for knob in KNOBS)} and a value"
                for key in wrong
            )
        )
    changes = {key: value for key, _, value in pairs}
    if len(changes) < len(pairs):
        raise BadInput(f"--what-if {text}: changes one thing twice; give each its own --what-if")
    return changes


def _gpu(text: str, name: str) -> Gpu:
    try:
        return gpu_named(name)
    except UnknownGpu as error:
        raise BadInput(f"--what-if {text}: {error}") from None


def _with_every_gpu(inventory: Inventory, gpu: Gpu, prices: Prices) -> Inventory:
    """The same nodes with this GPU in them, for GPUs that the fleet does not have. Pools of partitioned or shared GPUs are left out."""
    price = next((one.per_hour for one in prices.gpu_hour if _means(one.product, gpu)), None)
    pools = tuple(
        replace(pool, gpu=gpu, memory_bytes=gpu.memory_bytes, price_per_hour=price)
        for pool in inventory.pools
        if pool.gpu.vendor is not Vendor.CPU and pool.sharing == 1 and pool.partition is None
    )
    return replace(inventory, pools=pools)


def _means(product: str, gpu: Gpu) -> bool:
    try:
        return gpu_named(product) == gpu
    except UnknownGpu:
        return False


def _changed(
    deployment: LLMDeployment, changes: Mapping[str, str], gpu: Gpu | None, text: str
) -> LLMDeployment:
    body: dict[str, Any] = deployment.to_dict()
    spec = body["spec"]
    if gpu is not None:
        spec.setdefault("topology", {})["gpuProducts"] = [gpu.name]
    if "precision" in changes:
        spec["model"]["source"] += f"-{_precision(text, changes['precision'])}"
    if "kv" in changes:
        spec.setdefault("memory", {})["kvCacheDtype"] = changes["kv"]
    workload = spec.setdefault("workload", {})
    if "context" in changes:
        workload["contextTokens"] = _tokens(text, changes["context"])
    if "users" in changes:
        workload.pop("requestsPerSecond", None)
        workload["concurrency"] = _users(text, changes["users"])
    try:
        return LLMDeployment.model_validate(body)
    except ValidationError as error:
        problems = problems_of(error, LLMDeployment)
        raise BadInput(*(f"--what-if {text}: {deployment.name}: {problem}" for problem in problems)) from None


def _tokens(text: str, value: str) -> int:
    try:
        return inputs.tokens(value)
    except ValueError as error:
        raise BadInput(f"--what-if {text}: context: {error}") from None


def _users(text: str, value: str) -> int:
    if not value.isdecimal():
        raise BadInput(f"--what-if {text}: users must be a whole number, not {value!r}")
    return int(value)


def _precision(text: str, value: str) -> str:
    if value.lower() not in PRECISIONS:
        raise BadInput(f"--what-if {text}: precision must be one of {', '.join(PRECISIONS)}")
    return value.upper()


_READ: Final[Mapping[str, Callable[[str, str], object]]] = {
    "gpu": _gpu,
    "precision": _precision,
    "context": _tokens,
    "users": _users,
}
"""What says of a change's value whether it can be used."""


def comparison(base: FleetPlan, scenarios: Sequence[Scenario]) -> Iterator[RenderableType]:
    """A table for each resource, with a row for each figure and a column for each scenario. Figures that differ say by how much."""
    for place, now in enumerate(base.plans):
        if place:
            yield ""
        yield Text(f"{now.namespace}/{now.name}", style="bold")
        figures = _ROWS if generates(_lead(now)) else _ROWS_OF_ANSWERS
        columns = [_column(now, one.plans.plans[place], one.name, figures) for one in scenarios]
        names = ("  WHAT", *(f"  {name}" for name, _, _ in figures))
        written = ("AS WRITTEN", *(show(now) for _, show, _ in figures))
        for chunk in _chunks(columns, drawing.console().width - _width(names) - _width(written)):
            heads, *rows = zip(names, written, *chunk, strict=True)
            yield drawing.table(heads, rows, left=range(len(heads)))
        plans = {"as written": now, **{one.name: one.plans.plans[place] for one in scenarios}}
        errors = [(name, said) for name, plan in plans.items() for said in _errors(plan)]
        if errors:
            yield drawing.facts(errors, width=max(cell_len(name) for name, _ in errors))


def _errors(plan: Plan) -> Iterator[str]:
    """Why the plan of a column does not fit, or could not be made."""
    return (sentence(finding) for finding in plan.findings if finding.severity is Severity.ERROR)


Column = tuple[str, ...]


def _column(now: Plan, other: Plan, name: str, figures: Sequence[Row]) -> Column:
    return (name, *(_moved(show(now), show(other), figure, now, other) for _, show, figure in figures))


def _width(column: Column) -> int:
    return max(map(cell_len, column)) + 2


def _chunks(columns: Sequence[Column], room: int) -> Iterator[list[Column]]:
    """Groups of columns for one table each: as many as there is room for, but at least one."""
    chunk: list[Column] = []
    for column in columns:
        if chunk and sum(map(_width, chunk)) + _width(column) > room:
            yield chunk
            chunk = []
        chunk.append(column)
    if chunk:
        yield chunk


Figure = Callable[[Plan], float | None]
Row = tuple[str, Callable[[Plan], str], Figure | None]
"""The name of a figure, how it is shown, and the number by which differences are told."""


def _moved(before: str, after: str, figure: Figure | None, now: Plan, other: Plan) -> str:
    if before == after:
        return "="
    first, second = (figure(now), figure(other)) if figure is not None else (None, None)
    if not first or second is None:
        return after
    percent = round((second / first - 1) * 100)
    return f"{after} ({percent:+d}%)" if percent else after


def _lead(plan: Plan) -> PlanSet | None:
    return plan.sets[0] if plan.sets else plan.nearest


def _of(read: Callable[[PlanSet], float | None], *, running: bool = False) -> Figure:
    def figure(plan: Plan) -> float | None:
        lead = plan.sets[0] if running and plan.sets else None if running else _lead(plan)
        return None if lead is None else read(lead)

    return figure


def _told(figure: Figure, show: Callable[[float], str], unit: str = "") -> Callable[[Plan], str]:
    def text(plan: Plan) -> str:
        value = figure(plan)
        return "-" if value is None else f"{show(value)}{unit}"

    return text


def _verdict(plan: Plan) -> str:
    missed = missed_target(plan)
    return f"{plan.outcome.value}, misses {missed}" if missed else plan.outcome.value


def _layout(plan: Plan) -> str:
    return " + ".join(f"{one.replicas} x {one.layout} on {one.hardware}" for one in plan.sets) or "none"


def _term(name: str) -> Callable[[PlanSet], float | None]:
    return lambda chosen: sum(term.bytes.mid for term in chosen.ledger.terms if term.name == name)


_WEIGHTS = _of(_term("weights"))
_POOL = _of(_term("kv"))
_LENGTH = _of(lambda one: one.settings.max_model_len)
_TOKENS = _of(lambda one: one.ledger.capacity.tokens.mid if one.ledger.capacity else None)
_REQUESTS = _of(lambda one: one.ledger.capacity.concurrency_at_max_len.mid if one.ledger.capacity else None)
_TTFT = _of(lambda one: one.performance.ttft_ms.mid if one.performance else None, running=True)
_TPOT = _of(lambda one: one.performance.tpot_ms.mid if one.performance else None, running=True)


def _rate(plan: Plan) -> float | None:
    return plan.output_tokens_per_second


def _devices(plan: Plan) -> float | None:
    return plan.devices


def _cost(plan: Plan) -> float | None:
    return float(plan.cost.per_hour) if plan.cost and plan.cost.per_hour is not None else None


_FIT: Final[tuple[Row, ...]] = (
    ("verdict", _verdict, None),
    ("layout", _layout, None),
    ("GPUs", _told(_devices, count), _devices),
    ("weights a GPU", _told(_WEIGHTS, gib, " GiB"), _WEIGHTS),
)
_CONTEXT: Final[Row] = ("context", _told(_LENGTH, count, " tokens"), _LENGTH)
_COST: Final[Row] = ("cost an hour", _told(_cost, lambda value: f"{value:.2f}"), _cost)
_ROWS: Final[tuple[Row, ...]] = (
    *_FIT,
    ("KV pool a GPU", _told(_POOL, gib, " GiB"), _POOL),
    _CONTEXT,
    ("KV cache", _told(_TOKENS, count, " tokens"), _TOKENS),
    ("full requests", _told(_REQUESTS, short), _REQUESTS),
    ("first token", _told(_TTFT, short, " ms"), _TTFT),
    ("each token", _told(_TPOT, short, " ms"), _TPOT),
    ("throughput", _told(_rate, count, " tokens/s"), _rate),
    _COST,
)
_ROWS_OF_ANSWERS: Final[tuple[Row, ...]] = (
    *_FIT,
    _CONTEXT,
    ("answer", _told(_TTFT, short, " ms"), _TTFT),
    ("throughput", _told(_rate, count, " requests/s"), _rate),
    _COST,
)
"""Figures for embeddings and scores: there is no cache to compare, and an answer counts as one token."""
