"""An outcome reward model on planted data, whose right answer is known."""

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.core.gae import gae
from rlvr_jax.core.returns import token_rewards
from rlvr_jax.train import reward_model
from rlvr_jax.train.critic import critic_metrics, new_critic, values_by
from rlvr_jax.train.evaluation import Batch, Evaluation
from rlvr_jax.train.micro_batches import Prompts
from rlvr_jax.train.reward_model import (
    Judged,
    Predict,
    fit,
    place_scores,
    scores_of,
    train_reward_model,
)
from tests import bigram, tiny

PLANTED = np.array([0.1, 0.35, 0.6, 0.9])
"""Chance of being right, by the last token: 5, 6, 7 or 8."""
LENGTH = 5


def planted(count: int, seed: int) -> tuple[Judged, np.ndarray]:
    """Completions of 1 to 5 tokens, of which the last alone says how likely they are
    right; and which it is."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, count)
    lengths = rng.integers(1, LENGTH + 1, count)
    tokens = rng.integers(10, tiny.VOCAB, (count, LENGTH))
    tokens[np.arange(count), lengths - 1] = 5 + kinds
    # What stands after the end says the opposite and must not be read.
    after = np.arange(LENGTH) >= lengths[:, None]
    tokens = np.where(after, 8 - kinds[:, None], tokens)
    data = Judged(
        prompt_tokens=rng.integers(10, tiny.VOCAB, (count, 3)).astype(np.int32),
        prompt_lengths=np.full(count, 3, np.int32),
        completion_tokens=tokens.astype(np.int32),
        completion_lengths=lengths.astype(np.int32),
        rewards=(rng.random(count) < PLANTED[kinds]).astype(np.float32),
    )
    return data, kinds


@functools.cache
def trained(predict: Predict):
    graphdef, policy = bigram.policy()
    parameters, losses = train_reward_model(
        graphdef,
        policy,
        8,
        planted(4000, 0)[0],
        predict=predict,
        learning_rate=0.03,
        batch_size=100,
        epochs=4,
    )
    return graphdef, parameters, losses


def test_it_is_calibrated_on_planted_data():
    """PROC-01: from one bit per completion, each kind gets its planted chance; on 4,000
    others, whose shares have a standard error of .016, score and outcome agree."""
    graphdef, parameters, losses = trained("end")
    assert len(losses) == 160
    data, kinds = planted(4000, 1)
    scores = scores_of(graphdef, parameters, data, batch_size=300)
    found = [scores[kinds == kind].mean() for kind in range(4)]
    np.testing.assert_allclose(found, PLANTED, atol=0.05)
    judged = fit(scores, data.rewards, bins=4)
    for count, score, reward in judged.bins:
        assert count == 1000
        assert score == pytest.approx(reward, abs=0.07)
    # The least error there is: the mean of p (1 - p) over the four kinds.
    assert judged.error == pytest.approx((PLANTED * (1 - PLANTED)).mean(), abs=0.012)
    assert judged.error_of_mean == pytest.approx(0.25, abs=0.01)
    # TT-08: and the best order there is, that of the planted features: of a right and
    # a wrong completion the right one is of the better kind, or of the same (half).
    better = np.tril(np.ones((4, 4)), -1) + 0.5 * np.eye(4)
    best = PLANTED @ better @ (1 - PLANTED) / (PLANTED.sum() * (1 - PLANTED).sum())
    assert best == pytest.approx(3.32375 / (1.95 * 2.05))
    assert judged.auc == pytest.approx(best, abs=0.03)
    # As transformers holds it: no bias.
    assert float(parameters["value_bias"]) == 0


def test_after_every_token_it_is_a_value_function():
    """PROC-01: with predict="tokens" the score before the telling token is the mean of
    what may come, and after it the planted chance."""
    graphdef, parameters, _ = trained("tokens")
    data, kinds = planted(2000, 2)
    decoder = nnx.merge(graphdef, parameters["decoder"])
    prompts = Prompts(jnp.asarray(data.prompt_tokens), jnp.asarray(data.prompt_lengths))
    read = jnp.pad(jnp.asarray(data.completion_tokens), ((0, 0), (0, 1)))[:, None]
    values = np.asarray(values_by(decoder, parameters, prompts, read))
    assert values[:, 0].mean() == pytest.approx(PLANTED.mean(), abs=0.05)
    at_end = values[np.arange(2000), data.completion_lengths]
    found = [at_end[kinds == kind].mean() for kind in range(4)]
    np.testing.assert_allclose(found, PLANTED, atol=0.07)


def planted_steps(count: int, seed: int) -> tuple[Judged, np.ndarray]:
    """As `planted`, with a label after every second token, which alone says how likely
    it is 1; and the chance that is planted there (NaN: no label)."""
    rng = np.random.default_rng(seed)
    data, _ = planted(count, seed)
    kinds = rng.integers(0, 4, data.completion_tokens.shape)
    chances = np.full((count, LENGTH + 1), np.nan, np.float32)
    chances[:, 2::2] = PLANTED[kinds[:, 1::2]]
    labels = np.where(np.isnan(chances), np.nan, rng.random(chances.shape) < chances)
    return data._replace(
        completion_tokens=(5 + kinds).astype(np.int32),
        step_labels=labels.astype(np.float32),
    ), chances


def test_a_model_of_steps_learns_their_chances():
    """PROC-02: by cross-entropy, from one bit per step; the least there is, the mean
    entropy of the four chances, .521 nats. Rewards are not read."""
    graphdef, policy = bigram.policy()
    data, _ = planted_steps(2000, 0)
    parameters, losses = train_reward_model(
        graphdef,
        policy,
        8,
        data._replace(rewards=np.full(2000, np.nan, np.float32)),
        predict="steps",
        learning_rate=0.03,
        batch_size=100,
        epochs=4,
    )
    entropy = -(PLANTED * np.log(PLANTED) + (1 - PLANTED) * np.log(1 - PLANTED)).mean()
    assert losses[0] == pytest.approx(np.log(2))
    assert np.mean(losses[-20:]) == pytest.approx(entropy, abs=0.03)
    held_out, chances = planted_steps(1000, 1)
    scores = place_scores(graphdef, parameters, held_out, batch_size=300)
    for chance in PLANTED:
        found = 1 / (1 + np.exp(-scores[chances == np.float32(chance)]))
        assert found.mean() == pytest.approx(chance, abs=0.05)


def along_the_way(count: int, seed: int) -> Judged:
    """Completions of 8 tokens that say from the first on whether they are good (right
    in 9 of 10) or bad (1 of 10). Three of ten are cut before their closing token, and
    earn nothing, as an answer that was not given."""
    rng = np.random.default_rng(seed)
    good, cut = rng.random(count) < 0.5, rng.random(count) < 0.3
    tokens = rng.integers(10, 35, (count, 8)) + np.where(good, 0, 25)[:, None]
    tokens[~cut, -1] = np.where(good[~cut], 5, 6)
    right = rng.random(count) < np.where(good, 0.9, 0.1)
    return Judged(
        prompt_tokens=np.full((count, 1), 60, np.int32),
        prompt_lengths=np.ones(count, np.int32),
        completion_tokens=tokens.astype(np.int32),
        completion_lengths=np.full(count, 8, np.int32),
        rewards=(right & ~cut).astype(np.float32),
    )


def at_step_0(predict: Any) -> tuple[dict[str, float], np.ndarray]:
    """The critic's metrics, and the mean advantage by place, of 2,000 completions."""
    graphdef, policy = bigram.policy()
    parameters = new_critic(policy, 8)
    if predict != "zero":
        parameters, _ = train_reward_model(
            graphdef,
            policy,
            8,
            along_the_way(4000, 0),
            predict=predict,
            learning_rate=0.03,
            batch_size=100,
            epochs=3,
        )
    data = along_the_way(2000, 1)
    prompts = Prompts(jnp.asarray(data.prompt_tokens), jnp.asarray(data.prompt_lengths))
    decoder = nnx.merge(graphdef, parameters["decoder"])
    read = jnp.asarray(data.completion_tokens)[:, None]
    values = values_by(decoder, parameters, prompts, read)
    mask = jnp.ones((2000, 8))
    returns = mask * data.rewards[:, None]
    metrics = critic_metrics(values[:, None], returns[:, None], mask[:, None] > 0)
    paid = token_rewards(jnp.asarray(data.rewards), mask)
    advantages = gae(paid, values, mask, lam=0.95)
    found = {name: float(value) for name, value in metrics.items()}
    return found, np.asarray(advantages.mean(axis=0))


def test_values_at_step_0_from_a_reward_model_and_from_zero():
    """OBJ-04, F-10 of VC-PPO: a reward model is right about whole completions (.9 and
    .1 here) and has seen that those without an end earn nothing, so that as a critic it
    calls all unfinished text worthless: it explains no more than a critic at 0, its
    values are too low by the mean return, .7 x .5 = .35, and the advantages of early
    tokens are positive whatever they say. One that was trained after every token has
    neither bias: from the second token on V is .63 or .07, with an explained variance
    of .28^2 / (.35 x .65) = .34 there (and none before the first of eight tokens)."""
    zero, of_zero = at_step_0("zero")
    assert zero["critic/explained_variance"] == 0
    assert zero["critic/bias_first"] == pytest.approx(-0.35, abs=0.03)
    end, of_end = at_step_0("end")
    assert end["critic/explained_variance"] == pytest.approx(0, abs=0.06)
    assert end["critic/bias_last"] == pytest.approx(-0.35, abs=0.06)
    tokens, of_tokens = at_step_0("tokens")
    expected = 0.28**2 / (0.35 * 0.65) * 7 / 8
    assert tokens["critic/explained_variance"] == pytest.approx(expected, abs=0.06)
    for part in ("critic/bias_first", "critic/bias_last"):
        assert tokens[part] == pytest.approx(0, abs=0.04)
    # By place: the mean advantage that tokens get for being early.
    assert (of_end[1:] > 0.15).all()
    assert (of_zero > 0.15).all()
    np.testing.assert_allclose(of_tokens[1:], 0, atol=0.05)


def test_the_policy_stays_and_the_last_batch_may_be_short():
    graphdef, policy = bigram.policy()
    data = planted(7, 3)[0]
    parameters, losses = train_reward_model(
        graphdef, policy, 8, data, batch_size=3, epochs=2, learning_rate=0.1
    )
    assert len(losses) == 4
    assert tiny.largest_difference(policy, bigram.policy()[1]) == 0
    assert tiny.largest_difference(parameters["decoder"], policy) > 0
    whole = scores_of(graphdef, parameters, data, batch_size=7)
    np.testing.assert_allclose(
        scores_of(graphdef, parameters, data, batch_size=3), whole, rtol=1e-6
    )


def test_completions_are_taken_with_their_own_prompts_and_rewards():
    """Of two batches of two prompts, the last filled up with a prompt that counts
    already."""

    @dataclasses.dataclass
    class Scores:
        rewards: np.ndarray

    class TwoBatches(Evaluation):
        def __init__(self):
            pass

        def sampled(self, parameters):
            del parameters
            for first, used in ((0, 2), (2, 1)):
                ids = np.array([first, (first + 1) % 3])
                yield Batch(
                    rows=ids,
                    rollouts=tiny_rollouts(ids),
                    used=used,
                    ended=np.ones((2, 2), bool),
                    strict=None,
                    tokens=10 * ids[:, None, None] + np.arange(2)[None, :, None],
                    lengths=np.ones((2, 2), int),
                    scores=scores(ids[:, None] + np.array([[0.0, 0.5]])),
                )

    def scores(rewards) -> Any:
        return Scores(rewards)

    def tiny_rollouts(ids) -> Any:
        @dataclasses.dataclass
        class Rollouts:
            prompt_tokens: jax.Array
            prompt_lengths: jax.Array

        return Rollouts(jnp.asarray(ids[:, None]), jnp.asarray(ids + 1))

    found = reward_model.judged(TwoBatches(), bigram.policy()[1])
    assert found.prompt_tokens[:, 0].tolist() == [0, 0, 1, 1, 2, 2]
    assert found.prompt_lengths.tolist() == [1, 1, 2, 2, 3, 3]
    assert found.completion_tokens[:, 0].tolist() == [0, 1, 10, 11, 20, 21]
    assert found.rewards.tolist() == [0, 0.5, 1, 1.5, 2, 2.5]
