"""The report says what the run folder holds, in one page that needs nothing else."""

import html.parser
import json
import pathlib
import re

import numpy as np
import pytest

from launch import report as command
from rlvr_jax.analysis import catalog, report
from rlvr_jax.analysis.runs import load_run
from rlvr_jax.train import metrics
from tests.analysis import synthetic

VOID = {"meta", "br", "img", "path", "use"}


class Page(html.parser.HTMLParser):
    """The parts of a page, and a check that every element is closed in order."""

    def __init__(self, text: str):
        super().__init__()
        self.open: list[str] = []
        self.headings: list[str] = []
        self.tags: list[str] = []
        self.links: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href"):
                self.links.append(value)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["style"]:
            return
        self.words.append(data)
        if self.open[-1:] in (["h1"], ["h2"], ["h3"]) and data.strip():
            self.headings.append(data.strip())

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


def read(path: pathlib.Path) -> Page:
    return Page(path.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return synthetic.write_run(tmp_path_factory.mktemp("runs") / "quickstart")


@pytest.fixture(scope="module")
def page(run_dir):
    assert report.write_report([run_dir]) == run_dir / "report.html"
    return read(run_dir / "report.html")


def test_head_says_what_ran(page):
    assert page.headings[0] == "quickstart"
    for words in (
        "dapo · new decoder, 4 layers, width 128 · packaged:gsm8k",
        "Duration 3 min 06 s",  # 60 steps of 3.1 s in summary.json
        "Steps 60 of 60",
        "Batch 8 prompts, 8 completions each",
        "Commit 0123456789ab rlvr_jax",
        "train --config configs/quickstart.py",
        "jax 0.10.2",
        "UTC",
    ):
        assert words in page.text


def test_evaluation_is_shown_with_intervals(page):
    assert "Evaluation on held-out problems" in page.headings
    assert (
        "pass@1 31.0 % [25.0, 37.0] 65.0 % [59.0, 71.0] +34.0 points higher"
        in page.text
    )
    # 0.86 - 0.06 = 0.80 is above 0.70 + 0.06 = 0.76.
    assert (
        "pass@8 70.0 % [64.0, 76.0] 86.0 % [80.0, 92.0] +16.0 points higher"
        in page.text
    )
    assert "Held-out pass@1 31.0 → 65.0 %" in page.text


def test_every_chart_of_the_run_is_drawn_once(page):
    expected = [
        chart.title
        for section in catalog.SECTIONS
        for chart in section.charts
        if any(name in STEP for name, _ in chart.metrics)
    ]
    zero = {"Skipped updates", "Reads the reasoning"}
    assert [title for title in expected if title not in zero] == [
        heading for heading in page.headings if heading in expected
    ]
    assert "0 at every step: skipped updates." in page.text
    assert "0 at every step: reads the reasoning." in page.text
    # Besides those: intervals, pass@1 and pass@8 over the steps, histogram, own metric.
    assert page.tags.count("svg") == len(expected) - len(zero) + 5


STEP = synthetic.step_metrics(0, 60, np.random.default_rng(0))


def test_metrics_that_the_run_lacks_leave_no_trace(page):
    assert "Warm-up loss" not in page.text
    assert "to reference" not in page.text  # kl/reference: beta is 0


def test_unknown_metrics_are_drawn_under_other(page):
    other = page.headings.index("Other")
    assert page.headings[other + 1] == "mine/curiosity"


def test_numbers_have_units(page):
    last = load_run_metric("completion/length_mean", 54)
    assert f"Length {last:.0f} tokens mean of the last tenth" in page.text
    assert re.search(r"Speed [\d,]+ tokens/s", page.text)
    assert re.search(r"Time per step [\d.]+ s", page.text)
    assert re.search(r"Entropy [\d.]+ nats", page.text)


def load_run_metric(name, start):
    """Mean of a metric from step `start` on, from the generator itself."""
    rng = np.random.default_rng(0)
    values = []
    for step in range(60):
        values.append(synthetic.step_metrics(step, 60, rng)[name])
        if step % 10 == 0:
            synthetic.completion_rows(step, rng)
    return np.mean(values[start:])


def test_gallery_shows_texts_as_text(page, run_dir):
    assert "The sum <b>is</b>" in page.text
    assert "b" in page.tags  # our own, in tables: the model's <b> is not one of them
    assert "&lt;b&gt;is&lt;/b&gt;" in (run_dir / "report.html").read_text()
    for heading in ("First", "Last", "Highest reward", "Zero or lowest reward"):
        assert heading in page.headings
    assert "unparseable step 0 reward 0.00 advantage -1.02 256 tokens" in page.text
    assert "cut at the limit" in page.text


def test_settings_are_listed_and_folded(page, run_dir):
    assert "details" in page.tags
    count = len(load_run(run_dir).config)
    assert count > 10
    assert "objective.epsilon_high 0.28" in page.text
    assert "steps 60 100" in page.text  # the value, then the default


def test_histogram_compares_first_and_last_steps(page):
    assert "Pass-rate histogram" in page.headings
    assert "first 6 steps" in page.text
    assert "last 6 steps" in page.text


def test_page_needs_nothing_else(page, run_dir):
    text = (run_dir / "report.html").read_text(encoding="utf-8")
    assert all(link.startswith("#") for link in page.links)
    assert "script" not in page.tags
    assert "@import" not in text
    targets = re.findall(r"url\(([^)]*)\)", text)
    assert all(target.startswith("#") for target in targets)
    defined = set(re.findall(r' id="([^"]+)"', text))
    used = {target[1:] for target in [*targets, *page.links]}
    assert used <= defined
    assert "prefers-color-scheme: dark" in text


def test_same_run_gives_the_same_page(tmp_path):
    folder = synthetic.write_run(tmp_path / "run", steps=4, only="reward/")
    first = report.write_report([folder]).read_bytes()
    assert report.write_report([folder]).read_bytes() == first


def test_runs_are_overlaid_and_their_settings_compared(tmp_path):
    folders = [
        synthetic.write_run(
            tmp_path / name, steps=8, seed=seed, learning_rate=rate, only="reward/"
        )
        for name, seed, rate in (("slow", 0, 1e-6), ("fast", 1, 3e-6))
    ]
    path = report.write_report(folders)
    assert path == tmp_path.resolve() / "comparison.html"
    page = read(path)
    assert page.headings[0] == "2 runs"
    assert "optimizer.learning_rate 1e-06 3e-06" in page.text
    assert "seed 0 1" in page.text
    assert "slow pass@1 31.0 %" in page.text
    assert "fast pass@1 31.0 %" in page.text
    reward = page.text.index("Of all completions of a step. slow fast mean std")
    assert reward > page.text.index("Settings that differ")


def test_runs_of_one_name_are_told_apart(tmp_path):
    folders = [
        synthetic.write_run(tmp_path / arm / "seed0", steps=2, only="reward/")
        for arm in ("a", "b")
    ]
    page = read(report.write_report(folders))
    assert "a/seed0" in page.headings
    assert "b/seed0" in page.headings


def test_unfinished_run_is_reported_as_such(tmp_path):
    folder = synthetic.write_run(tmp_path / "run", steps=6, only="reward/")
    for name in (
        "summary.json",
        "config.json",
        "versions.json",
        "completions.jsonl",
    ):
        (folder / name).unlink()
    with (folder / "metrics.jsonl").open("a") as file:
        file.write('{"step": 6, "ti')  # killed while writing
    page = read(report.write_report([folder]))
    assert "so far (not finished)" in page.text
    # From metrics.jsonl: first and latest evaluation.
    assert "pass@1 31.0 % [25.0, 37.0] 65.0 % [59.0, 71.0]" in page.text


def test_values_that_are_not_finite_are_the_first_thing_said(tmp_path):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        for step in range(50):
            values = {"loss/total": np.nan if step > 40 else 0.1, "grad/norm": np.inf}
            writer.metrics(step, values | {"optimizer/skipped": float(step > 40)})
    page = read(report.write_report([tmp_path]))
    assert "loss/total is not finite at 9 steps, first 41" in page.text
    assert "grad/norm is not finite at 50 steps, first 0" in page.text
    assert "updates were skipped at 9 steps, first 41" in page.text


def test_line_that_repeats_another_is_left_out(tmp_path):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        for step in range(3):
            values = {"reward/mean": 0.5, "reward/shaped_mean": 0.5}
            loss = {"loss/total": 0.1, "loss/policy": 0.2 if step == 1 else 0.1}
            writer.metrics(step, values | loss)
    page = read(report.write_report([tmp_path]))
    assert "with length and KL terms" not in page.text
    assert "policy" in page.text


def test_axis_of_times_leaves_compiling_out(tmp_path):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        for step in range(30):
            writer.metrics(step, {"time/step_s": 700.0 if step == 0 else 2.0})
    page = read(report.write_report([tmp_path]))
    # The axis ends at 1.5 * 2 s: its ticks are 0 to 3, none in the hundreds.
    assert not re.search(r"\b[2-7]00\b", page.text)
    assert "Steps that compile may reach beyond the axis." in page.text


@pytest.mark.parametrize("steps", [1, 2, 3000])
def test_short_and_long_runs(tmp_path, steps):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        for step in range(steps):
            writer.metrics(step, {"reward/mean": step / steps, "time/rollout_s": 1.0})
    path = report.write_report([tmp_path])
    page = read(path)
    assert "Reward" in page.headings
    assert path.stat().st_size < 200_000


def test_any_text_can_be_reported(tmp_path):
    nasty = (
        "</pre></main><script>alert(1)</script>\x00\x1b[0m\ud800\u202e 解 $\\frac{1}"
    )
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        writer.metrics(0, {nasty: 1.0, "evaluation/pass@1": 0.5})
        row = dict.fromkeys(("prompt", "completion", "answer", "verdict"), nasty)
        writer.completions(0, [row, {"completion": ""}, {"reward": "much"}])
    (tmp_path / "versions.json").write_text(json.dumps({nasty: nasty}))
    (tmp_path / "config.json").write_text(json.dumps({"model": nasty, "x": {"y": []}}))
    (tmp_path / "summary.json").write_text(json.dumps({"eval": {"before": {nasty: 1}}}))
    page = read(report.write_report([tmp_path]))
    assert "script" not in page.tags
    assert "解" in page.text
    assert "\\x00\\x1b[0m\\ud800\\u202e" in page.text
    assert "(empty)" in page.text


def test_summary_row_is_json_with_intervals_and_last_values(run_dir):
    row = report.summary_row(load_run(run_dir))
    assert json.loads(json.dumps(row, allow_nan=False)) == row
    assert row["eval"]["before"]["pass@1"] == pytest.approx([0.31, 0.25, 0.37])
    assert row["steps"] == 60
    assert row["commit"] == synthetic.VERSIONS["commit"]
    assert row["last"]["completion/length_mean"] == pytest.approx(
        load_run_metric("completion/length_mean", 54)
    )


def test_command_writes_the_page_and_says_where(tmp_path, capsys):
    folder = synthetic.write_run(tmp_path / "run", steps=2, only="reward/mean")
    command.main([str(folder)])
    assert capsys.readouterr().out == f"report: {folder / 'report.html'}\n"
    assert "Reward" in read(folder / "report.html").headings


def test_command_prints_one_json_line_per_run(tmp_path, capsys):
    folders = [
        synthetic.write_run(tmp_path / name, steps=steps, only="reward/mean")
        for name, steps in (("a", 2), ("b", 3))
    ]
    command.main([*map(str, folders), "--json", f"--output={tmp_path / 'x.html'}"])
    printed = capsys.readouterr()
    rows = [json.loads(line) for line in printed.out.splitlines()]
    assert [(row["run"], row["steps"]) for row in rows] == [("a", 2), ("b", 3)]
    assert printed.err == f"report: {tmp_path / 'x.html'}\n"
    assert (tmp_path / "x.html").exists()


def test_command_has_one_clear_error(tmp_path, capsys):
    with pytest.raises(SystemExit) as exit_:
        command.main([str(tmp_path / "nowhere")])
    assert exit_.value.code == (
        f"launch.report: load_run: {tmp_path}/nowhere is not a folder; give the "
        "run_dir of a training run"
    )


DOCUMENT = pathlib.Path(__file__).parents[2] / "docs" / "metrics.md"


def test_every_metric_that_is_drawn_is_documented():
    documented = set(re.findall(r"^\| `([^`]+)`", DOCUMENT.read_text(), re.MULTILINE))
    # One row stands for all quarters, one for all bins.
    named = {re.sub(r"(quarter|bin)_\d$", r"\1_K", name) for name in catalog.NAMED}
    assert documented >= named
    # Drawn under "Other": figures of settings that few runs have.
    rare = ("evaluation/", "curriculum/", "rollout/", "routing/")
    rare += ("optimizer/not_finite", "reference/reset", "clip/band_shift")
    unknown = {name for name in documented if not name.startswith(rare)}
    assert unknown - named == {"pass_rate/histogram_K", "part/NAME"}
