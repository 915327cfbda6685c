"""The report of two interventions, filled by small runs."""

import json
import pathlib
import re

import numpy as np
import pytest

from rlvr_jax.analysis.entropy_law import fit_entropy_law
from rlvr_jax.analysis.interventions import (
    NEEDED,
    distil_or_reinforce,
    intervention_table,
)
from rlvr_jax.analysis.runs import load_run
from tests.analysis import synthetic


def run(folder, seed, family, **changes):
    path = synthetic.write_run(folder, steps=12, seed=seed, **changes)
    settings = json.loads((path / "config.json").read_text())
    settings["model"]["path"] = family
    (path / "config.json").write_text(json.dumps(settings))
    found = load_run(path)
    # Not among the numbers that these runs are made of.
    found.metrics["entropy/covariance"] = found.metrics["advantage/abs_mean"]
    return found


def test_the_report_is_filled(tmp_path):
    """ENT-24: entropy, covariance, pass@1, pass@k at large k, the fitted ceiling and
    compute, with two seeds and two families, for each of two interventions."""
    arms = {
        name: [
            run(tmp_path / f"{name}{seed}", seed, f"family{seed}") for seed in (0, 1)
        ]
        for name in ("clip_cov", "bonus")
    }
    rows, missing = intervention_table(arms)
    assert missing == []
    assert [row["name"] for row in rows] == ["clip_cov", "bonus"]
    for row, runs in zip(rows, arms.values(), strict=True):
        assert (row["seeds"], row["families"]) == (2, ["family0", "family1"])
        assert row["k"] == 8
        assert None not in row.values()
        mean, least, largest = row["entropy"]
        assert least <= mean <= largest
        last = [each.metrics["evaluation/pass@8"].values[-1] for each in runs]
        assert row["pass@k"] == pytest.approx([np.mean(last), min(last), max(last)])
        ceilings = [
            fit_entropy_law(
                each.metrics["entropy/mean"].values, each.metrics["reward/mean"].values
            ).ceiling
            for each in runs
        ]
        assert row["ceiling"][0] == pytest.approx(np.mean(ceilings))
        # 12 steps of 8 prompts x 8 completions (the defaults) of about 120 tokens.
        assert row["tokens"][0] == pytest.approx(12 * 64 * 120, rel=0.05)


def test_what_is_missing_is_said(tmp_path):
    """ENT-24: one seed, one family, unequal compute, no large k."""
    one = run(tmp_path / "one", 0, "family0")
    longer = load_run(synthetic.write_run(tmp_path / "longer", steps=24))
    for name in list(longer.metrics):
        if name.startswith("evaluation/"):
            del longer.metrics[name]
    longer.config["model"]["path"] = "family0"
    _, missing = intervention_table({"a": [one], "b": [longer]})
    assert missing == [f"{name}: {words}" for name, words in NEEDED.items()]


@pytest.mark.parametrize(
    ("teacher", "student", "target", "expected"),
    [
        (0.726, 0.1, 0.7, "distil"),
        (0.726, 0.1, 0.8, "distil, then reinforce"),
        (None, 0.1, 0.7, "reinforce"),
        (0.1, 0.2, 0.7, "reinforce"),
        (0.726, 0.726, 0.726, "stop"),
    ],
)
def test_distil_what_a_teacher_can_and_reinforce_beyond(
    teacher, student, target, expected
):
    """SFT-16: a teacher exists: distil; to exceed it, or without one: RL."""
    found = distil_or_reinforce(teacher=teacher, student=student, target=target)
    assert found == expected


def test_the_published_prices_of_both():
    """SFT-16: 72.6 - 47.0 = 25.6 points of AIME 2024; 1,800 of 17,920 GPU-hours are
    .1004; the docstring says so."""
    said = " ".join((distil_or_reinforce.__doc__ or "").split())
    assert f"{72.6 - 47.0:.1f} points less" in said
    assert round(1800 / 17_920, 4) == 0.1004
    assert "1,800 GPU-hours" in said


def published():
    """(student, benchmark) -> (RL, distillation, both or None), of docs/papers.md."""
    text = (pathlib.Path(__file__).parents[2] / "docs" / "papers.md").read_text("utf8")
    section = text.split("## Distillation and RL side by side")[1].split("\n## ")[0]
    found = {}
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) == 6 and re.match(r"[\d.]+$", cells[2]):
            figures = [re.match(r"[\d.]+", cell) for cell in cells[2:5]]
            found[cells[0], cells[1]] = [each and float(each[0]) for each in figures]
    return found


def test_the_published_comparisons_are_in_the_papers_page():
    """SFT-15: Magistral Small on AIME 2024: RL 65.8, distillation 65.4, both 70.7: the
    one student of the table for which RL is not behind. SFT-16's 25.6 points and the
    five figures of DeepSeek-R1 for either are there too."""
    table = published()
    rl, distilled, both = table["Magistral Small, 24B", "AIME 2024 pass@1"]
    assert (rl, distilled, both) == (65.8, 65.4, 70.7)
    ahead = [name for name, (rl, distilled, _) in table.items() if rl >= distilled]
    assert ahead == [("Magistral Small, 24B", "AIME 2024 pass@1")]
    assert all(both > max(rl, d) for rl, d, both in table.values() if both is not None)
    of_r1 = [v for (student, _), v in table.items() if student == "Qwen2.5-32B"]
    assert [v[0] for v in of_r1] == [47.0, 60.0, 91.6, 55.0, 40.2]
    assert [v[1] for v in of_r1] == [72.6, 83.3, 94.3, 62.1, 57.2]
    assert of_r1[0][1] - of_r1[0][0] == pytest.approx(25.6)
