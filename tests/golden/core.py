"""The modules of `rlvr_jax.core`, as the adapters call them: NumPy in, NumPy out."""

import functools
import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


class NumPy:
    """A module whose functions take and, outside a gradient, return NumPy arrays.

    What an adapter does around `core` then costs no compilation, which is what a run
    over all vectors spends its time on.
    """

    def __init__(self, name: str) -> None:
        self._module = importlib.import_module(f"rlvr_jax.core.{name}")

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return functools.partial(_call, getattr(self._module, name))


def _call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    given = _change((np.ndarray, np.generic), jnp.asarray, (arguments, keywords))
    result = function(*given[0], **given[1])
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(result)):
        return result
    return _change(jax.Array, np.asarray, result)


def _change(kind: Any, change: Callable[..., Any], tree: Any) -> Any:
    return jax.tree.map(
        lambda leaf: change(leaf) if isinstance(leaf, kind) else leaf, tree
    )


aggregation = NumPy("aggregation")
entropy = NumPy("entropy")
kl = NumPy("kl")
logprobs = NumPy("logprobs")
losses = NumPy("losses")
offpolicy = NumPy("offpolicy")
ranking = NumPy("ranking")
ratios = NumPy("ratios")
selection = NumPy("selection")
weighted_losses = NumPy("weighted_losses")
