"""A run that no longer learns: eight places to look at, in the order to look.

The order is that of a checklist for "reward flat for 200 steps, entropy near zero":
each point is cheaper to check than those after it, and explains them. The limits are
our own, wide enough that a healthy run passes; `LIMITS` names them all.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from rlvr_jax.analysis.runs import Run
from rlvr_jax.analysis.trends import slope

NORMAL, ABNORMAL, UNKNOWN = "normal", "abnormal", "not logged"

LIMITS = {
    "zero_share": 0.5,
    "end_share": 0.4,
    "pass_rate": 0.1,
    "clip_share": 0.1,
    "rare_clip_share": 0.05,
    "rare_clip_ratio": 5.0,
    "truncated_share": 0.1,
    "length_share": 0.8,
    "entropy_left": 0.2,
    "entropy_nats": 0.02,
    "entropy_growth": 3.0,
    "mismatch_kl": 0.01,
    "mismatch_logprob": 0.05,
    "audit_gap": 0.1,
    "failure_share": 0.05,
    "unparseable_share": 0.3,
    "kl_reference": 0.3,
}
"""zero_share: groups without signal. end_share: groups all right, or all wrong.
pass_rate: distance of the mean from 0 and 1. clip_share: clipped tokens.
rare_clip_share, rare_clip_ratio: clipped share of the least likely tokens, and how
often that of the most likely ones. truncated_share: cut at the limit. length_share:
mean length over the limit. entropy_left, entropy_growth: late over early entropy.
entropy_nats: entropy itself. mismatch_kl, mismatch_logprob: sampler against trainer, in
nats. audit_gap: what the training verifier accepts more than a stricter one.
failure_share, unparseable_share: verdicts that are none. kl_reference: k3, in nats."""

_LATE = 0.2


class Finding(NamedTuple):
    """One point of the checklist."""

    point: int
    name: str
    state: str
    """`NORMAL`, `ABNORMAL` or `UNKNOWN`."""
    seen: str
    """The figures behind it."""
    advice: str
    """What to do; "" where it is normal."""


def checklist(run: Run, limits: Mapping[str, float] | None = None) -> list[Finding]:
    """All eight points of a run, in order.

    Args:
      run: read by `load_run`; the last fifth of its steps is looked at, entropy also
        against the first fifth.
      limits: in place of single entries of `LIMITS`.

    Returns:
      Eight findings. What a run does not log is `UNKNOWN`, with the setting that
      would log it as the advice; it is not thereby normal.

    Raises:
      ValueError: a limit of no such name.
    """
    unknown = set(limits or {}) - set(LIMITS)
    if unknown:
        raise ValueError(
            f"checklist: there is no limit {min(unknown)!r}; there are "
            f"{', '.join(LIMITS)}"
        )
    seen = _Figures(run, {**LIMITS, **(limits or {})})
    return [
        Finding(number, name, *look(seen))
        for number, (name, look) in enumerate(_POINTS.items(), 1)
    ]


def first_abnormal(findings: list[Finding]) -> Finding | None:
    """The point to mend first; None where all that is logged is normal."""
    return next((one for one in findings if one.state == ABNORMAL), None)


def reward_is_flat(run: Run) -> bool | None:
    """No slope of `reward/mean` over the second half, beyond two standard errors.

    None with fewer than six steps, or where the run logs no reward.
    """
    series = run.metrics.get("reward/mean")
    if series is None or len(series.steps) < 6:
        return None
    late = series.steps >= np.median(series.steps)
    return slope(series.steps[late].astype(float), series.values[late]).flat


class _Figures:
    """Late and early means of a run's metrics."""

    def __init__(self, run: Run, limits: Mapping[str, float]):
        self.run, self.limits = run, limits

    def late(self, name: str) -> float | None:
        return self._mean(name, slice(-1, None, -1))

    def early(self, name: str) -> float | None:
        return self._mean(name, slice(0, None))

    def setting(self, name: str) -> Any:
        return self.run.setting(name)

    def _mean(self, name: str, order: slice) -> float | None:
        series = self.run.metrics.get(name)
        if series is None:
            return None
        finite = series.values[np.isfinite(series.values)][order]
        count = max(1, round(_LATE * len(finite)))
        return float(finite[:count].mean()) if len(finite) else None


_Look = tuple[str, str, str]
"""(state, seen, advice)"""


def _judged(faults: list[str], seen: list[str], advice: str) -> _Look:
    if not seen:
        return UNKNOWN, "", advice
    if faults:
        return ABNORMAL, "; ".join(faults), advice
    return NORMAL, "; ".join(seen), ""


def _zero_advantages(run: _Figures) -> _Look:
    share = run.late("advantage/zero_share")
    if share is None:
        return UNKNOWN, "", "a run logs advantage/zero_share"
    seen = f"{share:.0%} of the groups have no signal"
    return _judged(
        [seen] if share > run.limits["zero_share"] else [],
        [seen],
        'sample until groups differ (curriculum.filter="dynamic"), or give problems '
        "of other difficulty",
    )


def _pass_rates(run: _Figures) -> _Look:
    seen, faults, hard = [], [], False
    for name, words in (("all_correct", "all right"), ("all_wrong", "all wrong")):
        share = run.late(f"pass_rate/{name}")
        if share is None:
            continue
        seen.append(f"{share:.0%} of the groups {words}")
        if share > run.limits["end_share"]:
            faults.append(seen[-1])
            hard |= name == "all_wrong"
    mean, margin = run.late("pass_rate/mean"), run.limits["pass_rate"]
    if mean is not None:
        seen.append(f"pass rate {mean:.0%}")
        if not margin <= mean <= 1 - margin:
            faults.append(seen[-1])
            hard |= mean < margin
    direction = "easier" if hard else "harder"
    return _judged(
        faults,
        seen,
        f"take {direction} problems (curriculum.min_pass_rate, max_pass_rate, stages)",
    )


def _clipping(run: _Figures) -> _Look:
    low, high = run.late("clip/low"), run.late("clip/high")
    if low is None or high is None:
        return UNKNOWN, "", "only surrogates with a clip log clip/low and clip/high"
    total = low + high
    seen = [f"{total:.1%} of the tokens clipped"]
    faults = []
    if total > run.limits["clip_share"]:
        faults.append(seen[0])
    bins = [
        share
        for k in range(1, 33)
        if (share := run.late(f"clip/probability_bin_{k}")) is not None
    ]
    advice = "fewer updates per step or a lower learning rate"
    if len(bins) > 1:
        rare, sure = bins[0], bins[-1]
        seen.append(f"{rare:.1%} of the least likely ones, {sure:.1%} of the likeliest")
        if (
            rare > run.limits["rare_clip_share"]
            and rare > run.limits["rare_clip_ratio"] * sure
        ):
            faults.append(seen[-1])
            advice = (
                "rare tokens cannot grow: raise objective.epsilon_high alone, or use a "
                'surrogate that keeps their gradient (objective.surrogate="cispo")'
            )
    return _judged(faults, seen, advice)


def _truncation(run: _Figures) -> _Look:
    seen, faults = [], []
    share = run.late("completion/truncated_share")
    if share is not None:
        seen.append(f"{share:.0%} cut at the limit")
        if share > run.limits["truncated_share"]:
            faults.append(seen[-1])
    length = run.late("completion/length_mean")
    limit = run.setting("rollout.max_completion_tokens")
    if length is not None and limit:
        seen.append(f"mean length {length:.0f} of {limit} tokens")
        if length > run.limits["length_share"] * limit:
            faults.append(seen[-1])
    return _judged(
        faults,
        seen,
        "raise rollout.max_completion_tokens, or teach brevity "
        "(objective.overlong_buffer_tokens) and keep cut ones out of the loss "
        "(objective.overlong_filter)",
    )


def _entropy(run: _Figures) -> _Look:
    late, early = run.late("entropy/mean"), run.early("entropy/mean")
    if late is None or not early:
        return UNKNOWN, "", "a run logs entropy/mean"
    seen = [f"entropy {early:.3f} -> {late:.3f} nats"]
    covariance = run.late("entropy/covariance")
    if covariance is not None:
        seen.append(f"covariance of log-prob and advantage {covariance:+.3g}")
    share, limits = late / early, run.limits
    if share > limits["entropy_growth"]:
        return _judged(seen, seen, "lower the learning rate or the entropy bonus")
    collapsed = share < limits["entropy_left"] or late < limits["entropy_nats"]
    return _judged(
        seen if collapsed else [],
        seen,
        "raise objective.epsilon_high, hold back high-covariance tokens "
        '(objective.surrogate="clip_cov"), or hold entropy up '
        "(objective.entropy_target); for agents look at input dependence as well",
    )


def _mismatch(run: _Figures) -> _Look:
    seen, faults = [], []
    for metric, limit, words in (
        ("mismatch/kl", "mismatch_kl", "KL of sampler and trainer"),
        ("mismatch/abs_logprob_mean", "mismatch_logprob", "mean gap of log-probs"),
    ):
        value = run.late(metric)
        if value is None:
            continue
        seen.append(f"{words} {value:.2g} nats")
        if value > run.limits[limit]:
            faults.append(seen[-1])
    return _judged(
        faults,
        seen,
        "compute in one type (model.dtype=float32) or correct for it "
        '(objective.importance_correction="clamp")',
    )


def _verifier(run: _Figures) -> _Look:
    seen, faults = [], []
    for metric, words in (
        ("audit/gap", "the training verifier accepts {:+.0%} against the audit"),
        (
            "evaluation/strict_gap",
            "{:+.0%} on held-out problems against the strict one",
        ),
    ):
        gap = run.late(metric)
        if gap is not None:
            seen.append(words.format(gap))
            if gap > run.limits["audit_gap"]:
                faults.append(seen[-1])
    watched = bool(seen)
    failed = [run.late(f"verifier/{name}") for name in ("timeout", "crash")]
    failures = sum(share for share in failed if share is not None)
    if failures > run.limits["failure_share"]:
        faults.append(f"{failures:.0%} of the checks failed")
    unread = run.late("verifier/unparseable")
    if unread is not None and unread > run.limits["unparseable_share"]:
        faults.append(f"{unread:.0%} of the completions have no readable answer")
    advice = "read what is paid and what is not: python -m launch.audit read RUN_DIR"
    if faults or watched:
        return _judged(faults, seen, advice)
    return (
        UNKNOWN,
        "no second verifier",
        f"set audit.verifier to a stricter one; {advice}",
    )


def _reference(run: _Figures) -> _Look:
    if not run.setting("objective.beta") and run.late("kl/reference") is None:
        return NORMAL, "no reference (objective.beta = 0)", ""
    value = run.late("kl/reference")
    if value is None:
        return UNKNOWN, "", "a run with objective.beta > 0 logs kl/reference"
    seen = f"KL to the reference {value:.2g} nats a token"
    return _judged(
        [seen] if value > run.limits["kl_reference"] else [],
        [seen],
        "the penalty holds the policy, or it has drifted: lower objective.beta, or "
        'renew the reference (objective.reference_update="reset")',
    )


_POINTS = {
    "groups without signal": _zero_advantages,
    "pass rates": _pass_rates,
    "clipping by probability": _clipping,
    "truncation and length": _truncation,
    "entropy and covariance": _entropy,
    "sampler against trainer": _mismatch,
    "verifier": _verifier,
    "KL to the reference": _reference,
}
