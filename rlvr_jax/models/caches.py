"""What prompts and completions leave behind for the tokens after them."""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class PromptCache:
    """Keys and values of P prompts in every layer."""

    keys: Float[Array, "L P Hkv S K"]
    values: Float[Array, "L P Hkv S K"]
    lengths: Int[Array, " P"]
    routes: UInt[Array, "L P S E"] | None = None
    """Experts that the routers picked for each token; None without experts."""


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class CompletionCache:
    """Keys and values of completions while they are sampled; slot t is token t."""

    keys: Float[Array, "L P G Hkv T K"]
    values: Float[Array, "L P G Hkv T K"]
    routes: UInt[Array, "L P G T E"] | None = None

    def written(
        self,
        layer: Int[Array, ""],
        step: Int[Array, ""] | Int[Array, "P G"],
        keys: Float[Array, "P G Hkv 1 K"],
        values: Float[Array, "P G Hkv 1 K"],
    ) -> "CompletionCache":
        """With the keys and values of one layer at slot `step` of every row."""
        if step.ndim == 0:
            at = (layer, 0, 0, 0, step, 0)
            put = lambda cache, new: jax.lax.dynamic_update_slice(cache, new[None], at)
        else:
            count, groups = step.shape
            rows = (jnp.arange(count)[:, None], jnp.arange(groups)[None])
            at = (layer, *rows, slice(None), step)
            put = lambda cache, new: cache.at[at].set(new[..., 0, :])
        keys, values = put(self.keys, keys), put(self.values, values)
        return dataclasses.replace(self, keys=keys, values=values)

    def routed(
        self,
        layer: Int[Array, ""],
        step: Int[Array, ""] | Int[Array, "P G"],
        routes: UInt[Array, "P G 1 E"] | None,
    ) -> "CompletionCache":
        """With the experts of the tokens at slot `step`, if there are any."""
        if routes is None or self.routes is None:
            return self
        if step.ndim == 0:
            at = (layer, 0, 0, step, 0)
            new = jax.lax.dynamic_update_slice(self.routes, routes[None], at)
        else:
            count, groups = step.shape
            rows = (jnp.arange(count)[:, None], jnp.arange(groups)[None])
            new = self.routes.at[(layer, *rows, step)].set(routes[:, :, 0])
        return dataclasses.replace(self, routes=new)
