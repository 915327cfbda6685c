"""The sampling rules: which problems are drawn, and which of their groups teach.

    stages         what may be drawn at a step, in which shares      (stages.py, mix.py)
    pass rates     problems dropped for good, or outside a window    (pass_rates.py)
    draw           in the order of the epochs, or by 1 - pass rate
    informative    groups with more than one outcome                 (train/collect.py)

All on the host. Without a rule that looks back the draw is a function of (seed, step);
with one, of the seed and of `Curriculum.state`, which belongs to the checkpoint.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, Real

from rlvr_jax import config as config_lib
from rlvr_jax.data import names
from rlvr_jax.data.pass_rates import PassRates
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.stage_orders import mix_weights, stage_order, stage_parts
from rlvr_jax.data.stages import parse_stages, stage_at
from rlvr_jax.errors import UserError

_DRAWS = 2**32
"""Keeps the random numbers of prioritised draws apart from those of epochs."""
_CHUNK = 1024


class CurriculumExhausted(UserError):
    """No problem is left that the rules let a step draw."""


class BatchShort(UserError):
    """The bound on generation was hit under when_short="error"."""


def informative(outcomes: Real[np.ndarray, "P G"]) -> Bool[np.ndarray, " P"]:
    """Groups with more than one outcome: 0 < #correct < G, where outcomes are 0 or 1.

    Example:
      >>> informative(np.array([[1, 1], [1, 0], [0, 0]]))
      array([False,  True, False])
    """
    return outcomes.max(axis=1) > outcomes.min(axis=1)


def keep_rate(
    pass_rate: Float[np.ndarray, " N"], num_generations: int
) -> Float[np.ndarray, " N"]:
    r"""The chance that a group is informative: 1 - p^G - (1 - p)^G.

    Dynamic sampling draws 1 / keep rate as many groups as it learns from.

    Example:
      >>> print(keep_rate(np.array([0.5, 0.9, 1.0]), 16).round(4))
      [1.     0.8147 0.    ]
    """
    return 1 - pass_rate**num_generations - (1 - pass_rate) ** num_generations


def priorities(pass_rates: Float[np.ndarray, " N"]) -> Float[np.ndarray, " N"]:
    r"""Kimi k1.5: the chance to be drawn, (1 - s_i) / sum_j (1 - s_j).

    Args:
      pass_rates: s; NaN (never tried) counts as 0.

    Returns:
      Chances, [N]; zeros where every problem is solved.

    References:
      Kimi k1.5, sec. 2.3. https://arxiv.org/abs/2501.12599

    Example:
      >>> print(priorities(np.array([0.0, 0.5, 1.0])).round(3))
      [0.667 0.333 0.   ]
    """
    unsolved = 1 - np.nan_to_num(pass_rates, nan=0.0)
    total = unsolved.sum()
    return unsolved / total if total > 0 else unsolved


def looks_back(settings: config_lib.CurriculumConfig) -> bool:
    """Whether what is drawn depends on earlier outcomes."""
    return settings.filter in ("dynamic", "active") or reads_pass_rates(settings)


def reads_pass_rates(settings: config_lib.CurriculumConfig) -> bool:
    """Whether what is drawn depends on pass rates."""
    window = (settings.min_pass_rate, settings.max_pass_rate) != (0, 1)
    return settings.draw == "priority" or settings.drop_pass_rate > 0 or window


class Curriculum:
    """The rules over the training problems, and what they remember."""

    def __init__(
        self,
        settings: config_lib.CurriculumConfig,
        problems: Sequence[Problem],
        data: config_lib.DataConfig,
        *,
        prompts_per_step: int,
        max_completion_tokens: int,
        seed: int,
        streams: bool = False,
    ):
        """Reads stages, mixes and known pass rates.

        Args:
          settings: the rules.
          problems: all of the training.
          data: its mix and shuffle.
          prompts_per_step: P.
          max_completion_tokens: of stages that name none.
          seed: of the orders.
          streams: the plain draw goes on where the last one stopped, whatever the
            step, so that draws may have any size.

        Raises:
          UserError: a stage or mix is not of its form, or keeps no problem; no row
            has the pass_rate_field.
        """
        self.settings, self.seed, self.streams = settings, seed, streams
        self.prompts_per_step = prompts_per_step
        self.rates = PassRates(len(problems))
        self.stages = parse_stages(settings.stages, max_completion_tokens)
        self._prior = _known_rates(problems, settings.pass_rate_field)
        parts = [stage_parts(stage, problems, data.mix) for stage in self.stages]
        self._orders = [
            stage_order(*part, prompts_per_step, seed, data.shuffle) for part in parts
        ]
        self._weights = [mix_weights(*part, len(problems)) for part in parts]
        self._stage, self._place = 0, 0

    def stage(self, step: int) -> int:
        """The number of the step's stage."""
        return stage_at(self.stages, step)

    def draw(
        self, step: int, count: int, taken: Sequence[int] = ()
    ) -> Int[np.ndarray, " K"]:
        """Problems to sample.

        Args:
          step: of the training.
          count: how many are wanted: prompts_per_step for the first draw of a step.
          taken: those that the step has already drawn.

        Returns:
          `count` problems, fewer where the rules leave fewer. No problem is there
          twice, except by the plain order over fewer problems than it needs.

        Raises:
          CurriculumExhausted: none is left at the first draw of a step.
        """
        number = self.stage(step)
        if not looks_back(self.settings):
            if self.streams:
                return self._stream(number, count)
            return self._orders[number].indices(step - self.stages[number].start)
        allowed = self.eligible(step)
        allowed[list(taken)] = False
        if not allowed.any() and not len(taken):
            raise CurriculumExhausted(
                f"curriculum: at step {step} no problem is left to draw: all of the "
                f"{int((self._weights[number] > 0).sum())} of this stage are solved or "
                "outside of the window. The training data is used up: widen "
                "curriculum.drop_pass_rate, min_pass_rate and max_pass_rate and start "
                "the same command again; or, in another run_dir, add problems (or a "
                "prior_count, which keeps chances above 0 under draw='priority')."
            )
        if self.settings.draw == "priority":
            return self._by_priority(step, count, allowed, len(taken))
        return self._by_order(number, count, allowed)

    def eligible(self, step: int) -> Bool[np.ndarray, " N"]:
        """The problems that the stage and the pass rates allow at a step."""
        settings = self.settings
        allowed = self._weights[self.stage(step)] > 0
        if not reads_pass_rates(settings):
            return allowed
        rates = self._rates()
        low, high = settings.min_pass_rate, settings.max_pass_rate
        outside = (rates < low) | (rates > high)  # False where the rate is NaN
        if settings.revisit_after_steps > 0:
            tried = self.rates.last_step >= 0
            age = step - self.rates.last_step
            outside &= ~(tried & (age >= settings.revisit_after_steps))
        allowed &= ~outside
        if settings.drop_pass_rate > 0:
            allowed &= ~(rates >= settings.drop_pass_rate)
        if settings.draw == "priority":
            allowed &= priorities(rates) > 0
        return allowed

    def record(
        self,
        indices: Int[np.ndarray, " P"],
        correct: Float[np.ndarray, "P G"],
        step: int,
    ) -> None:
        """Takes note of all groups sampled at a step, kept or not."""
        self.rates.record(indices, correct, step)

    def state(self) -> dict[str, Any]:
        """What the draws depend on, as JSON values."""
        return {
            "stage": self._stage,
            "place": self._place,
            "rates": self.rates.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Puts back what `state` gave.

        Raises:
          UserError: it was of other data.
        """
        self.rates.restore(state["rates"])
        self._stage, self._place = state["stage"], state["place"]

    def _rates(self) -> Float[np.ndarray, " N"]:
        return self.rates.estimate(
            of=self.settings.pass_rate_of,
            prior_count=self.settings.prior_count,
            prior=self._prior,
        )

    def _stream(self, number: int, count: int) -> np.ndarray:
        """The next problems of the stage's stream."""
        if number != self._stage:
            self._stage, self._place = number, 0
        self._place += count
        return self._orders[number].take(self._place - count, count)

    def _by_order(self, number: int, count: int, allowed: np.ndarray) -> np.ndarray:
        """The next problems of the stage's stream that are allowed."""
        if number != self._stage:
            self._stage, self._place = number, 0
        wanted = min(count, int(allowed.sum()))
        found: list[int] = []
        while len(found) < wanted:
            for index in self._orders[number].take(self._place, _CHUNK).tolist():
                if len(found) == wanted:
                    break
                self._place += 1
                if allowed[index]:
                    found.append(index)
                    allowed[index] = False
        return np.array(found, np.int64)

    def _by_priority(
        self, step: int, count: int, allowed: np.ndarray, draw: int
    ) -> np.ndarray:
        """Without replacement: the largest of log(u_i) / weight_i (Efraimidis)."""
        weights = priorities(self._rates()) * self._weights[self.stage(step)]
        key = np.random.SeedSequence(self.seed, spawn_key=(_DRAWS + step, draw))
        bits = np.random.Philox(key).random_raw(len(weights)) >> np.uint64(11)
        uniform = (bits.astype(float) + 0.5) * 2.0**-53
        places = np.flatnonzero(allowed)
        keys = np.log(uniform[places]) / weights[places]
        return places[np.argsort(-keys, kind="stable")][:count]


def _known_rates(problems: Sequence[Problem], field: str) -> np.ndarray | None:
    if not field:
        return None
    values = [problem.meta.get(field) for problem in problems]
    if all(value is None for value in values):
        known = sorted({key for problem in problems for key in problem.meta})
        raise UserError(
            names.unknown("field", field, known, "curriculum.pass_rate_field")
        )
    try:
        rates = np.array([np.nan if v is None else float(v) for v in values])
    except (TypeError, ValueError):
        rates = np.array([2.0])
    if np.nanmin(rates) < 0 or np.nanmax(rates) > 1:
        raise UserError(
            f"curriculum.pass_rate_field={field!r} needs numbers from 0 to 1 in every "
            "row that has it"
        )
    return rates
