"""From the settings to a list of problems, whatever the sources.

    packaged:NAME          ships with the project; has a test part
    task:NAME              generated (rlvr_jax/data/tasks); has a held-out stream
    PATH.jsonl[.gz]        one {"question", "answer", ...} a line
    hub:NAME or hub:PATH   a Hugging Face data set, or a folder of one

Several sources with commas between them make a mix; "[:N]" after one takes its first
N problems. meta["domain"] says where a problem came from.

With `data.evaluation` empty, evaluation takes the held-out part of the training
sources: the test part, the held-out stream, or, for a file or a data set without a test
split, the last tenth of its rows (at most 256), which training then leaves out.
"""

import dataclasses
import logging
from typing import Literal

from rlvr_jax import config as config_lib
from rlvr_jax.data import decontamination, selection
from rlvr_jax.data.rows import Problem
from rlvr_jax.data.sources import Parts, read_source, split_sources

Split = Literal["train", "evaluation"]

MAX_HELD_OUT = 256
_LOG = logging.getLogger(__name__)


def load_problems(
    data: config_lib.DataConfig, *, split: Split, default_verifier: str, seed: int
) -> list[Problem]:
    """Loads the training or the evaluation problems that the settings name.

    No training problem asks a question of a held-out part. Questions that training
    shares with a `data.evaluation` of its own stay, and a warning counts them.

    Args:
      data: the settings; see the module's docstring for the forms of a source.
      split: which part.
      default_verifier: for problems that name none.
      seed: of generated problems. Files and data sets do not depend on it.

    Returns:
      The problems in their sources' order, at least one.

    Raises:
      ValueError: unknown source or task, bad row, too few rows to hold some out.
      FileNotFoundError: no such file or folder.
      ConnectionError: a data set of the hub cannot be fetched.
    """
    train, evaluation = _both_splits(data, seed)
    if split == "train" and data.deduplicate:
        train, repeated, conflicting = selection.deduplicate(train)
        _LOG.warning(
            "data.deduplicate: left out %d problems that came before and %d whose "
            "question has different answers",
            repeated,
            conflicting,
        )
    if split == "train" and data.decontaminate:
        train = _decontaminated(train, data, seed)
    chosen = train if split == "train" else evaluation
    if not chosen:
        raise ValueError(
            f"data.train={data.train}: no training problem is left: every question is "
            "also held out, or contradicts another, or comes close to one of "
            "data.decontaminate. Name other problems in data.evaluation, or set "
            "data.deduplicate=False"
        )
    return [
        dataclasses.replace(p, verifier=p.verifier or default_verifier) for p in chosen
    ]


def _both_splits(
    data: config_lib.DataConfig, seed: int
) -> tuple[list[Problem], list[Problem]]:
    parts = {
        source: _keep(read_source(source, data, seed), data.keep)
        for source in split_sources(data.train)
    }
    if data.evaluation in ("", data.train):
        parts = {source: _hold_out(part, source) for source, part in parts.items()}
        evaluation = _joined({s: part.test for s, part in parts.items()})
        train = _joined({s: part.problems for s, part in parts.items()})
        return selection.without_questions(train, evaluation), evaluation
    others = {
        source: read_source(source, data, seed)
        for source in split_sources(data.evaluation)
    }
    evaluation = _joined({s: part.test or part.problems for s, part in others.items()})
    train = _joined({s: part.problems for s, part in parts.items()})
    shared = len(train) - len(selection.without_questions(train, evaluation))
    if shared:
        _LOG.warning(
            "data: %d training questions are also in data.evaluation; scores on them "
            "measure memory",
            shared,
        )
    return train, evaluation


def _decontaminated(
    train: list[Problem], data: config_lib.DataConfig, seed: int
) -> list[Problem]:
    """Without questions that come close to one of data.decontaminate, parts and all."""
    against = [
        problem
        for source in split_sources(data.decontaminate)
        for part in read_source(source, data, seed)
        for problem in part
    ]
    found = decontamination.overlaps(
        train,
        against,
        run_words=data.decontaminate_words,
        share=data.decontaminate_share,
    )
    kept = decontamination.without_overlaps(train, found)
    _LOG.warning(
        "data.decontaminate: left out %d training problems; %d of %d questions of %s "
        "were among them",
        len(train) - len(kept),
        len({id(overlap.evaluation) for overlap in found}),
        len(against),
        data.decontaminate,
    )
    return kept


def _keep(parts: Parts, keep: str) -> Parts:
    problems, test = (
        selection.keep_matching(part, keep) if part else [] for part in parts
    )
    return Parts(problems, test)


def _hold_out(parts: Parts, source: str) -> Parts:
    """The source's own test part, or its last tenth."""
    problems, test = parts
    if test:
        return parts
    if len(problems) < 2:
        raise ValueError(
            f"{source}: holds {len(problems)} problem; 2 are needed to keep one for "
            "evaluation. Add rows, or name other problems in data.evaluation"
        )
    held_out = min(MAX_HELD_OUT, max(1, len(problems) // 10))
    return Parts(problems[:-held_out], problems[-held_out:])


def _joined(by_source: dict[str, list[Problem]]) -> list[Problem]:
    """All problems; ids of several sources are led by the domain."""
    if len(by_source) == 1:
        return next(iter(by_source.values()))
    joined = [
        dataclasses.replace(p, id=f"{p.meta['domain']}/{p.id}")
        for problems in by_source.values()
        for p in problems
    ]
    seen: set[str] = set()
    for problem in joined:
        if problem.id in seen:
            raise ValueError(
                f"data: the id {problem.id!r} comes from two sources of "
                f"{', '.join(by_source)}; give one file another name, or its rows "
                'another "domain" in meta'
            )
        seen.add(problem.id)
    return joined
