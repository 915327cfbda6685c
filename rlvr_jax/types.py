"""The values that travel between the layers: `Rollouts`, `Ratio`.

Axes (docs/notation.md): P prompts, G completions per prompt, S prompt tokens,
T completion tokens, V vocabulary. Masks are 1 (True) where a token counts.
"""

import dataclasses

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, UInt, UInt32


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Ratio:
    """A sum and what to divide it by, kept apart until all parts are summed.

    Micro-batches and devices add numerators and denominators; the one division
    comes last. Dividing each part first weighs short parts too much.
    """

    numerator: Float[Array, "..."]
    denominator: Float[Array, "..."]

    def __add__(self, other: "Ratio") -> "Ratio":
        """Adds the parts, as when micro-batches are summed."""
        return Ratio(
            self.numerator + other.numerator, self.denominator + other.denominator
        )

    def value(self) -> Float[Array, "..."]:
        """numerator / denominator; 0 where the denominator is 0 (nothing was kept)."""
        empty = self.denominator == 0
        return jnp.where(
            empty, 0.0, self.numerator / jnp.where(empty, 1.0, self.denominator)
        )


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True)
class Rollouts:
    """Completions sampled for a batch of prompts; one row of G per prompt.

    Prompts are padded on the left, completions on the right, so every row of a
    batch writes the same cache slot at the same time. Only lengths say what is
    padding: the pad id may be any token, also an end token.
    """

    prompt_tokens: Int[Array, "... P S"]
    prompt_lengths: Int[Array, "... P"]
    completion_tokens: Int[Array, "... P G T"]
    completion_lengths: Int[Array, "... P G"]
    """Sampled tokens, the final end token included."""
    ended: Bool[Array, "... P G"]
    """The completion closed itself (end token or stop); False: cut at T tokens."""
    rollout_logprobs: Float[Array, "... P G T"]
    """The sampler's own log-probs, under its temperature and truncation."""
    group_id: Int[Array, "... P G"]
    """Equal for completions that are compared with one another."""
    kept_tokens: UInt32[Array, "... P G T W"] | None = None
    """Bit v of word v // 32: token v was in the sampler's top-k/top-p/min-p set.
    None when the sampler did not truncate."""
    forced: Bool[Array, "... P G T"] | None = None
    """Tokens that were written, not sampled (rollout/control.py); None for none."""
    routes: UInt[Array, "... P G T L E"] | None = None
    """The E experts that the sampler sent each completion token through, in every
    layer; 0 where no token was read after it. None for a model without experts."""
    prompt_routes: UInt[Array, "... P S L E"] | None = None
    versions: Int[Array, "... P G T"] | None = None
    """Of the policy that sampled each token: steps it had learned from. None where one
    policy sampled all (rollout.token_budget is 0)."""

    @property
    def token_mask(self) -> Bool[Array, "... P G T"]:
        """True on the policy's own tokens, from the lengths and what was forced."""
        slots = jnp.arange(self.completion_tokens.shape[-1])
        written = slots < self.completion_lengths[..., None]
        return written if self.forced is None else written & ~self.forced
