"""Weights of several models averaged: for long2short, a long and a short one."""

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
from flax import nnx


def averaged(
    models: Sequence[nnx.State], weights: Sequence[float] | None = None
) -> nnx.State:
    """The weighted mean of every parameter, in float32 and then in its own type.

    Args:
      models: parameters of the same architecture.
      weights: of each, divided by their sum; None for equal ones.

    Returns:
      parameters of that architecture.

    Raises:
      ValueError: no model, weights that do not fit, or different architectures.

    References:
      Kimi k1.5, sec. 2.4. https://arxiv.org/abs/2501.12599
    """
    shares = [1.0] * len(models) if weights is None else list(weights)
    if not models or len(shares) != len(models) or sum(shares) <= 0:
        raise ValueError(
            f"averaged: needs models and a weight for each, of a sum above 0; got "
            f"{len(models)} and {shares}"
        )
    shapes = [jax.tree.map(jnp.shape, model) for model in models]
    if any(shape != shapes[0] for shape in shapes[1:]):
        raise ValueError("averaged: the models are of different architectures")

    def mean(*leaves):
        weighted = (
            share * leaf.astype(jnp.float32)
            for share, leaf in zip(shares, leaves, strict=True)
        )
        total = functools.reduce(jnp.add, weighted)
        return (total / sum(shares)).astype(leaves[0].dtype)

    return jax.tree.map(mean, *models)
