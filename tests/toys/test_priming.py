"""Search by guess and check: which bases RL can teach, and what priming has to show."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.analysis.constraint import binding_constraint
from rlvr_jax.toys import priming, random_rewards
from rlvr_jax.toys.priming import AGAIN, ANSWER, CHECK, FILLER, HIT, LENGTH

SEEDS, STEPS = 32, 250
HIGH, LOW = (0.15, 0.15), (0.003, 0.003)
"""Habits of two bases: chance to check a guess, chance to go back from a wrong one."""
WRITER = (0.6, 0.6)
DEPTH = 0.65
"""Filler of a writer without behaviours, so that its traces are as long."""


def keys(seed):
    return jax.random.split(jax.random.key(seed), SEEDS)


def starts():
    """The arms: policies that RL goes on from, [SEEDS, 3, 4]."""
    low = priming.policy(*LOW)
    shown = functools.partial(priming.primed, keys(2), low, count=128)
    writer = priming.policy(*WRITER)
    read = functools.partial(priming.primed, keys(2), low, count=512, steps=300)
    return {
        "high": jnp.broadcast_to(priming.policy(*HIGH), (SEEDS, 3, 4)),
        "low": jnp.broadcast_to(low, (SEEDS, 3, 4)),
        "right traces": shown(writer, keep="right"),
        "wrong traces": shown(writer, keep="wrong"),
        "length alone": shown(priming.policy(*LOW, DEPTH)),
        "enriched": read(priming.policy(*HIGH, 0.3)),
        "depleted": read(priming.policy(*LOW, 0.3)),
    }


@functools.cache
def curves():
    """Exact accuracy before RL and after each step, [SEEDS, 1 + STEPS], by arm."""
    exact = jax.jit(jax.vmap(priming.accuracy))
    found = {}
    for name, start in starts().items():
        history = priming.reinforced(keys(1), start, steps=STEPS)
        after = jax.vmap(exact)(history)
        found[name] = np.concatenate([exact(start)[:, None], after], axis=1)
    return found


def gap(name, other, step=-1):
    """Of two arms, paired by the seeds of RL: mean, and three standard errors."""
    apart = curves()[name][:, step] - curves()[other][:, step]
    return apart.mean(), 3 * apart.std(ddof=1) / np.sqrt(SEEDS)


def test_a_perfect_search_is_right_within_eight_guesses():
    """One check, then (again, check), then the answer: guess n is answered at move 2n,
    and 16 moves hold eight guesses: 1 - .85^8."""
    always = np.full((3, 4), -50.0)
    always[[0, 1, 2], [CHECK, AGAIN, ANSWER]] = 0.0
    expected = 1 - (1 - HIT) ** (LENGTH // 2)
    assert expected == pytest.approx(0.7275, abs=5e-5)
    found = priming.accuracy(jnp.array(always, jnp.float32))
    assert found == pytest.approx(expected, rel=1e-5)


def test_the_exact_accuracy_is_that_of_traces_written_out():
    """20,000 traces of a plain Python loop, and as many of `sample`."""
    logits = priming.policy(0.4, 0.5, 0.2)
    chances = np.asarray(jax.nn.softmax(logits))
    rng, won = np.random.default_rng(0), 0
    for _ in range(20_000):
        hit, state = rng.random() < HIT, 0
        for _ in range(LENGTH):
            move = np.searchsorted(chances[state].cumsum(), rng.random())
            if move == ANSWER:
                won += hit
                break
            if move == CHECK:
                state = 2 if hit else 1
            if move == AGAIN:
                hit, state = rng.random() < HIT, 0
            assert move in (CHECK, AGAIN, FILLER)
    exact = float(priming.accuracy(logits))
    error = np.sqrt(exact * (1 - exact) / 20_000)
    assert abs(won / 20_000 - exact) < 4 * error
    sampled = priming.sample(jax.random.key(0), logits, 20_000).correct.mean()
    assert abs(sampled - exact) < 4 * error


def test_the_same_rl_lifts_the_base_that_searches_and_not_the_other():
    """BEH-06: checks and returns in 15 % and in .3 % of the places; both start at 15 %
    right. After 250 steps of the same RL the first is above 72 % (the ceiling is
    72.75 %); the second is where it was, in every seed."""
    high, low = curves()["high"], curves()["low"]
    assert abs(high[:, 0].mean() - low[:, 0].mean()) < 0.01
    assert (high[:, -1] > 0.72).all()
    assert (low[:, -1] < 0.2).all()


def test_priming_closes_the_gap():
    """BEH-07: ten steps on right traces of a writer that searches leave the accuracy
    before RL where it was (within .02), and RL then ends within .01 of the other base's
    end: beyond three standard errors over 32 seeds."""
    assert abs(gap("right traces", "low", 0)[0]) < 0.02
    mean, error = gap("right traces", "high")
    assert abs(mean) + error < 0.01


def test_wrong_answers_prime_as_well():
    """BEH-08: the same writer's traces that end in a wrong answer: the ends differ by
    less than .01, and both are above 71 % in every seed. On the way, at step 50, the
    seeds do not tell them apart."""
    mean, error = gap("wrong traces", "right traces")
    assert abs(mean) + error < 0.01
    for name in ("wrong traces", "right traces"):
        assert (curves()[name][:, -1] > 0.71).all()
    mean, error = gap("wrong traces", "right traces", 50)
    assert abs(mean) < error


def test_longer_traces_without_the_behaviours_do_nothing():
    """BEH-09: as many moves as the writer's traces, to 5 %, of words that change
    nothing: RL ends where the unprimed base ends."""
    long, shown = (
        priming.sample(jax.random.key(0), priming.policy(*habits), 20_000)
        for habits in ((*LOW, DEPTH), WRITER)
    )
    lengths = [float(each.written.sum(axis=1).mean()) for each in (long, shown)]
    assert lengths[0] == pytest.approx(lengths[1], rel=0.05)
    assert priming.behaviours(long) < 0.02 < 1 < priming.behaviours(shown)
    mean, error = gap("length alone", "low")
    assert abs(mean) + error < 0.01


def test_reading_an_enriched_corpus_gives_the_other_base_s_curve():
    """BEH-10: 512 documents that search as often as the base that does, right or wrong,
    read for 300 steps; RL then ends within .01 of that base's end. As many documents
    without the behaviours leave it at the unprimed base's."""
    mean, error = gap("enriched", "high")
    assert abs(mean) + error < 0.01
    mean, error = gap("depleted", "low")
    assert abs(mean) + error < 0.01


def rewarded_by_coins(start):
    """Gains of the right answer (token 0) under random rewards, one per seed."""
    runs = jax.random.split(jax.random.key(3), 20_000)
    logits = random_rewards.train(runs, jnp.array(start), random_rewards.Recipe())
    return np.asarray(jax.nn.softmax(logits))[:, 0] - start[0]


def test_the_base_is_what_binds_in_all_three_lines_of_evidence():
    """BEH-16: the report, filled by the toys: priming, random rewards on an answer the
    base is likely to give against one it guesses, and gains over bases of five rates.

    With the arms of each line exchanged, all three speak against it.
    """
    ends = {name: curve[:, -1] - curve[:, 0] for name, curve in curves().items()}
    rates = (0.003, 0.04, 0.06, 0.1, 0.15)
    families = {}
    for rate in rates:
        start = jnp.broadcast_to(priming.policy(rate, rate), (SEEDS, 3, 4))
        end = priming.reinforced(keys(4), start, steps=STEPS)[:, -1]
        gains = jax.vmap(priming.accuracy)(end) - priming.accuracy(start[0])
        families[f"base {rate}"] = (rate, float(gains.mean()))
    coins = rewarded_by_coins([0.85, *[0.15 / 9] * 9]), rewarded_by_coins([0.1] * 10)
    found = binding_constraint(
        primed=ends["right traces"].tolist(),
        unprimed=ends["low"].tolist(),
        spurious_likely=coins[0].tolist(),
        spurious_unlikely=coins[1].tolist(),
        families=families,
    )
    assert [row.verdict for row in found] == ["supported"] * 3
    turned = binding_constraint(
        primed=ends["low"].tolist(),
        unprimed=ends["right traces"].tolist(),
        spurious_likely=coins[1].tolist(),
        spurious_unlikely=coins[0].tolist(),
        families={name: (-rate, gain) for name, (rate, gain) in families.items()},
    )
    assert [row.verdict for row in turned] == ["ruled out"] * 3
    empty = binding_constraint()
    assert [row.verdict for row in empty] == ["not tested"] * 3


def test_what_is_kept_is_checked():
    with pytest.raises(
        ValueError, match="keep is 'right', 'wrong' or 'all', got 'bad'"
    ):
        priming.primed(
            keys(0), priming.policy(*LOW), priming.policy(*WRITER), keep="bad"
        )
