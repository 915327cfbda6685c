"""The thought switching penalty: a thought is followed for a while before another."""

import jax.numpy as jnp
from jaxtyping import Array, Float, Int


def tokens_since_switch(
    tokens: Int[Array, "*rows T"], switch_ids: Int[Array, " K"]
) -> Int[Array, "*rows T"]:
    """How many tokens before each place the current thought began.

    Args:
      tokens: sampled so far.
      switch_ids: tokens that begin a thought ("Alternatively").

    Returns:
      0 at a switch and at the first token, then counting up.

    Example:
      >>> print(tokens_since_switch(jnp.array([5, 6, 9, 6, 6]), jnp.array([9])))
      [0 1 0 1 2]
    """
    places = jnp.arange(tokens.shape[-1])
    begins = jnp.where(jnp.isin(tokens, switch_ids), places, 0)
    last = jnp.maximum.accumulate(begins, axis=-1)
    return places - last


def switch_penalty(
    logits: Float[Array, "*rows V"],
    age: Int[Array, " *rows"],
    switch_ids: Int[Array, " K"],
    *,
    alpha: float = 3.0,
    beta: int = 600,
) -> Float[Array, "*rows V"]:
    r"""TIP: switching is less likely while a thought is young.

        z_v <- z_v - alpha    for v a switch token, while age < beta

    Args:
      logits: of the next token, before temperature and truncation.
      age: tokens of the current thought so far, per row (`tokens_since_switch`).
      switch_ids: tokens that begin a thought.
      alpha: strength, in logits; 0 changes nothing.
      beta: how long it lasts, in tokens.

    Returns:
      the logits; those of other tokens as they were.

    References:
      Thoughts Are All Over the Place, eq. 3. https://arxiv.org/abs/2501.18585 (alpha 3
      and beta 600 were best for QwQ-32B-Preview)

    Example:
      >>> logits, switches = jnp.zeros((2, 3)), jnp.array([1])
      >>> print(switch_penalty(logits, jnp.array([599, 600]), switches))
      [[ 0. -3.  0.]
       [ 0.  0.  0.]]
    """
    is_switch = jnp.isin(jnp.arange(logits.shape[-1]), switch_ids)
    young = (age < beta)[..., None]
    return jnp.where(is_switch & young, logits - alpha, logits)
