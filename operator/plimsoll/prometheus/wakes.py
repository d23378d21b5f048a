"""The wake queries of all deployments that may sleep, asked as one question, so that many cost no more than one.

The queries are written by users, and one that Prometheus refuses spoils the answer for all. Then they are asked in ever smaller groups,
until the bad one is alone; it is left out until it is written anew. So is one that is too slow, or is refused for what series there are, but
that is tried again now and then. A failure that may pass by itself, as an outage, is blamed on no query, nor is a query that had no answer
then said to find nothing. Where a question is refused that has nothing but good ones, it was too long: they are asked in shorter ones from then
on, in turns where these are too many for one look, and of those whose turn it is not the last answer stands. Where the answer to all of them is not whole, as a store is away, those that it does not concern are soon asked
without the others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from plimsoll.facts.promql import unclosed
from plimsoll.prometheus.answers import Rows
from plimsoll.prometheus.client import NO_ANSWER, Answered, is_lasting, is_refusal
from plimsoll.prometheus.fleet import Asks
from plimsoll.prometheus.lengths import Limit, packed

LABEL: Final = "plimsoll_deployment"
GROUPS_MOST: Final = 4
"""Groups that are asked at one look at most, beside all queries that are known to be good; and the parts into which a refused group is split."""
OR: Final = " or "
TOGETHER: Final = "wakes"
APART: Final = "wakes-apart"
RETRY_LOOKS: Final = 40
"""Looks until a query that was too slow, or refused for what series there are, is asked again. Not sooner, as the whole tick waits for a slow
one each time."""
LONGER_LOOKS: Final = 240
"""Looks until a question is tried again that is longer than what was refused: what refused it may have been something that passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    waiting: Mapping[str, float] = field(default_factory=dict)
    """By deployment: requests that wait, or whatever else its query counts. A deployment without an answer is not there."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """By deployment: why its query is not asked."""
    slow: frozenset[str] = frozenset()
    """Those of them whose query is only too slow."""
    unanswered: Mapping[str, str] = field(default_factory=dict)
    """By deployment: why the question with its query had no answer, or none that is whole, where that is not the query's own fault."""


@dataclass(frozen=True, slots=True)
class _Later:
    """A query that is left out for a while."""

    text: str
    why: str
    at: int
    """The look at which it is asked again."""

    @property
    def is_slow(self) -> bool:
        return self.why == NO_ANSWER


class WakeQueries:
    def __init__(self, source: Asks) -> None:
        self._source = source
        self._good: dict[str, str] = {}
        self._apart: dict[str, str] = {}
        """Good queries too, but the last answer to them together was not whole. Some of them may be about nothing that is away."""
        self._again: list[dict[str, str]] = []
        """Groups of these that are asked by themselves to find out which, in that order: ever smaller ones."""
        self._groups: list[dict[str, str]] = []
        """Groups of queries that are not known to be good yet, in the order in which they are asked."""
        self._bad: dict[str, tuple[str, str]] = {}
        """The query, and why it is refused."""
        self._later: dict[str, _Later] = {}
        self._late = frozenset[str]()
        """Good queries whose question had no answer in time when they were last asked."""
        self._limit = Limit()
        self._doubted: list[tuple[int, frozenset[str]]] = []
        """Questions that were refused, of which it is not known yet whether one of their queries was the reason: length and queries."""
        self._found: Mapping[str, float] = {}
        """What was found last, which stands for those whose turn it is not."""
        self._lacked: Mapping[str, str] = {}
        self._looks = 0
        self._why = ""
        """Why a group with several queries last had no answer."""

    async def look(self, queries: Mapping[str, str], room: int = GROUPS_MOST + 2) -> Woken:
        """Ask the queries, given by deployment (namespace/name), in two questions at least and `room` at most. Only to be called while
        Prometheus answers other questions in time."""
        self._looks += 1
        self._read(queries)
        # First, as a slow query among the others keeps the thread that asks it.
        together = self._turns(room)
        groups = min(GROUPS_MOST, room - len(together))
        asked, self._groups = self._groups[:groups], self._groups[groups:]
        parts = self._some_apart(groups - len(asked))
        beside = {f"{APART}-{place}": part for place, part in enumerate(parts)}
        beside |= {f"{TOGETHER}-{place}": group for place, group in enumerate(asked)}
        if not together and not beside:
            return self._woken({}, {})
        questions = {about: _all(those) for about, those in {**together, **beside}.items()}
        answers = await self._source.ask(questions, _waiting)
        lack = {about: answers.errors.get(about, "") or answers.partial.get(about, "") for about in questions}
        turned = {key for those in together.values() for key in those}
        others = {*self._good, *self._apart} - turned
        unanswered = {key: why for key, why in self._lacked.items() if key in others}
        unanswered |= {key: lack[about] for about, those in together.items() for key in those}
        # Of those that were asked twice the smaller question decides where its answer is whole.
        unanswered |= {
            key: lack[about] for about, those in beside.items() if not lack[about] for key in those
        }
        unanswered |= {key: lack[f"{TOGETHER}-{place}"] for place, group in enumerate(asked) for key in group}
        for about in answers.answers:
            self._limit = self._limit.after_answer(len(questions[about]))
        self._sort(answers, together, parts)
        late = {key for about, those in together.items() if lack[about] == NO_ANSWER for key in those}
        for about, those in together.items():
            if is_refusal(lack[about]) or (lack[about] == NO_ANSWER and those.keys() & self._late):
                # One of them has become wrong, as a type error in a metric that has only now appeared, or slow; or they are too many.
                self._split(those, lack[about])
        self._late = (self._late - turned) | late
        for place, group in enumerate(asked):
            about = f"{TOGETHER}-{place}"
            if about in answers.answers:
                good = self._apart if lack[about] else self._good
                good |= group
                for key in group:
                    self._later.pop(key, None)
            else:
                self._failed(group, lack[about])
        self._settle()
        found = {key: value for key, value in self._found.items() if key in others}
        found |= {key: value for each in answers.answers.values() for key, value in each.items()}
        self._found, self._lacked = found, unanswered
        return self._woken(found, unanswered)

    def _turns(self, room: int) -> dict[str, dict[str, str]]:
        """The questions with good queries for this look, as many as may be; those that are left out come first at the next one."""
        self._groups = [each for group in self._groups for each in self._short(group)]
        # Others wait for an answer too.
        most = max(2, room - min(len(self._groups) + len(self._again), room // 2))
        good, apart = self._short(self._good), self._short(self._apart)
        if self._looks % LONGER_LOOKS == 0:
            good = [{**good[0], **good[1]}, *good[2:]] if len(good) > 1 else good
        first = max(most - len(apart), -(-most // 2))
        then = most - len(good[:first])
        self._good = _merged([*good[first:], *good[:first]])
        self._apart = _merged([*apart[then:], *apart[:then]])
        return {**_named(TOGETHER, good[:first]), **_named(APART, apart[:then])}

    def _short(self, queries: Mapping[str, str]) -> list[dict[str, str]]:
        """The queries in questions that are short enough, as far as that is known."""
        lengths = {key: len(_one(key, text)) + len(OR) for key, text in queries.items()}
        return [{key: queries[key] for key in pack} for pack in packed(lengths, self._limit.most)]

    def _split(self, those: Mapping[str, str], why: str) -> None:
        """Find out in smaller groups which of some queries is refused or slow, if one of them is."""
        if is_refusal(why):
            self._doubted.append((len(_all(those)), frozenset(those)))
        self._good = {key: text for key, text in self._good.items() if key not in those}
        self._apart = {key: text for key, text in self._apart.items() if key not in those}
        self._groups = [*_parts(those), *self._groups]

    def _settle(self) -> None:
        """Learn from the questions that were refused and whose queries have all had an answer since; forget those of which one was the reason."""
        good, open_ = {*self._good, *self._apart}, {key for group in self._groups for key in group}
        for length, keys in self._doubted:
            if keys <= good:
                self._limit = self._limit.after_refusal(length)
        self._doubted = [each for each in self._doubted if not each[1] <= good and each[1] <= good | open_]

    def _some_apart(self, room: int) -> list[dict[str, str]]:
        """Some of those that are apart, in groups that are asked once more by themselves."""
        if not self._again and len(self._apart) > 1:
            self._again = _parts(self._apart)
        parts = [{key: self._apart[key] for key in part if key in self._apart} for part in self._again]
        parts = [part for part in parts if part]
        self._again = parts[room:]
        return parts[:room]

    def _sort(
        self,
        answers: Answered[Mapping[str, float]],
        together: Mapping[str, Mapping[str, str]],
        parts: list[dict[str, str]],
    ) -> None:
        """Put those apart of which the answer together is not whole, and take those back of which it is: all of them together, or some of the
        `parts` by themselves."""
        partial = [those for about, those in together.items() if about in answers.partial]
        whole = [those for about, those in together.items() if _is_whole(answers, about)]
        lacking = {key: text for key, text in _merged(partial).items() if key in self._good}
        back = {key: text for key, text in _merged(whole).items() if key in self._apart}
        for place, part in enumerate(parts):
            if _is_whole(answers, f"{APART}-{place}"):
                back = back | part
            elif len(part) > 1:
                self._again += _parts(part)
        self._good, self._apart = (
            {key: text for key, text in (self._good | back).items() if key not in lacking},
            {key: text for key, text in (self._apart | lacking).items() if key not in back},
        )
        self._again = [*_parts(lacking), *self._again]

    def _read(self, queries: Mapping[str, str]) -> None:
        """Take the queries as they are written now: forget what is known of those that have changed."""
        self._good = {key: text for key, text in self._good.items() if queries.get(key) == text}
        self._apart = {key: text for key, text in self._apart.items() if queries.get(key) == text}
        self._bad = {key: each for key, each in self._bad.items() if queries.get(key) == each[0]}
        self._later = {key: each for key, each in self._later.items() if queries.get(key) == each.text}
        groups = [
            {key: text for key, text in group.items() if queries.get(key) == text} for group in self._groups
        ]
        self._groups = [group for group in groups if group]
        waits = {key for group in self._groups for key in group}
        known = {*self._good, *self._apart, *self._bad, *self._later, *waits}
        fresh = {}
        for key, text in sorted(queries.items()):
            if key in known:
                continue
            if (slip := unclosed(text)) is None:
                fresh[key] = text
            else:
                self._bad[key] = text, f"{slip.wrong}; write {slip.right}"
        if fresh:
            self._groups.insert(0, fresh)
        waits |= fresh.keys()
        due = [key for key, each in sorted(self._later.items()) if each.at <= self._looks]
        slow = [key for key in due if self._later[key].is_slow]
        refused = [key for key in due if not self._later[key].is_slow]
        again = (*slow[:1], *refused[:GROUPS_MOST])
        self._groups += [{key: queries[key]} for key in again if key not in waits]

    def _failed(self, group: Mapping[str, str], why: str) -> None:
        """A group had no answer: one of its queries is refused or slow, unless the failure has nothing to do with the question."""
        self._why = why
        (key, text), *more = group.items()
        if not is_refusal(why) and why != NO_ANSWER:
            self._groups.append(dict(group))
        elif more:
            self._split(group, why)
        elif is_lasting(why):
            self._later.pop(key, None)
            self._bad[key] = text, why
        else:
            self._later[key] = _Later(text, why, self._looks + RETRY_LOOKS)

    def _woken(self, found: Mapping[str, float], unanswered: Mapping[str, str]) -> Woken:
        """`unanswered`: of each query that was asked, why it has no answer or only a part of one; empty where it has a whole one."""
        refused = {
            **{key: why for key, (_, why) in sorted(self._bad.items())},
            **{key: each.why for key, each in sorted(self._later.items())},
        }
        queued = {key: self._why for group in self._groups for key in group if key not in unanswered}
        # In a part of an answer somebody who waits does wait, and nobody may be somebody of whom the rest tells.
        waiting = {key: value for key, value in sorted(found.items()) if value > 0 or not unanswered.get(key)}
        return Woken(
            waiting=waiting,
            refused=refused,
            slow=frozenset(key for key, each in self._later.items() if each.is_slow),
            unanswered={
                key: why
                for key, why in sorted({**unanswered, **queued}.items())
                if why and key not in waiting and key not in refused
            },
        )


def _waiting(_: str, rows: Rows) -> Mapping[str, float]:
    found = {}
    for row in rows:
        try:
            key, value = row["metric"][LABEL], float(row["value"][1])
        except (KeyError, IndexError, TypeError, ValueError):
            continue
        if math.isfinite(value):
            found[key] = value
    return found


def _is_whole(answers: Answered[Mapping[str, float]], about: str) -> bool:
    return about in answers.answers and about not in answers.partial


def _parts(group: Mapping[str, str]) -> list[dict[str, str]]:
    keys = list(group)
    size = -(-len(keys) // GROUPS_MOST)
    return [{key: group[key] for key in keys[at : at + size]} for at in range(0, len(keys), size or 1)]


def _merged(chunks: list[Mapping[str, str]] | list[dict[str, str]]) -> dict[str, str]:
    return {key: text for chunk in chunks for key, text in chunk.items()}


def _named(about: str, chunks: list[dict[str, str]]) -> dict[str, dict[str, str]]:
    return {f"{about}+{place}" if place else about: chunk for place, chunk in enumerate(chunks)}


def _all(queries: Mapping[str, str]) -> str:
    return OR.join(_one(key, text) for key, text in sorted(queries.items()))


def _one(key: str, query: str) -> str:
    """One query, labelled with its deployment. It has lines of its own, as it may end in a comment."""
    return f'label_replace(sum((\n{query}\n)), "{LABEL}", "{key}", "", "")'
