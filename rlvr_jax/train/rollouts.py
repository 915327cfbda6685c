"""One batch of prompts sampled and scored, in two programs or in one."""

import dataclasses
import time
from collections.abc import Callable

import jax
import numpy as np
from flax import nnx
from jaxtyping import Int

from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.rollout.callback import verify_in_program
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.sampler import Sampling, row_keys, sample
from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train.setup import Setup
from rlvr_jax.train.streaming import make_engine, stream
from rlvr_jax.types import Rollouts


@dataclasses.dataclass(frozen=True)
class Scored:
    """Completions of some prompts and what the verifiers said."""

    rollouts: Rollouts
    scores: Scores
    lengths: Int[np.ndarray, "P G"]
    verify_s: float


class Roller:
    """Samples and scores the training problems of a run."""

    def __init__(self, setup: Setup):
        """Compiles nothing yet."""
        self._setup = setup
        self._programs: dict[Sampling, Callable] = {}

    def __call__(
        self,
        weights: nnx.State,
        indices: Int[np.ndarray, " P"],
        step: int,
        sampling: Sampling,
    ) -> Scored:
        """Completions of the problems `indices`, their scores, seconds of verifying."""
        setup = self._setup
        batches = dataclasses.replace(setup.sampled_batches, size=len(indices))
        tokens, lengths = batches.arrays(indices)
        ids = batches.put(indices)
        named = batches.put(told_apart(indices, len(setup.train.problems)))
        keys = row_keys(setup.config.seed, step, named, sampling.num_generations)
        inputs = (weights, tokens, lengths, keys)
        if setup.config.rollout.engine == "slots":
            return self._from_slots(indices, inputs, sampling, batches)
        if setup.config.reward.execution == "callback":
            return self._in_one_program(inputs, ids, sampling)
        rollouts = sample(setup.sampler.graphdef, *inputs, sampling=sampling)
        host = fetch(
            (rollouts.completion_tokens, rollouts.completion_lengths, rollouts.ended)
        )
        begun = time.perf_counter()
        scores = setup.scorer.judged(indices, *host)
        return Scored(rollouts, scores, host[1], time.perf_counter() - begun)

    def _from_slots(self, indices, inputs, sampling: Sampling, batches) -> Scored:
        """The same from the slot engine, verified group by group."""
        setup = self._setup
        weights, tokens, lengths, keys = inputs
        streamed = stream(
            engine_for(setup, sampling),
            setup.scorer,
            weights,
            indices,
            np.asarray(tokens),
            np.asarray(lengths),
            keys,
        )
        put = lambda leaf: batches.put(np.asarray(leaf))
        rollouts = jax.tree.map(put, streamed.rollouts)
        scores = streamed.scores
        metrics = scores.metrics | {"rollout/padding_share": streamed.padding_share}
        return Scored(
            rollouts,
            dataclasses.replace(scores, metrics=metrics),
            np.asarray(rollouts.completion_lengths),
            streamed.wait_s,
        )

    def _in_one_program(self, inputs, ids, sampling: Sampling) -> Scored:
        """The same with the verifiers called from inside the sampling program."""
        held: list[tuple[Scores, np.ndarray, float]] = []
        failed: list[Exception] = []

        def score(indices, tokens, lengths, ended):
            begun = time.perf_counter()
            try:
                scores = self._setup.scorer.judged(indices, tokens, lengths, ended)
            except Exception as error:
                failed.append(error)
                raise
            held.append((scores, lengths, time.perf_counter() - begun))
            return scores.rewards, scores.correct

        self._score = score
        if sampling not in self._programs:
            self._programs[sampling] = jax.jit(self._program(sampling))
        try:
            rollouts, rewards, _ = self._programs[sampling](*inputs, ids)
            jax.block_until_ready(rewards)
        except jax.errors.JaxRuntimeError as error:
            # The program ends with the text of what ended it; this is the thing itself.
            raise failed[0] if failed else error from None
        return Scored(rollouts, *held[0])

    def _program(self, sampling: Sampling) -> Callable:
        graphdef = self._setup.sampler.graphdef

        def program(weights, tokens, lengths, keys, ids):
            rollouts = sample(
                graphdef, weights, tokens, lengths, keys, sampling=sampling
            )
            rewards, correct = verify_in_program(
                lambda *arrays: self._score(*arrays), ids, rollouts
            )
            return rollouts, rewards, correct

        return program


def engine_for(setup: Setup, sampling: Sampling) -> Engine:
    """The slot engine of a run."""
    return make_engine(
        setup.config,
        setup.tokenizer,
        setup.architecture,
        setup.sampler.graphdef,
        sampling,
    )


def told_apart(
    indices: Int[np.ndarray, " P"], num_problems: int
) -> Int[np.ndarray, " P"]:
    """Numbers for the sampling keys: a problem's own, another where it comes again.

    With fewer problems than prompts per step one is there several times, and equal keys
    would sample equal groups.
    """
    seen: dict[int, int] = {}
    named = []
    for index in np.asarray(indices).tolist():
        named.append(index + num_problems * seen.get(index, 0))
        seen[index] = seen.get(index, 0) + 1
    return np.array(named, np.asarray(indices).dtype)
