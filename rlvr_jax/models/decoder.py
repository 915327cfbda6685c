"""The policy: one decoder-only transformer for the Llama, SmolLM and Qwen families.

Layers are stacked along a leading axis L and scanned, so that program size does not
grow with depth. A batch has two parts: P prompts, and G completions of each. A prompt
is computed once and its completions attend to it.
"""

import functools
from collections.abc import Callable

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
    """Parameters, and how to run them: `prefill`, `read`, `decode`; `forward`."""

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
        """How all but `decode` attend where the kernel takes their shapes."""
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
        self, tokens: Int[Array, "P S"], lengths: Int[Array, " P"]
    ) -> tuple[Float[Array, "P S D"], PromptCache]:
        """Runs left-padded prompts; returns normed hidden states and their cache."""
        attend, positions = self._within_prompts(tokens.shape, lengths)

        def layer(hidden, weights):
            hidden, *found = self._block(hidden, weights, positions, attend)
            return hidden, jax.tree.map(lambda array: array[:, 0], tuple(found))

        hidden = self.embedding[...][tokens][:, None]
        hidden, (keys, values, picked) = self._scan(layer, hidden, self._stacked())
        hidden = self._norm(hidden, self.final_norm[...])
        return hidden[:, 0], PromptCache(keys, values, lengths, picked)

    def read(
        self, tokens: Int[Array, "P G T"], prompts: PromptCache
    ) -> tuple[Float[Array, "P G T D"], CompletionCache]:
        """Runs completions after their prompts; returns normed hidden states.

        State t is that after reading completion token t, so it predicts token t + 1.
        `decode` goes on from the cache behind any token.
        """
        attend, positions = self._after_prompts(
            tokens.shape, prompts.lengths, prompts.keys.shape[-2]
        )

        def layer(hidden, inputs):
            weights, *prompt = inputs
            hidden, keys, values, picked = self._block(
                hidden, weights, positions, functools.partial(attend, *prompt)
            )
            return hidden, (keys, values, picked)

        hidden = self.embedding[...][tokens]
        inputs = (self._stacked(), prompts.keys, prompts.values)
        hidden, (keys, values, picked) = self._scan(layer, hidden, inputs)
        hidden = self._norm(hidden, self.final_norm[...])
        return hidden, CompletionCache(keys, values, picked)

    def forward(
        self,
        prompt_tokens: Int[Array, "P S"],
        lengths: Int[Array, " P"],
        tokens: Int[Array, "R H U"],
        *,
        starts: Int[Array, "R H U"] | None = None,
        of_rows: Callable[[Array], Array] = lambda array: array,
        prompt_routes: UInt[Array, "L P S E"] | None = None,
        routes: UInt[Array, "L R H U E"] | None = None,
    ) -> tuple[
        Float[Array, "P D"], Float[Array, "R H U D"], UInt[Array, "L R H U E"] | None
    ]:
        """Runs prompts and their completions through each layer together.

        What `prefill` and then `read` compute, in one pass: for training, where a
        layer's weights then have one gradient and the prompts' cache is not kept.

        Args:
          prompt_tokens: left-padded.
          lengths: of the prompts.
          tokens: completions [P, G, U], or rows that several of one prompt share; U may
            be 0.
          starts: of each token, in which column of its row its completion begins; None:
            a row is one completion.
          of_rows: [P, ...] -> [R, ...]: what the prompt of each row has.
          prompt_routes: experts that the prompts' tokens go through.
          routes: the same of the completions' tokens; None lets the routers pick.

        Returns:
          the normed hidden states of each prompt's last token and of the completions'
          tokens, and which experts the routers would pick for the latter.
        """
        prompt_attend, prompt_positions = self._within_prompts(
            prompt_tokens.shape, lengths
        )
        attend, positions = self._after_prompts(
            tokens.shape,
            of_rows(lengths),
            prompt_tokens.shape[1],
            starts,
        )

        def layer(hidden, inputs):
            before, after = hidden
            weights, prompt_forced, forced = inputs
            before, keys, values, _ = self._block(
                before, weights, prompt_positions, prompt_attend, prompt_forced
            )
            prompt = of_rows(keys[:, 0]), of_rows(values[:, 0])
            after, _, _, picked = self._block(
                after, weights, positions, functools.partial(attend, *prompt), forced
            )
            return (before, after), picked

        if prompt_routes is not None:
            prompt_routes = prompt_routes[:, :, None]
        embedding = self.embedding[...]
        hidden = (embedding[prompt_tokens][:, None], embedding[tokens])
        inputs = (self._stacked(), prompt_routes, routes)
        (before, after), picked = self._scan(layer, hidden, inputs)
        scale = self.final_norm[...]
        return self._norm(before[:, 0, -1], scale), self._norm(after, scale), picked

    def _within_prompts(self, shape: tuple[int, ...], lengths):
        """Attention of prompts [P, S] to themselves, and positions [P, 1, S]."""
        slots = shape[-1]
        slot = jnp.arange(slots)
        start = slots - lengths[:, None]
        causal, kept = slot[:, None] >= slot[None, :], slot >= start
        mask = causal & kept[:, None, :]
        splash = self._splash(slots)

        def attend(queries, keys, values):
            if splash is not None:
                return splash_attention(
                    queries, keys, values, own_kept=kept, kernel=splash
                )
            return attention(queries, KeyValues(keys, values, mask[:, None]))

        return attend, jnp.maximum(slot - start, 0)[:, None]

    def _after_prompts(self, shape: tuple[int, ...], lengths, slots, starts=None):
        """Attention of completions [P, G, T] to prompts and themselves, and positions.

        Args:
          shape: of the completions' tokens.
          lengths: of the prompt of each of P.
          slots: S of the prompts' keys and values, [P, Hkv, S, K], which come first.
          starts: of each token, in which column of its row its completion begins; None:
            a row is one completion.
        """
        time = jnp.arange(shape[-1])
        since = time if starts is None else time - starts
        positions = jnp.broadcast_to(lengths[:, None, None] + since, shape)
        causal = (time[:, None] >= time[None, :])[None, None]
        prompt_mask = _prompt_mask(lengths, slots)
        # The kernel's segments are equal or apart: a prompt that several completions of
        # one row see, which do not see one another, is neither.
        splash = self._splash(shape[-1]) if starts is None else None

        def attend(prompt_keys, prompt_values, queries, keys, values):
            if splash is not None:
                prompt = (prompt_keys, prompt_values, prompt_mask[:, 0])
                return splash_attention(
                    queries, keys, values, prompt=prompt, kernel=splash
                )
            own = KeyValues(keys, values, causal, starts)
            prompt = KeyValues(prompt_keys, prompt_values, prompt_mask)
            return attention(queries, own, prompt)

        return attend, positions

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
        prompt_mask = _prompt_mask(prompts.lengths, prompts.keys.shape[-2])

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

    def _block(
        self, hidden, weights, positions, attend, forced=None
    ) -> tuple[Array, Array, Array, Array | None]:
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
        width = arch.num_heads * arch.head_dim
        attended = attended.reshape(*attended.shape[:-3], width)
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

    def _scan(self, layer, hidden, inputs):
        """Scans `layer` over the stacked inputs, recomputing inside when training."""
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


def _prompt_mask(lengths, slots: int) -> Bool[Array, "P 1 S"]:
    """The slots of left-padded prompts that count."""
    return (jnp.arange(slots) >= slots - lengths[:, None])[:, None]
