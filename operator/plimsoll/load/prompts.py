"""Makes prompts of a wanted number of tokens without the model's tokenizer.

Prompts are short English words. What the chat template adds, and how many tokens a word has, is learned from two requests at the start, by the
number of tokens that the server reports (`usage.prompt_tokens`). The result of a run says how far off the prompts were. Shared beginnings are
the same words, so that the engine's prefix cache works on them as on real ones. All other prompts begin differently, as the cache would
otherwise shorten the work that is to be measured.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from itertools import islice
from typing import Final

from plimsoll.load.chance import seeded
from plimsoll.load.traces import BLOCK_TOKENS
from plimsoll.load.workload import Ask

# 256 words, so that four of them encode any 32 bits. All are very common, so they are one token in most vocabularies.
WORDS: Final = tuple(
    """
    the of and to in is was for on are as with his they at be this have from or one had by word but not what all were we
    when your can said there use an each which she do how their if will up other about out many then them these so some
    her would make like him into time has look two more write go see number no way could people my than first water been
    call who oil its now find long down day did get come made may part over new sound take only little work know place
    year live me back give most very after thing our just name good sentence man think say great where help through much
    before line right too mean old any same tell boy follow came want show also around form three small set put end does
    another well large must big even such because turn here why ask went men read need land different home us move try
    kind hand picture again change off play spell air away animal house point page letter mother answer found study still
    learn should world high every near add food between own below country plant last school father keep tree never start
    city earth eye light thought head under story saw left few while along might close something seem next hard open
    example begin life always those both paper together got group often run important until children side feet car mile
    night walk white sea river four carry
    """.split()  # noqa: SIM905 - a list of 256 quoted words would be read by nobody
)
_POOL: Final = 1 << 16
"""Words of random text that prompts are cut from."""
_KEPT: Final = 1 << 26
"""Letters of shared beginnings that are kept. Those beyond it are made again when they are needed."""
SHORT_PROBE: Final = 32
LONG_PROBE: Final = 288


@dataclass(frozen=True, slots=True)
class Calibration:
    """How many tokens words are: overhead + words x per_word."""

    overhead: float
    """Tokens of the chat template and special tokens."""
    per_word: float
    measured: bool
    """False where the server does not count tokens, so that a word is assumed to be a token and a third."""

    def words(self, tokens: float) -> int:
        return max(1, round(tokens / self.per_word))


ASSUMED: Final = Calibration(overhead=0.0, per_word=4 / 3, measured=False)


def long_probe(context: int | None) -> int:
    """Words of the second probe. They surely fit the context, even at six tokens a word."""
    return LONG_PROBE if context is None else max(SHORT_PROBE + 8, min(LONG_PROBE, context // 8))


def calibrated(
    short_tokens: int | None, long_tokens: int | None, long_words: int = LONG_PROBE
) -> Calibration:
    """The calibration that follows from what the server counted in prompts of SHORT_PROBE and of `long_words` words."""
    if short_tokens is None or long_tokens is None or long_tokens <= short_tokens:
        return ASSUMED
    per_word = (long_tokens - short_tokens) / (long_words - SHORT_PROBE)
    return Calibration(
        overhead=max(0.0, short_tokens - SHORT_PROBE * per_word), per_word=per_word, measured=True
    )


class Prompts:
    """Texts for the requests of one run.

    `salt` makes the texts of each run different, as a second run of the same texts would find them in the cache that the first one filled.
    """

    def __init__(self, seed: int, calibration: Calibration, *, salt: int = 0) -> None:
        self.calibration = calibration
        self._salt = salt
        self._chance = seeded(seed, f"prompts {salt}")
        self._pool = self._chance.choices(WORDS, k=_POOL)
        self._kept_letters = 0
        self._kept: OrderedDict[tuple[str, int, int], str] = OrderedDict()

    def text(self, ask: Ask) -> str:
        wanted = ask.input_tokens - self.calibration.overhead
        if ask.blocks:
            return self._of_blocks(ask.blocks, wanted)
        if ask.prefix is None:
            return self.probe(self.calibration.words(wanted))
        shared = min(ask.prefix_tokens, ask.input_tokens) - self.calibration.overhead
        begin = self._shared("prefix", ask.prefix, self.calibration.words(shared))
        rest = wanted - shared
        return begin if rest < 1 else f"{begin} {self.probe(self.calibration.words(rest))}"

    def probe(self, words: int) -> str:
        """A text of this many words that begins as no other prompt does."""
        return self._words(self._chance.getrandbits(32), words)

    def _of_blocks(self, blocks: tuple[int, ...], wanted: float) -> str:
        """A text made of shared blocks. The tokens of the template are saved at the last block, so that all others are whole and so alike in
        every prompt."""
        each = self.calibration.words(BLOCK_TOKENS)
        left = self.calibration.words(wanted)
        parts = []
        for block in islice(blocks, max(0, -(-left // each))):
            parts.append(self._shared("block", block, min(each, left)))
            left -= each
        if left > 0:
            parts.append(self.probe(left))
        return " ".join(parts)

    def _shared(self, kind: str, which: int, words: int) -> str:
        key = (kind, which, words)
        text = self._kept.get(key)
        if text is None:
            start = seeded(which, f"{kind} {self._salt}").getrandbits(32)
            text = self._kept[key] = self._words(start, words)
            self._kept_letters += len(text)
            while self._kept_letters > _KEPT:
                _, dropped = self._kept.popitem(last=False)
                self._kept_letters -= len(dropped)
        else:
            self._kept.move_to_end(key)
        return text

    def _words(self, start: int, words: int) -> str:
        """The number encoded in words, so that different numbers begin differently, and after it text from the pool."""
        spelled = [WORDS[start >> shift & 255] for shift in (0, 8, 16, 24)]
        begin = start % _POOL
        body: list[str] = []
        while len(body) + 4 < words:
            piece = self._pool[begin : begin + words - 4 - len(body)]
            body += piece
            begin = 0
        return " ".join([*spelled, *body][:words])
