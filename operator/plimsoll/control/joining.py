"""Samples by a pod's name to samples of the pods that live: a name can come again, a UID never does."""

from __future__ import annotations

from collections.abc import Mapping

from plimsoll.control.copying import replace
from plimsoll.facts.pod_sample import PodKey, PodSample


def joined(samples: Mapping[PodKey, PodSample], live: Mapping[PodKey, str]) -> tuple[PodSample, ...]:
    """Of the leaders that live, by UID. A sample that names another UID is an earlier pod's of the same name."""
    found = []
    for key in sorted(live):
        sample, uid = samples.get(key), live[key]
        if sample is not None and sample.pod in {uid, key[1]}:
            found.append(sample if sample.pod == uid else replace(sample, pod=uid))
    return tuple(found)
