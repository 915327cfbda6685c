"""From a loss per token to one scalar: which weight each token gets.

A weight per token and one denominator for the whole batch are fixed before the batch
is cut up, so loss = sum(weights * loss) / denominator is a sum over rows: micro-batches
and devices add numerators, and the one division comes last (`types.Ratio`).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.core.shapes import TokenMask, TokenOrRow
from rlvr_jax.types import Ratio

AGGREGATIONS = (
    "sequence_mean",
    "token_mean",
    "prompt_mean",
    "constant",
    "sequence_sum",
    "token_sum",
)


def token_weights(
    token_mask: TokenMask,
    group_id: Int[Array, " B"],
    *,
    loss_aggregation: str,
    constant_length: int | None = None,
) -> tuple[Float[Array, "B T"], Float[Array, ""]]:
    r"""Weight of every token and the denominator of the batch.

    With m the mask, n_i the tokens of row i, N_p those of all rows of group p:

        "sequence_mean"  w = m / n_i   denominator = rows with n_i > 0      (GRPO)
        "token_mean"     w = m         denominator = sum_i n_i              (DAPO)
        "prompt_mean"    w = m / N_p   denominator = groups with N_p > 0    (ScaleRL)
        "constant"       w = m         denominator = B * constant_length    (Dr. GRPO)
        "sequence_sum"   w = m         denominator = rows with n_i > 0      (LUSPO)
        "token_sum"      w = m         denominator = 1

    "token_mean" counts the tokens of the batch, as verl, TRL, OpenRLHF, open-instruct
    do; eq. 12 of DAPO and eq. 4 of MiniMax-M1, read literally, put 1/sum|o_i| inside
    the expectation over prompts: that is "prompt_mean" (also Magistral).
    B of "constant" counts all rows, also empty ones: its divisor does not depend on
    what was sampled, which is what makes it unbiased.

    Args:
      token_mask: 1 on tokens of the loss; the whole batch that one update is made of.
      group_id: the group (prompt) of each row, values in 0..B-1; read by "prompt_mean".
      loss_aggregation: see above.
      constant_length: C in tokens, usually the completion limit; for "constant" only.

    Returns:
      weights, [B, T], 0 at masked tokens, and the denominator, a scalar. Slices of the
      weights along B belong to micro-batches; the denominator stays that of the batch.
      It can be 0 only if no token is kept.

    Raises:
      ValueError: `loss_aggregation` is unknown, or "constant" without a length.

    References:
      DAPO, sec. 3.3. https://arxiv.org/abs/2503.14476
      Dr. GRPO, sec. 3. https://arxiv.org/abs/2503.20783
      ScaleRL. https://arxiv.org/abs/2510.13786
      LUSPO. https://arxiv.org/abs/2602.05261

    Example:
      >>> mask = jnp.array([[1, 1, 0, 0], [1, 1, 1, 1]])
      >>> group_id = jnp.array([0, 0])
      >>> weights, rows = token_weights(
      ...     mask, group_id, loss_aggregation="sequence_mean"
      ... )
      >>> print(weights, rows)
      [[0.5  0.5  0.   0.  ]
       [0.25 0.25 0.25 0.25]] 2.0
    """
    mask = token_mask.astype(bool).astype(float)
    rows = mask.shape[0]
    lengths = mask.sum(-1)
    if loss_aggregation == "sequence_mean":
        return _shares(mask, lengths), _count_positive(lengths)
    if loss_aggregation == "token_mean":
        return mask, mask.sum()
    if loss_aggregation == "constant":
        if not constant_length or constant_length < 0:
            raise ValueError(
                "token_weights: loss_aggregation='constant' needs constant_length > 0 "
                f"(tokens), got {constant_length}. Pass the completion limit "
                "(rollout.max_completion_tokens)."
            )
        return mask, jnp.asarray(rows * constant_length, mask.dtype)
    if loss_aggregation == "sequence_sum":
        return mask, _count_positive(lengths)
    if loss_aggregation == "token_sum":
        return mask, jnp.ones((), mask.dtype)
    if loss_aggregation == "prompt_mean":
        totals = jax.ops.segment_sum(lengths, group_id, num_segments=rows)
        return _shares(mask, totals[group_id]), _count_positive(totals)
    raise ValueError(
        f"token_weights: loss_aggregation must be one of {AGGREGATIONS}, got "
        f"{loss_aggregation!r}. Set objective.loss_aggregation."
    )


def aggregate(
    per_token: TokenOrRow,
    weights: Float[Array, "B T"],
    denominator: Float[Array, ""],
) -> Ratio:
    r"""Weighted sum of a loss per token, apart from its denominator.

        loss = sum_it weights_it * per_token_it / denominator

    Args:
      per_token: one value per token, or per row, [B, 1].
      weights: from `token_weights`, or a slice of its rows.
      denominator: from `token_weights`; the batch's own, also for a slice.

    Returns:
      the Ratio. Tokens of weight 0 touch neither value nor gradient, whatever stands
      there. Sums of slices must add numerators and keep the one denominator.

    Example:
      >>> loss = jnp.array([[1.0, 3.0, jnp.nan]])
      >>> weights = jnp.array([[1.0, 1.0, 0.0]])
      >>> print(aggregate(loss, weights, jnp.array(2.0)).value())
      2.0
    """
    if per_token.shape[1] == 1:
        # One value per row needs the row's weight only, not an array of [B, T].
        weights = weights.sum(-1, keepdims=True)
    kept = jnp.where(weights != 0, per_token, 0.0)
    return Ratio((kept * weights).sum(), denominator)


def length_bias(
    loss: Callable[[Float[Array, "2 T"], Float[Array, "2 T"]], Float[Array, ""]],
    *,
    short: int = 2,
    long: int = 8,
) -> Float[Array, ""]:
    r"""How much harder an aggregation pulls on a token of a short row than of a long.

    Works on anyone's code: `loss` is differentiated at two rows of different lengths.

        1             tokens of both rows weigh the same: not biased by length
        long / short  each row is divided by its own length: long wrong answers are
                      punished less per token, and the policy learns to ramble

    Args:
      loss: (loss per token [2, T], token mask [2, T]) to one scalar.
      short: tokens of the first row.
      long: tokens of the second row; also T.

    Returns:
      weight of a token of the short row over that of one of the long row.

    References:
      Dr. GRPO, sec. 3.1 and appendix. https://arxiv.org/abs/2503.20783

    Example:
      >>> masked_mean = lambda x, mask: ((x * mask).sum(1) / mask.sum(1)).mean()
      >>> print(length_bias(masked_mean))
      4.0
    """
    lengths = jnp.array([short, long])
    mask = (jnp.arange(long) < lengths[:, None]).astype(float)
    weights = jax.grad(loss)(jnp.ones_like(mask), mask)
    return weights[0, 0] / weights[1, 0]


def _shares(mask: Float[Array, "B T"], totals: Float[Array, " B"]) -> Array:
    return mask / jnp.maximum(totals, 1.0)[:, None]


def _count_positive(totals: Float[Array, " N"]) -> Array:
    return (totals > 0).sum().astype(totals.dtype)
