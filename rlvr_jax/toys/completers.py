"""Labels of steps by completing from them: whose ability do they measure?

A solution has S steps and at most one first error, after which it is on a wrong track.
A completer goes on from a prefix: each step that is left is right with its `skill`, and
from a wrong track the first of them has to put it right again, with chance `repair`.

    q(good prefix) = skill^left          q(wrong track) = repair * skill^(left - 1)

A strong completer rescues bad steps and a weak one spoils good ones, so that labels
encode the completer. A judge reads the steps instead, and errs for other reasons.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from rlvr_jax.core.process import first_errors
from rlvr_jax.core.step_labels import consensus, monte_carlo_labels

STEPS = 6


class Grades(NamedTuple):
    """Of labels, against what is planted."""

    bad_called_good: Float[Array, ""]
    """Share of first wrong steps with a label of right."""
    good_called_bad: Float[Array, ""]
    """Share of the right steps with a label of wrong."""
    located: Float[Array, ""]
    """Share of solutions whose first error (or none) is the planted one."""


def solutions(
    key: Key[Array, ""], count: int, *, sound: float = 0.4
) -> Int[Array, " N"]:
    """Places of first errors, -1 for none; the last step is never the first error.

    Args:
      key: consumed.
      count: N.
      sound: share without an error; the others have it anywhere, equally likely.
    """
    is_sound, place = jax.random.split(key)
    anywhere = jax.random.randint(place, (count,), 0, STEPS - 1)
    return jnp.where(jax.random.bernoulli(is_sound, sound, (count,)), -1, anywhere)


def success_rates(
    error: Int[Array, " N"],
    skill: float | Float[Array, ""],
    repair: float | Float[Array, ""],
) -> Float[Array, "N S"]:
    """q, the chance that a completion after each step is right.

    Example:
      >>> print(success_rates(jnp.array([-1, 4]), 0.5, 0.25)[:, 3:])
      [[0.25 0.5  1.  ]
       [0.25 0.25 0.  ]]
    """
    place = jnp.arange(STEPS)
    left = STEPS - 1 - place
    good = jnp.power(skill, left)
    rescued = jnp.where(
        left > 0, repair * jnp.power(skill, jnp.maximum(left - 1, 0)), 0
    )
    return jnp.where(_on_track(error), good, rescued)


def completer_labels(
    key: Key[Array, ""],
    error: Int[Array, " N"],
    skill: float | Float[Array, ""],
    repair: float | Float[Array, ""],
    *,
    completions: int = 8,
    kind: str = "hard",
) -> Float[Array, "N S"]:
    """Labels from completions that are drawn after each step.

    Args:
      key: consumed.
      error: of `solutions`.
      skill: of the completer, as above.
      repair: of the completer.
      completions: per step.
      kind: "hard" or "soft".
    """
    rates = success_rates(error, skill, repair)[..., None]
    drawn = jax.random.uniform(key, (*rates.shape[:2], completions)) < rates
    return monte_carlo_labels(drawn * 1.0, kind=kind)


def judge_labels(
    key: Key[Array, ""], error: Int[Array, " N"], *, sees: float = 0.8
) -> Float[Array, "N S"]:
    """Labels of a judge, or a person: the first error is where it should be with chance
    `sees`, else at any step or none, equally likely. Later steps are wrong, too.
    """
    right, where = jax.random.split(key)
    guess = jax.random.randint(where, error.shape, -1, STEPS)
    said = jnp.where(jax.random.bernoulli(right, sees, error.shape), error, guess)
    return _on_track(said) * 1.0


def grades(labels: Float[Array, "N S"], error: Int[Array, " N"]) -> Grades:
    """What the labels get wrong."""
    good, called_good = _on_track(error), labels >= 0.5
    first_wrong = jnp.arange(STEPS) == error[:, None]

    def share(of: Bool[Array, "N S"], among: Bool[Array, "N S"]) -> Float[Array, ""]:
        return jnp.sum(of & among) / jnp.maximum(among.sum(), 1)

    every = jnp.ones(labels.shape, bool)
    return Grades(
        share(called_good, first_wrong),
        share(~called_good, good),
        jnp.mean(first_errors(labels, every) == error),
    )


def filtered(
    labels: Float[Array, "N S"], judged: Float[Array, "N S"], error: Int[Array, " N"]
) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """What the consensus filter leaves: (share kept, share of it that is located)."""
    every = jnp.ones(labels.shape, bool)
    kept = consensus(labels, judged, every)
    right = first_errors(labels, every) == error
    return kept.mean(), jnp.sum(kept & right) / jnp.maximum(kept.sum(), 1)


def _on_track(error: Int[Array, " N"]) -> Bool[Array, "N S"]:
    return (error[:, None] < 0) | (jnp.arange(STEPS) < error[:, None])
