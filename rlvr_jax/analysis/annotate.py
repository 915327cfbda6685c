"""A chain of thought with its turns marked: plan, first answer, backtrack, check."""

import re
from typing import NamedTuple

from rlvr_jax.analysis.behaviours import count_behaviours

_SENTENCE = re.compile(r"[^.?!\n]*(?:[.?!](?=\s|$)|\n|$)")
_ANSWER = re.compile(
    r"\b(?:the answer is|answer:|in total|the total is|so there are)\D{0,20}(\d+)"
    r"|\\boxed\{(\d+)\}",
    re.IGNORECASE,
)
_BOUNDARY = re.compile(
    r"\b(?:boundary|endpoint|last (?:one|term|value)|off by one)\b|\d+ ?> ?\d+",
    re.IGNORECASE,
)
_BEHAVIOUR_LABELS = {
    "backtracking": "backtrack",
    "verification": "verification",
    "subgoal setting": "subgoal",
    "backward chaining": "backward chaining",
}


class Span(NamedTuple):
    """A sentence of a trace and what it does."""

    start: int
    end: int
    label: str
    """"subgoal", "first answer", "backtrack", "verification", "boundary check",
    "backward chaining" or "final answer"."""


def annotate(trace: str) -> list[Span]:
    """Marks the sentences of a trace that do something a reader looks for.

    The last answer is "final answer": all that a verifier sees. One before it that
    says another number is "first answer": had the trace ended there, it would have
    been judged by that.

    Args:
      trace: a completion, thinking included.

    Returns:
      spans in order; a sentence has one label, sentences without one are left out.

    Example:
      >>> [span.label for span in annotate("The answer is 3. Wait, no. \\\\boxed{4}")]
      ['first answer', 'backtrack', 'final answer']
    """
    sentences = [m for m in _SENTENCE.finditer(trace) if m.group().strip()]
    answers = {
        place: next(filter(None, found[-1]))
        for place, sentence in enumerate(sentences)
        if (found := _ANSWER.findall(sentence.group()))
    }
    final = max(answers, default=None)
    spans = []
    for place, sentence in enumerate(sentences):
        text = sentence.group()
        label = None
        if place == final:
            label = "final answer"
        elif final is not None and answers.get(place, answers[final]) != answers[final]:
            label = "first answer"
        elif _BOUNDARY.search(text):
            label = "boundary check"
        else:
            counts = count_behaviours(text)
            label = next(
                (said for name, said in _BEHAVIOUR_LABELS.items() if counts[name]), None
            )
        if label is not None:
            spans.append(Span(sentence.start(), sentence.end(), label))
    return spans
