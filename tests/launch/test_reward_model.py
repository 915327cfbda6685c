"""Reward models by the command, and what they choose: train, score, compare."""

import json
import types
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from launch import evaluate, reward_model
from rlvr_jax.analysis.counts import ProblemCounts, read_counts, write_counts
from rlvr_jax.core.voting import best_of_k
from rlvr_jax.data.tokenizer import load_tokenizer
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.weights import save_decoder
from rlvr_jax.train.evaluation import Batch
from rlvr_jax.train.loading import problems_of, settings_of
from rlvr_jax.train.reranking import batch_scores, load_reranker
from tests.launch.made import made_run

HEAD = np.random.default_rng(0).normal(size=32).astype(np.float32)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, and a reward model on its parameters with a head of random numbers."""
    folder = tmp_path_factory.mktemp("run")
    graphdef, parameters = made_run(folder)
    decoder = nnx.merge(graphdef, parameters)
    load_tokenizer("").save(folder / "scores")
    save_decoder(decoder, folder / "scores", score=jnp.asarray(HEAD))
    return folder, decoder


def score_by_hand(decoder, prompt: str, text: str, ended: bool) -> float:
    """Of the state after the last token of one row, no batch and no padding."""
    ids = load_tokenizer("").encode(prompt + text) + [1] * ended
    states, _ = decoder.prefill(jnp.array([ids]), jnp.array([len(ids)]))
    return float(states[0, -1] @ HEAD)


def test_a_scorer_chooses_among_completions(made, tmp_path, capsys):
    """TT-08, TT-24, REC-34: samples, thoughts held to a budget, and a learned scorer,
    in one command: each completion has the score of its last state, the best of k is
    chosen by it, and the three numbers are printed: pass@1, the vote, the choice."""
    folder, decoder = made
    output = str(tmp_path / "counts.jsonl")
    arguments = ["--checkpoint", str(folder), "--n", "5", "--texts"]
    arguments += ["--scorer", str(folder / "scores"), "--output", output]
    evaluate.main([*arguments, "--thinking_budget", "2", "--think_end", "="])
    printed = capsys.readouterr().out
    assert "pass@1 " in printed
    assert "a vote of 5 " in printed
    assert "the scorer's choice of 5 " in printed
    assert all(len(problem.thinking) == 5 for problem in read_counts(output))
    evaluate.main(arguments)
    problems = read_counts(output)
    asked = {str(p.id): p.question for p in problems_of(settings_of(folder, {}), "")}
    assert len(problems) == 4
    compared = 0
    for problem in problems:
        rows = zip(problem.completions, problem.ended, problem.scores, strict=True)
        for (text, ended, score), count in zip(rows, problem.tokens, strict=True):
            if (
                len(text) + ended == count
            ):  # no padding was sampled, which no text shows
                expected = score_by_hand(decoder, asked[problem.id], text, bool(ended))
                assert score == pytest.approx(expected, abs=1e-4)
                compared += 1
    assert compared > 15
    capsys.readouterr()
    evaluate.main(["--counts", output, "--json"])
    found = json.loads(capsys.readouterr().out)["models"][0]
    by_hand = np.mean([best_of_k(p.scores, p.correct) for p in problems], axis=0)
    np.testing.assert_allclose([k[0] for k in found["best_of_k"]], by_hand)


def test_a_step_is_the_whole_of_a_line(made, tmp_path):
    """PROC-13: of one-line completions the score of the only step, as a chance:
    sigmoid of the score at the end."""
    folder, _ = made
    shared = ["--checkpoint", str(folder), "--n", "3", "--texts", "--json"]
    shared += ["--scorer", str(folder / "scores"), "--output"]
    plain, steps = (str(tmp_path / name) for name in ("plain.jsonl", "steps.jsonl"))
    evaluate.main([*shared, plain])
    evaluate.main([*shared, steps, "--steps", "product"])
    compared = 0
    for one, other in zip(read_counts(plain), read_counts(steps), strict=True):
        assert one.completions == other.completions
        for text, score, chance in zip(
            one.completions, one.scores, other.scores, strict=True
        ):
            if "\n" not in text:
                compared += 1
                assert chance == pytest.approx(1 / (1 + np.exp(-score)), abs=1e-5)
    assert compared > 6


@pytest.mark.parametrize("steps", ["min", "product", "last"])
def test_scores_of_steps_become_one(made, steps):
    """PROC-06, PROC-13: the chance after each line, by hand from each beginning alone,
    as the product of Lightman et al. (and min, last): this is what chooses."""
    folder, decoder = made
    config = settings_of(folder, {})
    mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    reranker = load_reranker(folder / "scores", config, mesh, steps=steps)
    question, texts = "3 + 4", ["a\nbc\n7", "11\n7"]
    tokens = np.zeros((1, 2, 10), np.int32)
    ids = [[*load_tokenizer("").encode(text), 1] for text in texts]
    for row, written in zip(tokens[0], ids, strict=True):
        row[: len(written)] = written
    asked = np.array([load_tokenizer("").encode(question)])
    prompts: Any = types.SimpleNamespace(
        prompt_tokens=jnp.asarray(np.pad(asked, ((0, 0), (3, 0)))),
        prompt_lengths=jnp.array([5]),
    )
    scores: Any = types.SimpleNamespace(rewards=np.zeros((1, 2)))
    batch = Batch(
        rows=np.array([0]),
        used=1,
        rollouts=prompts,
        tokens=tokens,
        lengths=np.array([[len(written) for written in ids]]),
        ended=np.ones((1, 2), bool),
        scores=scores,
        strict=None,
    )
    beginnings = [["a\n", "a\nbc\n", texts[0]], ["11\n", texts[1]]]
    combine = {"min": min, "product": np.prod, "last": lambda chances: chances[-1]}
    expected = []
    for parts in beginnings:
        ends = [False] * (len(parts) - 1) + [True]
        found = [
            score_by_hand(decoder, question, part, end)
            for part, end in zip(parts, ends, strict=True)
        ]
        expected.append(combine[steps](1 / (1 + np.exp(-np.array(found)))))
    np.testing.assert_allclose(batch_scores(reranker, batch)[0], expected, atol=1e-4)


@pytest.mark.parametrize("predict", ["end", "steps"])
def test_a_reward_model_is_trained_and_scores(made, tmp_path, capsys, predict):
    """PROC-02, TT-08: from the command to a directory that the evaluator reads."""
    folder, _ = made
    target = tmp_path / predict
    arguments = ["--checkpoint", str(folder), "--output", str(target), "--n", "2"]
    arguments += ["--prompts", "20", "--predict", predict, "--batch_size", "8"]
    if predict == "steps":
        arguments += ["--step_completions", "2", "--labels", "soft"]
    reward_model.main(arguments)
    printed = capsys.readouterr().out
    things = "steps" if predict == "steps" else "completions"
    assert f"{things}, mean" in printed
    assert "area under the ROC curve" in printed
    scored = ["--checkpoint", str(folder), "--n", "2", "--scorer", str(target)]
    evaluate.main([*scored, "--output", str(tmp_path / "counts.jsonl"), "--json"])
    problems = read_counts(tmp_path / "counts.jsonl")
    assert all(np.isfinite(problem.scores).all() for problem in problems)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("--labels soft", "are of --predict steps"),
        ("--predict end --step_completions 4", "are of --predict steps"),
        ("--predict steps --step_completions 0", "a step needs one at least"),
    ],
)
def test_settings_of_steps_alone(arguments, said, capsys):
    """PROC-02."""
    with pytest.raises(SystemExit):
        reward_model.main(["--checkpoint", "a", "--output", "b", *arguments.split()])
    assert said in capsys.readouterr().err


def test_steps_need_a_scorer(capsys):
    with pytest.raises(SystemExit):
        evaluate.main(["--checkpoint", "a", "--steps", "min"])
    assert "--steps: says how to use a --scorer" in capsys.readouterr().err


def test_what_is_no_reward_model_is_refused(made):
    folder, _ = made
    arguments = ["--checkpoint", str(folder), "--scorer", str(folder / "model")]
    with pytest.raises(SystemExit, match="is no reward model"):
        evaluate.main(arguments)


def test_what_a_vote_and_a_scorer_add(tmp_path, capsys):
    """REC-34, by hand: two of five right; a vote of five is wrong, the scorer puts a
    right one first (and one wrong one above the other: 5 of 6 pairs), and log-probs
    would have chosen a wrong one. A weighted vote goes to the right answer."""
    problem = ProblemCounts(
        "a",
        5,
        2,
        correct=[1, 1, 0, 0, 0],
        answers=[0, 0, 1, 1, 1],
        logprobs=[-5.0, -4.0, -1.0, -2.0, -3.0],
        scores=[0.9, 0.4, 0.5, 0.2, 0.1],
    )
    write_counts(tmp_path / "counts.jsonl", [problem])
    evaluate.main(["--counts", str(tmp_path / "counts.jsonl")])
    printed = capsys.readouterr().out
    assert (
        "pass@1 40.0, a vote of 5 0.0 (-40.0), the scorer's choice of 5 100.0 "
        "(+100.0), a vote weighted by scores 100.0, area under the ROC curve 0.833"
    ) in printed
