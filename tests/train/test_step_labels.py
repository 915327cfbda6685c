"""Steps of completions, labelled by a scripted completer that goes on from them."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.config import RewardConfig
from rlvr_jax.data.char_tokenizer import CharTokenizer
from rlvr_jax.data.prompts import EncodedPrompts
from rlvr_jax.data.rows import Problem
from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import Scorer
from rlvr_jax.train import evaluation as module
from rlvr_jax.train.batches import PromptBatches, slots_for
from rlvr_jax.train.evaluation import Evaluation
from rlvr_jax.train.reward_model import Judged
from rlvr_jax.train.step_labels import step_ends, steps_of, with_step_labels
from rlvr_jax.verifiers.base import Status, Verdict
from rlvr_jax.verifiers.pool import VerifierPool
from tests import tiny

TOKENIZER = CharTokenizer()
QUESTIONS, SAMPLES, COMPLETIONS = ["3 + 4", "1 + 1"], 2, 4
TEXTS = ["go\nok\n7", "go\n?no\n9", "!by\n7", "2"]
"""Two of each question; "?" is a mistake that is never put right, "!" one that one of
four completions puts right."""
ANSWERS = ["7", "7"]
TOKENS = 12


class Pool(VerifierPool):
    """Right where the last line is the answer; keeps what it was asked."""

    def __init__(self):
        self.seen = []

    def verify(self, samples):
        self.seen += [sample.completion for sample in samples]
        right = [s.completion.splitlines()[-1] == s.answer for s in samples]
        return [Verdict(Status.CORRECT if r else Status.WRONG, float(r)) for r in right]


def completer(graphdef, parameters, tokens, lengths, keys, *, sampling):
    """Goes on with the answer, unless what it sees holds a mistake."""
    del graphdef, parameters
    rows = np.full((*keys.shape, TOKENS), 0, np.int32)
    counts = np.zeros(keys.shape, np.int32)
    assert keys.shape[1] == sampling.num_generations == COMPLETIONS
    for i, (row, length) in enumerate(zip(np.asarray(tokens), lengths, strict=True)):
        seen = TOKENIZER.decode(row[len(row) - int(length) :].tolist())
        for j in range(COMPLETIONS):
            wrong = "?" in seen or ("!" in seen and j > 0)
            text = [*TOKENIZER.encode("8" if wrong else "7"), 1]
            rows[i, j, : len(text)], counts[i, j] = text, len(text)
    return types.SimpleNamespace(
        completion_tokens=jnp.asarray(rows),
        completion_lengths=jnp.asarray(counts),
        ended=jnp.ones(keys.shape, bool),
    )


def evaluation_and_data(pool, **changes):
    prompts = [TOKENIZER.encode(q) for q in QUESTIONS]
    problems = [
        Problem(str(i), q, a, "exact", {})
        for i, (q, a) in enumerate(zip(QUESTIONS, ANSWERS, strict=True))
    ]
    mesh = make_mesh((1, 1, 1), jax.devices()[:1])
    evaluation = Evaluation(
        graphdef=tiny.policy()[0],
        prompts=EncodedPrompts(problems, prompts, 0),
        batches=PromptBatches(prompts, 2, slots_for(prompts), 0, SAMPLES, mesh),
        scorer=Scorer(
            TOKENIZER,
            problems,
            RewardConfig(correct=2.0, wrong=-1.0),
            {"exact": "answer"},
            pool,
            (1,),
        ),
        sampling=Sampling(SAMPLES, TOKENS, (1,)),
        seed=0,
    )
    ids = [[*TOKENIZER.encode(text), 1] for text in TEXTS]
    tokens = np.zeros((len(ids), TOKENS), np.int32)
    for row, written in zip(tokens, ids, strict=True):
        row[: len(written)] = written
    data = Judged(
        prompt_tokens=np.zeros((4, 8), np.int32),
        prompt_lengths=np.full(4, 5, np.int32),
        completion_tokens=tokens,
        completion_lengths=np.array([len(x) for x in ids], np.int32),
        rewards=np.array([2, -1, 2, -1], np.float32),
    )
    return evaluation, data


def labelled(monkeypatch, kind):
    pool = Pool()
    evaluation, data = evaluation_and_data(pool)
    monkeypatch.setattr(module, "sample", completer)
    found = with_step_labels(
        data,
        steps_of(data, TOKENIZER, (1,)),
        evaluation,
        tiny.policy()[1],
        completions=COMPLETIONS,
        kind=kind,
        right=2.0,
    )
    labels = found.step_labels
    assert labels is not None
    assert labels.shape == (4, TOKENS + 1)
    places = [np.flatnonzero(~np.isnan(row)).tolist() for row in labels]
    return places, [row[~np.isnan(row)].tolist() for row in labels], pool


def test_steps_are_labelled_by_what_follows(monkeypatch):
    """PROC-02, PROC-07: the place after each line, and whether any completion from
    there is right; nothing after the first error; a last line has the verdict. In 12
    tokens and the end of "go/ok/7" lines end after 3, 6 and 8."""
    places, labels, pool = labelled(monkeypatch, "hard")
    assert labels == [[1, 1, 1], [1, 0], [1, 1], [0]]
    assert places == [[3, 6, 8], [3, 7], [4, 6], [2]]
    # Verified is the whole solution, its beginning with what was sampled after it.
    assert sorted(set(pool.seen)) == [
        "!by\n7",
        "!by\n8",
        "go\n7",
        "go\n?no\n8",
        "go\nok\n7",
    ]


def test_soft_labels_are_shares(monkeypatch):
    """PROC-07: one of four from "!"; steps after an error keep theirs."""
    places, labels, _ = labelled(monkeypatch, "soft")
    assert labels == [[1, 1, 1], [1, 0, 0], [0.25, 1], [0]]
    assert places[1] == [3, 7, 9]


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("a\nbc\nd", [2, 5, 7]),
        ("a\n\n\nb", [2, 6]),  # blank lines belong to what follows
        ("\n\na", [4]),
        ("a\nb\n", [2, 5]),  # and at the end to the last step, with the end token
        ("a\n\n", [4]),
        ("\n", [2]),
        ("", [1]),
    ],
)
def test_a_line_is_a_step(text, ends):
    """PROC-02."""
    assert step_ends([*TOKENIZER.encode(text), 1], TOKENIZER, (1,)) == ends
    # Cut at the limit there is no end token.
    if text:
        cut = step_ends(TOKENIZER.encode(text), TOKENIZER, (1,))
        assert cut == [*ends[:-1], len(text)]


def test_what_is_steered_cannot_be_gone_on_with():
    evaluation, data = evaluation_and_data(Pool())
    object.__setattr__(evaluation, "engine", object())
    with pytest.raises(UserError, match=r"control\.\* does not steer"):
        with_step_labels(
            data, steps_of(data, TOKENIZER, (1,)), evaluation, tiny.policy()[1]
        )
