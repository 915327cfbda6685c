"""Shapes that several functions of `core` accept, and how they are brought to one.

Values belong to a token, [B, T], or to a whole row; those of a row stand as [B, 1], so
that they broadcast over its tokens.
"""

import jax
from jaxtyping import Array, Float, Shaped

TokenOrRow = Float[Array, "B #T"]
"""One value per token, or one per row with a token axis of length 1."""

Advantages = Float[Array, " B"] | Float[Array, "B T"]
"""One per row or one per token; always constants: no gradient flows into them."""

TokenMask = Shaped[Array, "B T"]
"""1 (or True) on tokens of the loss; booleans, integers or floats."""


Weights = Shaped[Array, "B #T"]
"""What a loss per token is multiplied by: numbers or booleans, per token or per row."""


def per_token(advantages: Advantages) -> Float[Array, "B _"]:
    """Advantages as [B, 1] or [B, T], ready to broadcast, without a gradient.

    Args:
      advantages: per row or per token.

    Returns:
      the same values with a token axis.

    Example:
      >>> import jax.numpy as jnp
      >>> per_token(jnp.array([1.0, -1.0])).shape
      (2, 1)
    """
    advantages = jax.lax.stop_gradient(advantages)
    return advantages[:, None] if advantages.ndim == 1 else advantages
