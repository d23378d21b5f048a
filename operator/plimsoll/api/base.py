"""What all models of the API have in common: one base, shared field types, and rules declared once.

A rule stands beside the model it guards, as the CEL text the API server runs and as the Python predicate that is run
when a file is read; both come from one declaration and are tested with the same samples. Turning the models into a
schema is left to structural.py, reading files to loading.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    Strict,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from plimsoll.api.quantity import DECIMAL, QUANTITY, check_decimal, check_quantity

INT_OR_STRING = "x-kubernetes-int-or-string"
LIST_TYPE = "x-kubernetes-list-type"
LIST_KEYS = "x-kubernetes-list-map-keys"
VALIDATIONS = "x-kubernetes-validations"
SERVER_DEFAULT = "x-plimsoll-server-default"

# Patterns are written in the common subset of Python's and Go's (RE2) expressions: no look-around.
DNS_LABEL = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
DNS_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"
# A label's or annotation's key and a label's value, as the API server accepts them.
LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"
LABEL_VALUE = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$"
PRINTABLE = r"^[!-~]+$"
PRINTABLE_SPACE = r"^[ -~]+$"
ONE_LINE = r"^[^\x00-\x1f\x7f]+$"
# A metric's label, and a header's name and value, as all that speak HTTP take them.
METRIC_LABEL = r"^[A-Za-z_][A-Za-z0-9_]*$"
HEADER_NAME = r"^[A-Za-z0-9][-A-Za-z0-9_]*$"
HEADER_VALUE = r"^[!-~]([ -~]*[!-~])?$"
# No @ comes after the host: a sign of a password that is not escaped ends the host before it, and its rest would be taken for a path.
_HOST = r"[!\x22$-.0->@-~]+"
ADDRESS = rf"^https?://{_HOST}([/?#][!-?A-~]*)?$"
# As all that read the variables understand it.
PROXY = rf"^http://{_HOST}/?$"
# An image's name: an address is none, so no part of it is empty, as what follows a scheme would be.
IMAGE = r"^[A-Za-z0-9][A-Za-z0-9._:@-]*(/[A-Za-z0-9._:@-]+)*$"

Bool = Annotated[bool, Strict()]
Int = Annotated[int, Strict()]
Percent = Annotated[int, Strict(), Field(ge=0, le=100)]
Seconds = Annotated[int, Strict(), Field(ge=0, le=604800)]
Milliseconds = Annotated[int, Strict(), Field(ge=1, le=3600000)]
Tokens = Annotated[int, Strict(), Field(ge=1, le=16777216)]
Decimal = Annotated[str, Field(max_length=16, pattern=DECIMAL)]
Amount = Annotated[
    str,
    BeforeValidator(check_decimal),
    WithJsonSchema(
        {INT_OR_STRING: True, "minimum": 0, "maximum": 999999999, "maxLength": 16, "pattern": DECIMAL}
    ),
]
"""A decimal string as people write it, who leave the quotes of a whole number away."""
ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_SUBDOMAIN)]
LabelName = Annotated[str, Field(min_length=1, max_length=63, pattern=DNS_LABEL)]
Word = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?$")
]
Quantity = Annotated[
    str,
    BeforeValidator(check_quantity),
    WithJsonSchema({INT_OR_STRING: True, "minimum": 0, "maxLength": 32, "pattern": QUANTITY}),
]
ImageName = Annotated[str, Field(min_length=1, max_length=512, pattern=IMAGE)]
LabelKey = Annotated[str, Field(min_length=1, max_length=316, pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(max_length=63, pattern=LABEL_VALUE)]
Glob = Annotated[str, Field(min_length=1, max_length=256, pattern=PRINTABLE)]
NamespaceGlob = Annotated[
    str, Field(min_length=1, max_length=63, pattern=r"^[a-z0-9*]([-a-z0-9*]*[a-z0-9*])?$")
]
LabelMap = Annotated[dict[LabelKey, LabelValue], Field(max_length=32)]
AnnotationMap = Annotated[dict[LabelKey, Annotated[str, Field(max_length=4096)]], Field(max_length=32)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One constraint that a type alone cannot say, for the API server (cel) and for files (holds)."""

    name: str
    cel: str
    holds: Callable[[Any], bool]
    message: str
    field: str | None = None  # which field of the guarded object is to blame, as the user spells it

    def to_schema(self) -> dict[str, str]:
        """The rule as an entry of x-kubernetes-validations."""
        entry = {"rule": self.cel, "message": self.message}
        if self.field is None or self.field.startswith("metadata."):  # no path may point into metadata
            return entry
        return entry | {"fieldPath": f".{self.field}"}


class ApiModel(BaseModel):
    """A frozen value with camelCase names outside and snake_case names inside; unknown fields are errors.

    The operator reads objects that a newer version may have written: it validates with extra="ignore".
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        validate_default=False,
    )
    rules: ClassVar[tuple[Rule, ...]] = ()
    forms: ClassVar[tuple[str, ...]] = ()  # as it may be written, where no field must be set and not all may
    whole: ClassVar[bool] = False  # merged as one value, because its parts mean little apart
    retired: ClassVar[frozenset[str]] = frozenset()  # of earlier releases, never of effect: passed over

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        schema = handler.resolve_ref_schema(handler(core_schema))
        if cls.rules:
            schema[VALIDATIONS] = [rule.to_schema() for rule in cls.rules]
        return schema

    @model_validator(mode="before")
    @classmethod
    def _without_what_says_nothing(cls, given: Any) -> Any:
        """Optional means absent: the API server prunes a null before it validates, so reading a file does too."""
        if isinstance(given, dict) and (None in given.values() or not cls.retired.isdisjoint(given)):
            return {
                key: value for key, value in given.items() if value is not None and key not in cls.retired
            }
        return given

    @model_validator(mode="after")
    def _obeys_rules(self) -> Self:
        self._has_unique_items()
        for rule in self.rules:
            if not rule.holds(self):
                raise PydanticCustomError(
                    "rule",
                    "{message}",
                    {"message": rule.message, "rule": rule.name, "field": rule.field or ""},
                )
        return self

    def _has_unique_items(self) -> None:
        for name, shown_as, keys in _listings(type(self)):
            seen = set()
            for item in getattr(self, name) or ():
                key = tuple(getattr(item, k) for k in keys) if keys else item
                if key in seen:
                    shown = key[0] if isinstance(key, tuple) and len(key) == 1 else key
                    raise PydanticCustomError(
                        "duplicate",
                        "{shown} is listed twice; each may stand there once",
                        {"shown": repr(shown), "field": shown_as},
                    )
                seen.add(key)

    def to_dict(self, *, defaults: bool = True) -> dict[str, Any]:
        """The object as the API server stores it: what was written, and the defaults that the user owns.

        Without defaults: only what was written, for merging.
        """
        dumped: dict[str, Any] = {}
        for name, key, owned_default in _fields(type(self)):
            value = getattr(self, name)
            if value is not None and (name in self.model_fields_set or (defaults and owned_default)):
                dumped[key] = _plain(value, defaults=defaults)
        return dumped


@cache
def _listings(model: type[ApiModel]) -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Fields whose items may each stand there once: the name, how the user spells it, and by what items are told apart. Every
    object that is read asks for it, and most have none."""
    found = []
    for name, info in model.model_fields.items():
        extra = info.json_schema_extra
        if isinstance(extra, dict) and extra.get(LIST_TYPE) in ("set", "map"):
            keys: Any = extra.get(LIST_KEYS) or ()
            found.append((name, info.alias or name, tuple(keys)))
    return tuple(found)


@cache
def _fields(model: type[ApiModel]) -> tuple[tuple[str, str, bool], ...]:
    """The name of each, how the user spells it, and whether the API server writes its default."""
    return tuple((name, info.alias or name, is_owned(info)) for name, info in model.model_fields.items())


def _plain(value: Any, *, defaults: bool) -> Any:
    if isinstance(value, ApiModel):
        return value.to_dict(defaults=defaults)
    if isinstance(value, dict):
        # Sorted, because the API server returns maps so: who wrote first must not show in the bytes.
        return {key: _plain(item, defaults=defaults) for key, item in sorted(value.items())}
    if isinstance(value, list | tuple):
        return [_plain(item, defaults=defaults) for item in value]
    return value


def is_owned(info: FieldInfo) -> bool:
    """Whether the API server writes this field's default into the object."""
    extra = info.json_schema_extra
    return isinstance(extra, dict) and SERVER_DEFAULT in extra


def field(description: str, **constraints: Any) -> Any:
    """An optional field: absent means absent, and Plimsoll decides."""
    return Field(default=None, description=description, **constraints)


def group(factory: Callable[[], Any], description: str) -> Any:
    """A group of optional fields: always there to read, never written by a default."""
    return Field(default_factory=factory, description=description)


def listing(description: str, *, most: int, keys: tuple[str, ...] = (), atomic: bool = False) -> Any:
    """A bounded list: a map by its keys, a set of scalars, or (atomic) a sequence whose order means something."""
    extra: dict[str, Any] = {LIST_TYPE: "atomic" if atomic else "map" if keys else "set"}
    if keys:
        extra[LIST_KEYS] = list(keys)
    return Field(default=(), description=description, max_length=most, json_schema_extra=extra)


def owned(default: Any, description: str, **constraints: Any) -> Any:
    """A field whose default the API server writes into the object, because the user should see and own it."""
    return Field(
        default=default, description=description, json_schema_extra={SERVER_DEFAULT: True}, **constraints
    )
