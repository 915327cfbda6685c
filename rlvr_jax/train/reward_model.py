"""Reward models of outcomes and of steps: a scalar head on the model that was sampled.

    problems -> completions of a model, verified -> a scalar head on that model

An outcome model has one bit per completion to learn from. `predict="end"` scores whole
completions, as reward models do; `predict="tokens"` predicts the outcome after every
token, which is a value function of the model that was sampled (both are verifiers of
Cobbe et al. 2021, https://arxiv.org/abs/2110.14168). `predict="steps"` is a process
reward model: it learns labels of steps (train/step_labels.py), by cross-entropy.
"""

import functools
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jaxtyping import Array, Float, Int

from rlvr_jax.core.diagnostics import masked_mean
from rlvr_jax.core.step_labels import step_loss
from rlvr_jax.core.voting import auc
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.train.critic import new_critic, values_by
from rlvr_jax.train.evaluation import Batch, Evaluation
from rlvr_jax.train.micro_batches import Prompts

Predict = Literal["end", "tokens", "steps"]


class Judged(NamedTuple):
    """Completions and what they earned, one a row."""

    prompt_tokens: Int[np.ndarray, "N S"]
    prompt_lengths: Int[np.ndarray, " N"]
    completion_tokens: Int[np.ndarray, "N T"]
    completion_lengths: Int[np.ndarray, " N"]
    rewards: Float[np.ndarray, " N"]
    step_labels: Float[np.ndarray, "N U"] | None = None
    """At the place after each step, of U = T + 1, the first of which comes after the
    question; NaN elsewhere. None: unknown."""


class Fit(NamedTuple):
    """How well scores predict rewards, or labels of steps, that no training saw."""

    completions: int
    """Or steps."""
    reward_mean: float
    error: float
    """Mean squared error of the scores."""
    error_of_mean: float
    """The same of one number for all, the mean."""
    auc: float
    """How often, of two on either side of the middle reward, the better one has the
    higher score."""
    bins: list[tuple[int, float, float]]
    """(completions, mean score, mean reward) of equal parts, by rising score: the last
    two agree where the model is calibrated."""


def judged(evaluation: Evaluation, parameters: nnx.State) -> Judged:
    """Samples completions of the evaluation's problems and has them verified."""
    parts = [judged_batch(batch) for batch in evaluation.sampled(parameters)]
    return jax.tree.map(lambda *arrays: np.concatenate(arrays), *parts)


def judged_batch(batch: Batch) -> Judged:
    """The completions of a batch's problems that count."""
    prompts = fetch((batch.rollouts.prompt_tokens, batch.rollouts.prompt_lengths))
    n, used = batch.lengths.shape[1], slice(0, batch.used)
    rows = (batch.tokens, batch.lengths, batch.scores.rewards)
    return Judged(
        *(np.repeat(array[used], n, axis=0) for array in prompts),
        *(array[used].reshape(-1, *array.shape[2:]) for array in rows),
    )


def train_reward_model(
    graphdef: nnx.GraphDef,
    policy: nnx.State,
    width: int,
    data: Judged,
    *,
    predict: Predict = "end",
    learning_rate: float = 1e-5,
    batch_size: int = 64,
    epochs: int = 1,
    seed: int = 0,
) -> tuple[dict[str, Any], list[float]]:
    r"""Fits a head of one number, and the decoder below it, to rewards or labels.

        loss = mean over completions, or over the places in them, of (score - reward)^2
        loss = mean over labelled steps of `core.step_labels.step_loss`         "steps"

    Departs from the cross-entropy of most outcome reward models: of both the least is
    at the expected reward, and a score of this one is in the unit of the reward, which
    a critic's value has to be. No language modelling beside it, unlike Cobbe et al.

    Args:
      graphdef: of the decoder.
      policy: the parameters to start from; they stay as they are.
      width: of its states.
      data: what to learn from.
      predict: "end" (the state after the last token), "tokens" (after the question and
        after every token) or "steps" (after each step, where `data` has labels; the
        score is then a logit).
      learning_rate: of AdamW, along a cosine down to 0.
      batch_size: completions per update.
      epochs: passes over the data.
      seed: of their order.

    Returns:
      parameters in the form of a critic's, with a bias of 0, and the loss per update.
    """
    count = len(data.rewards)
    size = min(batch_size, count)
    updates = epochs * (count // size)
    schedule = optax.cosine_decay_schedule(learning_rate, updates)
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adamw(schedule))
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), policy)
    parameters = new_critic(wide, width)
    step = jax.jit(
        functools.partial(
            _update, graphdef=graphdef, optimizer=optimizer, predict=predict
        ),
        donate_argnums=(0, 1),
    )
    state = jax.jit(optimizer.init)(parameters)
    losses, random = [], np.random.default_rng(seed)
    for _ in range(epochs):
        order = random.permutation(count)
        for start in range(0, count - size + 1, size):
            chosen = order[start : start + size]
            batch = _rows(data, chosen)
            parameters, state, loss = step(parameters, state, batch)
            losses.append(loss)
    return parameters, [float(loss) for loss in losses]


def scores_of(
    graphdef: nnx.GraphDef, parameters: dict[str, Any], data: Judged, batch_size: int
) -> Float[np.ndarray, " N"]:
    """The score of each completion: that of the state after its last token."""
    scores = place_scores(graphdef, parameters, data, batch_size)
    return np.take_along_axis(scores, data.completion_lengths[:, None], axis=1)[:, 0]


def place_scores(
    graphdef: nnx.GraphDef, parameters: dict[str, Any], data: Judged, batch_size: int
) -> Float[np.ndarray, "N U"]:
    """The scores after the question and after each of T tokens: U = T + 1."""
    count = len(data.rewards)
    found = []
    for start in range(0, count, batch_size):
        # Rows of the first completion fill the last batch up.
        rows = np.arange(start, start + batch_size)
        batch = _rows(data, np.where(rows < count, rows, 0))
        found.append(np.asarray(fetch(_jitted_scores(parameters, batch, graphdef))))
    return np.concatenate(found)[:count]


def fit(
    scores: Float[np.ndarray, " N"], rewards: Float[np.ndarray, " N"], bins: int = 5
) -> Fit:
    """Compares scores with rewards, or with labels of steps.

    Example:
      >>> fit(np.array([0.2, 0.8]), np.array([0.0, 1.0]), bins=2).bins
      [(1, 0.2, 0.0), (1, 0.8, 1.0)]
    """
    order = np.argsort(scores, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return Fit(
        completions=len(rewards),
        reward_mean=float(rewards.mean()),
        error=float(((scores - rewards) ** 2).mean()),
        error_of_mean=float(rewards.var()),
        auc=auc(scores, rewards > (rewards.min() + rewards.max()) / 2),
        bins=[
            (len(part), float(scores[part].mean()), float(rewards[part].mean()))
            for part in parts
        ],
    )


def split_held_out(items: Sequence[Any], every: int = 10) -> tuple[list, list]:
    """What to learn from, and every tenth of it, which is left out.

    Example:
      >>> split_held_out(range(12))
      ([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11], [9])
    """
    held = [item for place, item in enumerate(items) if place % every == every - 1]
    rest = [item for place, item in enumerate(items) if place % every != every - 1]
    return rest, held


def _update(parameters, state, batch: Judged, *, graphdef, optimizer, predict: Predict):
    def loss(parameters):
        scores = _scores(parameters, batch, graphdef)
        if predict == "steps":
            assert batch.step_labels is not None
            error = step_loss(scores, jnp.nan_to_num(batch.step_labels))
        else:
            error = (scores - batch.rewards[:, None]) ** 2
        return masked_mean(error, _counted(scores, batch, predict)).value()

    value, gradients = jax.value_and_grad(loss)(parameters)
    # A model that transformers can hold has no bias.
    gradients["value_bias"] = jnp.zeros(())
    changes, state = optimizer.update(gradients, state, parameters)
    return optax.apply_updates(parameters, changes), state, value


def _scores(parameters, batch: Judged, graphdef) -> Float[Array, "N U"]:
    """After the question and after each of T tokens: U = T + 1 of them."""
    prompts = Prompts(
        jnp.asarray(batch.prompt_tokens), jnp.asarray(batch.prompt_lengths)
    )
    decoder = nnx.merge(graphdef, parameters["decoder"])
    # The state that a token too many would be predicted from comes after the last one.
    read = jnp.pad(batch.completion_tokens, ((0, 0), (0, 1)))[:, None]
    return values_by(decoder, parameters, prompts, read)


_jitted_scores = jax.jit(_scores, static_argnames="graphdef")


def _counted(scores, batch: Judged, predict: Predict) -> Float[Array, "N U"]:
    """1 at the places whose scores are meant."""
    if predict == "steps":
        assert batch.step_labels is not None
        return (~jnp.isnan(batch.step_labels)).astype(scores.dtype)
    place = jnp.arange(scores.shape[-1])
    last = batch.completion_lengths[:, None]
    counted = place == last if predict == "end" else place <= last
    return counted.astype(scores.dtype)


def _rows(data: Judged, chosen: Int[np.ndarray, " M"]) -> Judged:
    return jax.tree.map(lambda array: array[chosen], data)
