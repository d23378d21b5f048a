"""The name budget: every name made from the longest deployment name fits a DNS label."""

import pytest

from plimsoll import names

LONGEST = "a" * names.NAME_MAX
SET = names.set_name(LONGEST, "0123456789abcdef")
GROUP = names.group_name(SET, names.MAX_REPLICAS - 1)


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(
            f"{SET}-{'t' * names.TEMPLATE_HASH_LENGTH}-{'x' * names.POD_SUFFIX_LENGTH}",
            id="a Deployment's pod",
        ),
        pytest.param(f"{GROUP}-{'t' * names.TEMPLATE_HASH_LENGTH}", id="a group's revision label"),
        pytest.param(f"{GROUP}-{names.MAX_GROUP - 1}", id="a group's pod"),
        pytest.param(names.facts_pod_name(LONGEST, "0123456789abcdef"), id="a facts pod"),
        *(pytest.param(names.child_name(LONGEST, suffix), id=suffix) for suffix in names.CHILD_SUFFIXES),
    ],
)
def test_every_derived_name_fits(name: str) -> None:
    assert len(name) <= names.LABEL_MAX


def test_the_budget_wastes_nothing() -> None:
    pod = f"{SET}-{'t' * names.TEMPLATE_HASH_LENGTH}-{'x' * names.POD_SUFFIX_LENGTH}"
    assert len(pod) == names.LABEL_MAX


def test_a_suffix_outside_the_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="no known suffix"):
        names.child_name("chat", "something-long")
