"""Time and memory of every surrogate of `core`, forward and backward, beside torch.

Run by `python -m launch.bench losses`: 512 completions of up to 4096 tokens in float32,
from log-probs to the gradient with respect to them, aggregation included. Where torch
is installed each figure stands beside that of the same formula in eager PyTorch
(`launch.bench_torch`), from calls that alternate in one process: on a shared machine
only their ratio means anything.
"""

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import rich
from rich.table import Table

from launch import bench_torch
from launch.compile_count import CompileCount
from rlvr_jax.core.aggregation import aggregate, token_weights
from rlvr_jax.core.critic import value_loss
from rlvr_jax.core.kl import kl_estimate
from rlvr_jax.core.losses import (
    clipped_loss,
    gmpo_loss,
    ratio_loss,
    reinforce_loss,
    sapo_loss,
)
from rlvr_jax.core.ranking import top_tokens
from rlvr_jax.core.ratios import (
    sequence_log_ratio,
    sequence_token_log_ratio,
    token_log_ratio,
)
from rlvr_jax.core.selection import kl_cov_loss, token_count, token_covariance
from rlvr_jax.core.sequence_losses import mirror_descent_loss
from rlvr_jax.core.weighted_losses import (
    cispo_capped_loss,
    cispo_loss,
    dis_loss,
    dppo_loss,
)

ROWS, TOKENS = 512, 4096


class Batch(NamedTuple):
    """What a loss reads: log-probs (or values, for a critic) and constants."""

    policy: jax.Array
    old: jax.Array
    reference: jax.Array
    targets: jax.Array
    advantages: jax.Array
    mask: jax.Array


def make_batch(rows: int, tokens: int) -> dict[str, np.ndarray]:
    """A ragged batch whose ratios reach every branch of the losses."""
    rng = np.random.default_rng(0)
    shape = (rows, tokens)
    policy = -rng.exponential(0.5, shape)
    near = lambda: np.minimum(policy + rng.normal(0, 0.2, shape), -1e-3)
    lengths = rng.integers(tokens // 8, tokens + 1, rows)
    floats = {
        "policy": policy,
        "old": near(),
        "reference": near(),
        "targets": near(),
        "advantages": rng.normal(size=rows),
    }
    batch = {name: array.astype(np.float32) for name, array in floats.items()}
    return batch | {"mask": np.arange(tokens) < lengths[:, None]}


def _log_ratio(batch: Batch) -> jax.Array:
    return token_log_ratio(batch.policy, batch.old, batch.mask)


def _clipped(batch: Batch, dual_clip: float | None = None) -> jax.Array:
    return clipped_loss(
        _log_ratio(batch),
        batch.advantages,
        epsilon_low=0.2,
        epsilon_high=0.28,
        dual_clip=dual_clip,
    )


def _gspo(batch: Batch, log_ratio: Callable) -> jax.Array:
    row = log_ratio(_log_ratio(batch), batch.mask)
    return clipped_loss(row, batch.advantages, epsilon_low=3e-4, epsilon_high=4e-4)


def _cispo(batch: Batch) -> jax.Array:
    return cispo_loss(
        batch.policy,
        _log_ratio(batch),
        batch.advantages,
        epsilon_low=0.2,
        epsilon_high=0.28,
    )


def _cispo_capped(batch: Batch) -> jax.Array:
    return cispo_capped_loss(
        batch.policy, _log_ratio(batch), batch.advantages, ratio_max=5.0
    )


def _dis(batch: Batch) -> jax.Array:
    return dis_loss(
        batch.policy,
        _log_ratio(batch),
        batch.advantages,
        epsilon_low=0.3,
        epsilon_high=5.0,
    )


def _dppo(batch: Batch) -> jax.Array:
    return dppo_loss(
        batch.policy,
        batch.old,
        batch.advantages,
        batch.mask,
        threshold_low=0.15,
        threshold_high=0.15,
    )


def _kl_cov(batch: Batch) -> jax.Array:
    covariance = token_covariance(batch.policy, batch.advantages, batch.mask)
    selected = top_tokens(covariance, batch.mask, token_count(batch.mask, 2e-4))
    return kl_cov_loss(_log_ratio(batch), batch.advantages, selected)


def _mirror_descent(batch: Batch) -> jax.Array:
    rows = mirror_descent_loss(
        batch.policy, batch.old, batch.advantages, batch.mask, tau=0.1
    )
    return rows[:, None]


class Case(NamedTuple):
    """A loss per token or row, how it is aggregated, and torch's expression of it."""

    loss: Callable[[Batch], jax.Array]
    aggregation: str
    torch: Callable


CASES = {
    "clipped": Case(_clipped, "token_mean", bench_torch.clipped),
    "dual_clip": Case(
        functools.partial(_clipped, dual_clip=3.0), "token_mean", bench_torch.dual_clip
    ),
    "ratio": Case(
        lambda b: ratio_loss(_log_ratio(b), b.advantages),
        "token_mean",
        bench_torch.ratio,
    ),
    "reinforce": Case(
        lambda b: reinforce_loss(b.policy, b.advantages),
        "token_mean",
        bench_torch.reinforce,
    ),
    "cispo": Case(_cispo, "token_mean", bench_torch.cispo),
    "cispo_capped": Case(_cispo_capped, "token_mean", bench_torch.cispo_capped),
    "sapo": Case(
        lambda b: sapo_loss(_log_ratio(b), b.advantages),
        "sequence_mean",
        bench_torch.sapo,
    ),
    "gmpo": Case(
        lambda b: gmpo_loss(_log_ratio(b), b.advantages, b.mask),
        "sequence_mean",
        bench_torch.gmpo,
    ),
    "dis": Case(_dis, "token_mean", bench_torch.dis),
    "dppo": Case(_dppo, "token_mean", bench_torch.dppo),
    "gspo": Case(
        lambda b: _gspo(b, sequence_log_ratio), "sequence_mean", bench_torch.gspo
    ),
    "gspo_token": Case(
        lambda b: _gspo(b, sequence_token_log_ratio),
        "sequence_mean",
        bench_torch.gspo_token,
    ),
    "kl_cov": Case(_kl_cov, "token_mean", bench_torch.kl_cov),
    "mirror_descent": Case(
        _mirror_descent, "sequence_mean", bench_torch.mirror_descent
    ),
    "value": Case(
        lambda b: value_loss(b.policy, b.old, b.targets, clip=0.2),
        "token_mean",
        bench_torch.value,
    ),
    "k3": Case(
        lambda b: kl_estimate(b.policy, b.reference, token_mask=b.mask),
        "token_mean",
        bench_torch.k3,
    ),
}


def scalar_loss(case: Case, policy: jax.Array, batch: Batch) -> jax.Array:
    """The aggregated loss, as the train step would divide it."""
    batch = batch._replace(policy=policy)
    weights, denominator = token_weights(
        batch.mask,
        jnp.zeros(batch.mask.shape[0], int),
        loss_aggregation=case.aggregation,
    )
    return aggregate(case.loss(batch), weights, denominator).value()


def peak_bytes(compiled: jax.stages.Compiled) -> int:
    """Bytes a compiled program allocates beyond its inputs, as XLA planned them."""
    memory = compiled.memory_analysis()
    assert memory is not None  # Every backend of ours plans its memory.
    return memory.temp_size_in_bytes + memory.output_size_in_bytes


def measure(runs: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Seconds of each call of each run; the runs take turns, so all see the same load.

    Each turn calls a run twice and counts the second: what the run before left in the
    caches, and threads of it that still spin, are not this run's doing.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            run()
            begun = time.perf_counter()
            run()
            seconds[name].append(time.perf_counter() - begun)
    return seconds


def bench_losses(
    repeats: int, *, rows: int = ROWS, tokens: int = TOKENS
) -> dict[str, Any]:
    """Measures every case of `CASES`.

    Args:
      repeats: timed calls of each program.
      rows: completions of the batch.
      tokens: longest completion.

    Returns:
      "surrogates": per case the median milliseconds and the peak MiB beyond the inputs;
      with torch also torch's, ours over torch's of both and of the fastest calls (where
      other programs take the cores away, torch's threads wait for one another), and the
      distance of the two gradients relative to their length. "compiles_after_first":
      programs compiled by any call but the first of its case.
    """
    arrays = make_batch(rows, tokens)
    batch = Batch(**{name: jnp.asarray(array) for name, array in arrays.items()})
    theirs = bench_torch.to_torch(arrays) if bench_torch.load() else None
    surrogates, again = {}, 0
    for name, case in CASES.items():
        program = jax.jit(jax.value_and_grad(functools.partial(scalar_loss, case)))
        peak = peak_bytes(program.lower(batch.policy, batch).compile())
        run = lambda program=program: jax.block_until_ready(
            program(batch.policy, batch)
        )
        run()
        compiles = CompileCount()
        surrogates[name] = {"peak_mib": peak / 2**20} | (
            {"ms": _median_ms(measure({"ours": run}, repeats)["ours"])}
            if theirs is None
            else _beside_torch(case, run, theirs, repeats)
        )
        again += compiles.count
    figures: dict[str, Any] = {"rows": rows, "tokens": tokens, "surrogates": surrogates}
    figures["compiles_after_first"] = again
    if theirs is not None:
        for row in surrogates.values():
            row["memory_ratio"] = row["peak_mib"] / row["torch_peak_mib"]
        for ratio in ("time_ratio", "best_time_ratio", "memory_ratio"):
            figures[f"max_{ratio}"] = max(row[ratio] for row in surrogates.values())
    return figures


def _beside_torch(
    case: Case, ours: Callable, batch: bench_torch.TorchBatch, repeats: int
) -> dict[str, float]:
    """Times both in turn and compares what they return."""
    other = functools.partial(bench_torch.value_and_gradient, case.torch, batch)
    seconds = measure({"ours": ours, "torch": other}, repeats)
    ours_ms, torch_ms = (_median_ms(seconds[name]) for name in ("ours", "torch"))
    gradient, expected = np.asarray(ours()[1]), other()[1].numpy()
    # By length: at the very edge of a clip the two may round to different sides.
    gap = np.linalg.norm(gradient - expected) / np.linalg.norm(expected)
    return {
        "ms": ours_ms,
        "torch_ms": torch_ms,
        "time_ratio": ours_ms / torch_ms,
        "best_time_ratio": min(seconds["ours"]) / min(seconds["torch"]),
        "torch_peak_mib": bench_torch.peak_bytes(other) / 2**20,
        "gradient_gap": float(gap),
    }


def _median_ms(seconds: list[float]) -> float:
    return 1000 * statistics.median(seconds)


def print_table(surrogates: dict[str, dict[str, float]]) -> None:
    """One line per surrogate."""
    columns = list(next(iter(surrogates.values())))
    headings = (column.replace("_", "\n") for column in columns)
    table = Table("surrogate", *headings, box=None)
    for name, row in surrogates.items():
        table.add_row(name, *(f"{row[column]:,.3g}" for column in columns))
    rich.print(table)
