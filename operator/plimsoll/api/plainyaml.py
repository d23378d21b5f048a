"""A YAML loader for text that nobody vouches for: plain data, every key once, a bound on depth.

What YAML 1.1 would turn into dates or base-60 numbers stays text, since the API server reads it so.
"""

import re
from typing import Any, Final

import yaml

MAX_DEPTH: Final = 64
MAX_DIGITS: Final = 100  # of a number; what a field takes is far shorter
MAX_VALUES: Final = 100_000  # about 4 s of reading; 1 MiB of real resources holds some 40,000

_TAG: Final = "tag:yaml.org,2002:"
_HEAD: Final = frozenset({"apiVersion", "kind"})
_MERGE: Final = f"{_TAG}merge"
_PLAIN: Final = ("null", "bool", "int", "float", "str", "seq", "map")
_INT: Final = re.compile(r"[-+]?(0b[01_]+|0[0-7_]+|0|[1-9][0-9_]*|0x[0-9a-fA-F_]+)$")
_FLOAT: Final = re.compile(
    r"[-+]?([0-9][0-9_]*\.[0-9_]*|\.[0-9]+|[0-9][0-9_]*)([eE][-+]?[0-9]+)?$|[-+]?\.(inf|nan)$"
)


def nesting(text: str) -> int:
    """How many brackets are open at once, told by their signs alone: a parser would go down them."""
    deepest = depth = 0
    for match in re.finditer(r"[\[{]|[\]}]", text):
        depth = depth + 1 if match[0] in "[{" else max(0, depth - 1)
        deepest = max(deepest, depth)
    return deepest


class BoundedMerges:
    """Merge keys (<<) for any of YAML's loaders, with a bound on what they bring in.

    The loaders copy what is merged entry by entry, so ten lines of merges of merges fill any memory.
    """

    most_merged = MAX_VALUES
    merged = 0

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        merges = [value for key, value in node.value if key.tag == _MERGE]
        if not merges:
            return
        own = [pair for pair in node.value if pair[0].tag != _MERGE]
        node.value = own  # before the parts are looked at: one may be this node
        brought: list[tuple[yaml.Node, yaml.Node]] = []
        for value in merges:
            parts = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for part in reversed(parts):  # the last entry of a key counts, and the first part shall win
                if not isinstance(part, yaml.MappingNode):
                    raise _refused("<< takes a group of fields, or a list of them", part)
                self.flatten_mapping(part)
                self.merged += len(part.value)
                if self.merged > self.most_merged:
                    raise _refused(f"<< brings in more than {self.most_merged} values; write them out", value)
                brought += part.value
        node.value = brought + own


class PlainLoader(BoundedMerges, yaml.SafeLoader):
    """SafeLoader without tags, dates, sets and binary, and with errors where it would take the last of two keys."""

    depth = 0
    values = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        self.depth += 1
        self.values += 1
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if self.depth > MAX_DEPTH:
            raise _refused(f"nested deeper than {MAX_DEPTH} levels", event)
        if self.values > MAX_VALUES:
            raise _refused(f"more than {MAX_VALUES} values; split the file", event)
        node: yaml.Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Keys are compared as they are written: later, what << brought in would count as written."""
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if key.tag == _MERGE:
                continue
            if key.tag != f"{_TAG}str":
                written = key.value if isinstance(key, yaml.ScalarNode) else "it"
                raise _refused(f"a key must be text; put {written!r} in quotes", key)
            if key.value in seen:
                apart = ", or where another resource begins, a line of --- parts the two"
                whose = apart if key.value in _HEAD else ""
                raise _refused(f"{key.value!r} stands there twice; keep one{whose}", key)
            seen.add(key.value)
        return node

    def construct_int(self, node: yaml.ScalarNode) -> int:
        if len(node.value) > MAX_DIGITS:
            raise _refused(f"a number of {len(node.value)} digits, more than any field takes", node)
        number: int = super().construct_yaml_int(node)
        return number

    def construct_undefined(self, node: yaml.Node) -> Any:
        raise _refused(f"tag {node.tag!r} is not allowed; write plain YAML", node)


def _refused(problem: str, where: Any) -> yaml.MarkedYAMLError:
    return yaml.constructor.ConstructorError(None, None, problem, where.start_mark)


def _resolvers() -> dict[Any, Any]:
    kept: dict[Any, Any] = {}
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items():
        kept[first] = [pair for pair in resolvers if pair[0].removeprefix(_TAG) in ("null", "bool", "merge")]
    for first in "-+0123456789":
        kept.setdefault(first, []).append((f"{_TAG}int", _INT))
    for first in "-+.0123456789":
        kept.setdefault(first, []).append((f"{_TAG}float", _FLOAT))
    return kept


PlainLoader.yaml_implicit_resolvers = _resolvers()
PlainLoader.yaml_constructors = {
    **{f"{_TAG}{kind}": yaml.SafeLoader.yaml_constructors[f"{_TAG}{kind}"] for kind in _PLAIN},
    f"{_TAG}int": PlainLoader.construct_int,
    None: PlainLoader.construct_undefined,
}
