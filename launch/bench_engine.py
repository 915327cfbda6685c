"""Times the rollout engine on completions of very different lengths.

256 completions of 32 prompts, lengths log-normal with 16 times the median as the
longest, in 64 rows: the engine refills rows as they finish; the plain loop takes four
batches of 64 and waits for the longest of each.
"""

import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from launch.compile_count import CompileCount
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample

PROMPTS, GENERATIONS, ROWS, PROMPT_TOKENS = 32, 8, 64, 32
BUCKET = 32
"""The plain loop is compiled for lengths rounded up to this."""


def long_tail(median: int, seed: int = 0) -> np.ndarray:
    """Completion lengths [P, G]: log-normal, cut and scaled so that max = 16 median."""
    drawn = np.random.default_rng(seed).normal(size=PROMPTS * GENERATIONS)
    spread = np.log(16) / drawn.max()
    lengths = median * np.exp(spread * (drawn - np.median(drawn)))
    lengths = np.clip(np.round(lengths), 1, 16 * median).astype(int)
    return lengths.reshape(PROMPTS, GENERATIONS)


def bench_engine(
    architecture: Architecture, median: int, repeats: int
) -> dict[str, Any]:
    """Tokens per second and padding of the engine and of the plain loop."""
    graphdef, parameters = nnx.split(Decoder(architecture, rngs=nnx.Rngs(0)))
    lengths = long_tail(median)
    tokens = np.random.default_rng(1).integers(
        0, architecture.vocab_size, (PROMPTS, PROMPT_TOKENS)
    )
    tokens = tokens.astype(np.int32)
    counts = np.full(PROMPTS, PROMPT_TOKENS, np.int32)
    keys = row_keys(0, 0, jnp.arange(PROMPTS), GENERATIONS)
    engine = Engine(
        graphdef,
        Sampling(GENERATIONS, int(lengths.max()), end_ids=(-1,)),
        architecture.vocab_size,
        num_slots=ROWS,
        prompts_per_prefill=ROWS // GENERATIONS,
    )
    per_batch = ROWS // GENERATIONS

    def by_engine():
        return engine(parameters, tokens, counts, keys, limits=lengths)[1]

    def by_batches():
        steps = 0
        for start in range(0, PROMPTS, per_batch):
            rows = slice(start, start + per_batch)
            longest = int(-(-lengths[rows].max() // BUCKET) * BUCKET)
            steps += longest * ROWS
            drawn = sample(
                graphdef,
                parameters,
                jnp.asarray(tokens[rows]),
                jnp.asarray(counts[rows]),
                keys[rows],
                sampling=Sampling(GENERATIONS, longest, end_ids=(-1,)),
            )
            jax.block_until_ready(drawn)
        return steps

    useful = int(lengths.sum())
    stats, padded = by_engine(), by_batches()
    compiles = CompileCount()
    seconds: dict[str, list[float]] = {"engine": [], "batches": []}
    for _ in range(repeats):  # side by side: the machine may be shared
        for name, run in (("engine", by_engine), ("batches", by_batches)):
            begun = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begun)
    middle = {name: statistics.median(each) for name, each in seconds.items()}
    return {
        "tokens_per_s": useful / middle["engine"],
        "seconds": middle["engine"],
        "batches_tokens_per_s": useful / middle["batches"],
        "times_the_batches": middle["batches"] / middle["engine"],
        "padding_share": stats.padding_share,
        "batches_padding_share": 1 - useful / padded,
        "longest": int(lengths.max()),
        "median": float(np.median(lengths)),
        "compiles_after_warmup": compiles.count,
    }
