"""Continuous batching: finished completions make room for the next ones at once.

The host hands completions to slots, and takes them out when they rest; the device only
ever sees a fixed number of slots, so nothing compiles after the first batch. Towards
the end, when fewer run than half of the slots, the rest is packed into half as many.
"""

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Int, Key

from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.slots import (
    NOT_FORCED,
    Slots,
    advance,
    empty_slots,
    insert,
    packed,
    prefill,
    steered,
)
from rlvr_jax.types import Rollouts

LEAST_SLOTS = 8


@dataclasses.dataclass
class EngineStats:
    """Where the time of a batch went."""

    tokens: int = 0
    """Written into completions."""
    slot_steps: int = 0
    """Decode steps times slots: tokens / slot_steps is the share that was useful."""
    prefills: int = 0
    calls: int = 0

    @property
    def padding_share(self) -> float:
        """Share of decoded rows that nobody needed."""
        return 1 - self.tokens / self.slot_steps if self.slot_steps else 0.0


@dataclasses.dataclass
class _Running:
    """Who is in which slot: number of the completion, or -1."""

    owner: np.ndarray
    slots: Slots


@dataclasses.dataclass(frozen=True)
class Engine:
    """Samples batches of completions in `num_slots` slots.

    `sampler.sample` gives the same completions for the same keys; this one does not
    wait for the longest of them.
    """

    graphdef: nnx.GraphDef
    sampling: Sampling
    vocab_size: int
    num_slots: int = 64
    prompts_per_prefill: int = 8
    steps_per_call: int = 32
    """Decode steps between two looks of the host."""
    control: Control = dataclasses.field(default_factory=Control)

    def __call__(
        self,
        parameters: nnx.State,
        prompt_tokens: Int[np.ndarray, "P S"],
        prompt_lengths: Int[np.ndarray, " P"],
        keys: Key[Array, "P G"],
        *,
        limits: Int[np.ndarray, "P G"] | None = None,
        on_finished: Callable[[int, np.ndarray, bool], None] | None = None,
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
        batch = _Batch(self, parameters, prompt_tokens, prompt_lengths, keys, limits)
        running = _Running(np.full(self.num_slots, -1), batch.new_slots(self.num_slots))
        while batch.queue or (running.owner >= 0).any():
            batch.refill(running)
            batch.decode(running)
            batch.steer(running)
            for number in batch.collect(running):
                if on_finished is not None:
                    count = batch.lengths[number]
                    on_finished(
                        number,
                        batch.tokens[number, :count],
                        bool(batch.ended[number]),
                    )
            if not batch.queue:
                batch.shrink(running)
        return batch.rollouts(), batch.stats


class _Batch:
    """One batch on its way through the slots: what waits, what is done."""

    def __init__(self, engine, parameters, prompt_tokens, prompt_lengths, keys, limits):
        self.engine, self.parameters = engine, parameters
        self.prompt_tokens = np.asarray(prompt_tokens)
        self.prompt_lengths = np.asarray(prompt_lengths)
        self.shape = keys.shape
        self.keys = keys.reshape(-1)
        rows, length = keys.size, engine.sampling.max_completion_tokens
        self.limits = np.full(rows, length) if limits is None else limits.reshape(-1)
        self.queue = list(range(rows))
        self.prefilled: tuple | None = None
        self.prefilled_from = -1
        self.tokens = np.zeros((rows, length), np.int32)
        self.logprobs = np.zeros((rows, length), np.float32)
        self.lengths = np.zeros(rows, np.int32)
        self.ended = np.zeros(rows, bool)
        self.forced = np.zeros((rows, length), bool)
        self.prefix = np.full(length, NOT_FORCED, np.int32)
        prefix = engine.control.prefix[:length]
        self.prefix[: len(prefix)] = prefix
        self.kept = None
        if engine.sampling.truncates:
            words = -(-engine.vocab_size // 32)
            self.kept = np.zeros((rows, length, words), np.uint32)
        self.routes: np.ndarray | None = None
        self.prompt_routes: np.ndarray | None = None
        self.steers = engine.control != Control()
        self.stats = EngineStats()

    def new_slots(self, count: int) -> Slots:
        """Slots in which nothing runs."""
        self._prefill(0)
        assert self.prefilled is not None
        return empty_slots(
            self.prefilled, count, self.engine.sampling, self.engine.vocab_size
        )

    def refill(self, running: _Running) -> None:
        """Starts waiting completions in slots that rest, prompt by prompt."""
        groups, per = self.shape[1], self.engine.prompts_per_prefill
        free = list(np.flatnonzero(running.owner < 0))
        while self.queue and free:
            first = self.queue[0] // groups // per * per
            source = np.full(len(running.owner), -1)
            while self.queue and free and self.queue[0] // groups < first + per:
                slot, number = free.pop(0), self.queue.pop(0)
                running.owner[slot] = number
                source[slot] = number // groups - first
            self._prefill(first)
            numbers = np.maximum(running.owner, 0)
            running.slots = insert(
                running.slots,
                self.prefilled,
                jnp.asarray(source, jnp.int32),
                self.keys[numbers],
                jnp.asarray(self._first_look(numbers), jnp.int32),
                jnp.asarray(self.prefix),
            )

    def decode(self, running: _Running) -> None:
        """One call of `advance`: until enough slots rest to be worth a refill."""
        engine, count = self.engine, len(running.owner)
        worth = max(1, count // 8)
        idle = int((running.owner < 0).sum())
        before = np.asarray(running.slots.step)
        running.slots = advance(
            engine.graphdef,
            self.parameters,
            running.slots,
            jnp.int32(engine.steps_per_call),
            jnp.int32(idle + worth if self.queue else count + 1),
            sampling=engine.sampling,
        )
        steps = int((np.asarray(running.slots.step) - before).max(initial=0))
        self.stats.slot_steps += steps * count
        self.stats.calls += 1

    def _first_look(self, numbers: np.ndarray) -> np.ndarray:
        """Tokens after which completions rest for the first time."""
        first = self.engine.control.first_look(self.tokens.shape[1])
        return np.minimum(self.limits[numbers], first)

    def steer(self, running: _Running) -> None:
        """Asks the control about each completion, and does what it says."""
        control = self.engine.control
        if control == Control(prefix=control.prefix):
            return
        slots = running.slots
        steps, stop_at, ended, tokens, forced = jax.device_get(
            (slots.step, slots.stop_at, slots.ended, slots.tokens, slots.forced)
        )
        steps, stop_at, ended, forced = map(np.array, (steps, stop_at, ended, forced))
        changed = np.zeros(len(steps), bool)
        for slot in np.flatnonzero(running.owner >= 0):
            limit, count = self.limits[running.owner[slot]], steps[slot]
            if ended[slot]:
                continue
            own = forced[slot, :count] != NOT_FORCED
            todo = control.look(tokens[slot, :count].tolist(), own.tolist())
            if todo is None and count < stop_at[slot]:
                continue
            changed[slot] = True
            stop_at[slot] = limit
            if todo is not None:
                steps[slot], ended[slot] = todo.keep, todo.ended
                room = forced[slot, todo.keep :]
                room[:] = NOT_FORCED
                room[: len(todo.force)] = todo.force[: len(room)]
        if changed.any():
            running.slots = steered(
                running.slots, changed, steps, stop_at, ended, forced
            )

    def collect(self, running: _Running) -> list[int]:
        """Takes finished completions out of their slots."""
        slots = running.slots
        rests, steps, ended = jax.device_get((~slots.running, slots.step, slots.ended))
        done = np.flatnonzero(rests & (running.owner >= 0))
        if not done.size:
            return []
        numbers = running.owner[done]
        tokens, logprobs = jax.device_get((slots.tokens, slots.logprobs))
        written = np.arange(tokens.shape[1]) < steps[done, None]
        self.tokens[numbers] = np.where(written, tokens[done], 0)
        self.logprobs[numbers] = np.where(written, logprobs[done], 0.0)
        self.lengths[numbers], self.ended[numbers] = steps[done], ended[done]
        if self.steers:
            forced = np.asarray(slots.forced)[done] != NOT_FORCED
            self.forced[numbers] = written & forced
        if self.kept is not None and slots.kept is not None:
            kept = np.asarray(slots.kept)[done]
            self.kept[numbers] = np.where(written[..., None], kept, 0)
        if self.routes is not None:
            # The last token was read by nothing that counts.
            was_read = np.arange(tokens.shape[1]) < steps[done, None] - 1
            routes = np.moveaxis(np.asarray(slots.cache.routes)[:, done, 0], 0, -2)
            self.routes[numbers] = np.where(was_read[..., None, None], routes, 0)
        self.stats.tokens += int(steps[done].sum())
        running.owner[done] = -1
        return numbers.tolist()

    def shrink(self, running: _Running) -> None:
        """Packs what still runs into half as many slots, while that holds it."""
        active = np.flatnonzero(running.owner >= 0)
        count = len(running.owner)
        while count // 2 >= max(LEAST_SLOTS, active.size) and active.size:
            count //= 2
        if count == len(running.owner):
            return
        spare = np.flatnonzero(running.owner < 0)[: count - active.size]
        rows = np.concatenate([active, spare])
        running.slots = packed(running.slots, jnp.asarray(rows, jnp.int32))
        running.owner = running.owner[rows]

    def rollouts(self) -> Rollouts:
        """All completions, in the order of their keys."""
        count, groups = self.shape

        def grouped(rows):
            return jnp.asarray(rows.reshape(count, groups, *rows.shape[1:]))

        return Rollouts(
            prompt_tokens=jnp.asarray(self.prompt_tokens),
            prompt_lengths=jnp.asarray(self.prompt_lengths),
            completion_tokens=grouped(self.tokens),
            completion_lengths=grouped(self.lengths),
            ended=grouped(self.ended),
            rollout_logprobs=grouped(self.logprobs),
            group_id=jnp.broadcast_to(jnp.arange(count)[:, None], (count, groups)),
            kept_tokens=None if self.kept is None else grouped(self.kept),
            forced=grouped(self.forced) if self.steers else None,
            routes=None if self.routes is None else grouped(self.routes),
            prompt_routes=None
            if self.prompt_routes is None
            else jnp.asarray(self.prompt_routes),
        )

    def _prefill(self, first: int) -> None:
        """The caches of `prompts_per_prefill` prompts from `first` on."""
        if first == self.prefilled_from:
            return
        per, count = self.engine.prompts_per_prefill, len(self.prompt_lengths)
        rows = np.minimum(np.arange(first, first + per), count - 1)
        self.prefilled = prefill(
            self.engine.graphdef,
            self.parameters,
            jnp.asarray(self.prompt_tokens[rows]),
            jnp.asarray(self.prompt_lengths[rows]),
        )
        self.prefilled_from = first
        self.stats.prefills += 1
        self._keep_routes(rows)

    def _keep_routes(self, rows: np.ndarray) -> None:
        """Notes the experts of prompts `rows`, just prefilled, if there are any."""
        assert self.prefilled is not None
        if self.prefilled[1].routes is None:
            return
        found = np.moveaxis(np.asarray(self.prefilled[1].routes), 0, -2)
        if self.prompt_routes is None:
            shape = (*self.tokens.shape, *found.shape[2:])
            self.routes = np.zeros(shape, found.dtype)
            self.prompt_routes = np.zeros(
                (*self.prompt_tokens.shape, *found.shape[2:]), found.dtype
            )
        self.prompt_routes[rows] = found
