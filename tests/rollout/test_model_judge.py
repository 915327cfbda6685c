"""A model of ours as the judge: what it is asked, in which batches, how it is read."""

import json

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.data import tokenizer
from rlvr_jax.rollout import model_judge
from rlvr_jax.rollout.model_judge import ModelJudge
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.base import Sample, Status
from tests import tiny


class Tokenizer(tokenizer.Tokenizer):
    """One id per character, from 5 on; 0 pads and 1 ends."""

    pad_id = 0  # type: ignore[misc]
    eos_ids = (1,)  # type: ignore[misc]

    def __init__(self):
        pass

    def encode_chat(self, messages, *, add_generation_prompt=True):
        text = "".join(message["content"] for message in messages)
        return [5 + ord(letter) % 50 for letter in text]

    def decode(self, ids, *, keep_special=False):
        return "".join(REPLIES[i] for i in ids)


REPLIES = {2: "Verdict: correct", 3: "Verdict: incorrect", 4: "hm", 5: "Score: 3"}


def sample(answer, verifier="judge"):
    return Sample(verifier, answer, "Paris", "Capital of France?")


def judge(**changes):
    graphdef, parameters = tiny.policy()
    settings = {
        "tokenizer": Tokenizer(),
        "graphdef": graphdef,
        "parameters": parameters,
        "sampling": Sampling(1, 3, (1,), temperature=0.0),
        "batch_size": 2,
        "max_prompt_tokens": 1500,
    }
    return ModelJudge(**(settings | changes))


@pytest.fixture
def calls(monkeypatch):
    """Replies by the length of the prompt, in place of a model; the calls are kept."""
    seen = []

    def reply(graphdef, parameters, tokens, lengths, keys, *, sampling):
        seen.append((np.asarray(tokens), np.asarray(lengths), sampling))
        first = [2 + int(length) % 4 for length in lengths]
        replies = np.array([[[token, 1, 9]] for token in first], np.int32)
        count = len(first)
        return Rollouts(
            prompt_tokens=tokens,
            prompt_lengths=lengths,
            completion_tokens=jnp.array(replies),
            completion_lengths=jnp.full((count, 1), 2),
            ended=jnp.ones((count, 1), bool),
            rollout_logprobs=jnp.zeros((count, 1, 3)),
            group_id=jnp.zeros((count, 1), int),
        )

    monkeypatch.setattr(model_judge, "sample", reply)
    return seen


def expected(text, verifier="judge"):
    """The verdict that the stand-in gives: by the length of what it is asked."""
    messages = model_judge.messages_for(sample(text, verifier))
    token = 2 + len(Tokenizer().encode_chat(messages)) % 4
    if verifier == "judge:rubric":
        return Status.WRONG if token == 5 else Status.CRASH
    return {2: Status.CORRECT, 3: Status.WRONG}.get(token, Status.CRASH)


def test_replies_reach_their_samples_whatever_the_batches(calls):
    """VER-05: lengths 1..9 in batches of two, shortest first; equal ones asked once."""
    texts = ["x" * n for n in (5, 2, 9, 1, 7, 3, 8, 4, 6)]
    one = judge()
    verdicts = one.submit([sample(text) for text in [*texts, *texts]])()
    assert [v.status for v in verdicts] == [expected(t) for t in texts] * 2
    assert {v.status for v in verdicts} == {Status.CORRECT, Status.WRONG, Status.CRASH}
    assert len(calls) == 5
    longest = [lengths.max() for _, lengths, _ in calls]
    assert longest == sorted(longest)
    metrics = one.metrics()
    assert metrics["judge/calls"] == 9
    assert metrics["judge/completion_tokens"] == 9
    base = len(Tokenizer().encode_chat(model_judge.messages_for(sample("x")))) - 1
    assert metrics["judge/prompt_tokens"] == 9 * base + sum(range(1, 10))
    assert one.metrics()["judge/calls"] == 0


def test_prompts_are_padded_on_the_left_to_a_few_shapes(calls):
    judge().submit([sample("x" * n) for n in range(1, 60)])()
    assert {tokens.shape[1] % 128 for tokens, _, _ in calls} == {0}
    assert len({tokens.shape for tokens, _, _ in calls}) <= 2
    assert all(sampling.temperature == 0 for _, _, sampling in calls)
    for tokens, lengths, _ in calls:
        for row, length in zip(tokens, lengths, strict=True):
            if length > 1:  # others only fill the last batch
                assert (row[: len(row) - length] == 0).all()
                assert (row[len(row) - length :] >= 5).all()


def test_what_need_not_be_asked_is_not(calls):
    rows = [
        sample("<think>Paris</think>"),
        Sample("judge", "Paris", ""),
        sample("x" * 3000),
        sample("yes", "judge:rubric"),
    ]
    verdicts = judge().submit(rows)()
    assert [v.status for v in verdicts] == [
        Status.UNPARSEABLE,
        Status.BAD_REFERENCE,
        Status.UNPARSEABLE,
        expected("yes", "judge:rubric"),
    ]
    assert "too long for the judge" in verdicts[2].detail
    assert len(calls) == 1


def test_a_real_model_that_talks_nonsense_is_a_failed_judge():
    """The sampler itself, on a random decoder: its characters are no verdict."""

    class Letters(Tokenizer):
        def decode(self, ids, *, keep_special=False):
            return " ".join(map(str, ids))

    random = judge(tokenizer=Letters())
    (verdict,) = random.submit([sample("Paris")])()
    assert verdict.status is Status.CRASH
    assert "malformed reply: no verdict in the last line" in verdict.detail
    assert random.metrics()["judge/prompt_tokens"] > 100


def test_a_directory_without_a_model_says_so(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({}))
    with pytest.raises((ValueError, FileNotFoundError), match=str(tmp_path)):
        ModelJudge.load(
            str(tmp_path), batch_size=1, max_prompt_tokens=10, max_tokens=10
        )
