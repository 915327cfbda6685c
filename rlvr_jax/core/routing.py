"""Mixture-of-experts routing that can be replayed: the same experts as in the rollout.

After an update, or in another engine, a router picks other experts for some tokens.
Then the probability of a token jumps although the weights hardly moved, and the
importance ratio is about the router rather than the policy.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from rlvr_jax.core.shapes import TokenMask
from rlvr_jax.types import Ratio


def route(
    router_logits: Float[Array, "*rows E"],
    *,
    experts_per_token: int,
    replayed: Int[Array, "*rows K"] | None = None,
    normalised: bool = True,
) -> tuple[Int[Array, "*rows K"], Float[Array, "*rows K"]]:
    r"""The experts of each token and their shares, chosen now or replayed.

        ids   = top-K of the router's logits, or `replayed`
        gates = softmax of the logits at ids           normalised
        gates = softmax of all logits, taken at ids    otherwise

    Replay fixes the choice, not the shares: gates are computed with today's router, so
    the gradient still reaches it.

    Args:
      router_logits: one per expert.
      experts_per_token: K.
      replayed: ids from the rollout (Routing Replay, Keep Routing), for the numerator
        and the denominator of the ratio alike; None chooses anew.
      normalised: whether the shares of the chosen sum to 1 (`norm_topk_prob` of
        Qwen3-MoE).

    Returns:
      (ids, gates); with `normalised` gates sum to 1 per token.

    References:
      GSPO, sec. 5.3. https://arxiv.org/abs/2507.18071
      DeepSeek-V3.2, Keep Routing. https://arxiv.org/abs/2512.02556

    Example:
      >>> logits = jnp.array([[0.0, 2.0, 1.0]])
      >>> print(*route(logits, experts_per_token=1))
      [[1]] [[1.]]
      >>> print(*route(logits, experts_per_token=1, replayed=jnp.array([[2]])))
      [[2]] [[1.]]
    """
    if replayed is None:
        _, ids = jax.lax.top_k(router_logits, experts_per_token)
    else:
        ids = replayed
    if not normalised:
        shares = jax.nn.softmax(router_logits, axis=-1)
        return ids, jnp.take_along_axis(shares, ids, axis=-1)
    chosen = jnp.take_along_axis(router_logits, ids, axis=-1)
    return ids, jax.nn.softmax(chosen, axis=-1)


def routing_flips(
    ids: Int[Array, "B T K"], other_ids: Int[Array, "B T K"], token_mask: TokenMask
) -> Ratio:
    """Share of activated experts that another routing of the same tokens did not use.

    GSPO reports about 10% after one update of Qwen3-30B-A3B.

    Args:
      ids: experts of each token.
      other_ids: those of the other engine, or of the policy after an update.
      token_mask: 1 on tokens of the loss.

    Returns:
      the Ratio, in 0..1.

    References:
      GSPO, sec. 5.3. https://arxiv.org/abs/2507.18071

    Example:
      >>> ids, other = jnp.array([[[0, 1], [2, 3]]]), jnp.array([[[1, 0], [2, 5]]])
      >>> print(routing_flips(ids, other, jnp.ones((1, 2))).value())
      0.25
    """
    mask = token_mask.astype(bool)
    new = ~(ids[..., :, None] == other_ids[..., None, :]).any(-1)
    flipped = jnp.where(mask, new.sum(-1), 0).astype(float).sum()
    return Ratio(flipped, mask.astype(float).sum() * ids.shape[-1])
