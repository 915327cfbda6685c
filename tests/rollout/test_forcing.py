"""Budget forcing on a policy whose every token is written down beforehand."""

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.analysis.thinking import control as control_metric
from rlvr_jax.models.caches import CompletionCache, PromptCache
from rlvr_jax.rollout.control import Control, Steer
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.passage import Prompts
from rlvr_jax.rollout.sampler import Sampling, row_keys

VOCAB, LENGTH = 16, 40
CLOSE, END, WAIT = 6, 1, 8
NEXT = {
    2: 3,  # a short thought: 3 4 6, an answer 7, the end
    3: 4,
    4: CLOSE,
    CLOSE: 7,
    7: END,
    WAIT: 3,  # after "Wait" the short thought again
    9: 9,  # a thought that never closes
    10: CLOSE,  # no thought at all
}
SHORT, ENDLESS, EMPTY = 2, 9, 10


class Scripted(nnx.Module):
    """After token t comes NEXT[t]; it looks at nothing else."""

    head_dtype = "float32"

    def __init__(self):
        table = np.zeros((VOCAB, VOCAB), np.float32)
        for before, after in NEXT.items():
            table[before, after] = 100.0
        self.table = nnx.Param(jnp.asarray(table))

    @property
    def head_weight(self):
        return jnp.eye(VOCAB)

    def prefill(self, tokens, lengths):
        empty = jnp.zeros((1, *tokens.shape, 1))[:, :, None, :, :]
        return self.table[...][tokens], PromptCache(empty, empty, lengths)

    def decode(self, tokens, step, prompts, cache):
        return self.table[...][tokens], cache

    def read(self, tokens, prompts):
        empty = jnp.zeros((1, *tokens.shape, 1))[:, :, :, None]
        return self.table[...][tokens], CompletionCache(empty, empty)


GRAPHDEF, PARAMETERS = nnx.split(Scripted())
PROMPTS = Prompts(np.array([[SHORT], [ENDLESS], [EMPTY]]), np.ones(3, int))


def engine_of(control):
    sampling = Sampling(2, LENGTH, (END,))
    return Engine(
        GRAPHDEF, sampling, VOCAB, num_slots=8, steps_per_call=3, control=control
    )


def keys(generations=2):
    return row_keys(0, 0, jnp.arange(3), generations)


def thoughts(control):
    """Thinking tokens of completions of one prompt of each kind, and the rollouts."""
    engine = engine_of(control)
    rollouts, _ = engine(PARAMETERS, PROMPTS.tokens, PROMPTS.lengths, keys())
    rows = zip(
        np.asarray(rollouts.completion_tokens).reshape(6, -1),
        np.asarray(rollouts.completion_lengths).reshape(-1),
        strict=True,
    )
    tokens = [control.thinking_tokens(row[:count].tolist()) for row, count in rows]
    return np.array(tokens), rollouts


def test_without_forcing_thoughts_are_as_they_are():
    tokens, _ = thoughts(Control(close=(CLOSE,)))
    assert tokens.tolist() == [2, 2, LENGTH, LENGTH, 0, 0]
    assert control_metric(tokens, least=10, most=20) == 0


@pytest.mark.parametrize(("least", "most"), [(10, 20), (7, 9), (12, 30)])
def test_control_is_one_on_a_scripted_model(least, most):
    """TT-17: the least and the largest length are respected, whatever the model does:
    each "Wait" makes the short thought three tokens longer, the empty one too."""
    control = Control(
        close=(CLOSE,),
        least_thinking=least,
        wait=(WAIT,),
        max_waits=LENGTH,
        budget=most,
        budget_text=(),
    )
    tokens, rollouts = thoughts(control)
    assert control_metric(tokens, least=least, most=most) == 1.0
    short, endless, _ = tokens.reshape(3, 2)[:, 0].tolist()
    # 3 4 Wait 3 4 Wait ...: 2 + 3 n tokens, the first of them that is enough.
    assert short == next(2 + 3 * n for n in range(99) if 2 + 3 * n >= least)
    assert endless == most
    # The closed thought is followed by an answer and the end.
    assert np.asarray(rollouts.ended).all()
    lengths = np.asarray(rollouts.completion_lengths).reshape(-1)
    np.testing.assert_array_equal(lengths, tokens + 3)


def test_waits_are_counted_one_by_one():
    """Two waits in a row (the empty thought closes at once) are two."""
    control = Control(close=(CLOSE,), least_thinking=30, wait=(10,), max_waits=3)
    tokens, _ = thoughts(control)
    # After token 10 the thought closes again: three waits, then it may.
    assert tokens.reshape(3, 2)[2].tolist() == [3, 3]


def test_qwen3_budget_sentence_then_an_answer():
    """REC-14: at the budget the sentence and the close are written: the thought has no
    more than the budget and the sentence, and an answer follows."""
    sentence = (11, 12, 13)
    control = Control(close=(CLOSE,), budget=8, budget_text=sentence)
    tokens, rollouts = thoughts(control)
    assert (tokens <= 8 + len(sentence)).all()
    endless = np.asarray(rollouts.completion_tokens)[1, 0]
    written = [*[9] * 8, *sentence, CLOSE, 7, END]
    assert endless[: len(written)].tolist() == written
    assert np.asarray(rollouts.ended).all()
    forced = np.asarray(rollouts.forced)[1, 0]
    assert forced.nonzero()[0].tolist() == [8, 9, 10, 11]
    # What was written is no token of the loss.
    assert not np.asarray(rollouts.token_mask)[1, 0][8:12].any()


@pytest.mark.parametrize("budget", [1, 2, 3, 5])
def test_a_closing_text_may_fall_between_two_parts(budget):
    """DATA-07: the second token of "</think>" comes in a later step, and what was kept
    of the first is taken back; each is of its own version."""
    control = Control(close=(4, CLOSE), least_thinking=9, wait=(WAIT,), max_waits=9)
    engine = engine_of(control)
    whole, parts = engine.new_rows(keys()), engine.new_rows(keys())
    engine.go_on(PARAMETERS, PROMPTS, whole)
    for version in range(99):
        if parts.finished.all():
            break
        limits = np.minimum(parts.lengths + budget, LENGTH)
        engine.go_on(PARAMETERS, PROMPTS, parts, limits, version=version)
    for name in ("tokens", "lengths", "ended", "forced", "logprobs"):
        np.testing.assert_array_equal(getattr(parts, name), getattr(whole, name))
    # 3 Wait 3 Wait ...: the thought has come to nine tokens before it may close.
    assert whole.tokens[0, :13].tolist() == [3, 8, 3, 8, 3, 8, 3, 8, 3, 4, 6, 7, END]
    assert (np.diff(parts.versions[0, : parts.lengths[0]]) >= 0).all()


def test_budgets_are_drawn_per_completion():
    """REC-23: forced interruption at a length drawn from an interval, by the key alone;
    then so many tokens for the answer."""
    control = Control(close=(CLOSE,), budget=8, budget_spread=4, budget_text=(11,))
    rows = engine_of(control).new_rows(keys(32))
    engine_of(control).go_on(PARAMETERS, PROMPTS, rows)
    endless = rows.rows(slice(32, 64))
    where = (endless.tokens == 11).argmax(axis=1)
    assert set(where.tolist()) == {8, 9, 10, 11, 12}
    assert np.bincount(where)[8:].max() < 16
    alone = rows.rows(slice(40, 41))
    assert control.drawn(alone.keys[0].tolist()).budget == where[8]
    assert control.drawn(alone.keys[0].tolist()).budget_spread == 0


def test_an_answer_has_so_many_tokens():
    """REC-23: a longer one is cut there, and a cut is no end."""
    control = Control(close=(CLOSE,), budget=8, budget_text=(11,), answer_tokens=1)
    rows = engine_of(control).new_rows(keys())
    engine_of(control).go_on(PARAMETERS, PROMPTS, rows)
    assert rows.tokens[0, :4].tolist() == [3, 4, CLOSE, 7]
    assert rows.lengths.tolist() == [4, 4, 11, 11, 2, 2]
    assert rows.cut.all()
    assert not rows.ended.any()
    assert rows.finished.all()
    # Room for the end as well: then nothing is cut.
    control = Control(close=(CLOSE,), budget=8, budget_text=(11,), answer_tokens=2)
    rows = engine_of(control).new_rows(keys())
    engine_of(control).go_on(PARAMETERS, PROMPTS, rows)
    assert rows.ended.all()
    assert not rows.cut.any()


@pytest.mark.parametrize("budget", [4, LENGTH])
def test_a_loop_of_certain_tokens_is_cut(budget):
    """REC-15: MiniMax-M1 stops a completion after so many consecutive tokens of a
    probability above 0.99 (3,000 there; the endless thought has nothing else)."""
    control = Control(certain_tokens=10)
    engine = engine_of(control)
    rows = engine.new_rows(keys())
    while not rows.finished.all():
        engine.go_on(
            PARAMETERS, PROMPTS, rows, np.minimum(rows.lengths + budget, LENGTH)
        )
    assert rows.lengths.tolist() == [5, 5, 10, 10, 3, 3]
    assert rows.ended.tolist() == [True, True, False, False, True, True]
    assert rows.cut.tolist() == [False, False, True, True, False, False]
    # One uncertain or forced token, and the count begins anew.
    forced, sure = [False] * 19, [0.0] * 19
    assert control.look(range(19), forced, [*sure[:9], -0.5, *sure[:9]]) is None
    assert control.look(range(19), [*forced[:9], True, *forced[:9]], sure) is None
    assert control.look(range(19), forced, sure) == Steer(10, cut=True)
