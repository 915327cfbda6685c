"""Rejection sampling: a model's completions that were verified, as rows to imitate.

    problems -> n completions each, verified -> correct, readable, different ones

The rows are problems with their "solutions", as a cold start reads them. The model may
be the policy itself (stage 3 of DeepSeek-R1) or a teacher (its distilled students).
"""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from flax import nnx

from rlvr_jax.analysis.branching import without_branching
from rlvr_jax.data.long2short import Sampled
from rlvr_jax.data.rows import Problem
from rlvr_jax.train.evaluation import Evaluation
from rlvr_jax.verifiers.language import CONSISTENT, share

_CODE_BLOCK = re.compile(r"```|~~~")


@dataclasses.dataclass(frozen=True)
class Rules:
    """Which correct completions stay; DeepSeek-R1 drops mixed languages, long
    paragraphs and code blocks (sec. 2.3.3, https://arxiv.org/abs/2501.12948)."""

    per_problem: int = 4
    """At most so many of one problem, no text twice."""
    shortest: bool = False
    """The shortest ones first (Kimi k1.5), else as they were sampled."""
    language: str = ""
    """ISO 639-1 code that nine words of ten have to be of; "" takes any."""
    max_paragraph_words: int = 0
    """0: paragraphs of any length."""
    code_blocks: bool = True
    drop_branching: float = 0.0
    """Share of what is left by then that goes: the traces that branch most."""

    def readable(self, text: str) -> bool:
        """Whether language, paragraphs and code blocks are as they should be."""
        if not self.code_blocks and _CODE_BLOCK.search(text):
            return False
        longest = max((len(part.split()) for part in text.split("\n")), default=0)
        if self.max_paragraph_words and longest > self.max_paragraph_words:
            return False
        if not self.language:
            return True
        # Without words there is nothing to mix: "3 + 4 = 7".
        found = share(text, self.language)
        return found is None or found >= CONSISTENT

    def choose(self, samples: Sequence[Sampled]) -> list[str]:
        """Of one problem's completions those to imitate, before branching counts."""
        right = [s for s in samples if s.correct and self.readable(s.text)]
        if self.shortest:
            right = sorted(right, key=lambda sample: sample.tokens)
        return list(dict.fromkeys(s.text for s in right))[: self.per_problem]


class Demonstrations(NamedTuple):
    """Rows of a data file, and what became of the completions."""

    rows: list[dict[str, Any]]
    completions: int
    correct: int
    kept: int
    """Solutions in the rows."""


def sample_demonstrations(
    evaluation: Evaluation, parameters: nnx.State, rules: Rules, *, template: str
) -> Demonstrations:
    """Samples the evaluation's problems and keeps what the rules let through.

    A completion that was cut is never kept: its end would be learned.

    Args:
      evaluation: of `model_counts.evaluation_of`.
      parameters: of the model that is sampled.
      rules: which correct completions stay.
      template: data.template: the space that joins a raw prompt to its solution is
        put back by whoever reads the row.

    Returns:
      one row per problem with a solution, in the problems' order.
    """
    problems, chosen = evaluation.prompts.problems, []
    completions = correct = 0
    for batch in evaluation.sampled(parameters):
        n = batch.lengths.shape[1]
        right = np.asarray(batch.scores.correct, bool) & batch.ended
        for place in range(batch.used):
            texts = batch.scores.texts[place * n : (place + 1) * n]
            if template == "raw":
                texts = [text.removeprefix(" ") for text in texts]
            samples = [
                Sampled(text, int(tokens), bool(ok))
                for text, tokens, ok in zip(
                    texts, batch.lengths[place], right[place], strict=True
                )
            ]
            chosen += [(batch.rows[place], text) for text in rules.choose(samples)]
        completions += batch.used * n
        correct += int(right[: batch.used].sum())
    stays = without_branching([text for _, text in chosen], rules.drop_branching)
    solutions: dict[int, list[str]] = {}
    for (place, text), stay in zip(chosen, stays, strict=True):
        if stay:
            solutions.setdefault(int(place), []).append(text)
    rows = [as_row(problems[place], texts) for place, texts in solutions.items()]
    return Demonstrations(rows, completions, correct, int(stays.sum()))


def as_row(problem: Problem, solutions: Sequence[str]) -> dict[str, Any]:
    """A problem as a line of a data file, with solutions in place of its own."""
    own = ("solution", "solutions")
    meta = {name: value for name, value in problem.meta.items() if name not in own}
    return {
        "id": problem.id,
        "question": problem.question,
        "answer": problem.answer,
        "verifier": problem.verifier,
        "meta": meta | {"solutions": list(solutions)},
    }
