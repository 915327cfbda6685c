"""A tiny policy with experts, as tests/tiny.py has one without."""

import dataclasses

from flax import nnx

from rlvr_jax.models.decoder import Decoder
from tests import tiny

EXPERTS = 4
ARCHITECTURE = dataclasses.replace(
    tiny.ARCHITECTURE,
    family="qwen3_moe",
    qk_norm=True,
    num_experts=EXPERTS,
    num_experts_per_token=2,
    moe_intermediate_size=24,
)
prompts = tiny.prompts


def policy(seed: int = 0, **changes) -> tuple[nnx.GraphDef, nnx.State]:
    """A new decoder, split; its embedding is four times larger, as in tests/tiny.py."""
    architecture = dataclasses.replace(ARCHITECTURE, **changes)
    decoder = Decoder(architecture, rngs=nnx.Rngs(seed))
    decoder.embedding[...] = decoder.embedding[...] * 4
    return nnx.split(decoder)
