"""Stops a run whose gradients are no numbers any more."""

from rlvr_jax.errors import UserError


class Diverged(UserError):
    """Too many steps in a row without a finite gradient."""


class DivergenceGuard:
    """Counts steps in a row in which no update had a finite gradient.

    Such updates are left out, so the policy is as it was before them.
    """

    def __init__(self, max_steps: int):
        """Allows `max_steps` in a row; 0 allows any number."""
        self._max_steps = max_steps
        self._since: int | None = None

    def check(self, step: int, metrics: dict[str, float]) -> None:
        """Notes a step.

        Raises:
          Diverged: one step too many; the message names the first and the last.
        """
        if metrics["optimizer/not_finite"] < 1:
            self._since = None
            return
        if self._since is None:
            self._since = step
        if self._max_steps and step - self._since >= self._max_steps:
            raise Diverged(
                f"train: no update had a finite gradient in steps {self._since} to "
                f"{step}, more than optimizer.max_nonfinite_steps="
                f"{self._max_steps} in a row. The policy is that of step "
                f"{self._since}. Look at ratio/max, mismatch/abs_logprob_max and the "
                "rewards of these steps; lower optimizer.learning_rate or bound the "
                "ratio (objective.importance_correction), or set model.dtype=float32."
            )
