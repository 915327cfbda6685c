"""A policy that only looks at the last token: compiles in a fraction of the time.

The train step knows a decoder by `forward` and `head_weight`; what is tested
of the step alone (weights, denominators, minibatches, meshes) does not need attention.
"""

import jax
from flax import nnx

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

    def forward(self, prompt_tokens, lengths, tokens, **rows):
        del lengths, rows
        embedding = self.embedding[...]
        return embedding[prompt_tokens[:, -1]], embedding[tokens], None


def policy(seed: int = 0) -> tuple[nnx.GraphDef, nnx.State]:
    """A bigram policy, split."""
    return nnx.split(Bigram(nnx.Rngs(seed)))
