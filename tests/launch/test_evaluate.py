"""The command itself: recorded counts, a run's checkpoint, its exported model."""

import dataclasses
import json
import pathlib

import jax
import numpy as np
import pytest

from launch import evaluate
from rlvr_jax import config as config_lib
from rlvr_jax.analysis.counts import ProblemCounts, read_counts, write_counts
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.train.loading import load_model, problems_of, settings_of
from tests import tiny
from tests.end_to_end import tiny_recipe
from tests.launch.made import made_run

DATA = pathlib.Path(__file__).parents[1] / "data" / "passk"
PUBLISHED = [str(DATA / f"deepscaler32k_{name}.jsonl.gz") for name in ("base", "rl")]


def test_published_counts_as_json(capsys):
    """PK-22: the interval [11, 61] from the command line, no model needed."""
    evaluate.main(["--counts", *PUBLISHED, "--json"])
    result = json.loads(capsys.readouterr().out)
    assert result["comparison"]["first_loss"] == [11, 61]
    assert result["comparison"]["critical"] == pytest.approx(2.5566, abs=1e-4)
    assert len(result["models"][0]["pass@k"]) == 128


def test_published_counts_for_reading(capsys):
    """PK-22, PK-25."""
    evaluate.main(["--counts", *PUBLISHED])
    printed = capsys.readouterr().out
    assert "the curves cross: the first loss is at k in [11, 61]" in printed
    assert "finding: sharpening + coverage loss" in printed
    assert "gained 12, lost 33" in printed


def test_benchmarks_apart(tmp_path, capsys):
    """PK-21: counts with domains are compared within each as well."""
    for name, correct in (("a", (1, 2, 3, 4)), ("b", (4, 4, 1, 1))):
        problems = [
            ProblemCounts(str(i), 4, c, domain="easy" if i < 2 else "hard")
            for i, c in enumerate(correct)
        ]
        write_counts(tmp_path / name, problems)
    files = ["--counts", str(tmp_path / "a"), str(tmp_path / "b")]
    evaluate.main([*files, "--json"])
    domains = json.loads(capsys.readouterr().out)["comparison"]["domains"]
    assert [row["first"][0] for row in domains] == pytest.approx([0.625, -0.625])
    evaluate.main(files)
    assert "│ hard   │ 2        │" in capsys.readouterr().out


def test_one_model_in_several_ways(tmp_path, capsys):
    """PK-30, SPU-17, BEH-02: the same base with no template, a chat template and
    another one; planted rates of 1/2, 1/8 and 1/4, all of 8."""
    files = []
    for name, correct in (("none", 4), ("chat", 1), ("r1", 2)):
        files.append(str(tmp_path / name))
        write_counts(files[-1], [ProblemCounts("a", 8, correct)])
    evaluate.main(["--spread", *files, "--json"])
    found = json.loads(capsys.readouterr().out)["spread"]
    assert list(found) == ["1", "8"]
    assert list(found["1"]["pass@k"].values()) == [0.5, 0.125, 0.25]
    assert (found["1"]["spread"], found["8"]["spread"]) == (0.375, 0)
    evaluate.main(["--spread", *files])
    assert "largest - smallest" in capsys.readouterr().out
    with pytest.raises(SystemExit, match=r"launch\.evaluate: "):
        evaluate.main(["--spread", str(tmp_path / "nothing")])


def test_thinking_at_several_budgets(tmp_path, capsys):
    """TT-17: means of 10 and 30 tokens, pass@1 of 0 and 1/2; 3 of 4 within."""
    files = []
    for name, correct, thinking in (("short", 0, [8, 12]), ("long", 1, [28, 32])):
        files.append(str(tmp_path / name))
        write_counts(files[-1], [ProblemCounts("a", 2, correct, thinking=thinking)])
    evaluate.main(["--scaling", *files, "--between", "10", "32", "--json"])
    found = json.loads(capsys.readouterr().out)["thinking"]
    assert found["points"] == [[10.0, 0.0], [30.0, 0.5]]
    assert found["scaling"] == pytest.approx(0.025)
    assert (found["performance"], found["control"]) == (0.5, 0.75)
    evaluate.main(["--scaling", *files, "--between", "10", "32"])
    printed = capsys.readouterr().out
    assert "scaling +2500.00 points per 1000 thinking tokens" in printed
    assert "control 75.0 % within [10, 32]" in printed
    write_counts(tmp_path / "plain", [ProblemCounts("a", 2, 1)])
    with pytest.raises(SystemExit, match=r"launch\.evaluate: .*no thinking tokens"):
        evaluate.main(["--scaling", str(tmp_path / "plain")])


@pytest.mark.parametrize("arguments", [[], ["--counts", "a", "b", "c"]])
def test_one_or_two_models(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        evaluate.main(arguments)
    assert stopped.value.code == 2
    assert "models" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "idle", "way"),
    [
        ("--counts a --temperature 1 --output b", "--output, --temperature", "counts"),
        ("--counts a b --base c --prompts 3", "--base, --prompts", "counts"),
        ("--spread a b --checkpoint c", "--checkpoint", "spread"),
        ("--scaling a --counts b", "--counts", "scaling"),
        ("--checkpoint a --between 1 2", "--between", "checkpoint"),
    ],
)
def test_options_that_would_change_nothing_are_refused(arguments, idle, way, capsys):
    with pytest.raises(SystemExit) as stopped:
        evaluate.main(arguments.split())
    assert stopped.value.code == 2
    assert f"error: {idle}: not used with --{way}" in capsys.readouterr().err


def test_faults_are_said_in_a_line(tmp_path):
    with pytest.raises(SystemExit, match=r"launch\.evaluate: there is no model or run"):
        evaluate.main(["--checkpoint", str(tmp_path / "none")])
    with pytest.raises(SystemExit, match="neither a run folder nor a model"):
        evaluate.main(["--checkpoint", str(tmp_path)])
    write_counts(tmp_path / "a.jsonl", [ProblemCounts("a", 2, 1)])
    write_counts(tmp_path / "b.jsonl", [ProblemCounts("b", 2, 1)])
    with pytest.raises(SystemExit, match="different problems"):
        evaluate.main(
            ["--counts", str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
        )


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory):
    """A run as it stands after a checkpoint, and its parameters."""
    folder = tmp_path_factory.mktemp("run")
    return folder, made_run(folder)[1]


def test_a_checkpoint_brings_its_settings(run_folder):
    """Parameters bit for bit; the run's own held-out problems, or those asked for."""
    folder, parameters = run_folder
    config = settings_of(folder, {"evaluation.num_generations": 7})
    expected = tiny_recipe.get_config()
    expected.run_dir, expected.evaluation.num_generations = str(folder), 7
    assert config == expected
    model_mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    model = load_model(config, folder, model_mesh)
    assert model.origin == f"{folder}, step 3"
    assert tiny.largest_difference(model.parameters, parameters) == 0
    with pytest.raises(ValueError, match=r"of step 2; there are \[3\]"):
        load_model(config, folder, model_mesh, step=2)
    with pytest.raises(ValueError, match="is a model and has no step 3"):
        load_model(config, folder / "model", model_mesh, step=3)
    held_out = problems_of(config, "")
    assert {p.question for p in problems_of(config, "task:arithmetic")} == {
        p.question for p in held_out
    }


def test_a_checkpoint_and_its_export_count_the_same(run_folder, tmp_path, capsys):
    """The same parameters, prompts and keys draw the same completions, and a comparison
    of the two finds nothing (PK-24). Under itself as the base a completion has the
    log-probs that it was sampled with (PK-10): the two programs sum in another order,
    which float32 feels in the sixth digit."""
    folder, _ = run_folder
    one, two = str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl")
    shared = ["--n", "3", "--texts", "--json", "--checkpoint"]
    evaluate.main([*shared, str(folder), "--output", one, "--base", str(folder)])
    evaluate.main([*shared, str(folder / "model"), "--output", two, "--counts", one])
    result = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert result["comparison"]["finding"] == "no difference established"
    assert [score["problems"] for score in result["models"]] == [4, 4]
    assert len(result["models"][1]["pass@k"]) == 3
    for left, right in zip(read_counts(one), read_counts(two), strict=True):
        assert dataclasses.replace(left, base_logprobs=()) == right
        assert len(left.completions) == len(left.tokens) == left.n == 3
        np.testing.assert_allclose(left.base_logprobs, left.logprobs, atol=1e-5)


def test_thoughts_are_held_to_a_budget(run_folder, tmp_path, capsys):
    """TT-17: an untrained model never closes its thoughts by itself; at the budget
    they are closed for it, all of them. Without one nothing of it is written down."""
    folder, _ = run_folder
    # A folder that is not there yet costs no counts.
    free, held = str(tmp_path / "new" / "free.jsonl"), str(tmp_path / "held.jsonl")
    # A run may have sampled and paid in ways that the engine of the budget has not.
    config = config_lib.from_dict(json.loads((folder / "config.json").read_text()))
    config.rollout.prompts_at_once, config.reward.execution = 2, "callback"
    other = tmp_path / "other"
    other.mkdir()
    (other / "checkpoints").symlink_to(folder / "checkpoints")
    config_lib.save(config, other / "config.json")
    shared = ["--checkpoint", str(other), "--n", "2", "--json", "--output"]
    evaluate.main([*shared, free])
    steered = ["--thinking_budget", "2", "--think_end", "="]
    evaluate.main([*shared, held, *steered])
    assert all(len(problem.thinking) == 0 for problem in read_counts(free))
    problems = read_counts(held)
    assert all(len(problem.thinking) == 2 for problem in problems)
    longest = max(max(problem.tokens) for problem in problems)
    capsys.readouterr()
    evaluate.main(["--scaling", held, "--between", "0", "4", "--json"])
    assert json.loads(capsys.readouterr().out)["thinking"]["control"] == 1.0
    assert longest <= 4  # of the recipe


def test_problems_of_a_source_get_the_verifier_of_their_fields(tmp_path):
    """As in training: tests call for "code", instructions for "instructions"; a
    verifier of the user's choice stays."""
    folder = pathlib.Path(__file__).parents[1] / "data" / "problems"
    config = config_lib.Config()
    for name, verifier in (("humaneval", "code"), ("ifeval", "instructions")):
        found = problems_of(config, str(folder / f"{name}.jsonl"))
        assert {problem.verifier for problem in found} == {verifier}
    config.reward.verifier = "exact"
    found = problems_of(config, str(folder / "humaneval.jsonl"))
    assert {problem.verifier for problem in found} == {"exact"}


def test_settings_of_another_version_are_refused(tmp_path):
    (tmp_path / "config.json").write_text('{"run_dir": "a", "objective": {"old": 1}}')
    with pytest.raises(ValueError, match=r"objective\.old"):
        settings_of(tmp_path, {})
