"""Nine published objectives against NumPy: advantage, loss, aggregation and KL."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import Objective
from rlvr_jax.core import kl
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.train.credit import Signals, batch_advantages
from rlvr_jax.train.objective import (
    Rows,
    imitation_weights,
    loss_mask,
    minibatch_weights,
    objective_sums,
)
from rlvr_jax.types import Rollouts
from tests import bigram, tiny

P, G, T = 3, 4, 6
B = P * G
FAMILY = (
    "ppo",
    "grpo",
    "rloo",
    "reinforce_pp",
    "dr_grpo",
    "dapo",
    "gspo",
    "cispo",
    "sao",
)
IN_REWARD = ("ppo", "rloo", "reinforce_pp")


@dataclasses.dataclass(frozen=True)
class Batch:
    """Arrays [B] and [B, T], in float64."""

    rewards: np.ndarray
    lengths: np.ndarray
    ended: np.ndarray
    policy: np.ndarray
    old: np.ndarray
    sampler: np.ndarray
    reference: np.ndarray
    values: np.ndarray

    @property
    def mask(self):
        return (np.arange(T) < self.lengths[:, None]).astype(float)


def drawn(seed=0):
    rng = np.random.default_rng(seed)
    policy = -rng.exponential(1.0, (B, T))
    lengths = rng.integers(1, T + 1, B)
    lengths[:2] = T
    return Batch(
        rewards=rng.normal(size=B),
        lengths=lengths,
        ended=(lengths < T) | (np.arange(B) == 1),  # row 0 is cut
        policy=policy,
        old=policy + rng.normal(0, 0.4, (B, T)),
        sampler=policy + rng.normal(0, 1.0, (B, T)),
        reference=policy + rng.normal(0, 0.5, (B, T)),
        values=rng.normal(size=(B, T)),
    )


def ours(name, batch):
    """The loss of the minibatch, and its gradient with respect to the log-probs."""
    objective = Objective(name=name, **PRESETS[name])
    shape = (P, G)
    group_id = jnp.repeat(jnp.arange(P), G).reshape(shape)
    rollouts = Rollouts(
        prompt_tokens=jnp.zeros((P, 1), int),
        prompt_lengths=jnp.ones(P, int),
        completion_tokens=jnp.zeros((*shape, T), int),
        completion_lengths=jnp.asarray(batch.lengths).reshape(shape),
        ended=jnp.asarray(batch.ended).reshape(shape),
        rollout_logprobs=jnp.asarray(batch.sampler, jnp.float32).reshape(*shape, T),
        group_id=group_id,
    )
    array = {
        key: jnp.asarray(getattr(batch, key), jnp.float32)
        for key in ("policy", "old", "reference", "values", "rewards")
    }
    rows_of = lambda values: values.reshape(*shape, T)
    mask = rollouts.token_mask.reshape(B, T)
    paid = None
    if name in IN_REWARD:
        paid = kl.kl_rewards(
            array["old"], array["reference"], mask, beta=objective.beta
        )
    signals = Signals(
        group_id=group_id.reshape(-1),
        token_mask=mask,
        correct=jnp.zeros(B, bool),
        kl_rewards=paid,
        values=array["values"],
    )
    advantages = batch_advantages(array["rewards"], signals, objective)
    weights, denominator = minibatch_weights(
        loss_mask(rollouts, objective), group_id, objective, T
    )
    in_loss = objective.beta > 0 and name not in IN_REWARD
    rows = Rows(
        completion_tokens=rollouts.completion_tokens,
        token_mask=rollouts.token_mask.astype(jnp.float32),
        weights=weights,
        advantages=advantages.reshape(*shape, -1),
        correct=jnp.zeros(shape),
        rollout_logprobs=rollouts.rollout_logprobs,
        old_logprobs=rows_of(array["old"]),
        reference_logprobs=rows_of(array["reference"]) if in_loss else None,
        kept_tokens=None,
    )

    def loss(policy):
        total, _, _ = objective_sums(policy, jnp.zeros((B, T)), rows, objective, 0.0)
        return total / denominator

    return jax.value_and_grad(loss)(array["policy"])


def expected_advantages(name, batch):
    """[B, T], by loops over groups and tokens."""
    kl_paid = np.zeros((B, T))
    if name in IN_REWARD:
        beta = {"ppo": 0.02, "rloo": 0.03, "reinforce_pp": 0.01}[name]
        kl_paid = -beta * (batch.old - batch.reference) * batch.mask
    found = np.zeros((B, T))
    if name in ("ppo", "reinforce_pp", "sao"):
        for i, length in enumerate(batch.lengths):
            lam = {"ppo": 0.95, "reinforce_pp": 1.0, "sao": 1 - 1 / (1.5 * length)}[
                name
            ]
            values = np.append(batch.values[i, :length], 0.0)
            if name == "reinforce_pp":
                values = np.zeros(length + 1)
            carried = 0.0
            for t in reversed(range(length)):
                reward = kl_paid[i, t] + (batch.rewards[i] if t == length - 1 else 0)
                carried = reward + values[t + 1] - values[t] + lam * carried
                found[i, t] = carried
        if name == "sao":
            return found
        kept = found[batch.mask > 0]
        return (found - kept.mean()) / kept.std() * batch.mask
    rewards = (batch.rewards + kl_paid.sum(axis=1)).reshape(P, G)
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    if name == "rloo":
        centred = centred * G / (G - 1)
    elif name != "dr_grpo":
        centred = centred / (rewards.std(axis=1, keepdims=True) + 1e-6)
    return np.repeat(centred.reshape(B, 1), T, axis=1)


def expected_loss(name, batch):
    """The family table: ratio and clip, aggregation, KL."""
    mask, advantages = batch.mask, expected_advantages(name, batch)
    ratio = np.exp(batch.policy - batch.old)
    if name == "gspo":
        mean = ((batch.policy - batch.old) * mask).sum(axis=1) / batch.lengths
        ratio = np.repeat(np.exp(mean)[:, None], T, axis=1)
    if name == "sao":
        ratio = np.exp(batch.policy - batch.sampler)
    low, high = {"dapo": (0.2, 0.28), "gspo": (3e-4, 4e-4)}.get(name, (0.2, 0.2))
    clipped = np.clip(ratio, 1 - low, 1 + high)
    losses = -np.minimum(ratio * advantages, clipped * advantages)
    if name == "rloo":
        losses = -advantages * batch.policy
    if name == "cispo":
        losses = -np.minimum(ratio, 5.0) * advantages * batch.policy
    if name == "sao":
        kept = (ratio > 0.7) & (ratio < 6.0)
        losses = -np.where(kept, ratio, 0.0) * advantages * batch.policy
    if name == "grpo":
        gap = batch.reference - batch.policy
        losses = losses + 0.04 * (np.exp(gap) - gap - 1)
    if name == "dapo":
        mask = mask * batch.ended[:, None]
    losses = losses * mask
    if name in ("grpo", "gspo"):
        return (losses.sum(axis=1) / batch.lengths).mean()
    if name in ("rloo", "dr_grpo"):
        return losses.sum() / (B * T)
    return losses.sum() / mask.sum()


@pytest.mark.parametrize("name", FAMILY)
def test_loss_of_a_preset_is_its_formula(name):
    """CLIP-26: on random rewards, log-probs and values, with a cut completion."""
    batch = drawn()
    loss, _ = ours(name, batch)
    np.testing.assert_allclose(loss, expected_loss(name, batch), rtol=2e-5)


def test_on_policy_the_first_step_is_one_direction():
    """CLIP-26: ratio 1, equal lengths, one completion right: equal up to scale."""
    batch = drawn()
    same = dataclasses.replace(
        batch,
        rewards=np.tile([1.0, 0.0, 0.0, 0.0], P),
        lengths=np.full(B, T),
        ended=np.ones(B, bool),
        old=batch.policy,
        sampler=batch.policy,
        reference=batch.policy,
        values=np.full((B, T), 0.25),  # the critic of PPO and SAO knows the mean
    )
    expected = np.repeat(-(same.rewards - 0.25)[:, None], T, axis=1)
    for name in FAMILY:
        batch = same
        if name in ("ppo", "sao"):  # GAE at a constant value decays with lambda
            batch = dataclasses.replace(same, lengths=np.ones(B, int))
        gradient = np.asarray(ours(name, batch)[1], np.float64)
        direction = expected * batch.mask
        cosine = (gradient * direction).sum() / (
            np.linalg.norm(gradient) * np.linalg.norm(direction)
        )
        np.testing.assert_allclose(cosine, 1.0, rtol=1e-6, err_msg=name)


def test_tokens_of_scalerl_weigh_as_its_recipe_says():
    """REC-23: a token's weight is (r - mean) / (std of the batch x tokens of its
    prompt's completions), over prompts."""
    batch = dataclasses.replace(drawn(1), ended=np.ones(B, bool))
    on_policy = dataclasses.replace(batch, old=batch.policy, sampler=batch.policy)
    _, gradient = ours("scalerl", on_policy)
    rewards = batch.rewards.reshape(P, G)
    centred = rewards - rewards.mean(axis=1, keepdims=True)
    tokens = batch.lengths.reshape(P, G).sum(axis=1, keepdims=True)
    weight = centred / (centred.std() + 1e-6) / tokens / P
    np.testing.assert_allclose(
        gradient, -weight.reshape(B, 1) * batch.mask, rtol=1e-4, atol=1e-7
    )


def test_imitation_of_vapo_is_a_mean_over_tokens_of_correct_completions():
    """PG-37: weights times -log pi over the minibatch's denominator give the mean."""
    rng = np.random.default_rng(0)
    mask = (rng.random((P, G, T)) < 0.7).astype(np.float32)
    correct = np.zeros((P, G), np.float32)
    correct[0, 1] = correct[2, 3] = 1
    losses = rng.exponential(size=(P, G, T))
    weights = imitation_weights(
        jnp.asarray(mask), jnp.asarray(correct), jnp.float32(17.0)
    )
    chosen = losses[correct > 0][mask[correct > 0] > 0]
    np.testing.assert_allclose(
        (np.asarray(weights) * losses).sum() / 17, chosen.mean(), rtol=1e-5
    )


@pytest.mark.parametrize(
    ("names", "copies"),
    [
        (("dapo", "magistral", "olmo3", "cispo", "gspo", "sao"), 1),
        (("grpo", "ppo", "rloo", "reinforce_pp"), 2),
    ],
)
def test_without_kl_no_reference_is_kept(names, copies):
    """KL-11: the recipes with beta 0 hold one network's parameters, the others two: a
    frozen copy at 2 bytes per parameter less (`core/memory.py`)."""
    graphdef, parameters = bigram.policy()
    size = sum(leaf.size for leaf in jax.tree.leaves(parameters))
    for name in names:
        objective = Objective(name=name, **PRESETS[name])
        state = tiny.state(parameters, tiny.plan(graphdef, objective))
        held = (state.parameters, state.reference)
        assert sum(leaf.size for leaf in jax.tree.leaves(held)) == copies * size, name
