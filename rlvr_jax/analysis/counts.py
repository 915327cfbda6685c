"""What a model did on each problem, as lines of a file: the unit of every comparison.

One JSON object a line. `id`, `n` (completions) and `c` (correct ones) are enough for
pass@k; the rest, one value per completion, is there where a model was sampled:

    {"id": "test/3", "n": 4, "c": 3, "domain": "gsm8k", "correct": [1, 1, 0, 1],
     "answers": [0, 0, 1, 0], "tokens": [51, 60, 48, 55], "ended": [1, 1, 1, 1],
     "logprobs": [-0.21, ...], "base_logprobs": [...], "scores": [0.8, ...],
     "completions": ["...", ...]}
"""

import dataclasses
import gzip
import json
import os
import pathlib
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

_LISTS = {
    "correct": int,
    "answers": int,
    "tokens": int,
    "thinking": int,
    "ended": int,
    "logprobs": float,
    "base_logprobs": float,
    "scores": float,
    "completions": str,
}


@dataclasses.dataclass(frozen=True)
class ProblemCounts:
    """One problem; lists have one entry per completion and are empty when unknown."""

    id: str
    n: int
    c: int
    domain: str = ""
    correct: Sequence[int] = ()
    """1 where the verifier said so."""
    answers: Sequence[int] = ()
    """Which answer it gives, numbered within the problem; -1 for none."""
    tokens: Sequence[int] = ()
    thinking: Sequence[int] = ()
    """Tokens before the thoughts were closed; all, where they never were."""
    ended: Sequence[int] = ()
    """0 where it was cut at the limit."""
    logprobs: Sequence[float] = ()
    """Mean log-prob per token of the model that wrote it."""
    base_logprobs: Sequence[float] = ()
    """The same under another model."""
    scores: Sequence[float] = ()
    """Of a reward model."""
    completions: Sequence[str] = ()

    @property
    def rate(self) -> float:
        """c / n."""
        return self.c / self.n


def write_counts(
    path: str | os.PathLike[str], problems: Iterable[ProblemCounts]
) -> None:
    """Writes one line per problem; empty fields are left out."""
    with pathlib.Path(path).open("w", encoding="utf-8") as file:
        for problem in problems:
            fields = dataclasses.asdict(problem)
            kept = {k: v for k, v in fields.items() if k in "idnc" or len(v)}
            file.write(json.dumps(kept, allow_nan=False) + "\n")


def read_counts(path: str | os.PathLike[str]) -> list[ProblemCounts]:
    """Reads .jsonl or .jsonl.gz; other fields than the known ones are passed over.

    Raises:
      ValueError: a line is not such an object, an id comes twice, there is no line, or
        a compressed file is cut off; the message names file and line.
      FileNotFoundError: no such file.
    """
    file = pathlib.Path(path)
    content = file.read_bytes()
    if file.suffix == ".gz":
        try:
            content = gzip.decompress(content)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"{file}: the compressed file is cut off or damaged ({error}); copy or "
                "write it again"
            ) from None
    found: dict[str, ProblemCounts] = {}
    for number, line in enumerate(content.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            problem = _problem(json.loads(line))
            if problem.id in found:
                raise ValueError(f"the id {problem.id!r} comes twice")
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise ValueError(
                f"{path}:{number} needs an object with id, n >= 1 and c in 0..n: "
                f"{type(error).__name__}: {error}"
            ) from None
        found[problem.id] = problem
    if not found:
        raise ValueError(f"{path} holds no problems")
    return list(found.values())


def paired(
    base: Sequence[ProblemCounts], other: Sequence[ProblemCounts]
) -> tuple[list[ProblemCounts], list[ProblemCounts]]:
    """The same problems in the same order.

    Raises:
      ValueError: one has problems that the other has not; a comparison of different
        problems would be of the problems.
    """
    by_id = {problem.id: problem for problem in other}
    missing = [problem.id for problem in base if problem.id not in by_id]
    extra = by_id.keys() - {problem.id for problem in base}
    if missing or extra:
        examples = ", ".join(map(repr, [*missing, *sorted(extra)][:3]))
        raise ValueError(
            f"the two files hold different problems: {len(missing)} only in the first, "
            f"{len(extra)} only in the second, as {examples}. Evaluate both models on "
            "the same --data"
        )
    return list(base), [by_id[problem.id] for problem in base]


def arrays(problems: Sequence[ProblemCounts]) -> tuple[np.ndarray, np.ndarray]:
    """(n, c) of all problems, int64."""
    pairs = np.array([(problem.n, problem.c) for problem in problems], np.int64)
    return pairs[:, 0], pairs[:, 1]


def _problem(row: dict[str, Any]) -> ProblemCounts:
    n, c = row["n"], row["c"]
    if not (isinstance(n, int) and isinstance(c, int) and 0 <= c <= n and n >= 1):
        raise ValueError(f"n={n!r}, c={c!r}")
    lists: dict[str, Any] = {
        name: [kind(value) for value in row[name]]
        for name, kind in _LISTS.items()
        if row.get(name)
    }
    wrong = [name for name, values in lists.items() if len(values) != n]
    if wrong:
        raise ValueError(f"{wrong[0]} has {len(lists[wrong[0]])} entries, not n={n}")
    return ProblemCounts(str(row["id"]), n, c, str(row.get("domain", "")), **lists)
