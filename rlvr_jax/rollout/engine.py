"""Continuous batching: finished completions make room for the next ones at once.

The host hands completions to slots, and takes them out when they rest (passage.py); the
device only ever sees a fixed number of slots, so nothing compiles after the first
batch. Towards the end, when fewer run than half of the slots, the rest is packed into
half as many.
"""

import dataclasses
from collections.abc import Callable

import jax
import numpy as np
from flax import nnx
from jaxtyping import Array, Int, Key, UInt

from rlvr_jax.rollout.completions import Completions
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.passage import EngineStats, Passage, Program, Prompts
from rlvr_jax.types import Rollouts

OnFinished = Callable[[int, np.ndarray, bool], None]


@dataclasses.dataclass(frozen=True)
class Engine(Program):
    """Samples batches of completions in `num_slots` slots.

    `sampler.sample` gives the same completions for the same keys; this one does not
    wait for the longest of them.
    """

    def __call__(
        self,
        parameters: nnx.State,
        prompt_tokens: Int[np.ndarray, "P S"],
        prompt_lengths: Int[np.ndarray, " P"],
        keys: Key[Array, "P G"],
        *,
        limits: Int[np.ndarray, "P G"] | None = None,
        on_finished: OnFinished | None = None,
    ) -> tuple[Rollouts, EngineStats]:
        """Samples G completions of every prompt.

        Args:
          parameters: of the decoder.
          prompt_tokens: left-padded.
          prompt_lengths: tokens of each prompt.
          keys: one per completion (`sampler.row_keys`).
          limits: tokens after which each completion is cut; by default the sampling's.
          on_finished: called with (number, tokens, ended) as soon as completion
            `number` = p * G + g is there, while others still decode.
        """
        rows = self.new_rows(keys)
        prompts = Prompts(np.asarray(prompt_tokens), np.asarray(prompt_lengths))
        prompt_routes, stats = self.go_on(
            parameters,
            prompts,
            rows,
            None if limits is None else limits.reshape(-1),
            on_rest=on_finished,
        )
        rollouts = rows.as_rollouts(
            prompts.tokens,
            prompts.lengths,
            prompt_routes,
            steered=self.control != Control(),
        )
        return rollouts, stats

    def new_rows(self, keys: Key[Array, "P G"]) -> Completions:
        """A row for each key, p * G + g, without any token yet."""
        data = np.asarray(jax.random.key_data(keys))
        return Completions.new(
            data.reshape(-1, data.shape[-1]),
            self.sampling,
            self.vocab_size,
            self.control,
        )

    def go_on(
        self,
        parameters: nnx.State,
        prompts: Prompts,
        rows: Completions,
        limits: Int[np.ndarray, " B"] | None = None,
        *,
        version: int = 0,
        enough: int | None = None,
        on_rest: OnFinished | None = None,
    ) -> tuple[UInt[np.ndarray, "P S L E"] | None, EngineStats]:
        """Goes on with completions, begun by this or an earlier policy.

        Where the policy is the same, the text does not depend on how often and where
        it was interrupted, and its log-probs only to float32 rounding.

        Args:
          parameters: of the decoder.
          prompts: each of B / P rows.
          rows: written into; those that are finished or at their limit stay.
          limits: tokens at which each row rests; by default it finishes.
          version: of the policy, for `Completions.versions`.
          enough: finished rows at which all others rest where they are; None: all.
          on_rest: as `on_finished` above, of every row that rests.

        Returns:
          the experts of prompts that were read, 0 for others (None without experts),
          and what it took.
        """
        if limits is None:
            limits = np.full(len(rows.lengths), self.sampling.max_completion_tokens)
        passage = Passage(self, parameters, prompts, rows, limits, version)
        if not passage.queue:
            return None, passage.stats
        running = passage.new_slots()
        while passage.queue or (running.owner >= 0).any():
            passage.refill(running)
            passage.decode(running)
            passage.steer(running)
            for number in passage.collect(running):
                if on_rest is not None:
                    tokens = rows.tokens[number, : rows.lengths[number]]
                    on_rest(number, tokens, bool(rows.ended[number]))
            if enough is not None and rows.finished.sum() >= enough:
                passage.collect(running, unfinished=True)
                break
            if not passage.queue:
                passage.shrink(running)
        return passage.prompt_routes, passage.stats
