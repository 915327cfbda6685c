"""How close is close enough: one tolerance per precision class of the vectors."""

import dataclasses
from typing import Any

import numpy as np

from tests.golden.case import Case

# Relative to the largest magnitude of the expected array, as the vectors' own report
# states them: f64 both sides in float64; mixed: a float32 constant inside the peer;
# f32: the peer computes in float32.
RELATIVE = {"f64": 1e-8, "mixed": 2e-7, "f32": 5e-5}
# A value that cancels to 0 has no relative error; inputs are of order 1.
ABSOLUTE = {"f64": 1e-12, "mixed": 2e-8, "f32": 2e-6}


@dataclasses.dataclass(frozen=True)
class Outcome:
    """Agreement of one case."""

    error: float
    """Largest difference over all results, relative to each array's largest value."""
    problem: str
    """Empty when the case agrees; otherwise which result differs, and how."""


def compare(case: Case, computed: dict[str, Any]) -> Outcome:
    """Every expected array and scalar against what the adapter computed."""
    worst, problems = 0.0, []
    for name, expected in case.expected.items():
        if name not in computed:
            problems.append(f"{name}: the adapter does not compute it")
            continue
        ours = np.asarray(computed[name])
        if ours.shape != expected.shape:
            problems.append(f"{name}: shape {ours.shape}, expected {expected.shape}")
            continue
        # float32 here says: the peer takes this one in float32 (`peers.single`).
        single = ours.dtype == np.float32 and case.precision == "f64"
        precision = "mixed" if single else case.precision
        difference, scale = _difference(ours, expected)
        worst = max(worst, difference / scale if scale else difference)
        allowed = RELATIVE[precision] * scale + ABSOLUTE[precision]
        if not difference <= max(allowed, case.atol):
            problems.append(
                f"{name}: off by {difference:.3g}, largest value {scale:.3g}"
            )
    return Outcome(worst, "; ".join(problems))


def _difference(ours: np.ndarray, expected: np.ndarray) -> tuple[float, float]:
    """Largest |ours - expected| and largest |expected|; inf where only one is NaN."""
    ours, expected = ours.astype(np.float64), expected.astype(np.float64)
    same = (ours == expected) | (np.isnan(ours) & np.isnan(expected))
    if same.all():
        return 0.0, 1.0
    finite = np.abs(expected[np.isfinite(expected)])
    with np.errstate(invalid="ignore"):
        difference = np.abs(ours - expected)[~same]
    return (
        float(np.where(np.isnan(difference), np.inf, difference).max()),
        float(finite.max()) if finite.size else 0.0,
    )
