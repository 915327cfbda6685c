"""One update in a file: recompute it anywhere, and find where two machines part.

A bundle holds what an update was made of (tokens, masks, all log-probs, rewards) and
what came out at each stage. `compare` computes the stages again, one after the other,
each from the stored inputs, so that the first difference is where the fault is.
"""

import dataclasses
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rlvr_jax.config import Objective
from rlvr_jax.errors import UserError
from rlvr_jax.train.credit import Signals, batch_advantages, shaped_rewards
from rlvr_jax.train.forward import batch_logprobs, flat, reference_logprobs
from rlvr_jax.train.micro_batches import prompts_of
from rlvr_jax.train.objective import (
    Rows,
    imitation_weights,
    loss_mask,
    minibatch_weights,
    objective_sums,
)
from rlvr_jax.train.state import StepPlan, TrainState
from rlvr_jax.types import Ratio, Rollouts

STAGES = ("shaped_rewards", "advantages", "weights", "denominator", "loss")


@dataclasses.dataclass(frozen=True)
class Difference:
    """A stage that came out differently."""

    stage: str
    largest: float
    """Largest absolute difference."""
    at: tuple[int, ...]
    stored: float
    computed: float


def capture(
    state: TrainState,
    rollouts: Rollouts,
    rewards: Float[Array, "P G"],
    correct: Float[Array, "P G"],
    plan: StepPlan,
    kept_groups: Bool[Array, " P"] | None = None,
) -> dict[str, np.ndarray]:
    """The arrays of the bundle: inputs of the step's one update, and its stages.

    Raises:
      UserError: the objective's advantages need a critic, parts, greedy answers or
        earlier rewards, which a bundle does not hold.
    """
    prompts = prompts_of(rollouts, plan)
    tokens, kept = rollouts.completion_tokens, rollouts.kept_tokens
    policy, entropies = batch_logprobs(
        state.parameters, prompts, tokens, kept, plan, rollouts.routes
    )
    reference = None
    if state.reference is not None:
        reference = reference_logprobs(state.reference, rollouts, plan)
    inputs: dict[str, Any] = {
        f"rollouts/{field.name}": getattr(rollouts, field.name)
        for field in dataclasses.fields(rollouts)
    }
    inputs |= {
        "rewards": rewards,
        "correct": correct,
        "policy_logprobs": policy,
        "entropies": entropies,
        "reference_logprobs": reference,
        "kept_groups": kept_groups,
    }
    stored = {
        name: np.asarray(value) for name, value in inputs.items() if value is not None
    }
    settings = (plan.objective, plan.max_completion_tokens)
    return stored | {
        f"stage/{name}": np.asarray(value)
        for name, value in _stages(stored, *settings).items()
    }


def save(
    path: pathlib.Path, arrays: dict[str, np.ndarray], plan: StepPlan, step: int
) -> None:
    """Writes a bundle, a .npz file; the settings are in it as JSON."""
    settings = {
        "step": step,
        "max_completion_tokens": plan.max_completion_tokens,
        "objective": dataclasses.asdict(plan.objective),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        named: dict[str, Any] = {"settings": json.dumps(settings), **arrays}
        np.savez_compressed(file, **named)


def load(path: pathlib.Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and settings of a bundle.

    Raises:
      UserError: the file is no bundle.
    """
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        settings = json.loads(str(arrays.pop("settings")))
    except (OSError, KeyError, ValueError) as error:
        raise UserError(f"replay: {path} is no bundle: {error}") from error
    return arrays, settings


def compare(
    arrays: dict[str, np.ndarray], settings: dict[str, Any], tolerance: float = 1e-5
) -> Difference | None:
    """The first stage that comes out differently here, or None.

    Args:
      arrays: of `load`.
      settings: of `load`.
      tolerance: relative to the largest stored value of a stage.
    """
    bands: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in settings["objective"].items()
    }
    found = _stages(arrays, Objective(**bands), settings["max_completion_tokens"])
    for stage in STAGES:
        stored, here = arrays[f"stage/{stage}"], np.asarray(found[stage])
        gap = np.abs(stored - here)
        limit = tolerance * max(1.0, float(np.abs(stored).max(initial=0)))
        if not (gap <= limit).all():  # a NaN is a difference, too
            at = np.unravel_index(np.argmax(np.nan_to_num(gap, nan=np.inf)), gap.shape)
            return Difference(
                stage=stage,
                largest=float(gap[at]),
                at=tuple(int(i) for i in at),
                stored=float(stored[at]),
                computed=float(here[at]),
            )
    return None


def _stages(
    arrays: dict[str, np.ndarray], objective: Objective, max_completion_tokens: int
) -> dict[str, Array]:
    """Every stage from the stored inputs, and from stages where those are stored."""
    given = {name: jnp.asarray(value) for name, value in arrays.items()}
    rollouts = Rollouts(
        **{
            name.removeprefix("rollouts/"): value
            for name, value in given.items()
            if name.startswith("rollouts/")
        }
    )
    rewards, correct = given["rewards"], given["correct"]
    kept = given.get("kept_groups")
    found: dict[str, Array] = {}

    def before(stage: str) -> Array:
        stored = f"stage/{stage}"
        return given[stored] if stored in given else found[stage]

    found["shaped_rewards"] = shaped_rewards(
        rewards, correct, rollouts, objective, max_completion_tokens
    )
    signals = Signals(
        group_id=flat(rollouts.group_id),
        token_mask=flat(rollouts.token_mask),
        correct=flat(correct) > 0,
        kept=None if kept is None else jnp.repeat(kept, rewards.shape[1]),
    )
    try:
        advantages = batch_advantages(
            flat(before("shaped_rewards")), signals, objective
        )
    except TypeError as error:
        raise UserError(
            f"replay: objective.advantage={objective.advantage!r} needs more than a "
            "bundle holds; replay.save_every works with advantages of the batch's own "
            "rewards."
        ) from error
    found["advantages"] = advantages.reshape(*rewards.shape, -1)
    in_loss = loss_mask(rollouts, objective, kept)
    weights, denominator = minibatch_weights(
        in_loss,
        rollouts.group_id,
        objective,
        max_completion_tokens,
    )
    found |= {"weights": weights, "denominator": denominator}
    mask = rollouts.token_mask.astype(jnp.float32)
    imitation = None
    if objective.imitation_coefficient > 0:
        imitation = imitation_weights(in_loss, correct, before("denominator"))
    rows = Rows(
        completion_tokens=rollouts.completion_tokens,
        token_mask=mask,
        weights=before("weights"),
        advantages=before("advantages"),
        correct=correct,
        rollout_logprobs=rollouts.rollout_logprobs,
        old_logprobs=None,
        reference_logprobs=given.get("reference_logprobs"),
        kept_tokens=None,
        imitation_weights=imitation,
    )
    numerator, _, _ = objective_sums(
        flat(given["policy_logprobs"]),
        flat(given["entropies"]),
        rows,
        objective,
        objective.entropy_coefficient,
    )
    found["loss"] = Ratio(numerator, before("denominator")).value()
    return jax.tree.map(jnp.asarray, found)
