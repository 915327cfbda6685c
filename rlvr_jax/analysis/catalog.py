"""Which charts a report has: titles, units and the metrics that share a chart.

A chart without any of its metrics in the run is left out; a metric that no chart
names is drawn under "Other". docs/metrics.md defines every name.
"""

import math
import re

from rlvr_jax.analysis.catalog_update import CRITIC, UPDATE
from rlvr_jax.analysis.chart_types import Chart, Section

SECTIONS = (
    Section(
        "Learning",
        (
            Chart(
                "Reward",
                "",
                (
                    ("reward/mean", "mean"),
                    ("reward/shaped_mean", "with length and KL terms"),
                    ("reward/std", "std"),
                ),
                "Of all completions of a step.",
                essential=True,
            ),
            Chart(
                "Pass rate",
                "share",
                (("pass_rate/mean", "verified correct"),),
                "Training completions that the verifier accepted.",
                essential=True,
            ),
            Chart(
                "Groups without signal",
                "share",
                (
                    ("advantage/zero_share", "zero advantage"),
                    ("pass_rate/all_correct", "all correct"),
                    ("pass_rate/all_wrong", "all wrong"),
                ),
                "Prompts whose completions all earned the same.",
                essential=True,
            ),
            Chart(
                "Advantage size",
                "",
                (("advantage/abs_mean", "mean of absolute value"),),
            ),
            Chart("Format followed", "share", (("format/rate", "matches"),)),
            Chart("Warm-up loss", "nats", (("warmup/loss", "per token"),)),
        ),
    ),
    Section(
        "Completions",
        (
            Chart(
                "Entropy",
                "nats",
                (
                    ("entropy/mean", "mean"),
                    ("entropy/correct", "correct"),
                    ("entropy/wrong", "wrong"),
                ),
                "Per token, of the sampling distribution.",
                essential=True,
            ),
            Chart(
                "Entropy by position",
                "nats",
                (
                    ("entropy/quarter_1", "first quarter"),
                    ("entropy/quarter_2", "second"),
                    ("entropy/quarter_3", "third"),
                    ("entropy/quarter_4", "last"),
                ),
                "Quarters of max_completion_tokens.",
            ),
            Chart("Log-prob of sampled tokens", "nats", (("logprob/mean", "mean"),)),
            Chart(
                "Length",
                "tokens",
                (
                    ("completion/length_mean", "mean"),
                    ("completion/length_correct", "correct"),
                    ("completion/length_wrong", "wrong"),
                ),
                essential=True,
            ),
            Chart("Longest completion", "tokens", (("completion/length_max", "max"),)),
            Chart(
                "Cut at the limit",
                "share",
                (("completion/truncated_share", "truncated"),),
                "Completions that max_completion_tokens ended.",
            ),
            Chart(
                "Repetition",
                "share",
                (("completion/repetition", "4-grams said before"),),
                "Loops show here, beside entropy and length.",
            ),
        ),
    ),
    UPDATE,
    CRITIC,
    Section(
        "Verifier",
        (
            Chart(
                "Verdicts",
                "share",
                (
                    ("verifier/correct", "correct"),
                    ("verifier/wrong", "wrong"),
                    ("verifier/unparseable", "unparseable"),
                    ("verifier/timeout", "timeout"),
                    ("verifier/crash", "crash"),
                    ("verifier/bad_reference", "bad reference"),
                ),
                stacked=True,
            ),
            Chart(
                "Reads the reasoning",
                "share",
                (("verifier/read_reasoning_share", "of the episodes"),),
            ),
        ),
    ),
    Section(
        "Audit and judge",
        (
            Chart(
                "Accepted by both verifiers",
                "share",
                (
                    ("audit/accuracy", "in training"),
                    ("audit/strict_accuracy", "by the audit"),
                ),
                "Apart from one another, the policy learns a hole of its verifier.",
            ),
            Chart(
                "Gap and alarm", "", (("audit/gap", "gap"), ("audit/alarm", "alarm"))
            ),
            Chart(
                "Errors of the training verifier",
                "share",
                (
                    ("audit/false_share", "wrong among the accepted"),
                    ("audit/missed_share", "right among the rejected"),
                ),
                "By the audit's verdict.",
            ),
            Chart(
                "Audited",
                "completions",
                (("audit/completions", "judged"), ("audit/failures", "failed")),
            ),
            Chart(
                "Judge's requests",
                "requests",
                (("judge/calls", "all"), ("judge/retries", "retries")),
            ),
            Chart(
                "Judge's tokens",
                "tokens",
                (("judge/prompt_tokens", "in"), ("judge/completion_tokens", "out")),
            ),
            Chart("Judge's cost", "currency", (("judge/cost", "per step"),)),
        ),
    ),
    Section(
        "Wrong rewards",
        (
            Chart(
                "Paid against the verdict",
                "share",
                (
                    ("noise/paid_share", "paid"),
                    ("noise/changed_share", "all"),
                    ("noise/false_positive_share", "not correct, and paid"),
                    ("noise/false_negative_share", "correct, and not paid"),
                ),
            ),
            Chart(
                "Paid, and right after all",
                "share",
                (("noise/paid_correct_share", "of the paid"),),
            ),
            Chart("Pattern matched", "share", (("noise/pattern_share", "matches"),)),
            Chart(
                "Advantage of the pattern",
                "",
                (("noise/pattern_advantage", "true score - group mean"),),
                "Below 0, what matches is worse than the rest of its group.",
            ),
        ),
    ),
    Section(
        "Speed and memory",
        (
            Chart(
                "Time per step",
                "s",
                (
                    ("time/rollout_s", "rollout"),
                    ("time/verify_s", "verify"),
                    ("time/update_s", "update"),
                ),
                stacked=True,
                whole=("time/step_s", "whole step"),
                note="Steps that compile may reach beyond the axis.",
            ),
            Chart("Speed", "tokens/s", (("speed/tokens_per_s", "sampled tokens"),)),
            Chart(
                "Padding in the update",
                "share",
                (
                    ("update/padding_share", "padding"),
                    ("update/padding_share_unpacked", "without packing"),
                ),
            ),
            Chart("Host memory", "GiB", (("memory/peak_rss_gib", "peak"),)),
        ),
    ),
)

ZERO_MEANS_NONE = (
    "clip/high_probability",
    "completion/length_correct",
    "completion/length_wrong",
    "entropy/correct",
    "entropy/quarter_1",
    "entropy/quarter_2",
    "entropy/quarter_3",
    "entropy/quarter_4",
    "entropy/wrong",
)
"""0 when a step had no such completion or token: a gap in the curve, not a value."""

NAMED = {
    metric
    for section in SECTIONS
    for chart in section.charts
    for metric, _ in chart.metrics
}

HISTOGRAM = re.compile(r"pass_rate/histogram_(\d+)$")
"""Share of groups with exactly this many correct completions."""


def other_charts(names: set[str]) -> list[Chart]:
    """A chart for each metric that no section names, evaluations left out.

    Example:
      >>> [chart.title for chart in other_charts({"mine/x", "loss/total"})]
      ['mine/x']
    """
    return [
        Chart(name, unit_of(name), ((name, "value"),))
        for name in sorted(names - NAMED)
        if not name.startswith("evaluation/") and not HISTOGRAM.match(name)
    ]


def shown(value: float, unit: str) -> str:
    """A number with its unit, short.

    Example:
      >>> shown(0.4844, "share"), shown(1234.5, "tokens"), shown(1e-6, "")
      ('48.4 %', '1,234 tokens', '1e-06')
    """
    if not math.isfinite(value):
        return "not finite"
    if unit == "share":
        percent = 100 * value
        return f"{percent:.2g} %" if 0 < abs(percent) < 1 else f"{percent:.1f} %"
    if abs(value) >= 100:
        number = f"{value:,.0f}"
    elif value == 0 or abs(value) >= 0.001:
        number = f"{value:.3g}"
    else:
        number = f"{value:.2g}"
    return f"{number} {unit}".strip()


def unit_of(name: str) -> str:
    """The unit that a metric's own name declares, "" if none does.

    Example:
      >>> unit_of("evaluation/pass@8"), unit_of("mine/rollout_s"), unit_of("mine/x")
      ('share', 's', '')
    """
    short = name.rsplit("/", 1)[-1]
    if short.startswith("pass@"):
        return "share"
    if short.startswith("length_"):
        return "tokens"
    endings = {
        "_per_s": "tokens/s",
        "_share": "share",
        "_rate": "share",
        "_s": "s",
        "_gib": "GiB",
        "_tokens": "tokens",
    }
    return next((unit for end, unit in endings.items() if short.endswith(end)), "")
