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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from plimsoll.load.trace_rates import RATE_HEAD, UNSAID, RateColumns, rate_columns
from plimsoll.load.trace_times import UNIX_FROM, UNIX_IN
from plimsoll.load.trace_values import Row, number_or_none, short

REQUEST_HEAD: Final = "arrival_s,input_tokens,output_tokens[,prefix_block_ids]"
SOURCES: Final = "around those of spec.workload (simulate) or by --input-tokens and --output-tokens (bench)"
"""Where lengths come from that a trace does not hold."""
FORMS: Final = (
    f"a trace has requests ({REQUEST_HEAD}), their times alone (arrival_s), rates ({RATE_HEAD}; rate_rpm is a minute's, rate_rph an hour's), counts by interval "
    "(time,requests), or is what Prometheus answers to query_range or Grafana shows as the JSON of a panel's data"
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
_ARRIVALS: Final = ("arrivals", "arrivalms")
"""Times of which the name says that they are of requests."""
_SINCE: Final = "t_s"
"""Our own name for the times of rates."""
_LENGTH: Final = re.compile(
    r"token|prompt|completion|input|output|generat|context|len(?:gth)?s?\b|\b(?:in|out)\b", re.IGNORECASE
)
"""Within the name of a column that may hold lengths."""
_BYTES: Final = re.compile("byte", re.IGNORECASE)
"""Within the name of one whose lengths are none in tokens."""
_IN_MS: Final = frozenset({"arrivalms", "timestampms"})
_MOONCAKE: Final = "inputlength"
"""A column by which Mooncake's traces are known. Their timestamps are in ms without saying so, and others use the same names for seconds."""
_BAILIAN: Final = "chatid"
"""A column by which Qwen-Bailian's traces are known. They have Mooncake's names, but seconds, and blocks of 16 tokens."""

MOST_PER_S: Final = 100.0
"""Requests a second that one model gets at most. Where more would follow from times in ms, they are in seconds."""
NEAR: Final = 0.75
"""How like two names must be for one to be taken for a slip of the other, as `difflib` counts it."""
NAMED: Final = 3
"""Models that are told by name."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeColumns:
    """Of requests that came, and of which no length is known."""

    at: str
    unit_s: float
    said: bool
    """Whether the name says that the times are of requests."""
    model: str | None = None


def columns_of(head: Iterable[str]) -> RequestColumns | RateColumns | TimeColumns | str:
    """The columns of a trace by the names in its head, or a sentence on what is missing."""
    names = _Head.of(head)
    known, called, doubled = names.known, names.called, names.doubled
    at, prompt, answer = called(_AT), called(_INPUT), called(_OUTPUT)
    if "raterps" in known or (prompt is None and answer is None):
        found = _without_lengths(names)
        if found is not None:
            return found
    if at is None and prompt is None and answer is None:
        return f"no column says when, as time does; {FORMS}"
    unread = [name for name in known.values() if name not in (at, prompt, answer)]
    missing = [
        f"{name}{_near(meant, unread)}"
        for name, meant, found in (
            ("arrival_s", _AT, at),
            ("input_tokens", _INPUT, prompt),
            ("output_tokens", _OUTPUT, answer),
        )
        if found is None
    ]
    if at is None or prompt is None or answer is None:
        either = prompt or answer
        drawn = (
            ""
            if at is None or either is None
            else f"without {either.strip()} too, lengths are drawn as for rates, {SOURCES}; "
        )
        return f"no column is {' or '.join(missing)}; {drawn}{FORMS}"
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


@dataclass(frozen=True, slots=True)
class _Head:
    known: Mapping[str, str]
    """The names as they stand, by how they are folded."""
    twice: Mapping[str, str]

    @staticmethod
    def of(head: Iterable[str]) -> _Head:
        known: dict[str, str] = {}
        twice: dict[str, str] = {}
        # Names without dots first, as they count before those of which the last part does.
        for name in sorted(head, key=lambda one: "." in one):
            folded = _folded(name)
            if folded in known and ("." in known[folded]) == ("." in name):
                twice.setdefault(folded, name)
            known.setdefault(folded, name)
        return _Head(known, twice)

    def called(self, names: Iterable[str]) -> str | None:
        return next((self.known[name] for name in names if name in self.known), None)

    def doubled(self, *used: str | None) -> str | None:
        """A sentence on a column that is read and whose name occurs twice, as it is not known which is meant."""
        both = next((name for name in used if name is not None and _folded(name) in self.twice), None)
        if both is None:
            return None
        return f"two columns are called {both.strip()} and {self.twice[_folded(both)].strip()}; keep the one that is meant"


def _without_lengths(names: _Head) -> RateColumns | TimeColumns | str | None:
    """Rates, counts, or times alone; a sentence where it is known what is missing, and None where it is not."""
    known, at = names.known, names.called(_AT)
    since = names.called(("ts", *_AT))
    if since is None:
        return f"no column says when; {FORMS}" if "raterps" in known else None
    rates = rate_columns(known, since, known.get("cv"), _unit_s(since), folded_at=_folded(since))
    model = names.called(_MODEL)
    if rates is not None and not rates.said:
        of_requests = _folded(since) in _ARRIVALS and _folded(rates.rate) not in UNSAID
        rates = None if of_requests or rates.rate == model else rates
    if rates is not None:
        return names.doubled(rates.at, rates.rate, rates.cv) or rates
    if at is None or at.strip().lower() == _SINCE:
        return f"no column is rate_rps, nor input_tokens and output_tokens; {FORMS}"
    others = (name for name in known.values() if name != at)
    times = TimeColumns(at=at, unit_s=_unit_s(at), said=_folded(at) in _ARRIVALS, model=model)
    return names.doubled(at) or _unread_lengths(others) or times


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


def _unread_lengths(others: Iterable[str]) -> str | None:
    """A sentence on a column that may hold the lengths that no known one does."""
    lengths = (name for name in others if _LENGTH.search(name.replace("_", " ")))
    like = next((name for name in lengths if not _BYTES.search(name)), None)
    if like is None:
        return None
    return (
        f"no column is input_tokens or output_tokens, and {like.strip()} may hold lengths: name it so, or leave it out to have lengths drawn "
        f"as for rates; {FORMS}"
    )


def _unit_s(at: str) -> float:
    return 1e-3 if _folded(at) in _IN_MS else 1.0


def unit_of(rows: Iterable[Row], at: str) -> tuple[float, str] | None:
    """The unit of times whose column does not name it, guessed from the times, with a sentence on the guess. None where they are dates, or
    so large that they can only be Unix times."""
    times = [time for row in rows if (time := number_or_none(row.get(at))) is not None]
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
    named = ", ".join(map(short, models[:NAMED]))
    return f"{model} names several models ({named}{more}), and all requests are taken for one's; keep the lines of the one that is meant"


def of_several(rows: Iterable[Row], gathered: str) -> str | None:
    """A sentence on lines that are of several requests each; None where none is."""
    if all((number_or_none(row.get(gathered)) or 0.0) <= 1 for row in rows):
        return None
    return f"{gathered} is above 1, and each line is taken for one request all the same; leave the tokens out to have the counts replayed"


def _folded(name: str) -> str:
    return name.rpartition(".")[2].strip().lower().replace("_", "").replace(" ", "")
