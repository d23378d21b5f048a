"""The columns of traces under each of their names: our own, those of published traces, and those of a gateway's log.

- Azure: TIMESTAMP, ContextTokens, GeneratedTokens
- Mooncake: timestamp (in ms), input_length, output_length, hash_ids
- Qwen-Bailian: the same as Mooncake, but in seconds and with shorter blocks, which are not read
- BurstGPT: Timestamp, Request tokens, Response tokens
- LiteLLM's log of spending: startTime, prompt_tokens, completion_tokens
- answers of an OpenAI API: created, usage.prompt_tokens, usage.completion_tokens
- OpenTelemetry's names: gen_ai.usage.input_tokens, gen_ai.usage.output_tokens

Upper and lower case, spaces and underscores make no difference. Of a name with dots the last part counts, unless a column has that name alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final

from plimsoll.load.trace_rates import RATE_HEAD, RateColumns, Row, rate_columns

REQUEST_HEAD: Final = "arrival_s,input_tokens,output_tokens[,prefix_block_ids]"
FORMS: Final = (
    f"a trace has requests ({REQUEST_HEAD}), rates ({RATE_HEAD}; rate_rpm is a minute's, rate_rph an hour's), counts by interval "
    "(time,requests), or is what Prometheus answers to query_range"
)
"""The end of a sentence on what is not read."""

_AT: Final = (
    *("arrivals", "timestamp", "starttime", "arrivalms", "timestampms"),
    *("@timestamp", "ts", "createdat", "created", "time", "datetime", "date"),
)
"""Those of many meanings stand last: beside others, `time` may be how long an answer took."""
_INPUT: Final = ("inputtokens", "contexttokens", "inputlength", "requesttokens", "prompttokens")
_OUTPUT: Final = ("outputtokens", "generatedtokens", "outputlength", "responsetokens", "completiontokens")
_BLOCKS: Final = ("prefixblockids", "hashids")
_MODEL: Final = ("model", "modelname", "modelgroup")
_GATHERED: Final = ("requests", "requestcount", "numrequests", "nrequests", "count", "count(*)")
"""Of tables whose lines sum up several requests."""
_IN_MS: Final = frozenset({"arrivalms", "timestampms"})
_MOONCAKE: Final = "inputlength"
"""A column by which Mooncake's traces are known. Their timestamps are in ms without saying so, and others use the same names for seconds."""
_BAILIAN: Final = "chatid"
"""A column by which Qwen-Bailian's traces are known. They have Mooncake's names, but seconds, and blocks of 16 tokens."""

_PATH: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")

UNIX_IN: Final = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
"""Pairs of the least number that is a Unix time in ns, us or ms, and that unit. In a larger unit it would be thousands of years ahead."""
UNIX_FROM: Final = 1e9
"""The least number that is taken for a Unix time in seconds (of 2001 and later). As ms since the beginning of a trace it would be its twelfth
day."""
MOST_PER_S: Final = 100.0
"""Requests a second that one model gets at most. Where more would follow from times in ms, they are in seconds."""
NEAR: Final = 0.75
"""How like two names must be for one to be taken for a slip of the other, as `difflib` counts it."""
NAMED: Final = 3
"""Models that are told by name."""
MOST_TOKENS: Final = 100_000_000
MOST_CV: Final = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestColumns:
    at: str
    unit_s: float | None
    """None where the names leave it open, see `unit_of`."""
    input_tokens: str
    output_tokens: str
    blocks: str | None
    model: str | None = None
    gathered: str | None = None
    """A column that says of how many requests a line is."""


def columns_of(head: Iterable[str]) -> RequestColumns | RateColumns | str:
    """The columns of a trace by the names in its head, or a sentence on what is missing."""
    known: dict[str, str] = {}
    twice: dict[str, str] = {}
    # Names without dots first, as they count before those of which the last part does.
    for name in sorted(head, key=lambda one: "." in one):
        folded = _folded(name)
        if folded in known and ("." in known[folded]) == ("." in name):
            twice.setdefault(folded, name)
        known.setdefault(folded, name)

    def called(names: Iterable[str]) -> str | None:
        return next((known[name] for name in names if name in known), None)

    def doubled(*used: str | None) -> str | None:
        """A sentence on a column that is read and whose name occurs twice, as it is not known which is meant."""
        both = next((name for name in used if name is not None and _folded(name) in twice), None)
        if both is None:
            return None
        return f"two columns are called {both.strip()} and {twice[_folded(both)].strip()}; keep the one that is meant"

    at, prompt, answer = called(_AT), called(_INPUT), called(_OUTPUT)
    if "raterps" in known or (prompt is None and answer is None):
        since = called(("ts", *_AT))
        if since is None and "raterps" in known:
            return f"no column says when; {FORMS}"
        found = (
            None
            if since is None
            else rate_columns(known, since, known.get("cv"), _unit_s(since), folded_at=_folded(since))
        )
        if found is not None:
            return doubled(found.at, found.rate, found.cv) or found
        if "ts" in known:
            return f"no column is rate_rps, nor input_tokens and output_tokens; {FORMS}"
    if at is None and prompt is None and answer is None:
        return f"no column says when, as time does; {FORMS}"
    unread = [name for name in known.values() if name not in (at, prompt, answer)]
    missing = [
        f"{name}{_near(names, unread)}"
        for name, names, found in (
            ("arrival_s", _AT, at),
            ("input_tokens", _INPUT, prompt),
            ("output_tokens", _OUTPUT, answer),
        )
        if found is None
    ]
    if at is None or prompt is None or answer is None:
        return f"no column is {' or '.join(missing)}; {FORMS}"
    bailian = _BAILIAN in known
    mooncake = not bailian and _folded(at) == "timestamp" and _folded(prompt) == _MOONCAKE
    shared = None if bailian else called(_BLOCKS)
    return doubled(at, prompt, answer, shared) or RequestColumns(
        at=at,
        unit_s=None if mooncake else _unit_s(at),
        input_tokens=prompt,
        output_tokens=answer,
        blocks=shared,
        model=called(_MODEL),
        gathered=called(_GATHERED),
    )


def _near(names: Sequence[str], unread: Iterable[str]) -> str:
    """A clause on a column that is called nearly as one of these: a slip, or somebody else's word; empty where none is."""
    near = next((one for one in unread if get_close_matches(_folded(one), names, n=1, cutoff=NEAR)), None)
    return "" if near is None else f" ({near.strip()!r} is near it: call it so)"


def head_of(rows: Iterable[Row]) -> Iterable[str]:
    """The names that count of lines that have each their own: those of a line that is a request, as others, of failures, may call something
    else the same. Where none is one, all names."""
    kinds = list(dict.fromkeys(tuple(row) for row in rows))
    found = [(head, columns) for head in kinds if isinstance(columns := columns_of(head), RequestColumns)]
    if not found:
        return list(dict.fromkeys(name for head in kinds for name in head))
    return max(found, key=lambda one: (one[1].blocks is not None, one[1].model is not None))[0]


def _unit_s(at: str) -> float:
    return 1e-3 if _folded(at) in _IN_MS else 1.0


def unit_of(rows: Iterable[Row], at: str) -> tuple[float, str] | None:
    """The unit of times whose column does not name it, guessed from the times, with a sentence on the guess. None where they are dates, or
    so large that they can only be Unix times."""
    times = [time for row in rows if (time := _number(row.get(at))) is not None]
    if not times or times[0] >= UNIX_IN[-1][0]:
        return None
    span = max(times) - min(times)
    each_s = 1000 * (len(times) - 1) / span if span else 0.0
    unit, why = 1e-3, "ms are taken, as in Mooncake's traces"
    if any(not time.is_integer() for time in times):
        unit, why = 1.0, "seconds are taken, as it holds fractions"
    elif times[0] >= UNIX_FROM:
        unit, why = 1.0, "seconds are taken, as it holds Unix times"
    elif each_s > MOST_PER_S:
        unit, why = 1.0, f"seconds are taken, as by ms {each_s:,.0f} requests/s would come"
    return unit, f"nothing says what {at} counts: {why}; name it arrival_s or arrival_ms to say which"


def mixed(rows: Iterable[Row], model: str) -> str | None:
    """A sentence on requests of several models, which are taken for those of one; None where they are of one."""
    models = sorted({str(held).strip() for row in rows if (held := row.get(model))})
    if len(models) < 2:
        return None
    more = "" if len(models) <= NAMED else f" and {len(models) - NAMED} more"
    named = ", ".join(map(_short, models[:NAMED]))
    return f"{model} names several models ({named}{more}), and all requests are taken for one's; keep the lines of the one that is meant"


def of_several(rows: Iterable[Row], gathered: str) -> str | None:
    """A sentence on lines that are of several requests each; None where none is."""
    if all((_number(row.get(gathered)) or 0.0) <= 1 for row in rows):
        return None
    return f"{gathered} is above 1, and each line is taken for one request all the same; leave the tokens out to have the counts replayed"


def _number(held: object) -> float | None:
    try:
        value = float(str(held))
    except ValueError:
        return None
    return value if 0 <= value < float("inf") else None


def _folded(name: str) -> str:
    return name.rpartition(".")[2].strip().lower().replace("_", "").replace(" ", "")


def moment(row: Row, column: str, unit_s: float = 1.0) -> float:
    """A time in seconds, since any moment: a number, a Unix time, or a date (of UTC where it names no zone)."""
    text = _said(row, column)
    try:
        value = float(text)
    except ValueError:
        return _date(column, text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{column} is {_short(text)}; it must be a number that is not negative, or a date")
    return value * next((unit for least, unit in UNIX_IN if value >= least), unit_s)


def began(row: Row, column: str, unit_s: float = 1.0) -> datetime | None:
    """The date of a line, in its own zone or in none; None where its time is a number since some moment, or cannot be read."""
    try:
        text = _said(row, column)
        at = moment(row, column, unit_s)
        if _number(text) is None:
            return _read_date(text)
        return datetime.fromtimestamp(at, UTC) if at >= UNIX_FROM else None
    except (ValueError, OverflowError, OSError):
        return None


def _date(column: str, text: str) -> float:
    try:
        read = _read_date(text)
    except ValueError:
        raise ValueError(
            f"{column} is {_short(text)}; it must be seconds, a Unix time or a date as 2026-11-23T10:00:00Z"
        ) from None
    return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()


def _read_date(text: str) -> datetime:
    # As databases and languages write a zone: "10:00:00 UTC", "10:00:00 +0000".
    plain = text.removesuffix(" UTC").replace(" +", "+").replace(" -", "-")
    return datetime.fromisoformat(plain)


def tokens(row: Row, column: str) -> int:
    """A whole number of tokens, also where it is written as 374.0. 0 counts as 1, as there are no requests of nothing."""
    text = _said(row, column)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not (0 <= value <= MOST_TOKENS and value.is_integer()):
        raise ValueError(
            f"{column} is {_short(text)}; it must be a whole number of tokens, 0 to {MOST_TOKENS:,}"
        )
    return max(1, int(value))


def number(row: Row, column: str, most: float) -> float:
    text = _said(row, column)
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise ValueError(
            f"{column} is {_short(text)}; it must be a number that is not negative, at most {most:,.0f}"
        )
    return value


def blocks(row: Row, column: str) -> tuple[int, ...]:
    """The ids of a prompt's blocks: a list, or its text with ids separated by spaces, or by commas in brackets. It may be empty."""
    held = row.get(column)
    listed = held if isinstance(held, list) else str(held or "").strip("[] ").replace(",", " ").split()
    try:
        return tuple(int(one) for one in listed)
    except (TypeError, ValueError):
        raise ValueError(
            f"{column} is {_short(held)}; it must be whole numbers, separated by spaces"
        ) from None


def _said(row: Row, column: str) -> str:
    held = row.get(column)
    if held is None or held == "":
        # A field within an object of JSON is called by its path, and lacks where a request failed.
        kept = f"; jq -c 'select(.{column})' keeps those that have it" if _PATH.fullmatch(column) else ""
        raise ValueError(f"{column} is missing; each line needs one{kept}")
    return str(held).strip()


def _short(held: object) -> str:
    text = str(held)
    return repr(text if len(text) <= 40 else f"{text[:40]}…")
