"""Scores per step of the reasoning (process supervision): advantages, one number."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.core import groups
from rlvr_jax.core.returns import suffix_scan
from rlvr_jax.core.shapes import TokenMask
from rlvr_jax.types import Ratio


def process_advantages(
    step_rewards: Float[Array, "B T"],
    step_ends: Bool[Array, "B T"],
    group_id: Int[Array, " B"],
    token_mask: TokenMask,
    *,
    ddof: int = 0,
    epsilon: float = 1e-6,
) -> Float[Array, "B T"]:
    r"""Process-supervised GRPO: a token is paid for its own step and all later ones.

        r~ = (r - mean(R)) / (std(R) + epsilon)     R: every step reward of the group
        A_{i,t} = sum of r~ over the steps of i that end at t or later

    Steps are pooled over the group, so a completion of many steps weighs more in mean
    and std than one of few. Equal step rewards give exactly 0.

    Args:
      step_rewards: the reward of each step at the token where it ends; what stands
        elsewhere is not read.
      step_ends: True on the last token of a step.
      group_id: equal for rows that are compared; values in 0..B-1.
      token_mask: 1 on tokens of the policy. A step that ends outside does not count.
      ddof: of the std, 0 or 1.
      epsilon: added to the std, in the unit of the rewards.

    Returns:
      advantages, [B, T], unitless, 0 at masked tokens. No gradient flows back.

    Raises:
      ValueError: `ddof` is not 0 or 1.

    References:
      DeepSeekMath, sec. 4.1.3. https://arxiv.org/abs/2402.03300

    Example:
      >>> rewards = jnp.array([[0.0, 1.0, 0.0, 3.0]])
      >>> ends, mask = jnp.array([[False, True, False, True]]), jnp.ones((1, 4))
      >>> print(process_advantages(rewards, ends, jnp.array([0]), mask).round(3))
      [[0. 0. 1. 1.]]
    """
    if ddof not in (0, 1):
        raise ValueError(f"process_advantages: ddof must be 0 or 1, got {ddof!r}.")
    kept = token_mask.astype(bool)
    ends = step_ends & kept
    rewards = groups.widened(jax.lax.stop_gradient(step_rewards))
    normalised = _normalised_steps(rewards, ends, group_id, ddof, epsilon)
    sums = suffix_scan(normalised, jnp.ones_like(normalised))
    return jnp.where(kept, sums, 0)


def _normalised_steps(
    rewards: Float[Array, "B T"],
    ends: Bool[Array, "B T"],
    group_id: Int[Array, " B"],
    ddof: int,
    epsilon: float,
) -> Float[Array, "B T"]:
    """Step rewards by mean and std of all steps of the group; 0 elsewhere."""
    everyone = jnp.ones(group_id.shape, bool)

    def total(values: Float[Array, "B T"]) -> Float[Array, "B 1"]:
        rows = jnp.sum(values, axis=1, where=ends)
        return groups.group_sum(rows, group_id, everyone)[:, None]

    count = total(jnp.ones_like(rewards))
    centred = rewards - total(rewards) / jnp.maximum(count, 1)
    std = jnp.sqrt(total(centred**2) / jnp.maximum(count - ddof, 1))
    largest = groups.group_max(
        jnp.max(rewards, axis=1, where=ends, initial=-jnp.inf), group_id, everyone
    )
    smallest = -groups.group_max(
        jnp.max(-rewards, axis=1, where=ends, initial=-jnp.inf), group_id, everyone
    )
    differ = ends & ~(largest <= smallest)[:, None]
    return jnp.where(differ, centred / jnp.where(differ, std + epsilon, 1), 0)


def solution_scores(
    step_scores: Float[Array, "B S"],
    step_mask: Bool[Array, "B S"],
    *,
    aggregation: str,
) -> Float[Array, " B"]:
    r"""One score per solution from the scores of its steps.

        min       the weakest step              (Math-Shepherd)
        product   all steps are right           (Let's Verify Step by Step)
        last      that of the last step         (compute-optimal test-time scaling)
        mean      over the steps

    Args:
      step_scores: chance that each step is right, in 0..1.
      step_mask: True on steps that the solution has; in any places.
      aggregation: how they become one.

    Returns:
      a score per solution, [B]; 0 for one without any step.

    Raises:
      ValueError: `aggregation` is none of these.

    References:
      Math-Shepherd, sec. 3.4. https://arxiv.org/abs/2312.08935
      Let's Verify Step by Step, app. F. https://arxiv.org/abs/2305.20050
      Snell et al., app. E. https://arxiv.org/abs/2408.03314

    Example:
      >>> scores, steps = jnp.array([[0.9, 0.2, 0.8]]), jnp.ones((1, 3), bool)
      >>> (found,) = solution_scores(scores, steps, aggregation="product")
      >>> round(float(found), 4)
      0.144
    """
    known = ("min", "product", "last", "mean")
    if aggregation not in known:
        raise ValueError(
            f"solution_scores: aggregation must be one of {', '.join(known)}, got "
            f"{aggregation!r}."
        )
    scores = groups.widened(step_scores)
    any_step = step_mask.any(axis=1)
    if aggregation == "min":
        found = jnp.min(scores, axis=1, where=step_mask, initial=jnp.inf)
    elif aggregation == "product":
        found = jnp.prod(scores, axis=1, where=step_mask)
    elif aggregation == "last":
        found = jnp.take_along_axis(scores, _last_step(step_mask)[:, None], 1)[:, 0]
    else:
        count = jnp.maximum(step_mask.sum(axis=1), 1)
        found = jnp.sum(scores, axis=1, where=step_mask) / count
    return jnp.where(any_step, found, 0)


def weakest_is_last_share(
    step_scores: Float[Array, "B S"], step_mask: Bool[Array, "B S"]
) -> Float[Array, ""]:
    r"""How often the lowest score stands at the last step: is it a process model?

    A model that judges steps finds the weakest anywhere, at the last of S in 1/S; one
    that judges outcomes only knows at the end. Equal lowest scores share the solution.

    Args:
      step_scores: of each step.
      step_mask: True on steps that the solution has.

    Returns:
      the share of solutions, over those that have a step.

    References:
      The Lessons of Developing PRMs, sec. 4.2. https://arxiv.org/abs/2501.07301

    Example:
      >>> steps = jnp.ones((2, 3), bool)
      >>> scores = jnp.array([[0.9, 0.8, 0.1], [0.2, 0.9, 0.9]])
      >>> print(weakest_is_last_share(scores, steps))
      0.5
    """
    scores = groups.widened(step_scores)
    lowest = jnp.min(scores, axis=1, where=step_mask, initial=jnp.inf, keepdims=True)
    ties = step_mask & (scores == lowest)
    at_last = jnp.take_along_axis(ties, _last_step(step_mask)[:, None], 1)[:, 0]
    shares = at_last / jnp.maximum(ties.sum(axis=1), 1)
    return shares.sum() / jnp.maximum(step_mask.any(axis=1).sum(), 1)


def _last_step(step_mask: Bool[Array, "B S"]) -> Int[Array, " B"]:
    places = jnp.arange(step_mask.shape[1])
    return jnp.max(jnp.where(step_mask, places, 0), axis=1)


def first_errors(
    step_scores: Float[Array, "B S"],
    step_mask: Bool[Array, "B S"],
    *,
    threshold: float = 0.5,
) -> Int[Array, " B"]:
    """The first step that a process reward model takes for wrong.

    Args:
      step_scores: chance that each step is right.
      step_mask: True on steps that the solution has.
      threshold: a lower score is an error.

    Returns:
      the place of the step, -1 where none is below.

    Example:
      >>> scores = jnp.array([[0.9, 0.2, 0.1], [0.9, 0.8, 0.7]])
      >>> print(first_errors(scores, jnp.ones((2, 3), bool)))
      [ 1 -1]
    """
    below = step_mask & (step_scores < threshold)
    return jnp.where(below.any(axis=1), jnp.argmax(below, axis=1), -1)


def first_error_f1(
    predicted: Int[Array, " N"], true: Int[Array, " N"]
) -> Float[Array, ""]:
    r"""How well first errors are found: ProcessBench's F1.

        F1 = 2 a b / (a + b)

    a: share of solutions with an error whose place is found exactly; b: share of
    solutions without one that are let pass. A judge that never objects gets 0, however
    many solutions are right.

    Args:
      predicted: of `first_errors`.
      true: the place of the first wrong step, -1 for none.

    Returns:
      F1 in 0..1; 0 where either kind of solution is missing.

    References:
      ProcessBench, sec. 3. https://arxiv.org/abs/2412.06559

    Example:
      >>> print(first_error_f1(jnp.array([1, 2, -1, -1]), jnp.array([1, 1, -1, -1])))
      0.6666667
    """
    same, wrong = predicted == true, true >= 0
    found = Ratio(jnp.sum(same & wrong) * 1.0, jnp.sum(wrong) * 1.0).value()
    passed = Ratio(jnp.sum(same & ~wrong) * 1.0, jnp.sum(~wrong) * 1.0).value()
    return Ratio(2 * found * passed, found + passed).value()
