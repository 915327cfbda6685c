"""Completions from the slot engine, verified while others still decode."""

import concurrent.futures
import dataclasses
import functools
import time

import numpy as np
from flax import nnx
from jaxtyping import Array, Int, Key

from rlvr_jax.config import Config, ControlConfig
from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.failures import added
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import Scorer, Scores
from rlvr_jax.train.merging import joined_scores, mean_metrics
from rlvr_jax.types import Rollouts


def control_of(settings: ControlConfig, tokenizer: Tokenizer) -> Control:
    """The settings' texts as tokens."""

    def ids(text: str) -> tuple[int, ...]:
        return tuple(tokenizer.encode(text)) if text else ()

    thinks = settings.budget or settings.least_thinking or settings.answer_tokens
    return Control(
        close=ids(settings.think_end) if thinks else (),
        budget=settings.budget,
        budget_spread=settings.budget_spread,
        answer_tokens=settings.answer_tokens,
        certain_tokens=settings.certain_tokens,
        budget_text=ids(settings.budget_text) if settings.budget else (),
        least_thinking=settings.least_thinking,
        wait=ids(settings.wait) if settings.least_thinking else (),
        max_waits=settings.max_waits,
        prefix=ids(settings.prefix),
        stop_texts=settings.stop,
        decode=tokenizer.decode if settings.stop else None,
    )


def make_engine(
    config: Config,
    tokenizer: Tokenizer,
    architecture: Architecture,
    graphdef: nnx.GraphDef,
    sampling: Sampling,
) -> Engine:
    """The slot engine of a run, steered by its control."""
    return Engine(
        graphdef,
        sampling,
        architecture.vocab_size,
        num_slots=config.rollout.slots,
        control=control_of(config.control, tokenizer),
    )


def steering_engine(config: Config, *parts) -> Engine | None:
    """`make_engine` where the control says anything, for evaluations; else None."""
    engine = make_engine(config, *parts)
    return None if engine.control == Control() else engine


@dataclasses.dataclass(frozen=True)
class Streamed:
    """What `stream` returns."""

    rollouts: Rollouts
    """On the host's default device."""
    scores: Scores
    wait_s: float
    """Seconds that the last verdicts took after the last completion."""
    padding_share: float


def stream(
    engine: Engine,
    scorer: Scorer,
    weights: nnx.State,
    indices: Int[np.ndarray, " P"],
    tokens: Int[np.ndarray, "P S"],
    lengths: Int[np.ndarray, " P"],
    keys: Key[Array, "P G"],
) -> Streamed:
    """Samples with `engine`; each group goes to the verifiers once it is complete.

    Args:
      engine: for the step's sampling.
      scorer: of the run.
      weights: of the policy that samples.
      indices: the problems.
      tokens: left-padded prompts.
      lengths: their tokens.
      keys: one per completion.

    Raises:
      AuditAlarm: as the scorer.
    """
    generations = keys.shape[1]
    done: dict[int, dict[int, tuple[np.ndarray, bool]]] = {}
    limit = engine.sampling.max_completion_tokens

    def judge(prompt: int) -> Scores:
        rows = done.pop(prompt)
        padded = np.zeros((1, generations, limit), np.int32)
        counts = np.zeros((1, generations), np.int32)
        ended = np.zeros((1, generations), bool)
        for g, (row, closed) in rows.items():
            padded[0, g, : len(row)] = row
            counts[0, g], ended[0, g] = len(row), closed
        chosen = np.asarray(indices)[prompt : prompt + 1]
        return scorer.judged(chosen, padded, counts, ended)

    # One thread: the verifiers are processes of their own.
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as judges:
        verdicts: dict[int, concurrent.futures.Future[Scores]] = {}

        def on_finished(number: int, row: np.ndarray, closed: bool) -> None:
            prompt, g = divmod(number, generations)
            group = done.setdefault(prompt, {})
            group[g] = (row.copy(), closed)
            if len(group) == generations:
                verdicts[prompt] = judges.submit(judge, prompt)

        rollouts, stats = engine(
            weights, tokens, lengths, keys, on_finished=on_finished
        )
        begun = time.perf_counter()
        scores = [verdicts[prompt].result() for prompt in range(len(indices))]
    merged = dataclasses.replace(
        joined_scores(scores),
        metrics=mean_metrics([(each.metrics, 1) for each in scores]),
        checks=functools.reduce(added, [each.checks for each in scores]),
    )
    wait_s = time.perf_counter() - begun
    return Streamed(rollouts, merged, wait_s, stats.padding_share)
