"""A policy that only looks at the last token: compiles in a fraction of the time.

The train step knows a decoder by `prefill`, `extend` and `head_weight`; what is tested
of the step alone (weights, denominators, minibatches, meshes) does not need attention.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from rlvr_jax.models.decoder import PromptCache
from tests import tiny


class Bigram(nnx.Module):
    """logits = embedding[last token] head^T."""

    def __init__(self, rngs: nnx.Rngs):
        def draw():
            return nnx.Param(jax.random.normal(rngs.params(), (tiny.VOCAB, 8)))

        self.embedding, self.head = draw(), draw()
        self.head_dtype = "float32"

    @property
    def head_weight(self):
        return self.head[...]

    def prefill(self, tokens, lengths):
        empty = jnp.zeros((1, tokens.shape[0], 1, tokens.shape[1], 1))
        return self.embedding[...][tokens], PromptCache(empty, empty, lengths)

    def extend(self, tokens, prompts, starts=None):
        del prompts, starts
        return self.embedding[...][tokens]


def policy(seed: int = 0) -> tuple[nnx.GraphDef, nnx.State]:
    """A bigram policy, split."""
    return nnx.split(Bigram(nnx.Rngs(seed)))
