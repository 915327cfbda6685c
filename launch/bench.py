"""Times the two programs of a step: `python -m launch.bench rollout|step --shape tiny`.

Also `engine` and `packing` (rollouts and the step on long-tailed lengths,
bench_engine.py, bench_packing.py), `growth` (time per token, memory of longer
completions, bench_growth.py), `losses` (the surrogates beside torch, bench_losses.py)
and `verifiers FILE.jsonl` (bench_verifiers.py).
8 prompts x 8 completions of exactly 64 tokens, float32, random weights: the work of a
step as the peers' benchmarks have it. The last line is one JSON object.
"""

import argparse
import dataclasses
import functools
import json
import os
import pathlib
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
import rich
from flax import nnx
from rich.table import Table

from launch.bench_engine import bench_engine
from launch.bench_growth import bench_growth
from launch.bench_losses import bench_losses, print_table
from launch.bench_packing import bench_packing
from launch.bench_verifiers import bench_verifiers
from launch.compile_count import CompileCount
from launch.train import use_compilation_cache
from rlvr_jax.config import BatchConfig, Objective
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.train.loop import peak_rss_gib
from rlvr_jax.train.policy import new_state
from rlvr_jax.train.state import StepPlan
from rlvr_jax.train.step import train_step
from rlvr_jax.types import Rollouts

GENERATIONS, NEW_TOKENS = 8, 64


@dataclasses.dataclass(frozen=True)
class Shape:
    """A model and the lengths of its eight prompts."""

    architecture: Architecture
    prompt_lengths: tuple[int, ...]
    micro_batch_size: int


SHAPES = {
    "tiny": Shape(
        Architecture(
            vocab_size=512,
            hidden_size=128,
            intermediate_size=512,
            num_layers=4,
            num_heads=4,
            num_kv_heads=2,
            head_dim=32,
        ),
        (21, 21, 21, 21, 21, 21, 21, 21),
        0,
    ),
    # SmolLM2-135M; the first GSM8K questions in its chat template.
    "smollm2": Shape(
        Architecture(
            vocab_size=49152,
            hidden_size=576,
            intermediate_size=1536,
            num_layers=30,
            num_heads=9,
            num_kv_heads=3,
            head_dim=64,
            rope_theta=100_000.0,
        ),
        (69, 64, 91, 86, 57, 95, 92, 98),
        16,
    ),
}


def matrix_product_peak(size: int = 2048) -> float:
    """FLOP/s of a large float32 matrix product here and now."""
    left = jax.random.normal(jax.random.key(0), (size, size))
    product = jax.jit(lambda a, b: a @ b)
    return 2 * size**3 / min(timed(functools.partial(product, left, left), 5))


def timed(run: Callable[[], Any], repeats: int) -> list[float]:
    """Seconds of each of `repeats` calls, after one that is not counted."""
    jax.block_until_ready(run())
    seconds = []
    for _ in range(repeats):
        begun = time.perf_counter()
        jax.block_until_ready(run())
        seconds.append(time.perf_counter() - begun)
    return seconds


def forward_flops(shape: Shape) -> tuple[float, float]:
    """Useful FLOPs of a forward pass over (all prompts, all completions).

    A prompt counts once for its group. 2 per weight and token, attention over the
    positions up to the token's own, and the LM head where its logits are needed.
    """
    arch = shape.architecture
    table = arch.vocab_size * arch.hidden_size
    tables = 1 if arch.tie_embeddings else 2
    per_token = 2 * (arch.num_parameters - tables * table)
    per_pair = 4 * arch.num_layers * arch.num_heads * arch.head_dim
    head = 2 * table

    def span(start: int, stop: int) -> float:
        pairs = (stop * (stop + 1) - start * (start + 1)) / 2
        return (stop - start) * per_token + pairs * per_pair

    prompts = sum(span(0, n) for n in shape.prompt_lengths)
    completions = GENERATIONS * sum(
        span(n, n + NEW_TOKENS - 1) + NEW_TOKENS * head for n in shape.prompt_lengths
    )
    return prompts, completions


def make_rollout(shape: Shape) -> tuple[nnx.GraphDef, nnx.State, Callable]:
    """The policy, and a function of no arguments that samples from it."""
    count, slots = len(shape.prompt_lengths), max(shape.prompt_lengths)
    decoder = Decoder(shape.architecture, rngs=nnx.Rngs(0))
    decoder.remat = "dots"
    graphdef, parameters = nnx.split(decoder)
    tokens = jax.random.randint(
        jax.random.key(1), (count, slots), 0, shape.architecture.vocab_size
    )
    # No id ends a completion: each has exactly 64 tokens.
    sampling = Sampling(GENERATIONS, NEW_TOKENS, end_ids=(-1,))
    keys = row_keys(0, 0, jnp.arange(count), GENERATIONS)
    lengths = jnp.array(shape.prompt_lengths)

    def rollout() -> Rollouts:
        return sample(graphdef, parameters, tokens, lengths, keys, sampling=sampling)

    return graphdef, parameters, rollout


def bench_rollout(shape: Shape, repeats: int) -> dict[str, Any]:
    """Prefill and decode: new tokens per second."""
    _, _, rollout = make_rollout(shape)
    jax.block_until_ready(rollout())
    compiles = CompileCount()
    seconds = statistics.median(timed(rollout, repeats))
    tokens = len(shape.prompt_lengths) * GENERATIONS * NEW_TOKENS
    return {
        "tokens_per_s": tokens / seconds,
        "seconds": seconds,
        "flops": sum(forward_flops(shape)),
        "compiles_after_warmup": compiles.count,
    }


def bench_step(shape: Shape, repeats: int) -> dict[str, Any]:
    """The train step, one update: prompt and completion tokens per second."""
    graphdef, parameters, rollout = make_rollout(shape)
    rollouts = rollout()
    count = len(shape.prompt_lengths)
    plan = StepPlan(
        graphdef=graphdef,
        optimizer=optax.adamw(1e-6),
        objective=Objective(overlong_filter=False),
        batch=BatchConfig(
            prompts_per_step=count,
            micro_batch_size=shape.micro_batch_size,
            logprob_chunk_tokens=128,
        ),
        max_completion_tokens=NEW_TOKENS,
        temperature=1.0,
        mesh=make_mesh((-1, 1, 1)),
        dtype=jnp.dtype("float32"),
    )
    rewards = jax.random.bernoulli(jax.random.key(2), 0.5, (count, GENERATIONS))
    rewards = rewards.astype(jnp.float32)
    step = jax.jit(functools.partial(train_step, plan=plan), donate_argnums=0)
    holder = [new_state(parameters, plan)]
    # The sampler's copy, as in a run: it would count as memory of the step.
    del parameters, rollout

    def run() -> Any:
        holder[0], metrics = step(holder[0], rollouts, rewards, rewards)
        return metrics

    jax.block_until_ready(run())
    compiles = CompileCount()
    seconds = statistics.median(timed(run, repeats))
    tokens = GENERATIONS * sum(n + NEW_TOKENS for n in shape.prompt_lengths)
    return {
        "tokens_per_s": tokens / seconds,
        "seconds": seconds,
        "flops": 3 * sum(forward_flops(shape)),
        "compiles_after_warmup": compiles.count,
    }


BENCHES = {"rollout": bench_rollout, "step": bench_step}
WITH_MODEL = (*BENCHES, "engine", "growth", "packing")
MEDIAN_LENGTH = 16


def main() -> None:
    """Runs one bench and prints its table and its JSON line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", choices=[*WITH_MODEL, "losses", "verifiers"])
    parser.add_argument("file", nargs="?", type=pathlib.Path, help="rows to verify")
    parser.add_argument("--shape", choices=SHAPES)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    name, has_model = arguments.bench, arguments.bench in WITH_MODEL
    if arguments.shape and not has_model:
        parser.error(f"{name} runs no model: leave out --shape.")
    if (arguments.file is None) == (name == "verifiers"):
        parser.error("verifiers takes a .jsonl file of rows, the others none.")
    use_compilation_cache()
    if name == "losses":
        result = bench_losses(arguments.repeats)
        print_table(result["surrogates"])
    elif name == "verifiers":
        result = bench_verifiers(arguments.file, repeats=arguments.repeats)
        show(result)
    else:
        shape = arguments.shape or "tiny"
        result = bench_model(name, SHAPES[shape], arguments.repeats)
        result["shape"] = shape
        show(result)
    print(json.dumps(result | {"load_average": os.getloadavg()[0], "bench": name}))


def bench_model(name: str, shape: Shape, repeats: int) -> dict[str, Any]:
    """A bench of the policy, with the peak of the machine measured beside it."""
    before = matrix_product_peak()
    if name == "engine":
        result = bench_engine(shape.architecture, MEDIAN_LENGTH, repeats)
    elif name == "growth":
        result = bench_growth(shape.architecture, repeats)
    elif name == "packing":
        result = bench_packing(shape.architecture, MEDIAN_LENGTH, repeats)
    else:
        result = BENCHES[name](shape, repeats)
    # The machine may be shared: the better of two measurements is the peak.
    peak = max(before, matrix_product_peak())
    if "flops" in result:
        result["peak_share"] = result.pop("flops") / result["seconds"] / peak
    return result | {"peak_gflops": peak / 1e9, "peak_rss_gib": peak_rss_gib()}


def show(result: dict[str, Any]) -> None:
    """The figures as a table."""
    table = Table(show_header=False, box=None)
    for name, value in result.items():
        shown = f"{value:,.3g}" if isinstance(value, float) else str(value)
        table.add_row(name, shown)
    rich.print(table)


if __name__ == "__main__":
    main()
