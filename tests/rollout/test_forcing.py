"""Budget forcing on a policy whose every token is written down beforehand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.analysis.thinking import control as control_metric
from rlvr_jax.models.caches import PromptCache
from rlvr_jax.rollout.control import Control
from rlvr_jax.rollout.engine import Engine
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


def thoughts(control, *, length=LENGTH):
    """Thinking tokens of completions of one prompt of each kind, and the rollouts."""
    graphdef, parameters = nnx.split(Scripted())
    prompts = np.array([[SHORT], [ENDLESS], [EMPTY]])
    sampling = Sampling(2, length, (END,))
    engine = Engine(
        graphdef, sampling, VOCAB, num_slots=8, steps_per_call=3, control=control
    )
    keys = row_keys(0, 0, jnp.arange(3), 2)
    rollouts, _ = engine(parameters, prompts, np.ones(3, int), keys)
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
    assert jax.tree.leaves(rollouts)
