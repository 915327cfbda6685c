"""Times the train step on completions of very different lengths, packed and not.

Eight completions of each of eight prompts in one micro-batch, lengths log-normal with
16 times the median as the longest. The same step in turn: a row for each completion,
and rows that completions of a prompt share.
"""

import dataclasses
import functools
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx

from launch.bench_engine import long_tail
from launch.compile_count import CompileCount
from rlvr_jax.config import BatchConfig, Objective
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.train.micro_batches import packing_for
from rlvr_jax.train.policy import new_state
from rlvr_jax.train.state import StepPlan
from rlvr_jax.train.step import train_step
from rlvr_jax.types import Rollouts

PROMPTS, GENERATIONS, PROMPT_TOKENS = 8, 8, 32


def bench_packing(
    architecture: Architecture, median: int, repeats: int
) -> dict[str, Any]:
    """Seconds and temporary memory of both, and their largest difference."""
    graphdef, parameters = nnx.split(Decoder(architecture, rngs=nnx.Rngs(0)))
    rollouts = _rollouts(architecture.vocab_size, median)
    rewards = jax.random.bernoulli(jax.random.key(2), 0.5, (PROMPTS, GENERATIONS))
    rewards = rewards.astype(jnp.float32)
    plain = StepPlan(
        graphdef=graphdef,
        optimizer=optax.sgd(1.0),
        objective=Objective(overlong_filter=False, loss_aggregation="token_mean"),
        batch=BatchConfig(prompts_per_step=PROMPTS, logprob_chunk_tokens=512),
        max_completion_tokens=16 * median,
        temperature=1.0,
        mesh=make_mesh((-1, 1, 1)),
        dtype=jnp.dtype("float32"),
    )
    packed = dataclasses.replace(
        plain, batch=dataclasses.replace(plain.batch, packing=True)
    )
    state = new_state(parameters, plain)
    runs, memory, shares, rows = {}, {}, {}, {}
    for name, plan in (("plain", plain), ("packed", packed)):
        packing, found = packing_for(plan, rollouts)
        shares[name] = found["update/padding_share"]
        rows[name] = rollouts.completion_tokens.shape[:2]
        step = jax.jit(functools.partial(train_step, plan=plan))
        inputs = (state, rollouts, rewards, rewards, None, packing)
        program: Any = step.lower(*inputs).compile()
        memory[name] = program.memory_analysis().temp_size_in_bytes / 2**20
        runs[name] = functools.partial(program, *inputs)
        if packing is not None:
            rows[name] = packing.source.shape[1:]
    after = {name: jax.block_until_ready(run()) for name, run in runs.items()}
    compiles = CompileCount()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):  # side by side: the machine may be shared
        for name, run in runs.items():
            begun = time.perf_counter()
            jax.block_until_ready(run())
            seconds[name].append(time.perf_counter() - begun)
    compiled = compiles.count
    middle = {name: statistics.median(each) for name, each in seconds.items()}
    gaps = jax.tree.map(
        lambda a, b: float(jnp.abs(a - b).max()),
        after["plain"][0].parameters,
        after["packed"][0].parameters,
    )
    return {
        "seconds": middle["packed"],
        "plain_seconds": middle["plain"],
        "times_the_plain": middle["plain"] / middle["packed"],
        "temporary_mib": memory["packed"],
        "plain_temporary_mib": memory["plain"],
        "padding_share": shares["packed"],
        "plain_padding_share": shares["plain"],
        "rows": " x ".join(map(str, rows["packed"])),
        "largest_difference": max(jax.tree.leaves(gaps)),
        "compiles_after_warmup": compiled,
    }


def _rollouts(vocab_size: int, median: int) -> Rollouts:
    """Random tokens of long-tailed lengths."""
    lengths = long_tail(median)[:PROMPTS].astype(np.int32)
    limit = 16 * median
    rows = (PROMPTS, GENERATIONS)
    tokens = functools.partial(jax.random.randint, minval=0, maxval=vocab_size)
    return Rollouts(
        prompt_tokens=tokens(jax.random.key(0), (PROMPTS, PROMPT_TOKENS)),
        prompt_lengths=jnp.full(PROMPTS, PROMPT_TOKENS),
        completion_tokens=tokens(jax.random.key(1), (*rows, limit)),
        completion_lengths=jnp.asarray(lengths),
        ended=jnp.ones(rows, bool),
        rollout_logprobs=jnp.zeros((*rows, limit)),
        group_id=jnp.broadcast_to(jnp.arange(PROMPTS)[:, None], rows),
    )
