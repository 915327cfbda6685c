"""The cold start: what it imitates, in which order, and that it learns it."""

import jax
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.config import WarmupConfig
from rlvr_jax.models.lora import add_adapters, is_adapter
from rlvr_jax.train import warmup as module
from rlvr_jax.train.batches import PromptBatches
from rlvr_jax.train.warmup import Warmup
from rlvr_jax.validate import ConfigError
from tests import bigram, tiny

SOLUTIONS = [[[9, 4], [8, 7, 4]], [[6, 5, 4]], [[7, 4], [5, 4], [4]]]


def warmup(graphdef, *, solutions=SOLUTIONS, steps=30, seed=0, loss="likelihood"):
    plan = tiny.plan(graphdef)
    tokens = [[10 + i] for i in range(len(solutions))]
    batches = PromptBatches(tokens, 4, tiny.SLOTS, 0, 1, plan.mesh)
    settings = WarmupConfig(steps, batch_size=4, learning_rate=0.1, loss=loss)
    return Warmup(settings, batches, solutions, plan, seed)


@pytest.fixture
def policy():
    """New each time: the cold start donates its parameters."""
    return bigram.policy()


def test_the_loss_falls_to_what_the_choice_of_solution_leaves_open(policy):
    """One solution each: a bigram can know them by heart, so the loss nears 0."""
    graphdef, parameters = policy
    known = [[[9, 4]], [[8, 7, 4]], [[6, 5, 4]]]
    found, losses = warmup(graphdef, solutions=known).run(parameters)
    assert len(losses) == 30
    assert losses[0] > 2.0
    assert losses[-1] < 0.1
    fresh = bigram.policy()[1]
    assert tiny.largest_difference(found, fresh) > 0.1


@pytest.mark.parametrize("loss", ["likelihood", "rectified"])
def test_the_first_loss_is_the_mean_over_solution_tokens(policy, loss):
    """SFT-03: -log softmax of the bigram, row by row in NumPy, and the same times the
    probability; padding does not count."""
    graphdef, parameters = policy
    embedding, head = (
        np.array(parameters[name].get_value(), np.float64)
        for name in ("embedding", "head")
    )
    known = [[[9, 4]], [[8, 7, 4]], [[6, 5, 4, 4]], [[4]]]
    logits = embedding @ head.T
    logprobs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    weight = np.ones_like if loss == "likelihood" else np.exp
    losses = [
        -weight(logprobs[before, after]) * logprobs[before, after]
        for i, (ids,) in enumerate(known)
        for before, after in zip([10 + i, *ids], ids, strict=False)
    ]
    assert len(losses) == 10
    cold_start = warmup(graphdef, solutions=known, steps=1, loss=loss)
    first = cold_start.run(parameters)[1][0]
    assert first == pytest.approx(np.mean(losses), rel=1e-5)


def seen(monkeypatch, graphdef, seed):
    """The solutions shown at each of 12 steps, without learning anything."""
    shown = []

    def record(rows, slots, pad_id):
        shown.append([tuple(row) for row in rows])
        return right_padded(rows, slots, pad_id)

    right_padded = module.right_padded
    with monkeypatch.context() as patched:
        patched.setattr(module, "right_padded", record)
        patched.setattr(jax, "jit", lambda f, **_: f)
        patched.setattr(module, "_imitate", lambda p, s, *_, **__: (p, s, 0.0))
        warmup(graphdef, steps=12, seed=seed).run(bigram.policy()[1])
    return shown


def test_solutions_are_drawn_by_seed_and_step(monkeypatch, policy):
    """The same in two runs, different for another seed; each solution in its turn."""
    first = seen(monkeypatch, policy[0], 0)
    assert first == seen(monkeypatch, policy[0], 0)
    assert first != seen(monkeypatch, policy[0], 1)
    known = {tuple(ids) for each in SOLUTIONS for ids in each}
    assert {ids for step in first for ids in step} == known
    assert len({tuple(step) for step in first}) > 6


def test_a_solution_longer_than_a_completion_is_refused(policy):
    warmup(policy[0], solutions=[[[4] * tiny.LENGTH]])
    with pytest.raises(ConfigError) as caught:
        warmup(policy[0], solutions=[[[4]], [[4], [4] * (tiny.LENGTH + 1)]])
    assert str(caught.value) == (
        "warmup: the longest worked solution has 8 tokens, more than "
        "rollout.max_completion_tokens=7; raise it."
    )


def test_with_adapters_the_weights_stay_as_they_are():
    """LoRA: the cold start, too, moves nothing but the adapters."""
    decoder = nnx.merge(*tiny.policy())
    add_adapters(decoder, rank=2, alpha=4.0, seed=0)
    graphdef, parameters = nnx.split(decoder)
    before = jax.tree.map(np.array, parameters)
    found, losses = warmup(graphdef, steps=4).run(parameters)
    assert losses[-1] < losses[0]
    moved = set()
    for (path, old), new in zip(
        jax.tree_util.tree_leaves_with_path(before), jax.tree.leaves(found), strict=True
    ):
        name = [k.key for k in path if isinstance(k, jax.tree_util.DictKey)][-1]
        if (np.asarray(new) != old).any():
            moved.add(name)
    assert moved
    assert all(is_adapter(name) for name in moved)
