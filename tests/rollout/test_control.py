"""Rules on completions, and what the engine makes of them."""

import jax.numpy as jnp
import numpy as np
import pytest

from rlvr_jax.rollout.control import Control, Steer
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.sampler import Sampling, row_keys
from tests import tiny

CLOSE = (50, 51)


def look(control, tokens, forced=None):
    return control.look(tokens, forced or [False] * len(tokens))


def test_a_thought_within_its_budget_goes_on():
    control = Control(close=CLOSE, budget=4, budget_text=(9,))
    assert look(control, [7, 7, 7]) is None
    assert look(control, [7, *CLOSE, 8, 8]) is None


def test_a_thought_at_its_budget_is_closed():
    control = Control(close=CLOSE, budget=4, budget_text=(9, 9))
    assert look(control, [7, 7, 7, 7]) == Steer(4, force=(9, 9, 50, 51))


def test_a_short_thought_waits_as_often_as_allowed():
    control = Control(close=CLOSE, least_thinking=6, wait=(30,), max_waits=1)
    short = [7, 7, *CLOSE]
    assert look(control, short) == Steer(2, force=(30,))
    again = [7, 7, 30, 7, *CLOSE]
    assert look(control, again, [False, False, True, False, False, False]) is None
    assert look(control, [7] * 6 + list(CLOSE)) is None


def test_stop_texts_end_at_the_token_that_completes_them():
    letters = "abcdefghij"
    control = Control(
        stop_texts=("cd", "zz"), decode=lambda ids: "".join(letters[i] for i in ids)
    )
    assert look(control, [0, 1, 2]) is None
    assert look(control, [0, 1, 2, 3, 4, 5]) == Steer(4, ended=True)


@pytest.fixture(scope="module")
def policy():
    return tiny.policy()


def run(policy, control, *, length=20, end_ids=(-1,), seed=0):
    tokens, lengths = tiny.prompts()
    sampling = Sampling(2, length, end_ids)
    engine = Engine(
        policy[0], sampling, tiny.VOCAB, num_slots=8, steps_per_call=4, control=control
    )
    keys = row_keys(seed, 0, jnp.arange(tiny.PROMPTS), 2)
    rollouts, _ = engine(policy[1], np.asarray(tokens), np.asarray(lengths), keys)
    return rollouts


def test_the_engine_writes_the_budget_sentence(policy):
    """TT-17, TT-18: every thought is closed after 5 tokens, at that token; what was
    written is not the policy's."""
    control = Control(close=CLOSE, budget=5, budget_text=(33,), prefix=(40,))
    found = run(policy, control)
    free = run(policy, Control(prefix=(40,)))
    tokens = np.asarray(found.completion_tokens)
    assert (tokens[..., 0] == 40).all()
    np.testing.assert_array_equal(
        tokens[..., 5:8], np.broadcast_to([33, 50, 51], (8, 2, 3))
    )
    # Up to there the completions are those without a budget.
    np.testing.assert_array_equal(tokens[..., :5], free.completion_tokens[..., :5])
    expected = np.zeros(20, bool)
    expected[[0, 5, 6, 7]] = True
    np.testing.assert_array_equal(found.forced, np.broadcast_to(expected, (8, 2, 20)))
    np.testing.assert_array_equal(found.token_mask, ~np.asarray(found.forced))
    assert (np.asarray(found.rollout_logprobs)[..., expected] == 0).all()
    assert (np.asarray(found.rollout_logprobs)[..., ~expected] < 0).mean() > 0.9


def test_the_engine_makes_short_thoughts_wait(policy):
    """TT-17: a thought that closes early is continued with "Wait" from where it closed,
    and the text after it is what the policy says to that beginning."""
    closes = (6,)  # some completions draw it early
    control = Control(close=closes, least_thinking=20, wait=(30, 31))
    found, free = run(policy, control), run(policy, Control())
    tokens, forced = np.asarray(found.completion_tokens), np.asarray(found.forced)
    plain = np.asarray(free.completion_tokens)
    waited = forced.any(axis=-1)
    assert waited.any()
    np.testing.assert_array_equal(waited, (plain[..., :19] == 6).any(axis=-1))
    for at in np.argwhere(waited):
        at = tuple(at)
        start = int(np.argmax(forced[at]))
        assert plain[at][start] == 6
        np.testing.assert_array_equal(tokens[at][:start], plain[at][:start])
        written = tokens[at][start : start + 2]
        np.testing.assert_array_equal(written, (30, 31)[: len(written)])
    np.testing.assert_array_equal(tokens[~waited], plain[~waited])


def test_log_probs_after_forced_tokens_are_those_of_the_whole_text(policy):
    """The trainer's log-probs of the policy's own tokens are the sampler's."""
    from rlvr_jax.train.forward import rollout_logprobs

    control = Control(close=CLOSE, budget=5, budget_text=(33,))
    found = run(policy, control, length=tiny.LENGTH + 5)
    logprobs = rollout_logprobs(policy[1], found, tiny.plan(policy[0]))
    own = np.asarray(found.token_mask)
    np.testing.assert_allclose(
        np.asarray(logprobs)[own], np.asarray(found.rollout_logprobs)[own], atol=1e-5
    )


def test_stop_texts_end_completions_in_the_engine(policy):
    """A stop text that spans tokens ends the completion where it is complete."""
    control = Control(
        stop_texts=("6,",), decode=lambda ids: "".join(f"{i}," for i in ids)
    )
    found, free = run(policy, control), run(policy, Control())
    plain = np.asarray(free.completion_tokens)
    ends_in_6 = plain % 10 == 6
    expected = np.where(ends_in_6.any(-1), ends_in_6.argmax(-1) + 1, 20)
    np.testing.assert_array_equal(found.completion_lengths, expected)
    np.testing.assert_array_equal(found.ended, ends_in_6.any(-1))
