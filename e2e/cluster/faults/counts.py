"""What went through a proxy: calls by verb and resource, answers by status, and how many at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from cluster.faults.calls import Call, Where


class Counts:
    """Written by the proxy's thread alone; read by any."""

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str], int] = {}
        self._statuses: dict[int, int] = {}
        self._in_flight = 0
        self.most_in_flight = 0
        """Of calls that are not watches."""

    @property
    def calls(self) -> Counter[tuple[str, str]]:
        """By verb and resource; those that met a fault too."""
        return Counter(dict(self._calls))

    @property
    def statuses(self) -> Counter[int]:
        """What clients were answered."""
        return Counter(dict(self._statuses))

    def of(self, where: Where) -> int:
        """How many calls; by verb and resource alone."""
        return sum(
            many
            for (verb, resource), many in self.calls.items()
            if where.matches(Call(verb=verb, resource=resource))
        )

    def answered(self, status: int) -> None:
        self._statuses[status] = self._statuses.get(status, 0) + 1

    @contextmanager
    def during(self, call: Call) -> Iterator[None]:
        """Counts the call, and for as long as it lasts that it is there."""
        key = call.verb, call.resource
        self._calls[key] = self._calls.get(key, 0) + 1
        if call.verb == "watch":
            yield
            return
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            yield
        finally:
            self._in_flight -= 1

    def reset(self) -> None:
        """From zero."""
        self._calls, self._statuses, self.most_in_flight = {}, {}, 0
