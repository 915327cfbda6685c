"""Published pipelines: which stages there are, and what each starts from."""

import dataclasses

import pytest

from rlvr_jax.planning.pipelines import (
    BASE,
    PIPELINES,
    REINFORCED,
    SUPERVISED,
    Stage,
    check,
    lineage,
)


@pytest.mark.parametrize("name", PIPELINES)
def test_every_pipeline_can_be_run_in_its_order(name):
    check(PIPELINES[name])


def test_two_of_the_four_stages_of_r1_are_supervised_and_none_of_r1_zero():
    """REC-07, REC-01: the two are named apart; R1-Zero is RL on the base alone."""
    kinds = [stage.kind for stage in PIPELINES["r1"]]
    assert kinds == [SUPERVISED, REINFORCED, SUPERVISED, REINFORCED]
    (only,) = PIPELINES["r1_zero"]
    assert (only.kind, only.start) == (REINFORCED, BASE)
    assert only.rewards == ("answer", "format:think_answer")


def test_the_third_stage_of_r1_starts_from_the_base():
    """REC-04: not from stage 2, whose model only writes its data; the order and what
    each stage gets."""
    cold, reasoning, sampled, last = PIPELINES["r1"]
    assert cold.start == BASE
    assert reasoning.start == cold.name
    assert (sampled.start, sampled.written_by) == (BASE, reasoning.name)
    assert last.start == sampled.name
    assert lineage(PIPELINES["r1"], last.name) == [BASE, sampled.name, last.name]
    assert "language" in reasoning.rewards
    assert "preference" in last.rewards
    assert "preference" not in reasoning.rewards


def test_the_four_stages_of_qwen3():
    """REC-12: cold start, reasoning RL, fusion, general RL, each from the one before;
    3,995 problems."""
    stages = PIPELINES["qwen3"]
    names = [stage.name for stage in stages]
    assert lineage(stages, names[-1]) == [BASE, *names]
    kinds = [stage.kind for stage in stages]
    assert kinds == [SUPERVISED, REINFORCED, SUPERVISED, REINFORCED]
    assert "3,995" in stages[1].data


FIRST, SECOND = PIPELINES["r1"][:2]


@pytest.mark.parametrize(
    ("stages", "message"),
    [
        ([], "has no stage"),
        ([FIRST, FIRST], "two stages are called 'cold start'"),
        ([SECOND], "start='cold start' of 'reasoning RL' is no earlier stage"),
        ([SECOND, FIRST], "no earlier stage; there are base"),
        ([dataclasses.replace(FIRST, kind="guided")], "of no kind: 'guided'"),
        ([dataclasses.replace(FIRST, rewards=("answer",))], "supervised: mend rewards"),
        ([Stage("x", REINFORCED, BASE, "rows")], "'x' is reinforced: mend rewards"),
        ([dataclasses.replace(FIRST, written_by="x")], "written_by='x' of"),
    ],
)
def test_stages_that_do_not_follow_are_refused(stages, message):
    with pytest.raises(ValueError, match=message):
        check(stages)
