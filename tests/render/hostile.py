"""Text that tries to be more than text, and every place of a resource where text can stand."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from plimsoll.api.base import ApiModel
from plimsoll.api.v1alpha1.spec import LLMDeploymentSpec

PAYLOADS = {
    "template": "{{ 7*7 }}{% for a in b %}{# #}{{ self.__init__.__globals__ }}",
    "yaml": "x: y\n- z\n---\nkind: Secret",
    "quotes": "\"'\\\"'",
    "tag": "!!python/object/apply:os.system ['id']",
    "alias": "&a *a",
    "comment": "a # b",
    "word": "yes",
    "argv": "--api-key=x --trust-remote-code",
    "shell": "; rm -rf / `id` $(id) | & > <",
    "expansion": "$(HF_TOKEN) $$(HOME) $",
    "env": "A=b\nLD_PRELOAD=c",
    "path": "../../../etc/passwd",
    "proc": "/proc/self/environ",
    "right-to-left": "a\u202eb",
    "separator": "a\u2028b\u0085c",
    "unicode": "\U0001f600é\u0000\x7f",
    "json": '","command":["id"],"x":"',
    "empty": "",
    "huge": "x" * 20_000,
    "deep": "[" * 1_000 + "{" * 1_000,
}
MARK = "benign0"
NESTED = {
    "deep": '{"a":' * 100 + "[1]" + "}" * 100,
    "deeper": "[" * 2_000 + "]" * 2_000,
    "unended": "[" * 100 + '{"a":' * 100,
    "wide": json.dumps([{f"k{number}": [number] * 8} for number in range(190)]),
    "deep and wide": json.dumps({f"k{number}": [[[[number]]]] for number in range(180)}),
}
"""JSON of many levels and of many members, where text is read as JSON."""
Step = str | int
Path = tuple[Step, ...]


def texts(model: ApiModel, above: Path = ()) -> Iterator[Path]:
    """Where free text stands in a resource: neither one of a few words nor a number in text."""
    for name, info in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, str) and _is_free(info.annotation):
            yield (*above, name)
        else:
            yield from _inside(value, (*above, name))


def _inside(value: Any, above: Path) -> Iterator[Path]:
    if isinstance(value, ApiModel):
        yield from texts(value, above)
    elif isinstance(value, Mapping):
        yield from ((*above, key) for key, item in value.items() if isinstance(item, str))
    elif isinstance(value, tuple):
        for number, item in enumerate(value):
            if isinstance(item, str):
                yield (*above, number)
            else:
                yield from _inside(item, (*above, number))


def _is_free(annotation: Any) -> bool:
    return get_origin(annotation) is not Literal and not any(
        get_origin(part) is Literal for part in get_args(annotation)
    )


def text_at(value: Any, path: Path) -> str:
    for step in path:
        value = getattr(value, str(step)) if isinstance(value, ApiModel) else value[step]
    return str(value)


def with_text(value: Any, path: Path, text: str) -> Any:
    """The same with another text at a place, past all that the schema would refuse."""
    if not path:
        return text
    step, rest = path[0], path[1:]
    if isinstance(value, ApiModel):
        name = str(step)
        return value.model_copy(update={name: with_text(getattr(value, name), rest, text)})
    if isinstance(value, Mapping):
        return {**value, step: with_text(value[step], rest, text)}
    return tuple(with_text(item, rest, text) if place == step else item for place, item in enumerate(value))


def free_fields(model: type[ApiModel] = LLMDeploymentSpec, above: str = "") -> Iterator[str]:
    """All places of the schema for free text, without the numbers of lists."""
    for name, info in model.model_fields.items():
        yield from _free(info.annotation, f"{above}{name}")


def _free(annotation: Any, path: str) -> Iterator[str]:
    if annotation is str:
        yield path
    elif isinstance(annotation, type) and issubclass(annotation, ApiModel):
        yield from free_fields(annotation, f"{path}.")
    elif get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _free(part, path)
