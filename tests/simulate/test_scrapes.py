"""What a scrape of a simulated engine holds."""

from plimsoll.facts.engines import engine_facts
from plimsoll.prometheus.vocabulary import exports
from plimsoll.simulate.scrapes import EXPORTS


def test_a_simulated_engine_exports_what_the_newest_that_is_known_does():
    assert exports(engine_facts().metrics) == EXPORTS
