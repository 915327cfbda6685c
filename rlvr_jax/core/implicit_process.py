"""Process rewards that nobody labelled: log-ratios of a model trained on outcomes."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Real

from rlvr_jax.core import groups
from rlvr_jax.core.advantages import centred_rewards
from rlvr_jax.core.returns import rewards_to_go
from rlvr_jax.core.shapes import TokenMask


def implicit_process_rewards(
    model_logprobs: Float[Array, "B T"],
    reference_logprobs: Float[Array, "B T"],
    token_mask: TokenMask,
    *,
    beta: float = 0.05,
) -> Float[Array, "B T"]:
    r"""What each token is worth to a model trained by `implicit_outcome_loss`.

        r_t = beta * (log pi_prm(y_t | y_<t) - log pi_ref(y_t | y_<t))

    If pi_prm is proportional to pi_ref * exp(r / beta) of an outcome reward r, the sum
    over the first t tokens is the soft value of y_<=t less that of the prompt:
    beta log E_ref[exp(r / beta) | y_<=t] - beta log E_ref[exp(r / beta)].

    Args:
      model_logprobs: of the tokens under the reward model, a language model.
      reference_logprobs: the same under the model that it started from.
      token_mask: 1 on tokens of the policy.
      beta: strength, in reward per nat. PRIME: 0.05.

    Returns:
      rewards, [B, T], 0 at masked tokens. The gradient flows to both log-probs.

    References:
      Implicit PRM, prop. 3.1, https://arxiv.org/abs/2412.01981; PRIME, eq. 3,
      https://arxiv.org/abs/2502.01456

    Example:
      >>> ours, theirs = jnp.log(jnp.array([[[0.5, 0.8]], [[0.25, 0.8]]]))
      >>> print(implicit_process_rewards(ours, theirs, jnp.ones((1, 2)), beta=1.0))
      [[0.6931472 0.       ]]
    """
    rewards = beta * (model_logprobs - reference_logprobs)
    return jnp.where(token_mask.astype(bool), rewards, 0)


def implicit_outcome_loss(
    process_rewards: Float[Array, "B T"], correct: Real[Array, " B"] | Bool[Array, " B"]
) -> Float[Array, " B"]:
    r"""Trains the reward model on verdicts of whole completions.

        l = -o log sigmoid(sum_t r_t) - (1 - o) log sigmoid(-sum_t r_t)

    Args:
      process_rewards: of `implicit_process_rewards`, 0 at masked tokens.
      correct: o, 1 or True where the completion was right.

    Returns:
      one loss per completion, in nats; log 2 where the model is its reference.

    References:
      PRIME, eq. 5, https://arxiv.org/abs/2502.01456

    Example:
      >>> print(implicit_outcome_loss(jnp.zeros((2, 3)), jnp.array([1.0, 0.0])))
      [0.6931472 0.6931472]
    """
    logits = process_rewards.sum(axis=1)
    return jax.nn.softplus(logits) - correct * logits


def prime_advantages(
    process_rewards: Float[Array, "B T"],
    rewards: Real[Array, " B"] | Bool[Array, " B"],
    group_id: Int[Array, " B"],
    token_mask: TokenMask,
    *,
    gamma: float = 1.0,
) -> Float[Array, "B T"]:
    r"""Outcomes and process rewards, each against the other completions of the prompt.

        A_{i,t} = sum_{s >= t} gamma^(s-t) (r_{i,s} - mean_{j != i} rbar_j)
                  + R_i - mean_{j != i} R_j,      rbar_j = mean over the tokens of j

    verl's recipe of PRIME scales r_{i,s} by G / (G - 1) and subtracts the sum of all
    rbar, their own included, over G - 1: the same per completion, other per token. It
    has no discount, weighs the two terms, and whitens their sum over the batch.

    Args:
      process_rewards: per token; what stands at masked tokens is not read.
      rewards: R, one per completion.
      group_id: equal for completions of one prompt; values in 0..B-1. One alone has no
        others, and baselines of 0.
      token_mask: 1 on tokens of the policy. A completion without any is no baseline for
        process rewards, but one for outcomes.
      gamma: discount per kept token.

    Returns:
      advantages, [B, T], 0 at masked tokens. No gradient flows back.

    References:
      PRIME, eq. 6, https://arxiv.org/abs/2502.01456

    Example:
      >>> process, ids = jnp.array([[0.0, 1.0], [0.0, 0.0]]), jnp.array([0, 0])
      >>> right, mask = jnp.array([1.0, 0.0]), jnp.ones((2, 2))
      >>> print(prime_advantages(process, right, ids, mask))
      [[ 2.   2. ]
       [-2.  -1.5]]
    """
    kept = token_mask.astype(bool)
    process = groups.widened(jax.lax.stop_gradient(process_rewards))
    tokens = kept.sum(axis=1)
    means = jnp.where(kept, process, 0).sum(axis=1) / jnp.maximum(tokens, 1)
    own = (tokens > 0).astype(means.dtype)
    others = groups.group_sum(means, group_id, tokens > 0) - own * means
    count = groups.group_count(group_id, tokens > 0, means.dtype) - own
    baseline = others / jnp.maximum(count, 1)
    returns = rewards_to_go(process - baseline[:, None], token_mask, gamma=gamma)
    outcome = centred_rewards(rewards, group_id, baseline="leave_one_out")
    return jnp.where(kept, returns + outcome[:, None], 0)
