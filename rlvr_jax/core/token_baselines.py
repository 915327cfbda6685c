"""One baseline per position of a group, weighted by how much noise a path carries."""

from typing import Literal

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.core.groups import of_segment, widened
from rlvr_jax.core.returns import rewards_to_go
from rlvr_jax.core.shapes import TokenMask


def optimal_token_advantages(
    token_rewards: Float[Array, "B T"],
    group_id: Int[Array, " B"],
    policy_logprobs: Float[Array, "B T"],
    sum_squared_probs: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    align: Literal["position", "kept"] = "kept",
    bare_tail: bool = True,
    importance_weights: Float[Array, "B T"] | None = None,
    epsilon: float = 1e-8,
) -> Float[Array, "B T"]:
    r"""The optimal token baseline (OTB): returns less a weighted mean at each position.

        A_{i,t} = R_{i,t} - sum_j W_{j,t} R_{j,t} / (sum_j W_{j,t} + epsilon)
        W_{j,t} = sum_{s<=t} (1 - 2 pi_{j,s} + sum_v pi_{j,s}(v)^2)

    with R the rewards to go and j the completions of the group that still have a token
    at t. Each summand of W is the squared norm of the score of the sampled logits,
    |e_y - pi|^2, so W stands for the gradient norm of the path up to t: the optimal
    constant baseline (`baselines.weighted_mean_advantages`), one per position.

    Args:
      token_rewards: per token, from `returns.token_rewards`.
      group_id: equal for rows that are compared; values in 0..B-1.
      policy_logprobs: log pi of the sampled tokens, in nats.
      sum_squared_probs: sum over the vocabulary of pi^2, in 0..1.
      token_mask: 1 on tokens of the policy.
      align: which tokens of a group are compared: "kept" those with the same number of
        kept tokens before them (turns of different length), "position" those in the
        same column. Equal where masks have no holes.
      bare_tail: baseline 0 where a row has no peer left, so that its advantage is its
        return; False leaves its own return as its baseline and 0 as its advantage.
      importance_weights: of the update, pi / pi of the sampler, truncated or not; each
        summand of W is multiplied by its square.
      epsilon: added to the sum of weights.

    Returns:
      advantages, [B, T], in the unit of the rewards, 0 at masked tokens. No gradient
      flows back.

    Raises:
      ValueError: `align` is unknown.

    References:
      verl's OPTIMAL_TOKEN_BASELINE. https://github.com/verl-project/verl

    Example:
      >>> rewards = jnp.array([[0.0, 1.0], [0.0, 0.0]])
      >>> logprobs, squares = jnp.log(jnp.full((2, 2), 0.5)), jnp.full((2, 2), 0.5)
      >>> mask, one_group = jnp.ones((2, 2), int), jnp.zeros(2, int)
      >>> print(optimal_token_advantages(rewards, one_group, logprobs, squares, mask))
      [[ 0.5  0.5]
       [-0.5 -0.5]]
    """
    if align not in ("position", "kept"):
        raise ValueError(
            "optimal_token_advantages: align must be 'position' or 'kept', got "
            f"{align!r}."
        )
    kept = token_mask.astype(bool)
    probs = jnp.exp(widened(jax.lax.stop_gradient(policy_logprobs)))
    squares = widened(jax.lax.stop_gradient(sum_squared_probs))
    energy = 1 - 2 * probs + squares
    if importance_weights is not None:
        energy *= jax.lax.stop_gradient(importance_weights) ** 2
    energy = jnp.cumsum(jnp.where(kept, energy, 0), axis=1)
    returns = rewards_to_go(token_rewards, token_mask)

    length = kept.shape[1]
    columns = jnp.cumsum(kept, axis=1) - 1 if align == "kept" else jnp.arange(length)
    # One segment per (group, column).
    cell = group_id[:, None] * length + jnp.broadcast_to(columns, kept.shape)
    cell = jnp.where(kept, cell, 0)

    def total(values: Float[Array, "B T"]) -> Float[Array, "B T"]:
        sums = jax.ops.segment_sum(
            jnp.where(kept, values, 0).reshape(-1),
            cell.reshape(-1),
            num_segments=kept.size,
        )
        return of_segment(sums, cell)

    baseline = total(energy * returns) / (total(energy) + epsilon)
    if bare_tail:
        bare = total(jnp.ones_like(returns)) == 1
        baseline = jnp.where(bare, 0, baseline)
    return jnp.where(kept, returns - baseline, 0)
