"""Text that a person wrote (YAML or JSON, several documents) read into resources, or into a list of problems.

Nothing here trusts the text: no tags, no aliases that grow, no duplicate keys, a limit of size and depth, control
characters named. What is accepted here is what the API server accepts, and what is refused says why.
"""

import unicodedata
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any, Final, TypeVar

import yaml
from pydantic import ValidationError

from plimsoll import names
from plimsoll.api.base import ApiModel
from plimsoll.api.config import OperatorConfig
from plimsoll.api.plainyaml import MAX_VALUES, PlainLoader
from plimsoll.api.problems import Problem, SpecError, problems_of, show
from plimsoll.api.v1alpha1 import LLMDeployment

MAX_BYTES: Final = 1 << 20  # etcd refuses objects above 1.5 MiB; the API server's own limit for YAML is 3 MiB
MAX_PROBLEMS: Final = 100
MAX_NAMED: Final = 5

Model = TypeVar("Model", bound=ApiModel)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What a text held. Either list may be empty; with problems, the resources are those that were right."""

    deployments: tuple[LLMDeployment, ...]
    problems: tuple[Problem, ...]
    passed_over: tuple[str, ...] = ()
    """Objects of other groups that stood beside them, as Secrets do in a manifest: kind and name."""

    def or_raise(self) -> tuple[LLMDeployment, ...]:
        if self.problems:
            raise SpecError(*self.problems)
        return self.deployments


def load_deployments(text: str | bytes, *, file: str = "", one_of_many: bool = False) -> Loaded:
    """All LLMDeployments in a text; Lists are opened, objects of other groups passed over by name.

    Of a file that is `one_of_many` in a folder none is asked for: it may hold another file of ours, as a fleet, or nothing.
    """
    deployments: list[LLMDeployment] = []
    problems: list[Problem] = []
    passed_over: list[str] = []
    try:
        documents = _items(parse_documents(text))
    except SpecError as error:
        return Loaded((), tuple(_within(problem, file) for problem in error.problems))
    for number, document in enumerate(documents, start=1):
        if _is_foreign(document) or (one_of_many and _is_another_file_of_ours(document)):
            kind = show(document["kind"]).strip("'")
            passed_over.append(f"{kind} {_name(document) or ''}".rstrip())
            continue
        place = _place(file, document, number if len(documents) > 1 else 0)
        try:
            deployments.append(_read(document, LLMDeployment, names.KIND))
        except SpecError as error:
            problems += [_within(problem, place) for problem in error.problems]
    if len(documents) == len(passed_over) and not one_of_many:
        found = ", ".join(passed_over[:MAX_NAMED]) + (", ..." if len(passed_over) > MAX_NAMED else "")
        problems.append(_within(Problem("", found, f"no {names.KIND} in it"), file))
    problems += _twice(deployments, file)
    if len(problems) > MAX_PROBLEMS:
        problems[MAX_PROBLEMS:] = [Problem(file, "", f"{len(problems) - MAX_PROBLEMS} more problems")]
    return Loaded(tuple(deployments), tuple(problems), tuple(passed_over))


def load_config(text: str | bytes, *, file: str = "") -> OperatorConfig:
    """The admin's config; raises SpecError with all its problems. Without any head it is taken as one, as nothing else is read from here."""
    try:
        document = _only(parse_documents(text) or [{}])
        if isinstance(document, dict) and document.get("apiVersion") is None and document.get("kind") is None:
            document = document | {"apiVersion": names.API_VERSION, "kind": names.CONFIG_KIND}
        return _read(document, OperatorConfig, names.CONFIG_KIND)
    except SpecError as error:
        raise SpecError(*(_within(problem, file) for problem in error.problems)) from None


def parse_documents(text: str | bytes) -> list[Any]:
    """The documents of a YAML or JSON text as plain data; empty documents are left out."""
    try:
        documents = [
            document for document in yaml.load_all(_decode(text), Loader=PlainLoader) if document is not None
        ]
    except yaml.MarkedYAMLError as error:
        line = f"line {error.problem_mark.line + 1}" if error.problem_mark else ""
        why = error.problem or "not YAML"
        if "'\\t'" in why:
            why = "a tab where YAML wants spaces; indent with spaces"
        raise SpecError(Problem(line, "", why)) from None
    except (yaml.YAMLError, ValueError) as error:
        raise SpecError(Problem("", "", f"not YAML: {error}")) from None
    for document in documents:
        _weigh(document, {}, ())
        _check_strings(document, "")
    return documents


def _only(documents: list[Any]) -> Any:
    if len(documents) > 1:
        raise SpecError(
            Problem("", "", f"must hold one {names.CONFIG_KIND}, but holds {len(documents)} documents")
        )
    return documents[0]


def _items(documents: list[Any]) -> list[Any]:
    """The documents, with Lists (as `kubectl get -o yaml` prints them) opened."""
    opened: list[Any] = []
    for document in documents:
        is_list = isinstance(document, dict) and document.get("kind") in ("List", f"{names.KIND}List")
        opened += document.get("items") or [] if is_list else [document]
    return opened


def _read(document: Any, model: type[Model], kind: str) -> Model:
    if not isinstance(document, dict):
        raise SpecError(Problem("", show(document), f"must be an object of kind {kind}"))
    for field, expected in (("apiVersion", names.API_VERSION), ("kind", kind)):
        if document.get(field) != expected:
            raise SpecError(Problem(field, show(document.get(field, "")), f"must be {expected}"))
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise SpecError(*problems_of(error, model)) from None


def _is_foreign(document: Any) -> bool:
    """Whether this is somebody else's object; one with our group or our kind is meant for us, and a slip in it is told."""
    if not isinstance(document, dict):
        return False
    group, kind = document.get("apiVersion"), document.get("kind")
    if not (isinstance(group, str) and isinstance(kind, str) and group and kind):
        return False
    return group.partition("/")[0] != names.GROUP and kind != names.KIND


def _is_another_file_of_ours(document: Any) -> bool:
    return isinstance(document, dict) and document.get("kind") in (names.CONFIG_KIND, "Fleet", "Snapshot")


def _name(document: Any) -> str | None:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return show(name).strip("'") if isinstance(name, str) else None


def _place(file: str, document: Any, number: int) -> str:
    """Where a document stands, as far as there is more than one: by name, else by its place in the file."""
    which = (_name(document) or f"document {number}") if number else ""
    return ": ".join(part for part in (file, which) if part)


def _within(problem: Problem, place: str) -> Problem:
    return replace(problem, field=f"{place}: {problem.field}".rstrip(": ") if place else problem.field)


def _twice(deployments: list[LLMDeployment], file: str) -> list[Problem]:
    counted = Counter((one.namespace, one.name) for one in deployments)
    return [
        _within(Problem("metadata.name", name, f"stands there {count} times in namespace {namespace}"), file)
        for (namespace, name), count in counted.items()
        if count > 1
    ]


def _decode(text: str | bytes) -> str:
    size = len(text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text)
    if size > MAX_BYTES:
        raise SpecError(
            Problem(
                "", f"{size} bytes", f"larger than {MAX_BYTES} bytes (1 MiB), more than a cluster would store"
            )
        )
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise SpecError(
                Problem("", "", f"not UTF-8: byte {error.start} is {text[error.start]:#04x}")
            ) from None
    for number, line in enumerate(text.split("\n"), start=1):
        bad = next((c for c in line.removesuffix("\r") if c != "\t" and _is_forbidden(c)), None)
        if bad is not None:
            raise SpecError(Problem(f"line {number}", "", f"holds {_character(bad)}; remove it"))
    return text


def _is_forbidden(character: str) -> bool:
    """Control and format characters, lone surrogates: invisible, and some reverse what a reader sees."""
    return unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")


def _character(character: str) -> str:
    name = unicodedata.name(character, "a control character")
    return f"{name} (U+{ord(character):04X})"


def _weigh(value: Any, known: dict[int, int], above: tuple[int, ...]) -> int:
    """Values in a tree with every alias written out; each object is counted once and then remembered."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) in above:
        raise SpecError(Problem("", "", "an alias contains itself"))
    if id(value) not in known:
        children = value.values() if isinstance(value, dict) else value
        known[id(value)] = 1 + sum(_weigh(child, known, (*above, id(value))) for child in children)
    if known[id(value)] > MAX_VALUES:
        raise SpecError(
            Problem("", "", f"aliases that stand for more than {MAX_VALUES} values; write them out")
        )
    return known[id(value)]


def _check_strings(value: Any, path: str) -> None:
    """Escapes in quoted text can bring in what the text itself does not show; tabs and newlines are text."""
    if isinstance(value, str):
        bad = next((c for c in value if c not in "\t\n\r" and _is_forbidden(c)), None)
        if bad is not None:
            raise SpecError(Problem(path, show(value), f"holds {_character(bad)}; remove it"))
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_strings(key, path)
            _check_strings(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            _check_strings(item, f"{path}[{number}]")
