"""How time per token grows with the rollouts of a step, and memory with their length.

The engine samples 64 to 1,024 completions of 64 tokens in 64 slots. Memory is what the
compiled program of log-probs, entropies and their gradient takes beside its inputs and
outputs, of one completion; it is counted by the compiler and needs no quiet machine.
"""

import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from rlvr_jax.core.logprobs import token_logprobs
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.sampler import Sampling, row_keys

ROLLOUTS = (64, 256, 1024)
LENGTHS = (512, 2048, 4096, 8192)
GENERATIONS, NEW_TOKENS, PROMPT_TOKENS = 8, 64, 21


def bench_growth(architecture: Architecture, repeats: int) -> dict[str, Any]:
    """Microseconds per token and bytes by size, and each over the smallest."""
    result: dict[str, Any] = {}
    times = _times(architecture, repeats)
    for count, seconds in times.items():
        result[f"us_per_token_{count}"] = 1e6 * seconds
    result["time_ratio"] = times[ROLLOUTS[-1]] / times[ROLLOUTS[0]]
    sizes = {n: logprob_bytes(architecture, n) for n in LENGTHS}
    for length, size in sizes.items():
        result[f"logprob_mib_{length}"] = size / 2**20
    result["memory_ratio"] = sizes[LENGTHS[-1]] / sizes[LENGTHS[0]]
    logits = 4 * LENGTHS[-1] * architecture.vocab_size
    result["memory_of_all_logits"] = sizes[LENGTHS[-1]] / logits
    return result


def _times(architecture: Architecture, repeats: int) -> dict[int, float]:
    """Seconds per token of each number of rollouts, taken in turn."""
    graphdef, parameters = nnx.split(Decoder(architecture, rngs=nnx.Rngs(0)))
    sampling = Sampling(GENERATIONS, NEW_TOKENS, end_ids=(-1,))
    engine = Engine(graphdef, sampling, architecture.vocab_size)
    drawn = np.random.default_rng(0).integers(
        0, architecture.vocab_size, (ROLLOUTS[-1] // GENERATIONS, PROMPT_TOKENS)
    )

    def once(count: int) -> float:
        prompts = count // GENERATIONS
        tokens = drawn[:prompts].astype(np.int32)
        keys = row_keys(0, 0, jnp.arange(prompts), GENERATIONS)
        begun = time.perf_counter()
        engine(parameters, tokens, np.full(prompts, PROMPT_TOKENS, np.int32), keys)
        return (time.perf_counter() - begun) / (count * NEW_TOKENS)

    for count in ROLLOUTS:
        once(count)
    seconds = {count: [] for count in ROLLOUTS}
    for _ in range(repeats):  # in turn: the machine may be shared
        for count, found in seconds.items():
            found.append(once(count))
    return {count: statistics.median(found) for count, found in seconds.items()}


def logprob_bytes(architecture: Architecture, length: int) -> int:
    """What the compiler sets aside for the log-probs of one completion."""

    def loss(hidden, head, tokens):
        logprobs, entropies = token_logprobs(hidden, head, tokens)
        return (logprobs + entropies).sum()

    width, vocab = architecture.hidden_size, architecture.vocab_size
    shapes = (
        jax.ShapeDtypeStruct((1, length, width), jnp.float32),
        jax.ShapeDtypeStruct((vocab, width), jnp.float32),
        jax.ShapeDtypeStruct((1, length), jnp.int32),
    )
    compiled = jax.jit(jax.grad(loss, argnums=(0, 1))).lower(*shapes).compile()
    found = compiled.memory_analysis()
    assert found is not None
    return int(found.temp_size_in_bytes)
