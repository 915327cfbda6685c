"""The matrix product of activations and weights, with its gradient in a fixed order."""

import jax
from jaxtyping import Array, Float


@jax.custom_vjp
def product(
    inputs: Float[Array, "*rows D"], weights: Float[Array, "D F"]
) -> Float[Array, "*rows F"]:
    """inputs W, where the gradient of W is inputs^T dy and never (dy^T inputs)^T.

    They are the same numbers. But the second reads dy transposed, and a compiler that
    fuses the transposition with what computes dy does that twice, the second time
    across the order of memory: on CPU the derivative of a gated MLP took as long as a
    product by that. Inputs are transposed instead, which are there already.

    Args:
      inputs: activations.
      weights: one layer's, of their type.
    """
    return inputs @ weights


def _forward(inputs, weights):
    return inputs @ weights, (inputs, weights)


def _backward(kept, cotangent):
    inputs, weights = kept
    rows = tuple(range(inputs.ndim - 1))
    by_weights = jax.lax.dot_general(inputs, cotangent, ((rows, rows), ((), ())))
    return cotangent @ weights.T, by_weights.astype(weights.dtype)


product.defvjp(_forward, _backward)
