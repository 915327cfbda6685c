"""Labels of steps for a process reward model, and the loss on them."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from rlvr_jax.core.groups import widened
from rlvr_jax.core.process import first_errors


def monte_carlo_labels(
    correct: Float[Array, "B S N"], *, kind: str = "hard"
) -> Float[Array, "B S"]:
    r"""Labels of steps from N completions that go on after each of them.

        hard   1 if any of them is right     (Math-Shepherd, the Qwen team's lessons)
        soft   the share that is right

    If each is right with chance q, a soft label is q on average and a hard one
    1 - (1 - q)^N (`expected_hard_label`). Both say whether the model that completes
    gets there from here, not whether the step is right: one that always recovers calls
    every step good.

    Args:
      correct: 1 where the completion's answer is right; any number above 0 counts as
        right for a hard label.
      kind: which label.

    Returns:
      labels in 0..1.

    Raises:
      ValueError: `kind` is none of the two, or N is 0.

    References:
      Math-Shepherd, sec. 3.2. https://arxiv.org/abs/2312.08935
      The Lessons of Developing PRMs, sec. 2. https://arxiv.org/abs/2501.07301

    Example:
      >>> correct = jnp.array([[[1.0, 0.0, 1.0, 1.0], [0.0, 0.0, 0.0, 0.0]]])
      >>> print(monte_carlo_labels(correct))
      [[1. 0.]]
      >>> print(monte_carlo_labels(correct, kind="soft"))
      [[0.75 0.  ]]
    """
    if kind not in ("hard", "soft"):
        raise ValueError(
            f"monte_carlo_labels: kind must be hard or soft, got {kind!r}."
        )
    if correct.shape[-1] == 0:
        raise ValueError(
            f"monte_carlo_labels: needs a completion per step, got {correct.shape}."
        )
    values = widened(correct)
    if kind == "hard":
        return (values > 0).any(axis=-1).astype(values.dtype)
    return values.mean(axis=-1)


def expected_hard_label(
    rate: Float[Array, "*shape"], *, completions: int
) -> Float[Array, "*shape"]:
    r"""The chance that a hard label is 1: 1 - (1 - q)^N.

    Args:
      rate: q, the chance that one completion is right.
      completions: N.

    Returns:
      the mean label; it tends to 1 for any q above 0 as N grows.

    Example:
      >>> print(expected_hard_label(jnp.array([0.0, 0.2, 1.0]), completions=8).round(4))
      [0.     0.8322 1.    ]
    """
    return 1 - (1 - widened(rate)) ** completions


def up_to_first_error(
    labels: Float[Array, "B S"], step_mask: Bool[Array, "B S"]
) -> Bool[Array, "B S"]:
    """The steps that a label says something about: none after the first error.

    What follows from a wrong step is neither right nor wrong, and is left out.

    Args:
      labels: of steps; below 0.5 is wrong.
      step_mask: True on steps that the solution has.

    Returns:
      the mask of steps up to the first error, that one included.

    References:
      The Lessons of Developing PRMs, sec. 2. https://arxiv.org/abs/2501.07301

    Example:
      >>> labels, steps = jnp.array([[1.0, 0.0, 1.0]]), jnp.ones((1, 3), bool)
      >>> print(up_to_first_error(labels, steps))
      [[ True  True False]]
    """
    error = first_errors(labels, step_mask)[:, None]
    return step_mask & ((error < 0) | (jnp.arange(labels.shape[1]) <= error))


def consensus(
    labels: Float[Array, "B S"],
    judged: Float[Array, "B S"],
    step_mask: Bool[Array, "B S"],
) -> Bool[Array, " B"]:
    """Solutions of which two sources of labels say the same: the consensus filter.

    Kept is a solution whose first error both put at the same step, or in which neither
    finds one. Where the two err independently this leaves few wrong labels, at the cost
    of data (about 40 % stayed in the paper).

    Args:
      labels: of one source, say completions; below 0.5 is wrong.
      judged: of the other, say a language model as a judge.
      step_mask: True on steps that the solution has.

    Returns:
      True where the solution is kept.

    References:
      The Lessons of Developing PRMs, sec. 3. https://arxiv.org/abs/2501.07301

    Example:
      >>> labels = jnp.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
      >>> judged = jnp.array([[1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
      >>> print(consensus(labels, judged, jnp.ones((2, 3), bool)))
      [ True False]
    """
    return first_errors(labels, step_mask) == first_errors(judged, step_mask)


def step_loss(
    logits: Float[Array, "B S"], labels: Float[Array, "B S"]
) -> Float[Array, "B S"]:
    r"""Cross-entropy of a process reward model, per step.

        l = -(y log p + (1 - y) log(1 - p)),     p = sigmoid(logit)

    Least at p = y, so that a score trained on soft labels tends to the completer's
    rate and one on hard labels to 1 - (1 - q)^N.

    Args:
      logits: of the score of each step.
      labels: y in 0..1, hard or soft; constants.

    Returns:
      the loss per step, in nats, unaggregated; the caller masks.

    References:
      Let's Verify Step by Step, app. F. https://arxiv.org/abs/2305.20050
      Math-Shepherd, eq. 2. https://arxiv.org/abs/2312.08935

    Example:
      >>> logits, labels = jnp.array([[0.0, 2.0]]), jnp.array([[1.0, 0.0]])
      >>> print(step_loss(logits, labels).round(3))
      [[0.693 2.127]]
    """
    scores, targets = widened(logits), widened(jax.lax.stop_gradient(labels))
    return jax.nn.softplus(scores) - targets * scores
