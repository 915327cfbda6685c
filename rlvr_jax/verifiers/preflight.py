"""Before a run: does every reference verify against itself?

A reference that no completion can match pays 0 for ever, and looks like a hard problem.
"""

import dataclasses
from collections.abc import Sequence

from rlvr_jax.verifiers.base import Sample, Status, Verdict, text_reference
from rlvr_jax.verifiers.pool import VerifierPool

_COMPARES_TEXT = ("math", "exact")
_JUDGEMENTS = (Status.CORRECT, Status.WRONG, Status.UNPARSEABLE)


def check_references(
    samples: Sequence[Sample], pool: VerifierPool
) -> list[tuple[Sample, Verdict]]:
    r"""The samples whose reference does not work, with the verdict that shows it.

    For `math` and `exact` the reference, in a box, is given as the completion and must
    be correct. For other verifiers, whose references are no answers, an empty
    completion is given, and only a bad reference, a crash or a timeout counts.

    Args:
      samples: their completions are ignored.
      pool: where they are checked.
    """
    probes = [
        dataclasses.replace(sample, completion=_probe(sample)) for sample in samples
    ]
    return [
        (sample, verdict)
        for sample, verdict in zip(samples, pool.verify(probes), strict=True)
        if not _fine(sample, verdict)
    ]


def _probe(sample: Sample) -> str:
    text = text_reference(sample.answer)
    if sample.verifier not in _COMPARES_TEXT or text is None:
        return ""
    return f"\\boxed{{{text}}}"


def _fine(sample: Sample, verdict: Verdict) -> bool:
    if sample.verifier in _COMPARES_TEXT:
        return verdict.status is Status.CORRECT
    return verdict.status in _JUDGEMENTS
