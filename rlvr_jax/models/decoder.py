"""The policy: one decoder-only transformer for the Llama, SmolLM and Qwen families.

Layers are stacked along a leading axis L and scanned, so that program size does not
grow with depth. A batch has two parts: P prompts, and G completions of each. A prompt
is computed once and its completions attend to it.
"""

import jax
import jax.numpy as jnp
from flax import nnx
from jaxtyping import Array, Bool, Float, Int, UInt

from rlvr_jax.core.routing import route
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.attention import (
    KeyValues,
    attention,
    rotary_frequencies,
    rotate,
)
from rlvr_jax.models.caches import CompletionCache, PromptCache
from rlvr_jax.models.experts import expert_mlp
from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models.products import product
from rlvr_jax.models.splash import Splash, splash_attention

DOWN, UP = "_lora_a", "_lora_b"
"""Ends of the names of an adapter's two matrices."""
REMAT_POLICIES = {
    "layer": None,
    "groups": None,
    "dots": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
}
"""What the backward pass finds kept beside the input of each layer."""


def layers_per_group(layers: int) -> int:
    """How many layers remat "groups" computes again at once.

    The backward pass keeps the input of each group, and those of one group's layers:
    the divisor of `layers` for which layers / size + size is least, near its root.

    Example:
      >>> [layers_per_group(n) for n in (64, 30, 28, 7)]
      [8, 5, 4, 1]
    """
    divisors = [n for n in range(1, layers + 1) if layers % n == 0]
    return min(divisors, key=lambda size: layers // size + size)


class Decoder(nnx.Module):
    """Parameters, and how to run them: `prefill`, `extend` (or `read`), `decode`."""

    def __init__(
        self, architecture: Architecture, *, rngs: nnx.Rngs, dtype=jnp.float32
    ):
        """Draws parameters: normal, std 1/sqrt(inputs); norms 1, biases 0."""
        self.architecture = architecture
        self.remat = "layer"
        self.head_dtype = "float32"
        """What logits are rounded to by those who compute them."""
        self.lora_scale = 0.0
        self.splash: Splash | None = None
        """How `prefill` and `extend` attend where the kernel takes their shapes."""
        shapes = parameter_shapes(architecture)

        def draw(name: str, shape: tuple[int, ...]) -> nnx.Param:
            if name.endswith("norm"):
                return nnx.Param(jnp.ones(shape, dtype))
            if name.endswith("bias"):
                return nnx.Param(jnp.zeros(shape, dtype))
            fan_in = shape[-1] if name in ("embedding", "head") else shape[-2]
            values = jax.random.normal(rngs.params(), shape, jnp.float32)
            return nnx.Param((values * fan_in**-0.5).astype(dtype))

        layers = {n: s for n, s in shapes.items() if n.startswith("layers.")}
        self.layers = nnx.Dict(
            {n.removeprefix("layers."): draw(n, s) for n, s in layers.items()}
        )
        self.embedding = draw("embedding", shapes["embedding"])
        self.final_norm = draw("final_norm", shapes["final_norm"])
        if not architecture.tie_embeddings:
            self.head = draw("head", shapes["head"])

    @property
    def head_weight(self) -> Float[Array, "V D"]:
        """The LM head; the embedding itself when they are tied."""
        tied = self.architecture.tie_embeddings
        return (self.embedding if tied else self.head)[...]

    def prefill(
        self,
        tokens: Int[Array, "P S"],
        lengths: Int[Array, " P"],
        routes: UInt[Array, "L P S E"] | None = None,
    ) -> tuple[Float[Array, "P S D"], PromptCache]:
        """Runs left-padded prompts; returns normed hidden states and their cache.

        With `routes` each token goes through those E experts of every layer; what the
        routers would have picked is in the cache all the same.
        """
        slots = tokens.shape[-1]
        slot = jnp.arange(slots)
        start = slots - lengths[:, None]
        positions = jnp.maximum(slot - start, 0)
        causal, kept = slot[:, None] >= slot[None, :], slot >= start
        mask = causal & kept[:, None, :]
        splash = self._splash(slots)

        def layer(hidden, inputs):
            weights, forced = inputs

            def attend(queries, keys, values):
                if splash is not None:
                    return splash_attention(
                        queries, keys, values, own_kept=kept, kernel=splash
                    )
                return attention(queries, KeyValues(keys, values, mask[:, None]))

            hidden, *found = self._block(
                hidden, weights, positions[:, None], attend, forced
            )
            return hidden, jax.tree.map(lambda array: array[:, 0], tuple(found))

        hidden = self.embedding[...][tokens][:, None]
        forced = None if routes is None else routes[:, :, None]
        hidden, (keys, values, picked) = self._scan(layer, hidden, forced)
        hidden = self._norm(hidden, self.final_norm[...])
        return hidden[:, 0], PromptCache(keys, values, lengths, picked)

    def extend(
        self,
        tokens: Int[Array, "P G T"],
        prompts: PromptCache,
        starts: Int[Array, "P G T"] | None = None,
    ) -> Float[Array, "P G T D"]:
        """Runs whole completions after their prompts; returns normed hidden states.

        State t is that after reading completion token t, so it predicts token t + 1.
        A row may hold several completions one after the other: `starts` then says of
        each token in which column its completion begins.
        """
        return self.extend_routed(tokens, prompts, starts=starts)[0]

    def extend_routed(
        self,
        tokens: Int[Array, "P G T"],
        prompts: PromptCache,
        routes: UInt[Array, "L P G T E"] | None = None,
        starts: Int[Array, "P G T"] | None = None,
    ) -> tuple[Float[Array, "P G T D"], UInt[Array, "L P G T E"] | None]:
        """`extend` through given experts; also which ones the routers would pick."""
        hidden, (_, _, picked) = self._extended(
            tokens, prompts, routes, starts, keeps=False
        )
        return hidden, picked

    def read(
        self, tokens: Int[Array, "P G T"], prompts: PromptCache
    ) -> tuple[Float[Array, "P G T D"], CompletionCache]:
        """`extend`, and the cache from which `decode` goes on behind any token."""
        hidden, (keys, values, picked) = self._extended(
            tokens, prompts, None, None, keeps=True
        )
        return hidden, CompletionCache(keys, values, picked)

    def _extended(self, tokens, prompts: PromptCache, routes, starts, *, keeps: bool):
        """Hidden states, and (keys, values, picked experts); keys only if it keeps."""
        time = jnp.arange(tokens.shape[-1])
        since = time if starts is None else time - starts
        positions = jnp.broadcast_to(
            prompts.lengths[:, None, None] + since, tokens.shape
        )
        causal = (time[:, None] >= time[None, :])[None, None]
        prompt_mask = self._prompt_mask(prompts)
        # The kernel's segments are equal or apart: a prompt that several completions of
        # one row see, which do not see one another, is neither.
        splash = self._splash(tokens.shape[-1]) if starts is None else None

        def layer(hidden, inputs):
            weights, prompt_keys, prompt_values, forced = inputs

            def attend(queries, keys, values):
                if splash is not None:
                    prompt = (prompt_keys, prompt_values, prompt_mask[:, 0])
                    return splash_attention(
                        queries, keys, values, prompt=prompt, kernel=splash
                    )
                own = KeyValues(keys, values, causal, starts)
                return attention(
                    queries, own, KeyValues(prompt_keys, prompt_values, prompt_mask)
                )

            hidden, keys, values, picked = self._block(
                hidden, weights, positions, attend, forced
            )
            kept = (keys, values) if keeps else (None, None)
            return hidden, (*kept, picked)

        hidden = self.embedding[...][tokens]
        hidden, found = self._scan(layer, hidden, prompts.keys, prompts.values, routes)
        return self._norm(hidden, self.final_norm[...]), found

    def empty_cache(
        self, prompts: PromptCache, num_generations: int, max_tokens: int
    ) -> CompletionCache:
        """A cache of zeros for `max_tokens` of each of G completions per prompt."""
        layers, count, heads, _, width = prompts.keys.shape
        shape = (layers, count, num_generations, heads, max_tokens, width)
        empty = jnp.zeros(shape, prompts.keys.dtype)
        routes = prompts.routes
        if routes is not None:
            shape = (layers, count, num_generations, max_tokens, routes.shape[-1])
            routes = jnp.zeros(shape, routes.dtype)
        return CompletionCache(empty, empty, routes)

    def decode(
        self,
        tokens: Int[Array, "P G"],
        step: Int[Array, ""] | Int[Array, "P G"],
        prompts: PromptCache,
        cache: CompletionCache,
    ) -> tuple[Float[Array, "P G D"], CompletionCache]:
        """Reads completion token `step` of every row; writes slot `step` of the cache.

        `step` is one number, or one per row where rows began at different times.
        Returns the normed hidden state that predicts token `step` + 1. The whole cache
        rides through the layer scan: on CPU that was 1.2-1.5 times faster than handing
        each layer its own slice.
        """
        positions = jnp.broadcast_to(prompts.lengths[:, None] + step, tokens.shape)
        slots = jnp.arange(cache.keys.shape[-2])
        own_mask = (slots <= jnp.broadcast_to(step, tokens.shape)[..., None])[
            :, :, None
        ]
        prompt_mask = self._prompt_mask(prompts)

        def layer(carry, inputs):
            hidden, cache = carry
            index, weights, prompt_keys, prompt_values = inputs

            def attend(queries, keys, values):
                nonlocal cache
                cache = cache.written(index, step, keys, values)
                own = KeyValues(cache.keys[index], cache.values[index], own_mask)
                return attention(
                    queries, own, KeyValues(prompt_keys, prompt_values, prompt_mask)
                )

            hidden, _, _, picked = self._block(
                hidden, weights, positions[..., None], attend
            )
            return (hidden, cache.routed(index, step, picked)), None

        hidden = self.embedding[...][tokens][:, :, None]
        layers = jnp.arange(self.architecture.num_layers)
        inputs = (layers, self._stacked(), prompts.keys, prompts.values)
        (hidden, cache), _ = jax.lax.scan(layer, (hidden, cache), inputs)
        return self._norm(hidden[:, :, 0], self.final_norm[...]), cache

    def _block(self, hidden, weights, positions, attend, forced=None):
        """One layer on [P, G, Q, D]; also its keys and values, [P, G, Hkv, Q, K].

        Last comes which experts the router picks, [P, G, Q, E], whatever is `forced`;
        None without experts.
        """
        arch = self.architecture
        frequencies, factor = rotary_frequencies(
            arch.head_dim, arch.rope_theta, arch.rope_scaling
        )

        def project(inputs, name):
            outputs = product(inputs, weights[name])
            if (down := weights.get(name + DOWN)) is not None:  # models/lora.py
                outputs += self.lora_scale * ((inputs @ down) @ weights[name + UP])
            bias = weights.get(f"{name}_bias")
            return outputs if bias is None else outputs + bias

        def heads(name, count):
            values = project(normed, name)
            values = values.reshape(*values.shape[:-1], count, arch.head_dim)
            if arch.qk_norm and name != "value":
                values = self._norm(values, weights[f"{name}_norm"])
            if name == "value":
                return values
            return rotate(values, positions, frequencies, factor)

        normed = self._norm(hidden, weights["attention_norm"])
        queries = heads("query", arch.num_heads)
        repeats = arch.num_heads // arch.num_kv_heads
        queries = queries.reshape(
            *queries.shape[:-2], arch.num_kv_heads, repeats, arch.head_dim
        )
        keys = heads("key", arch.num_kv_heads).swapaxes(-2, -3)
        values = heads("value", arch.num_kv_heads).swapaxes(-2, -3)
        attended = attend(queries, keys, values)
        attended = attended.reshape(*attended.shape[:-3], -1)
        hidden = hidden + project(attended, "output")
        normed = self._norm(hidden, weights["mlp_norm"])
        if arch.num_experts:
            mixed, picked = self._mixture(normed, weights, forced)
            return hidden + mixed, keys, values, picked
        gated = jax.nn.silu(project(normed, "gate")) * project(normed, "up")
        return hidden + project(gated, "down"), keys, values, None

    def _mixture(self, normed, weights, forced):
        """The experts' outputs, and which the router picks."""
        arch = self.architecture
        logits = jnp.einsum(
            "...d,de->...e",
            normed,
            weights["router"],
            preferred_element_type=jnp.float32,
        )
        settings = {
            "experts_per_token": arch.num_experts_per_token,
            "normalised": arch.norm_topk_prob,
        }
        picked, gates = route(logits, **settings)
        ids = picked
        if forced is not None:
            ids, gates = route(logits, **settings, replayed=forced.astype(jnp.int32))
        mixed = expert_mlp(
            normed.reshape(-1, arch.hidden_size),
            ids.reshape(-1, arch.num_experts_per_token),
            gates.reshape(-1, arch.num_experts_per_token),
            gate=weights["expert_gate"],
            up=weights["expert_up"],
            down=weights["expert_down"],
        )
        kept_as = jnp.uint8 if arch.num_experts <= 256 else jnp.uint16
        return mixed.reshape(normed.shape), picked.astype(kept_as)

    def _norm(self, values, scale):
        """RMSNorm over the last axis, in float32."""
        wide = values.astype(jnp.float32)
        mean_square = jnp.mean(wide**2, axis=-1, keepdims=True)
        normed = wide * jax.lax.rsqrt(mean_square + self.architecture.rms_norm_eps)
        return normed.astype(values.dtype) * scale

    def _scan(self, layer, hidden, *per_layer):
        """Scans `layer` over the stacked weights, recomputing inside when training."""
        weights = self._stacked()
        inputs = (weights, *per_layer) if per_layer else weights
        if self.remat == "none":
            return jax.lax.scan(layer, hidden, inputs)
        body = jax.checkpoint(layer, policy=REMAT_POLICIES[self.remat])
        if self.remat != "groups":
            return jax.lax.scan(body, hidden, inputs)
        size = layers_per_group(self.architecture.num_layers)

        @jax.checkpoint
        def group(hidden, inputs):
            return jax.lax.scan(body, hidden, inputs)

        split = lambda array: array.reshape(-1, size, *array.shape[1:])
        hidden, found = jax.lax.scan(group, hidden, jax.tree.map(split, inputs))
        return hidden, jax.tree.map(lambda a: a.reshape(-1, *a.shape[2:]), found)

    def _splash(self, queries: int) -> Splash | None:
        """The kernel, if it is set and takes so many positions."""
        heads = self.architecture.num_kv_heads
        splash = self.splash
        return splash if splash and splash.takes(queries, heads) else None

    def _stacked(self) -> dict[str, Array]:
        return {name: param[...] for name, param in self.layers.items()}

    @staticmethod
    def _prompt_mask(prompts: PromptCache) -> Bool[Array, "P 1 S"]:
        slots = prompts.keys.shape[-2]
        return (jnp.arange(slots) >= slots - prompts.lengths[:, None])[:, None]
