"""Which parameters an update changes: all, or the adapters alone."""

from typing import Any

import jax
from flax import nnx

from rlvr_jax.models.lora import is_adapter


def trainable_of(parameters: nnx.State) -> Any:
    """The parameters themselves; where there are adapters, those by name."""
    named = _named(parameters)
    adapters = {name: leaf for name, leaf in named if is_adapter(name)}
    return adapters or parameters


def with_trainable(parameters: nnx.State, trainable: Any) -> nnx.State:
    """The parameters with the trainable ones replaced."""
    if not isinstance(trainable, dict):
        return trainable
    leaves = [trainable.get(name, leaf) for name, leaf in _named(parameters)]
    return jax.tree.unflatten(jax.tree.structure(parameters), leaves)


def _named(parameters: nnx.State) -> list[tuple[str, Any]]:
    leaves = jax.tree_util.tree_leaves_with_path(parameters)

    def name(path):
        return [k.key for k in path if isinstance(k, jax.tree_util.DictKey)][-1]

    return [(name(path), leaf) for path, leaf in leaves]
