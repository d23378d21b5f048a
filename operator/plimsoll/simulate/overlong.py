"""Requests that are longer than the context that was planned for: how many, and what to declare for them; and those that were drawn to fit."""

from __future__ import annotations

from collections.abc import Iterator

from plimsoll.simulate.arrivals import Arrivals


def overlong(arrivals: Arrivals, limit: int, ceiling: int, *, drawn: bool) -> Iterator[str]:
    """A sentence for lengths that were drawn anew, one for prompts that are refused and one for answers that are cut, as prompt and answer together may have `limit` tokens and the model
    is made for `ceiling`. `drawn`: the trace does not say how long they are."""
    pairs = list(zip(arrivals.inputs, arrivals.outputs, strict=True))
    prompts = [prompt for prompt, _ in pairs if prompt >= limit]
    cut = sum(prompt < limit < prompt + answer for prompt, answer in pairs)
    need, asked = max(map(sum, pairs), default=0), len(pairs)
    shorter = (
        "; the trace does not hold their lengths, and those that spec.workload declares reach as far: lower percentiles there have them drawn shorter"
        if drawn
        else ""
    )
    if arrivals.shortened:
        were = "was" if arrivals.shortened == 1 else "were"
        yield (
            f"{arrivals.shortened:,} of {asked:,} requests {were} drawn anew to be no longer than {limit:,} tokens (max_model_len), prompt and "
            "answer together, as a client's are: beyond the percentiles of spec.workload lengths are a guess, and whether yours are longer only a "
            "trace that holds them tells"
        )
    if prompts:
        have, are = ("has", "is") if len(prompts) == 1 else ("have", "are")
        most = f", up to {max(prompts):,}," if max(prompts) > limit else ""
        cure = _cure(need, limit, ceiling, "with their answers")
        yield (
            f"{len(prompts):,} of {asked:,} prompts {have} {limit:,} tokens (max_model_len) or more{most} and {are} refused, whatever the "
            f"policy; {cure}{shorter}"
        )
    if cut:
        are = "is" if cut == 1 else "are"
        yield (
            f"{cut:,} of {asked:,} answers {are} cut where prompt and answer together reach {limit:,} tokens (max_model_len); "
            f"{_cure(need, limit, ceiling, 'whole')}{shorter}"
        )


def _cure(need: int, limit: int, ceiling: int, how: str) -> str:
    if need <= ceiling:
        return f"workload.contextTokens: {need} takes all of them {how}"
    if ceiling > limit:
        return f"the model is made for {ceiling:,}, so workload.contextTokens: {ceiling} takes those that fit that"
    return "the model is made for no more"
