"""The critic's loss, and how well it predicts returns."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from rlvr_jax.core.groups import widened
from rlvr_jax.core.shapes import TokenMask
from rlvr_jax.types import Ratio


def bootstrapped_rewards(
    rewards: Float[Array, " B"],
    values: Float[Array, "B T"],
    token_mask: TokenMask,
    ended: Bool[Array, " B"],
) -> Float[Array, " B"]:
    r"""Rewards in which a cut completion earns what the critic expected of its end.

        r_i = V_i(last kept token)  where the completion did not end, else r_i

    Cut is not wrong: with 0 for it a critic learns that long thoughts fail. The last
    token gets an advantage of 0 (at gamma = 1), those before it what the values say.

    Args:
      rewards: one per completion, for all of it.
      values: V before each token, in the unit of `rewards`. The value before the last
        token stands for that of the state after it, which no token was sampled from.
      token_mask: 1 on the policy's tokens.
      ended: False where the limit cut it. Without kept tokens a row keeps its reward.

    Returns:
      rewards, [B]. No gradient flows back.

    References:
      Step 3.5 Flash, sec. 5.2.1. https://arxiv.org/abs/2602.10604

    Example:
      >>> values, ended = jnp.array([[0.2, 0.6], [0.2, 0.6]]), jnp.array([True, False])
      >>> print(bootstrapped_rewards(jnp.zeros(2), values, jnp.ones((2, 2)), ended))
      [0.  0.6]
    """
    mask = token_mask.astype(bool)
    place = jnp.arange(mask.shape[1])
    last = jnp.where(mask, place, -1).max(axis=1)
    at_end = jnp.where(place == last[:, None], values, 0.0).sum(axis=1)
    found = jnp.where(ended | (last < 0), rewards, at_end)
    return jax.lax.stop_gradient(found)


def value_loss(
    values: Float[Array, "B T"],
    old_values: Float[Array, "B T"],
    targets: Float[Array, "B T"],
    *,
    clip: float | None = 0.2,
) -> Float[Array, "B T"]:
    r"""Squared error of the critic, per token, with PPO's clip around its old values.

        l = 1/2 (V - R)^2                                           clip=None
        l = 1/2 max( (V - R)^2, (clip(V, V_old +- clip) - R)^2 )

    The clip takes the gradient away from a value that has already moved by more than
    `clip` towards its target.

    Args:
      values: of the critic being trained.
      old_values: when the completions were sampled; a constant.
      targets: R, from `gae.value_targets`; constants.
      clip: largest move per step, in the unit of the rewards; None for no bound. verl
        0.5; a third party's code of SAO 0.2.

    Returns:
      the loss per token, [B, T], unaggregated; in the squared unit of the rewards.

    References:
      Engstrom et al. 2020. https://arxiv.org/abs/2005.12729

    Example:
      >>> values, old = jnp.array([[1.0, 0.0]]), jnp.array([[0.0, 0.0]])
      >>> print(value_loss(values, old, jnp.array([[1.0, 1.0]]), clip=0.5))
      [[0.125 0.5  ]]
    """
    values = widened(values)
    targets = widened(jax.lax.stop_gradient(targets))
    error = (values - targets) ** 2
    if clip is not None:
        error = jnp.maximum(error, (_held(values, old_values, clip) - targets) ** 2)
    return 0.5 * error


def value_clip_fraction(
    values: Float[Array, "B T"],
    old_values: Float[Array, "B T"],
    targets: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    clip: float,
) -> Ratio:
    """Share of tokens where the clip of `value_loss` is the larger error.

    Args:
      values: of the critic being trained.
      old_values: when the completions were sampled.
      targets: what it is regressed on.
      token_mask: 1 on tokens of the policy.
      clip: as in `value_loss`.

    Returns:
      the Ratio, in 0..1; these tokens have no gradient.

    Example:
      >>> values, old = jnp.array([[1.0, 0.1]]), jnp.array([[0.0, 0.0]])
      >>> target, mask = jnp.array([[1.0, 1.0]]), jnp.ones((1, 2))
      >>> print(value_clip_fraction(values, old, target, mask, clip=0.2).value())
      0.5
    """
    kept = token_mask.astype(bool)
    free = (values - targets) ** 2
    held = (_held(values, old_values, clip) - targets) ** 2
    clipped = jnp.sum(kept & (held > free), dtype=free.dtype)
    return Ratio(clipped, jnp.sum(kept, dtype=free.dtype))


def explained_variance(
    values: Float[Array, "B T"],
    returns: Float[Array, "B T"],
    token_mask: TokenMask,
) -> Float[Array, ""]:
    r"""How much of the returns' variance the critic predicts.

        EV = 1 - Var(R - V) / Var(R)

    over the kept tokens of the batch. 1 is a perfect critic, 0 a constant one, below 0
    one that is worse than a constant. A constant bias of V does not show in it.

    Args:
      values: the critic's V_t when the completions were sampled.
      returns: Monte-Carlo returns R_t, as `gae.value_targets` at lam = 1.
      token_mask: 1 on tokens that count.

    Returns:
      EV, a scalar at most 1; 0 where the returns do not vary.

    References:
      SAO, diagnostics. https://arxiv.org/abs/2607.07508

    Example:
      >>> returns = jnp.array([[0.0, 1.0, 0.0, 1.0]])
      >>> values = jnp.array([[0.25, 0.75, 0.25, 0.75]])
      >>> print(explained_variance(values, returns, jnp.ones((1, 4))))
      0.75
    """
    kept = token_mask.astype(bool)
    whole = jnp.zeros(kept.shape, int)
    return _explained(values, returns, kept, whole, 1)[0]


def explained_variance_by_progress(
    values: Float[Array, "B T"],
    returns: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    bins: int = 10,
) -> Float[Array, " bins"]:
    """`explained_variance` by how far into its completion a token stands.

    A prefix often does not tell yet whether the answer will be right; a critic can know
    no more. This shows where along completions it begins to.

    Args:
      values: the critic's V_t when the completions were sampled.
      returns: Monte-Carlo returns.
      token_mask: 1 on tokens that count.
      bins: number of equal parts of a completion; bin 0 is its beginning.

    Returns:
      EV per bin, [bins]; 0 where a bin's returns do not vary or it has no token.

    Example:
      >>> returns = jnp.array([[0.0, 0.0], [1.0, 1.0]])
      >>> values = jnp.array([[0.5, 0.0], [0.5, 1.0]])
      >>> mask = jnp.ones((2, 2))
      >>> print(explained_variance_by_progress(values, returns, mask, bins=2))
      [0. 1.]
    """
    kept = token_mask.astype(bool)
    return _explained(values, returns, kept, _progress(kept, bins), bins)


def value_bias_by_progress(
    values: Float[Array, "B T"],
    returns: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    bins: int = 10,
) -> Float[Array, " bins"]:
    r"""Mean of V - R by how far into its completion a token stands.

    What `explained_variance` does not see. A critic that starts from a reward model is
    right at the end, where that was trained, and may be wrong by as much as it likes
    before: values that rise along a completion raise the advantages of early tokens,
    whatever these say (VC-PPO).

    Args:
      values: the critic's V_t when the completions were sampled.
      returns: Monte-Carlo returns.
      token_mask: 1 on tokens that count.
      bins: number of equal parts of a completion; bin 0 is its beginning.

    Returns:
      the mean per bin, [bins], in the unit of `values`; 0 where no token is.

    References:
      VC-PPO. https://arxiv.org/abs/2503.01491

    Example:
      >>> returns, mask = jnp.array([[1.0, 1.0]]), jnp.ones((1, 2))
      >>> print(value_bias_by_progress(jnp.array([[0.25, 1.0]]), returns, mask, bins=2))
      [-0.75  0.  ]
    """
    kept = token_mask.astype(bool)
    bias = jnp.where(kept, widened(values) - widened(returns), 0)
    part = _progress(kept, bins)
    total, count = (
        jax.ops.segment_sum(each.reshape(-1), part.reshape(-1), num_segments=bins)
        for each in (bias, kept.astype(bias.dtype))
    )
    return total / jnp.maximum(count, 1)


def _progress(kept: Bool[Array, "B T"], bins: int) -> Int[Array, "B T"]:
    """Which of `bins` equal parts of its completion each kept token stands in."""
    before = jnp.cumsum(kept, axis=1) - 1
    length = jnp.maximum(jnp.sum(kept, axis=1, keepdims=True), 1)
    return jnp.where(kept, before * bins // length, 0)


def _explained(
    values: Float[Array, "B T"],
    returns: Float[Array, "B T"],
    kept: Bool[Array, "B T"],
    part: Int[Array, "B T"],
    parts: int,
) -> Float[Array, " parts"]:
    """1 - Var(R - V) / Var(R) over the kept tokens of each part."""
    returns = widened(returns)
    noise = returns - widened(values)

    def sums(x: Float[Array, "B T"]) -> Float[Array, " parts"]:
        x = jnp.where(kept, x, 0).reshape(-1)
        return jax.ops.segment_sum(x, part.reshape(-1), num_segments=parts)

    count = jnp.maximum(sums(jnp.ones_like(returns)), 1)

    def variance(x: Float[Array, "B T"]) -> Float[Array, " parts"]:
        mean = sums(x) / count
        return sums((x - mean[part]) ** 2) / count

    total = variance(returns)
    varies = total > 0
    return jnp.where(varies, 1 - variance(noise) / jnp.where(varies, total, 1), 0)


def _held(
    values: Float[Array, "B T"], old_values: Float[Array, "B T"], clip: float
) -> Float[Array, "B T"]:
    old_values = jax.lax.stop_gradient(old_values)
    return jnp.clip(values, old_values - clip, old_values + clip)
