"""A query that users write is told what is wrong with its brackets and quotes, where, and what would be right."""

import pytest

from plimsoll.facts.promql import unclosed


@pytest.mark.parametrize(
    "query",
    [
        'sum(queue{name="a)"}) > 0',
        "queue # a comment (",
        "queue{a='\\''}",
        "sum(rate(queue[5m])) or vector(0)",
        "`\\d`",
        "`\\\\`",
        "queue # a comment ( of Windows\r\n",
        "queue # a comment (\r",
        "gateway\\-queue",
    ],
)
def test_a_query_that_is_closed_is_told_nothing(query: str) -> None:
    assert unclosed(query) is None


@pytest.mark.parametrize(
    ("query", "wrong", "right"),
    [
        ("sum(queue", "the ( at character 4 is not closed", "a ) that closes it"),
        ("sum(queue]", "the ] at character 10 does not close the ( at character 4", "a ) in its place"),
        (
            "queue)) or label_replace((vector(1)",
            "the ) at character 6 closes nothing",
            "the query without it",
        ),
        ("queue # ' \n)", "the ) at character 12 closes nothing", "the query without it"),
        ("`\\\\`)", "the ) at character 5 closes nothing", "the query without it"),
        ('queue{a="', 'the quote " at character 9 is not closed', 'a " that closes it'),
        ("sum(a) + (b + (c)", "the ( at character 10 is not closed", "a ) that closes it"),
    ],
)
def test_a_query_that_is_not_closed_is_told_where_and_what_would_be_right(
    query: str, wrong: str, right: str
) -> None:
    found = unclosed(query)
    assert found is not None
    assert (found.wrong, found.right) == (wrong, right)


@pytest.mark.parametrize(
    ("query", "wrong"),
    [
        ("queue #\r)) or other((vector(1) #\n", "the comment at character 7 has a carriage return in it"),
        ("queue{a=`\\` )) or other((vector(1) #`}", "the text at character 9 ends in a backslash"),
        ("a\\( )) or other((b\\)", "a backslash stands before the ( at character 3"),
        ("queue + \\`a` + b)", "a backslash stands before the ` at character 10"),
    ],
)
def test_a_query_that_not_all_who_answer_read_alike_is_told_so(query: str, wrong: str) -> None:
    found = unclosed(query)
    assert found is not None
    assert found.wrong.startswith(wrong)


def test_the_longest_query_that_is_not_closed_is_read_at_once() -> None:
    found = unclosed('"' + "\\a" * 1023)
    assert found is not None
    assert found.wrong == 'the quote " at character 1 is not closed'
