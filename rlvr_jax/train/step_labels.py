"""What a process reward model learns from: steps, and completions that go on from them.

A step is a line of a completion. From the end of each a model completes anew, and the
share that comes out right labels the step (Math-Shepherd, which needs no person):

    problem, step 1, step 2 | -> N completions, verified -> label of step 2

The last step leaves nothing to complete: its label is the verdict.
"""

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jaxtyping import Bool, Float, Int

from rlvr_jax.core.step_labels import monte_carlo_labels, up_to_first_error
from rlvr_jax.data.prompts import EncodedPrompts
from rlvr_jax.data.tokenizer import Tokenizer
from rlvr_jax.errors import UserError
from rlvr_jax.rollout.scoring import Scorer, Scores
from rlvr_jax.train.batches import slots_for
from rlvr_jax.train.evaluation import Evaluation
from rlvr_jax.train.reward_model import Judged


class Steps(NamedTuple):
    """Where the steps of completions end."""

    ends: Int[np.ndarray, "N K"]
    """Tokens up to and with each step; 0 where a completion has fewer."""

    @property
    def mask(self) -> Bool[np.ndarray, "N K"]:
        """True on steps that a completion has."""
        return self.ends > 0


def step_ends(
    tokens: Sequence[int], tokenizer: Tokenizer, end_ids: Sequence[int]
) -> list[int]:
    """How many tokens each line takes up to its end; blank lines end nothing.

    Args:
      tokens: of a completion, an end token with them.
      tokenizer: what they mean.
      end_ids: tokens that end a completion; they belong to its last step.

    Returns:
      rising numbers, the last of which is that of all tokens.
    """
    has_end = bool(tokens) and tokens[-1] in end_ids
    ends, start = [], 0
    text = tokens[: len(tokens) - has_end]
    for place, token in enumerate(text, 1):
        is_last = place == len(text)
        if is_last or "\n" in tokenizer.decode([token]):
            if tokenizer.decode(text[start:place]).strip():
                ends.append(place)
                start = place
    return [*ends[:-1], len(tokens)]


def steps_of(data: Judged, tokenizer: Tokenizer, end_ids: Sequence[int]) -> Steps:
    """The steps of all completions."""
    rows = zip(data.completion_tokens, data.completion_lengths, strict=True)
    found = [step_ends(row[:n].tolist(), tokenizer, end_ids) for row, n in rows]
    ends = np.zeros((len(found), max(map(len, found))), np.int32)
    for row, places in zip(ends, found, strict=True):
        row[: len(places)] = places
    return Steps(ends)


def with_step_labels(
    data: Judged,
    steps: Steps,
    evaluation: Evaluation,
    parameters: nnx.State,
    *,
    completions: int = 8,
    kind: str = "hard",
    right: float = 1.0,
) -> Judged:
    """Completes from the end of each step, has that verified, and labels the step.

    Args:
      data: completions of the evaluation's problems, as `judged` returns them.
      steps: of `steps_of`.
      evaluation: samples and verifies; a completion may take as many tokens after a
        step as one of a whole problem.
      parameters: of the model that completes.
      completions: N per step.
      kind: "hard" (any is right; steps after the first error are left out) or "soft".
      right: the reward of a right answer.

    Returns:
      `data` with `step_labels`.

    Raises:
      UserError: the evaluation steers completions (control.*), which those that begin
        in the middle do not fit.
    """
    if evaluation.engine is not None:
        raise UserError(
            "labels of steps come from completions that begin in the middle, which "
            "control.* does not steer: leave it at its defaults"
        )
    rows, places = np.nonzero(steps.mask & ~_is_last(steps.mask))
    correct = np.zeros((*steps.ends.shape, completions), np.float32)
    correct[_is_last(steps.mask)] = np.isclose(data.rewards, right)[:, None]
    if len(rows):
        going_on = _going_on(data, steps.ends[rows, places], rows, evaluation)
        sampling = dataclasses.replace(going_on.sampling, num_generations=completions)
        batches = dataclasses.replace(going_on.batches, num_generations=completions)
        going_on = dataclasses.replace(going_on, sampling=sampling, batches=batches)
        correct[rows, places] = np.concatenate(
            [b.scores.correct[: b.used] for b in going_on.sampled(parameters)]
        )
    labels = monte_carlo_labels(jnp.asarray(correct), kind=kind)
    mask = jnp.asarray(steps.mask)
    kept = up_to_first_error(labels, mask) if kind == "hard" else mask
    return data._replace(
        step_labels=_by_place(
            steps, np.asarray(labels), np.asarray(kept), data.completion_tokens.shape[1]
        )
    )


@dataclasses.dataclass(frozen=True)
class _Continued(Scorer):
    """Judges completions together with what they go on from."""

    beginnings: Sequence[Sequence[int]] = ()
    """Tokens, by the index of the prompt."""

    def judged(self, indices, tokens, lengths, ended) -> Scores:
        """As of whole completions."""
        before = [self.beginnings[i] for i in indices]
        longest = max(map(len, before))
        whole = np.zeros((*lengths.shape, longest + tokens.shape[-1]), tokens.dtype)
        for row, given, sampled in zip(whole, before, tokens, strict=True):
            row[:, : len(given)] = given
            row[:, len(given) : len(given) + sampled.shape[-1]] = sampled
        counts = np.array([len(given) for given in before])[:, None] + lengths
        return super().judged(indices, whole, counts, ended)


def _going_on(
    data: Judged,
    ends: Int[np.ndarray, " M"],
    rows: Int[np.ndarray, " M"],
    evaluation: Evaluation,
) -> Evaluation:
    """The evaluation, with what completions begin with as a part of the prompt."""
    asked = evaluation.prompts
    each = len(data.rewards) // len(asked.problems)
    beginnings = [
        data.completion_tokens[row, :end].tolist()
        for row, end in zip(rows, ends, strict=True)
    ]
    problems = [asked.problems[row // each] for row in rows]
    tokens = [
        [*asked.tokens[row // each], *beginning]
        for row, beginning in zip(rows, beginnings, strict=True)
    ]
    plain = evaluation.scorer.for_evaluation(problems)
    fields = {f.name: getattr(plain, f.name) for f in dataclasses.fields(Scorer)}
    return dataclasses.replace(
        evaluation,
        prompts=EncodedPrompts(problems, tokens, 0),
        batches=dataclasses.replace(
            evaluation.batches, tokens=tokens, slots=slots_for(tokens)
        ),
        scorer=_Continued(**fields, beginnings=beginnings),
    )


def _is_last(mask: Bool[np.ndarray, "N K"]) -> Bool[np.ndarray, "N K"]:
    return mask & (mask.cumsum(axis=1) == mask.sum(axis=1, keepdims=True))


def _by_place(
    steps: Steps,
    labels: Float[np.ndarray, "N K"],
    kept: Bool[np.ndarray, "N K"],
    tokens: int,
) -> Float[np.ndarray, "N U"]:
    """Labels at the places that steps end before, NaN elsewhere: U = tokens + 1."""
    found = np.full((len(labels), tokens + 1), np.nan, np.float32)
    rows, places = np.nonzero(kept)
    found[rows, steps.ends[rows, places]] = labels[rows, places]
    return found
