"""Plans of stages."""

import pytest

from rlvr_jax.data.stages import Stage, parse_stages, stage_at

PLAN = """[{"until": 10, "keep": {"level": [1]}, "max_completion_tokens": 8},
           {"until": 30, "mix": {"math": 2, "code": 1}}, {}]"""


def test_a_plan_says_what_holds_at_each_step():
    """DATA-15, DATA-17: domains and lengths by step."""
    stages = parse_stages(PLAN, 64)
    assert stages == [
        Stage(0, {"level": [1]}, None, 8),
        Stage(10, {}, {"math": 2, "code": 1}, None),
        Stage(30),
    ]
    at = [stage_at(stages, step) for step in (0, 9, 10, 29, 30, 1000)]
    assert at == [0, 0, 1, 1, 2, 2]


def test_no_plan_is_one_stage():
    assert parse_stages("[]", 64) == [Stage()]


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ("[", "is not JSON"),
        ("{}", "needs a list of JSON objects"),
        ("[3]", "needs a list of JSON objects"),
        ('[{"untill": 3}, {}]', "unknown field 'untill'; did you mean 'until'?"),
        ("[{}, {}]", "stage 1: until is a step after 0, got None"),
        ('[{"until": 5}, {"until": 5}, {}]', "stage 2: until is a step after 5, got 5"),
        ('[{"until": 5}]', "the last stage has no end, got until=5"),
        (
            '[{"max_completion_tokens": 65}]',
            "from 1 to rollout.max_completion_tokens=6",
        ),
        ('[{"max_completion_tokens": 8.5}]', "got 8.5"),
        ('[{"keep": {"level": 3}}]', "keep needs a list of values"),
        ('[{"mix": {}}]', "mix needs a weight for each of its domains"),
    ],
)
def test_a_bad_plan_is_explained(plan, message):
    with pytest.raises(ValueError, match=r"curriculum\.stages") as caught:
        parse_stages(plan, 64)
    assert message in str(caught.value)
