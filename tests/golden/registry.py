"""Formula id -> adapter, and the run over all cases of a directory."""

import dataclasses
import importlib
import pathlib

import jax

from tests.golden.case import Adapter, load
from tests.golden.compare import compare

MODULES = (
    "policy_loss",
    "policy_loss_weighted",
    "policy_loss_peers",
    "trl",
    "aggregation",
    "advantages",
    "kl",
    "offpolicy",
    "rollout_correction",
    "logits",
    "cov",
    "misc",
)


@dataclasses.dataclass
class Summary:
    """Agreement of one formula."""

    cases: int = 0
    agreed: int = 0
    worst: float = 0.0
    covered: bool = True
    problems: list[str] = dataclasses.field(default_factory=list)


def adapters() -> dict[str, Adapter]:
    """Every adapter; a formula id that two modules claim is an error."""
    found: dict[str, Adapter] = {}
    for name in MODULES:
        module = importlib.import_module(f"tests.golden.{name}")
        if twice := found.keys() & module.ADAPTERS.keys():
            raise ValueError(f"tests.golden: {sorted(twice)} registered twice ({name})")
        found |= module.ADAPTERS
    return found


def run(directory: pathlib.Path) -> dict[str, Summary]:
    """Runs every case in float64; formula id -> agreement."""
    known = adapters()
    summaries: dict[str, Summary] = {}
    with jax.enable_x64(True):
        for case in load(directory):
            summary = summaries.setdefault(case.formula, Summary())
            summary.cases += 1
            if case.formula not in known:
                summary.covered = False
                continue
            try:
                outcome = compare(case, known[case.formula](case))
            except Exception as error:
                # A case of a new shape or setting must not hide the others.
                summary.problems.append(f"{case.name}: {error!r}")
                continue
            summary.worst = max(summary.worst, outcome.error)
            if outcome.problem:
                summary.problems.append(f"{case.name}: {outcome.problem}")
            else:
                summary.agreed += 1
    return summaries
