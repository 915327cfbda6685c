"""One batch of completions on its way through the slots: what waits, runs, is done."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Array, Int, Key

from rlvr_jax.rollout.completions import Completions
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.resumed import Begun, resume
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

LEAST_SLOTS = 8
RESUMED_AT_ONCE = 8


@dataclasses.dataclass
class EngineStats:
    """Where the time of a batch went."""

    tokens: int = 0
    """Written into completions."""
    slot_steps: int = 0
    """Decode steps times slots: tokens / slot_steps is the share that was useful."""
    prefills: int = 0
    resumed: int = 0
    """Completions that were read anew."""
    calls: int = 0
    decode_steps: int = 0
    """Tokens of the slowest slot: what the batch waited for."""

    @property
    def padding_share(self) -> float:
        """Share of decoded rows that nobody needed."""
        return 1 - self.tokens / self.slot_steps if self.slot_steps else 0.0


@dataclasses.dataclass(frozen=True)
class Prompts:
    """What the completions answer: P prompts with B / P rows each."""

    tokens: Int[np.ndarray, "P S"]
    """Left-padded."""
    lengths: Int[np.ndarray, " P"]


@dataclasses.dataclass(frozen=True)
class Program:
    """What the programs of the slots are compiled for, and how they are called."""

    graphdef: nnx.GraphDef
    sampling: Sampling
    vocab_size: int
    num_slots: int = 64
    prompts_per_prefill: int = 8
    steps_per_call: int = 32
    """Decode steps between two looks of the host."""
    control: Control = dataclasses.field(default_factory=Control)


@dataclasses.dataclass
class _Running:
    """Who is in which slot: number of the completion, or -1."""

    owner: np.ndarray
    slots: Slots


class Passage:
    """Brings rows of completions up to their limits; see `Engine`."""

    def __init__(
        self,
        program: Program,
        parameters: nnx.State,
        prompts: Prompts,
        rows: Completions,
        limits: Int[np.ndarray, " B"],
        version: int,
    ):
        """Starts nothing yet.

        Args:
          program: the engine's.
          parameters: of the policy.
          prompts: of the rows.
          rows: written into.
          limits: tokens at which each row rests.
          version: of the policy.
        """
        self.program, self.parameters, self.prompts = program, parameters, prompts
        self.rows, self.limits, self.version = rows, limits, version
        self.per_prompt = len(rows.lengths) // len(prompts.lengths)
        waits = ~rows.finished & (rows.lengths < limits)
        self.queue = np.flatnonzero(waits).tolist()
        self.begun_at = rows.lengths.copy()
        """Tokens that were there already; lower where a control cut further back."""
        self.controls = [program.control.drawn(k) for k in rows.keys.tolist()]
        self.prompt_routes: np.ndarray | None = None
        self.stats = EngineStats()
        self._prefilled: tuple | None = None
        self._prefilled_from = -1

    def new_slots(self) -> _Running:
        """Slots in which nothing runs."""
        count = self.program.num_slots
        self._prefill(0)
        assert self._prefilled is not None
        slots = empty_slots(
            self._prefilled, count, self.program.sampling, self.program.vocab_size
        )
        return _Running(np.full(count, -1), slots)

    def refill(self, running: _Running) -> None:
        """Puts waiting completions in slots that rest, prompt by prompt."""
        per = self.program.prompts_per_prefill
        free = np.flatnonzero(running.owner < 0).tolist()
        while self.queue and free:
            first = self._prompt(self.queue[0]) // per * per
            taken: dict[int, int] = {}
            while self.queue and free and self._prompt(self.queue[0]) < first + per:
                taken[free.pop(0)] = self.queue.pop(0)
            self._prefill(first)
            running.owner[list(taken)] = list(taken.values())
            new = {s: n for s, n in taken.items() if self.rows.lengths[n] == 0}
            begun = [pair for pair in taken.items() if pair[0] not in new]
            if new:
                self._insert(running, new, first)
            for start in range(0, len(begun), RESUMED_AT_ONCE):
                self._resume(running, begun[start : start + RESUMED_AT_ONCE], first)

    def _insert(self, running: _Running, new: dict[int, int], first: int) -> None:
        source = np.full(len(running.owner), -1)
        for slot, number in new.items():
            source[slot] = self._prompt(number) - first
        numbers = np.maximum(running.owner, 0)
        running.slots = insert(
            running.slots,
            self._prefilled,
            jnp.asarray(source, jnp.int32),
            self._keys(numbers),
            jnp.asarray(self._rests_at(numbers), jnp.int32),
            jnp.asarray(self.rows.forced[numbers]),
        )

    def _resume(self, running: _Running, pairs: list, first: int) -> None:
        spare = RESUMED_AT_ONCE - len(pairs)
        slots = [slot for slot, _ in pairs] + [len(running.owner)] * spare
        numbers = np.array([n for _, n in pairs] + [pairs[0][1]] * spare)
        running.slots = resume(
            self.program.graphdef,
            self.parameters,
            running.slots,
            self._prefilled,
            Begun(
                slot=jnp.asarray(slots, jnp.int32),
                source=jnp.asarray(self._prompt(numbers) - first, jnp.int32),
                keys=self._keys(numbers),
                tokens=jnp.asarray(self.rows.tokens[numbers]),
                forced=jnp.asarray(self.rows.forced[numbers]),
                step=jnp.asarray(self.rows.lengths[numbers], jnp.int32),
                stop_at=jnp.asarray(self._rests_at(numbers), jnp.int32),
            ),
        )
        self.stats.resumed += len(pairs)

    def _prompt(self, number):
        return number // self.per_prompt

    def _keys(self, numbers: np.ndarray) -> Key[Array, " N"]:
        return jax.random.wrap_key_data(jnp.asarray(self.rows.keys[numbers]))

    def _rests_at(self, numbers: np.ndarray) -> np.ndarray:
        """Tokens after which rows rest for the first time."""
        limits = self.limits[numbers]
        length = self.rows.tokens.shape[1]
        first = np.array([self.controls[n].first_look(length) for n in numbers])
        looked_at = self.rows.lengths[numbers] >= first
        return np.where(looked_at, limits, np.minimum(limits, first))

    def decode(self, running: _Running) -> None:
        """One call of `advance`: until enough slots rest to be worth a refill."""
        program, count = self.program, len(running.owner)
        worth = max(1, count // 8)
        idle = int((running.owner < 0).sum())
        before = np.asarray(running.slots.step)
        running.slots = advance(
            program.graphdef,
            self.parameters,
            running.slots,
            jnp.int32(program.steps_per_call),
            jnp.int32(idle + worth if self.queue else count + 1),
            sampling=program.sampling,
        )
        steps = int((np.asarray(running.slots.step) - before).max(initial=0))
        self.stats.slot_steps += steps * count
        self.stats.decode_steps += steps
        self.stats.calls += 1

    def steer(self, running: _Running) -> None:
        """Asks the control about each completion, and does what it says."""
        control = self.program.control
        if control == Control(prefix=control.prefix):
            return
        slots = running.slots
        steps, stop_at, ended, tokens, forced = jax.device_get(
            (slots.step, slots.stop_at, slots.ended, slots.tokens, slots.forced)
        )
        steps, stop_at, ended, forced = map(np.array, (steps, stop_at, ended, forced))
        logprobs = self._logprobs(running) if control.certain_tokens else None
        changed = np.zeros(len(steps), bool)
        for slot in np.flatnonzero(running.owner >= 0):
            number, count = running.owner[slot], steps[slot]
            own = forced[slot, :count] != NOT_FORCED
            # Of one that ended, too: what closes early may end before the next look.
            todo = self.controls[number].look(
                tokens[slot, :count].tolist(),
                own.tolist(),
                () if logprobs is None else logprobs[slot, :count].tolist(),
            )
            if todo is None and (ended[slot] or count < stop_at[slot]):
                continue
            changed[slot] = True
            stop_at[slot] = self.limits[number]
            if todo is not None:
                steps[slot], ended[slot] = todo.keep, todo.ended
                self.rows.cut[number] = todo.cut
                if todo.cut:
                    stop_at[slot] = todo.keep
                self.begun_at[number] = min(self.begun_at[number], todo.keep)
                room = forced[slot, todo.keep :]
                room[:] = NOT_FORCED
                room[: len(todo.force)] = todo.force[: len(room)]
        if changed.any():
            running.slots = steered(
                running.slots, changed, steps, stop_at, ended, forced
            )

    def _logprobs(self, running: _Running) -> np.ndarray:
        """Of the completions in the slots; the host has those of earlier passes."""
        numbers = np.maximum(running.owner, 0)
        earlier = np.arange(self.rows.tokens.shape[1]) < self.begun_at[numbers, None]
        found = np.asarray(running.slots.logprobs)
        return np.where(earlier, self.rows.logprobs[numbers], found)

    def collect(self, running: _Running, *, unfinished: bool = False) -> list[int]:
        """Takes completions that rest, or all of them, out of their slots."""
        slots, rows = running.slots, self.rows
        rests, steps, ended = jax.device_get((~slots.running, slots.step, slots.ended))
        done = np.flatnonzero((rests | unfinished) & (running.owner >= 0))
        if not done.size:
            return []
        numbers = running.owner[done]
        tokens, logprobs, forced = jax.device_get(
            (slots.tokens, slots.logprobs, slots.forced)
        )
        places = np.arange(tokens.shape[1])
        written = places < steps[done, None]
        new = written & (places >= self.begun_at[numbers, None])

        def fill(held, found):
            more = (slice(None),) * 2 + (None,) * (held.ndim - 2)
            held[numbers] = np.where(
                new[more], found, np.where(written[more], held[numbers], 0)
            )

        fill(rows.tokens, tokens[done])
        fill(rows.logprobs, logprobs[done])
        fill(rows.versions, self.version)
        rows.forced[numbers] = forced[done]
        self.stats.tokens += int((steps[done] - rows.lengths[numbers]).sum())
        rows.lengths[numbers], rows.ended[numbers] = steps[done], ended[done]
        if rows.kept is not None and slots.kept is not None:
            fill(rows.kept, np.asarray(slots.kept)[done])
        if rows.routes is not None:
            # The last token was read by nothing that counts.
            was_read = places < steps[done, None] - 1
            routes = np.moveaxis(np.asarray(slots.cache.routes)[:, done, 0], 0, -2)
            rows.routes[numbers] = np.where(was_read[..., None, None], routes, 0)
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

    def _prefill(self, first: int) -> None:
        """The caches of `prompts_per_prefill` prompts from `first` on."""
        if first == self._prefilled_from:
            return
        per, count = self.program.prompts_per_prefill, len(self.prompts.lengths)
        chosen = np.minimum(np.arange(first, first + per), count - 1)
        self._prefilled = prefill(
            self.program.graphdef,
            self.parameters,
            jnp.asarray(self.prompts.tokens[chosen]),
            jnp.asarray(self.prompts.lengths[chosen]),
        )
        self._prefilled_from = first
        self.stats.prefills += 1
        self._keep_routes(chosen)

    def _keep_routes(self, chosen: np.ndarray) -> None:
        """Notes the experts of prompts, just prefilled, if there are any."""
        assert self._prefilled is not None
        if self._prefilled[1].routes is None:
            return
        found = np.moveaxis(np.asarray(self._prefilled[1].routes), 0, -2)
        if self.prompt_routes is None:
            self.prompt_routes = np.zeros(
                (*self.prompts.tokens.shape, *found.shape[2:]), found.dtype
            )
        if self.rows.routes is None:
            shape = (*self.rows.tokens.shape, *found.shape[2:])
            self.rows.routes = np.zeros(shape, found.dtype)
        self.prompt_routes[chosen] = found
