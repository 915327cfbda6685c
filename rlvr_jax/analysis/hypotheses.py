"""Where a gain under a reward that knows nothing comes from: arms and verdicts.

The arms of configs/sweeps/spurious_rewards.py, by role. All but `truth` pay something
other than a right answer:

    truth, random, format, majority, incorrect, one_shot
    clip_off       random rewards without clipping
    fresh          random rewards, judged on problems nobody can have seen
    other_family   random rewards on a second family of models
    reverified     incorrect labels, after the labels were checked again

Shao et al., Spurious Rewards (https://arxiv.org/abs/2506.10947), found gains of +29.1
(truth), +27.1 (majority), +24.1 (incorrect), +21.4 (random) and +13.8 points (format)
on MATH-500 with Qwen2.5-Math-7B, and none on other families.
`claims.separate_causes` asks the same of single figures; here the runs of a sweep
decide, by intervals over seeds.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rlvr_jax.analysis import page
from rlvr_jax.analysis.claims import MINIMUM_BAR, missing_evidence
from rlvr_jax.analysis.sweeps import (
    Interval,
    SweepResults,
    SweepRow,
    difference,
    interval,
)

SUPPORTED, AGAINST = "supported", "ruled out"
UNCLEAR, UNTESTED = "open", "not tested"
NOTHING = "nothing to explain"

BUDGET = ("steps", "batch.prompts_per_step", "rollout.num_generations")
"""Settings that two arms share if they had the same budget."""


class Verdict(NamedTuple):
    """One line of the table."""

    name: str
    verdict: str
    seen: str
    """The figures that decided, or what is missing."""


def verdicts(results: SweepResults) -> list[Verdict]:
    """The five hypotheses and the minimum bar; [] for a sweep without roles."""
    arms = {row.role: row for row in results.rows if row.role}
    if not arms:
        return []
    return [*hypotheses(arms), *minimum_bar(arms)]


def hypotheses(arms: Mapping[str, SweepRow]) -> list[Verdict]:
    """Each hypothesis about the gain of the random arm (the last: of the incorrect).

    An experiment speaks for a hypothesis if the gain goes where it should go, and
    against it if the gain stays, at the 95 % level over seeds, paired.
    """
    return [
        _latent_mode(arms),
        _removed("b: clipping favours what is likely", arms, "random", "clip_off"),
        _removed("c: the benchmark was seen before", arms, "random", "fresh"),
        _format(arms),
        _removed("e: the wrong labels were right", arms, "incorrect", "reverified"),
    ]


def minimum_bar(arms: Mapping[str, SweepRow]) -> list[Verdict]:
    """What a claim about a reward has to bring, and whether these arms do."""
    done = {role for role, row in arms.items() if row.seeds}
    noisy = "incorrect" in arms
    lacking = missing_evidence(
        {
            "model_families": ["first", *sorted(done & {"other_family"})],
            "uncontaminated_benchmark": sorted(done & {"fresh"}),
            "spurious_baseline": sorted(done & {"random", "format"}),
            "same_budget": _same_budget(arms),
            "label_noise": noisy,
            "relabelled": "reverified" in done,
        }
    )
    return [
        Verdict(
            f"bar: {name.replace('_', ' ')}",
            "MISSING" if f"{name}: {words}" in lacking else "there",
            words,
        )
        for name, words in MINIMUM_BAR.items()
        if noisy or name != "relabelled"
    ]


def _same_budget(arms: Mapping[str, SweepRow]) -> bool:
    """Whether truth and random had equal `BUDGET` settings."""
    runs = [arms[role].runs for role in ("truth", "random") if role in arms]
    if len(runs) < 2 or not all(runs):
        return False
    truth, control = (one[0] for one in runs)
    return all(truth.setting(name) == control.setting(name) for name in BUDGET)


def gain(row: SweepRow) -> Interval | None:
    """After less before training, over the seeds."""
    return difference(row.before, row.after)


def markdown(found: Sequence[Verdict]) -> str:
    """The verdicts as a table in Markdown."""
    lines = ["| hypothesis | verdict | seen |", "| --- | --- | --- |"]
    return "\n".join([*lines, *(f"| {' | '.join(one)} |" for one in found)])


def section(found: Sequence[Verdict]) -> str:
    """The verdicts as HTML."""
    cells = [[page.escaped(cell) for cell in one] for one in found]
    table = page.table(["hypothesis", "verdict", "seen"], cells, numbers=3)
    return f'<h2>Where the gain comes from</h2><div class="card">{table}</div>'


def _is_gain(value: Interval | None) -> bool | None:
    """True above 0, False where the interval holds 0 or less; None without one."""
    if value is None or value[1] is None:
        return None
    return value[1] > 0


def _words(role: str, value: Interval | None) -> str:
    if value is None:
        return f"{role}: no seed"
    mean, low, high = value
    ends = " (no interval)" if low is None else f" [{low:+.1f}, {high:+.1f}]"
    return f"{role} {mean:+.1f}{ends}"


def _to_explain(
    name: str, arms: Mapping[str, SweepRow], role: str
) -> tuple[Verdict | None, Interval | None]:
    """A verdict where there is no gain that could be explained, and the gain."""
    if role not in arms or not arms[role].seeds:
        return Verdict(name, UNTESTED, f"needs the arm {role}"), None
    value = gain(arms[role])
    gained = _is_gain(value)
    if gained is None:
        return Verdict(name, UNCLEAR, _words(role, value)), None
    if not gained:
        return Verdict(name, NOTHING, _words(role, value)), None
    return None, value


def _removed(
    name: str, arms: Mapping[str, SweepRow], with_it: str, without: str
) -> Verdict:
    """Supported if the gain is gone in the arm that removes the supposed cause."""
    verdict, value = _to_explain(name, arms, with_it)
    if verdict is not None:
        return verdict
    if without not in arms or not arms[without].seeds:
        return Verdict(name, UNTESTED, f"needs the arm {without}")
    left = gain(arms[without])
    lost = difference(_gains(arms[without]), _gains(arms[with_it]))
    seen = f"{_words(with_it, value)}; {_words(without, left)}"
    if _is_gain(left) is None or _is_gain(lost) is None:
        return Verdict(name, UNCLEAR, seen)
    if _is_gain(left):
        part = ", a part is gone" if _is_gain(lost) else ""
        return Verdict(name, UNCLEAR if part else AGAINST, seen + part)
    return Verdict(name, SUPPORTED if _is_gain(lost) else UNCLEAR, seen)


def _latent_mode(arms: Mapping[str, SweepRow]) -> Verdict:
    """A way to answer became more frequent, and a family without it does not gain."""
    name = "a: a latent way to answer comes out"
    verdict, value = _to_explain(name, arms, "random")
    if verdict is not None:
        return verdict
    shares = arms["random"].behaviour
    if not shares:
        return Verdict(name, UNTESTED, "needs Sweep.behaviour and logged completions")
    rise = interval([last - first for first, last in shares.values()])
    seen = f"{_words('random', value)}; its share {_words('', rise).strip()}"
    if _is_gain(rise) is None:
        return Verdict(name, UNCLEAR, seen)
    if not _is_gain(rise):
        return Verdict(name, AGAINST, seen)
    if "other_family" not in arms or not arms["other_family"].seeds:
        return Verdict(name, UNCLEAR, f"{seen}; needs the arm other_family")
    family = gain(arms["other_family"])
    seen += f"; {_words('other_family', family)}"
    gained = _is_gain(family)
    return Verdict(name, UNCLEAR if gained or gained is None else SUPPORTED, seen)


def _format(arms: Mapping[str, SweepRow]) -> Verdict:
    """Paying the form alone brings as much."""
    name = "d: it is the form of the answer"
    verdict, value = _to_explain(name, arms, "random")
    if verdict is not None:
        return verdict
    if "format" not in arms or not arms["format"].seeds:
        return Verdict(name, UNTESTED, "needs the arm format")
    form = gain(arms["format"])
    less = difference(_gains(arms["format"]), _gains(arms["random"]))
    seen = f"{_words('random', value)}; {_words('format', form)}"
    gained, is_less = _is_gain(form), _is_gain(less)
    if gained is None or is_less is None:
        return Verdict(name, UNCLEAR, seen)
    if gained:
        return Verdict(name, UNCLEAR if is_less else SUPPORTED, seen)
    return Verdict(name, AGAINST, seen)


def _gains(row: SweepRow) -> dict[int, float]:
    return {seed: row.after[seed] - row.before[seed] for seed in row.before}
