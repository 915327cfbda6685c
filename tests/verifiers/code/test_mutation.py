"""Mutants of a solution, and tests that do not notice them."""

import pytest

from rlvr_jax.verifiers.code import mutation, reference

TABLE = "def f(k):\n    return [1, 2, 3, 4, 5, 6, 7, 8, 9][k]\n"
"""Ten mutants: nine numbers and the value returned."""


def test_a_weak_suite_kills_three_of_ten():
    """VER-17: f(0), f(1) are tested, so three mutants die: two numbers, the value."""
    weak = ["assert f(0) == 1", "assert f(1) == 2"]
    score = mutation.score({"test_list": weak, "solution": TABLE})
    assert (score.killed, score.total) == (3, 10)
    assert score.share == pytest.approx(0.3)
    assert [mutant.change for mutant in score.survivors] == [
        f"line 2: {n} to {n + 1}" for n in range(3, 10)
    ]


def test_a_full_suite_kills_all():
    full = [f"assert f({k}) == {k + 1}" for k in range(9)]
    score = mutation.score({"test_list": full, "solution": TABLE})
    assert (score.killed, score.total, score.survivors) == (10, 10, [])


def test_a_score_needs_a_solution_that_passes():
    with pytest.raises(reference.BadReference, match="needs a 'solution'"):
        mutation.score({"test_list": ["assert f(0) == 1"]})
    with pytest.raises(reference.BadReference, match="fails the tests itself"):
        mutation.score({"test_list": ["assert f(0) == 2"], "solution": TABLE})


def test_mutants():
    """Each changes one thing; by hand."""
    source = "def f(x, y):\n    if x > 0 and not y:\n        return x + True\n"
    assert [mutant.change for mutant in mutation.mutants(source)] == [
        "line 2: And to Or",
        "line 3: another value returned",
        "line 2: Gt to GtE",
        "line 3: Add to Sub",
        "line 2: 0 to 1",
        "line 3: True to False",
    ]
    assert len({mutant.source for mutant in mutation.mutants(source)}) == 6


@pytest.mark.parametrize(
    "value", ["0", "-1", "2.5", "True", "None", "''", "[1]", "()", "{}", "1j", "{1}"]
)
def test_another_last_value(value):
    source = (
        f"def f():\n    def g(): return 1\n    if 0: return 2\n    return {value}\n"
    )
    changed = mutation.another_last_value(source, "f")
    before, after = {}, {}
    exec(source, before)
    exec(changed, after)
    assert after["f"]() != before["f"]()
    assert mutation.another_last_value("def f(): pass", "f") is None
