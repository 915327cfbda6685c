"""Groups of completions that take several steps: sampled so far, waiting, complete."""

import base64
import dataclasses
import io
import math
from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Int, UInt

from rlvr_jax.rollout.completions import Completions, joined
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.passage import EngineStats, Prompts
from rlvr_jax.rollout.sampler import row_keys
from rlvr_jax.train.batches import PromptBatches, left_padded


@dataclasses.dataclass(frozen=True)
class Group:
    """The completions of one problem; a new one takes its place when they go on."""

    index: int
    """The problem."""
    step: int
    """In which it was drawn; with the problem it makes the sampling keys."""
    rows: Completions
    prompt_routes: UInt[np.ndarray, "S L E"] | None = None
    """As `Rollouts.prompt_routes`, when the prompt was last read."""

    @property
    def is_complete(self) -> bool:
        """All of its completions are finished."""
        return bool(self.rows.finished.all())


class Waiting:
    """The groups under way, oldest first."""

    def __init__(self, batches: PromptBatches, seed: int):
        """Holds none yet.

        Args:
          batches: the training prompts.
          seed: of the run.
        """
        self.groups: tuple[Group, ...] = ()
        self._batches, self._seed = batches, seed

    def add(
        self,
        engine: Engine,
        indices: Int[np.ndarray, " K"],
        named: Int[np.ndarray, " K"],
        step: int,
    ) -> None:
        """New groups, without any token.

        Args:
          engine: for the step's sampling.
          indices: their problems.
          named: numbers that tell groups of a step apart, for the keys.
          step: in which they are drawn.
        """
        size, generations = self._batches.size, engine.sampling.num_generations
        for start in range(0, len(indices), size):
            some = named[start : start + size]
            # Keys of a whole batch at a time, so that nothing compiles anew.
            ids = np.concatenate([some, np.zeros(size - len(some), some.dtype)])
            rows = engine.new_rows(
                row_keys(self._seed, step, jnp.asarray(ids), generations)
            )
            self.groups += tuple(
                Group(int(index), step, rows.rows(_span(place, generations)))
                for place, index in enumerate(indices[start : start + size])
            )

    def advance(
        self,
        engine: Engine,
        weights: nnx.State,
        chosen: Sequence[Group],
        budget: int | None,
        version: int,
        pause_share: float = 1.0,
    ) -> EngineStats:
        """Goes on with some of the groups, side by side.

        Args:
          engine: for the step's sampling.
          weights: of the policy.
          chosen: which.
          budget: tokens that each completion may have more; None finishes it.
          version: of the policy.
          pause_share: of the completions, at which all others rest.
        """
        if not chosen:
            return EngineStats()
        rows = joined([group.rows for group in chosen])
        limit = engine.sampling.max_completion_tokens
        limits = np.full(len(rows.lengths), limit)
        if budget is not None:
            limits = np.minimum(rows.lengths + budget, limit)
        enough = math.ceil(pause_share * len(rows.lengths))
        routes, stats = engine.go_on(
            weights,
            self.prompts(chosen),
            rows,
            limits,
            version=version,
            enough=enough if pause_share < 1 else None,
        )
        per_group = len(rows.lengths) // len(chosen)
        moved = {}
        for place, group in enumerate(chosen):
            own = group.prompt_routes
            if routes is not None and not group.is_complete:
                own = routes[place]
            mine = rows.rows(_span(place, per_group))
            moved[id(group)] = dataclasses.replace(group, rows=mine, prompt_routes=own)
        self.groups = tuple(moved.get(id(group), group) for group in self.groups)
        return stats

    def take(self, count: int) -> list[Group]:
        """Removes complete groups, the oldest ones, and returns them."""
        taken = [group for group in self.groups if group.is_complete][:count]
        self.drop(taken)
        return taken

    def drop(self, groups: Sequence[Group]) -> None:
        """Removes groups."""
        gone = {id(group) for group in groups}
        self.groups = tuple(group for group in self.groups if id(group) not in gone)

    def incomplete(self) -> list[Group]:
        """Those that go on, oldest first."""
        return [group for group in self.groups if not group.is_complete]

    def prompts(self, groups: Sequence[Group]) -> Prompts:
        """Of the groups, left-padded."""
        tokens = [self._batches.tokens[group.index] for group in groups]
        padded = left_padded(tokens, self._batches.slots, self._batches.pad_id)
        return Prompts(padded, np.array([len(each) for each in tokens], np.int32))


def packed(groups: Sequence[Group]) -> str:
    """Groups as text, for a checkpoint: a compressed .npz file in base64."""
    if not groups:
        return ""
    rows = joined([group.rows for group in groups])
    arrays: dict[str, Any] = {
        field.name: getattr(rows, field.name)
        for field in dataclasses.fields(rows)
        if getattr(rows, field.name) is not None
    }
    arrays["group_index"] = np.array([group.index for group in groups])
    arrays["group_step"] = np.array([group.step for group in groups])
    for place, group in enumerate(groups):
        if group.prompt_routes is not None:
            arrays[f"group_routes_{place}"] = group.prompt_routes
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return base64.b64encode(file.getvalue()).decode("ascii")


def unpacked(text: str) -> tuple[Group, ...]:
    """What `packed` was given, bit for bit."""
    if not text:
        return ()
    with np.load(io.BytesIO(base64.b64decode(text))) as file:
        arrays = {name: file[name] for name in file.files}
    indices, steps = arrays.pop("group_index"), arrays.pop("group_step")
    routes = {
        int(name.removeprefix("group_routes_")): arrays.pop(name)
        for name in list(arrays)
        if name.startswith("group_routes_")
    }
    rows = Completions(**arrays)
    per_group = len(rows.lengths) // len(indices)
    return tuple(
        Group(int(index), int(step), rows.rows(_span(i, per_group)), routes.get(i))
        for i, (index, step) in enumerate(zip(indices, steps, strict=True))
    )


def _span(place: int, size: int) -> slice:
    return slice(place * size, (place + 1) * size)
