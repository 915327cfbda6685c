"""The sampling rules on the host: what may be drawn, and in which order."""

import json

import numpy as np
import pytest

from rlvr_jax.config import CurriculumConfig, DataConfig
from rlvr_jax.data import curriculum
from rlvr_jax.data.order import PromptOrder
from rlvr_jax.data.rows import Problem


def problems(count, **meta):
    """Problem i has meta[name][i] of each name, and the domain "all"."""
    return [
        Problem(
            str(i),
            f"q{i}",
            "1",
            "math",
            {"domain": "all"} | {name: values[i] for name, values in meta.items()},
        )
        for i in range(count)
    ]


def rules(data=None, per_step=4, seed=0, of=None, **settings):
    return curriculum.Curriculum(
        CurriculumConfig(**settings),
        of or problems(12),
        data or DataConfig(),
        prompts_per_step=per_step,
        max_completion_tokens=64,
        seed=seed,
    )


def record(found, solved, size=16, step=0):
    """Problem i had solved[i] of `size` completions correct."""
    groups = (np.arange(size) < np.array(solved)[:, None]).astype(np.float32)
    found.record(np.arange(len(solved)), groups, step)


def drawn(found, steps, count=4):
    return np.concatenate([found.draw(step, count) for step in steps])


def test_without_rules_the_draw_is_a_function_of_seed_and_step():
    found, order = rules(), PromptOrder(12, 4, 0)
    for step in (5, 0, 3):
        np.testing.assert_array_equal(found.draw(step, 4), order.indices(step))
    assert found.state()["place"] == 0


def test_informative_groups_have_two_outcomes():
    """DATA-01, DATA-04: 0 < #correct < G; a reward of every kind may be judged."""
    correct = np.array([[0, 0, 0], [0, 1, 0], [1, 1, 1]])
    assert curriculum.informative(correct).tolist() == [False, True, False]
    rewards = np.array([[0.1, 0.1], [0.5, 0.75]])
    assert curriculum.informative(rewards).tolist() == [False, True]


def test_the_keep_rate_is_that_of_drawn_groups():
    """DATA-01: 1 - p^G - (1-p)^G; p = .9, G = 16 gives .8147. And by drawing."""
    rate = curriculum.keep_rate(np.array([0.9]), 16)
    assert rate.round(4) == [0.8147]
    random = np.random.default_rng(0)
    groups = random.random((200_000, 16)) < 0.9
    share = curriculum.informative(groups.astype(int)).mean()
    # Four standard errors of a share near .81 of 200,000.
    assert abs(share - rate[0]) < 4 * np.sqrt(0.81 * 0.19 / 200_000)


def test_the_noise_of_the_gradient_falls_with_the_informative_groups():
    """DATA-10: with more solved prompts the relative variance of a batch's gradient
    grows as 1 / n_eff, n_eff = sum of keep rates.

    A group's gradient is taken as its std-normalised advantages times scores of their
    own, N(0, 1), plus a mean that every informative group shares.
    """
    random = np.random.default_rng(1)
    prompts, size, trials = 64, 8, 4000
    products = []
    for solved in (0, 32, 48, 56):
        rates = np.where(np.arange(prompts) < solved, 1.0, 0.5)
        n_eff = curriculum.keep_rate(rates, size).sum()
        groups = random.random((trials, prompts, size)) < rates[:, None]
        teaches = groups.max(axis=2) > groups.min(axis=2)
        gradient = (teaches * random.normal(1.0, 1.0, teaches.shape)).sum(axis=1)
        products.append(gradient.var() / gradient.mean() ** 2 * n_eff)
    # Var / mean^2 = (2 q - q^2) n / (q n)^2 per group of keep rate q: times n_eff
    # = q n it is 2 - q, and q is .9922 throughout. Five standard errors of a variance.
    np.testing.assert_allclose(products, 2 - 0.9922, rtol=5 * np.sqrt(2 / trials))


def test_priorities_are_proportional_to_what_is_unsolved():
    """DATA-06: s = (0, .5, 1) gives (2/3, 1/3, 0)."""
    found = curriculum.priorities(np.array([0.0, 0.5, 1.0]))
    np.testing.assert_allclose(found, [2 / 3, 1 / 3, 0], rtol=1e-15)


def test_prioritised_draws_have_these_frequencies():
    """DATA-06: one problem a draw, 3,000 steps; the solved one never comes."""
    found = rules(of=problems(3), per_step=1, draw="priority")
    record(found, [0, 8, 16])
    counts = np.bincount(drawn(found, range(3000), count=1), minlength=3)
    assert counts[2] == 0
    # Four standard errors of a share of 2/3.
    assert abs(counts[0] / 3000 - 2 / 3) < 4 * np.sqrt(2 / 9 / 3000)


def test_prioritised_draws_depend_on_seed_step_and_rates_alone():
    found, again, other = (
        rules(draw="priority", seed=seed, of=problems(40)) for seed in (1, 1, 2)
    )
    first = [found.draw(step, 4).tolist() for step in range(5)]
    assert [again.draw(step, 4).tolist() for step in (4, 3, 2, 1, 0)] == first[::-1]
    assert [other.draw(step, 4).tolist() for step in range(5)] != first
    assert all(len(set(step)) == 4 for step in first)
    later = found.draw(0, 4, taken=first[0])
    assert not set(later.tolist()) & set(first[0])


def test_no_positive_resampling_drops_from_the_threshold_on():
    """DATA-05: at .9 a problem at 15/16 is dropped, one at 14/16 kept; for good."""
    found = rules(of=problems(4), per_step=2, drop_pass_rate=0.9)
    assert found.eligible(0).all()
    record(found, [15, 14, 16, 0])
    assert found.eligible(1).tolist() == [False, True, False, True]
    assert set(drawn(found, range(1, 9), count=2).tolist()) == {1, 3}
    assert not found.eligible(10_000)[0]
    at_the_bound = rules(of=problems(2), per_step=1, drop_pass_rate=15 / 16)
    record(at_the_bound, [15, 14])
    assert at_the_bound.eligible(1).tolist() == [False, True]


def test_the_epoch_after_dropping_holds_the_rest_once():
    """DATA-05: the keep-set after an epoch (FORMULAS F-73)."""
    found = rules(of=problems(12), per_step=4, drop_pass_rate=0.9)
    assert sorted(drawn(found, range(3)).tolist()) == list(range(12))
    record(found, [16, 15, 14, 13, 0, 1, 2, 3, 4, 16, 16, 16])
    assert sorted(drawn(found, (3, 4), count=7)[:7].tolist()) == [2, 3, 4, 5, 6, 7, 8]


def test_a_window_keeps_planted_pass_rates():
    """DATA-08: lo <= p <= hi on planted p; what was not tried is drawn."""
    found = rules(of=problems(6), min_pass_rate=0.25, max_pass_rate=0.75)
    record(found, [3, 4, 8, 12, 13], size=16)  # .1875 .25 .5 .75 .8125 and untried
    assert found.eligible(1).tolist() == [False, True, True, True, False, True]


def test_a_problem_outside_of_the_window_may_be_revisited():
    found = rules(of=problems(2), min_pass_rate=0.5, revisit_after_steps=20)
    record(found, [0, 16], step=7)
    assert found.eligible(26).tolist() == [False, True]
    assert found.eligible(27).tolist() == [True, True]


def test_pass_rates_known_beforehand_filter_at_once():
    """DATA-08: the offline filter of 20-80 % (FORMULAS F-77)."""
    known = problems(5, rate=[0.1, 0.2, 0.8, 0.9, None])
    found = rules(
        of=known, min_pass_rate=0.2, max_pass_rate=0.8, pass_rate_field="rate"
    )
    assert found.eligible(0).tolist() == [False, True, True, False, True]
    with pytest.raises(ValueError, match="unknown field 'rates'; did you mean 'rate'"):
        rules(of=known, max_pass_rate=0.8, pass_rate_field="rates")
    with pytest.raises(ValueError, match="needs numbers from 0 to 1"):
        rules(of=problems(1, rate=["x"]), pass_rate_field="rate", max_pass_rate=0.8)


def test_a_used_up_training_set_says_so():
    found = rules(of=problems(2), per_step=2, drop_pass_rate=0.9)
    record(found, [16, 16])
    with pytest.raises(curriculum.CurriculumExhausted, match="training data is used u"):
        found.draw(1, 2)
    left = rules(of=problems(2), per_step=2, filter="dynamic")
    assert len(left.draw(0, 2)) == 2
    assert len(left.draw(0, 2, taken=[0, 1])) == 0


def test_refills_go_on_where_the_stream_stands():
    """DATA-01: no problem twice within a step; over steps, epochs as ever."""
    found = rules(of=problems(30), filter="dynamic")
    first = found.draw(0, 4)
    more = found.draw(0, 4, taken=first.tolist())
    rest = drawn(found, range(1, 7))
    stream = PromptOrder(30, 4, 0).take(0, 32).tolist()
    assert [*first, *more, *rest] == stream


def test_stages_choose_domains_mixes_and_start_their_own_order():
    """DATA-15: first the domains of one stage, then those of the next."""
    of = problems(20, domain=["math"] * 8 + ["code"] * 8 + ["chat"] * 4)
    plan = [
        {"until": 4, "keep": {"domain": ["math", "code"]}},
        {"until": 8, "mix": {"chat": 1, "math": 3}},
        {},
    ]
    found = rules(of=of, per_step=4, stages=json.dumps(plan))
    first, second = drawn(found, range(4)), drawn(found, range(4, 8))
    assert sorted(first.tolist()) == list(range(16))
    domains = [of[i].meta["domain"] for i in second]
    assert (domains.count("chat"), domains.count("math")) == (4, 12)
    third = drawn(found, range(8, 13))
    assert sorted(third.tolist()) == list(range(20))
    # The same when pass rates are watched and the place in the order is a state.
    watched = rules(of=of, per_step=4, stages=json.dumps(plan), drop_pass_rate=1.0)
    np.testing.assert_array_equal(drawn(watched, range(4)), first)
    np.testing.assert_array_equal(drawn(watched, range(4, 8)), second)


def test_a_mix_must_name_every_domain():
    of = problems(4, domain=["math", "math", "code", "code"])
    data = DataConfig(mix='{"math": 1, "code": 3}')
    found = rules(data, of=of)
    assert sorted(found.draw(0, 4) // 2) == [0, 1, 1, 1]
    with pytest.raises(ValueError, match="no weight to the domain 'code'"):
        rules(DataConfig(mix='{"math": 1}'), of=of)
    with pytest.raises(ValueError, match="no problem has the fields of keep"):
        rules(of=of, stages='[{"keep": {"level": [3]}}]')


def test_the_state_brings_back_every_later_draw():
    """A run that was stopped draws what the uninterrupted one draws."""
    settings = {"filter": "active", "drop_pass_rate": 0.9, "of": problems(30)}
    found = rules(**settings)
    for step in range(3):
        record(found, [16, 15, 3], step=step)
        found.draw(step, 4)
    again = rules(**settings)
    again.restore(json.loads(json.dumps(found.state())))
    np.testing.assert_array_equal(drawn(again, range(3, 9)), drawn(found, range(3, 9)))
