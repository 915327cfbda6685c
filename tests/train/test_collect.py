"""Batches under the sampling rules, with a policy whose outcomes are planted."""

import dataclasses
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.config import Config, CurriculumConfig, DataConfig, RolloutConfig
from rlvr_jax.data.curriculum import BatchShort, Curriculum
from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.rollout.failures import Checks, VerifierFailure
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train import collect, setup
from rlvr_jax.train.rollouts import Scored, told_apart
from rlvr_jax.types import Rollouts
from rlvr_jax.verifiers.base import Status, Verdict

SIZE, G, T, COUNT = 8, 4, 3, 52
WEIGHTS = nnx.State({})
SAMPLING = Sampling(G, T, (1,))
SOLVED = np.random.default_rng(0).permutation(
    np.repeat([0, 4, 1, 2, 3], [20, 20, 4, 4, 4])
)
"""Correct completions of each of COUNT problems: 12 have both outcomes."""


def rollouts(indices):
    """Every array names its problem and sample."""
    names = jnp.asarray(indices)[:, None] * 10 + jnp.arange(G)
    return Rollouts(
        prompt_tokens=jnp.asarray(indices)[:, None].astype(jnp.int32),
        prompt_lengths=jnp.ones(len(indices), jnp.int32),
        completion_tokens=jnp.broadcast_to(names[..., None], (*names.shape, T)),
        completion_lengths=jnp.full(names.shape, T, jnp.int32),
        ended=jnp.ones(names.shape, bool),
        rollout_logprobs=jnp.zeros((*names.shape, T), jnp.float32),
        group_id=jnp.broadcast_to(jnp.arange(len(indices))[:, None], names.shape),
    )


def scores(indices, shaped=0.0):
    correct = (np.arange(G) < SOLVED[indices][:, None]).astype(np.float32)
    names = [f"{i}.{k}" for i in indices for k in range(G)]
    verdict = {1.0: Verdict(Status.CORRECT, 1.0), 0.0: Verdict(Status.WRONG, 0.0)}
    rewards = correct - np.float32(shaped) * np.arange(G, dtype=np.float32)
    return Scores(
        rewards=rewards,
        correct=correct,
        texts=names,
        verdicts=[verdict[float(value)] for value in correct.flat],
        metrics={"verifier/correct": float(correct.mean()), "judge/calls": 1.0},
        parts=rewards[..., None],
        part_names=("answer",),
        part_weights=(1.0,),
        notes=[{"name": name} for name in names],
    )


class Planted:
    """A roller that notes what it was asked for."""

    def __init__(self, shaped=0.0):
        self.asked, self.shaped = [], shaped

    def __call__(self, weights, indices, step, sampling):
        self.asked.append(len(indices))
        lengths = np.full((len(indices), G), T)
        return Scored(rollouts(indices), scores(indices, self.shaped), lengths, 0.5)


def collector(shaped=0.0, count=COUNT, at_once=0, **settings):
    rules = CurriculumConfig(**settings)
    problems = [Problem(str(i), f"q{i}", "1", "math", {}) for i in range(count)]
    curriculum = Curriculum(
        rules,
        problems,
        DataConfig(),
        prompts_per_step=SIZE,
        max_completion_tokens=T,
        seed=0,
    )
    parts = setup.Setup.__new__(setup.Setup)
    for name, value in {
        "config": Config(
            curriculum=rules, rollout=RolloutConfig(prompts_at_once=at_once)
        ),
        "mesh": make_mesh((1, 1, 1), jax.devices()[:1]),
        "batches": types.SimpleNamespace(size=SIZE, num_generations=G),
        "sampler": types.SimpleNamespace(
            mesh=make_mesh((1, 1, 1), jax.devices()[:1]), for_training=lambda x: x
        ),
    }.items():
        object.__setattr__(parts, name, value)
    found = collect.Collector(parts, curriculum)
    found._roll = Planted(shaped)
    return found


def is_mixed(batch):
    solved = batch.scores.correct.sum(axis=1)
    return (solved > 0) & (solved < G)


def assert_rows_belong_together(batch):
    """Rollouts, scores, texts and problems of each row are of one group."""
    tokens = np.asarray(batch.rollouts.completion_tokens)
    for row, index in enumerate(batch.indices.tolist()):
        assert np.asarray(batch.rollouts.prompt_tokens)[row] == index
        np.testing.assert_array_equal(tokens[row, :, 0], index * 10 + np.arange(G))
        own = slice(row * G, row * G + G)
        names = [f"{index}.{k}" for k in range(G)]
        assert batch.scores.texts[own] == names
        assert [note["name"] for note in batch.scores.notes[own]] == names
        solved = [v.status is Status.CORRECT for v in batch.scores.verdicts[own]]
        np.testing.assert_array_equal(batch.scores.correct[row], solved)
        assert sum(solved) == SOLVED[index]
    groups = np.asarray(batch.rollouts.group_id)
    np.testing.assert_array_equal(groups, np.arange(SIZE)[:, None] + np.zeros((1, G)))


@pytest.mark.parametrize("rule", ["dynamic", "active"])
def test_a_refilled_batch_holds_no_unanimous_group(rule):
    """DATA-01, DATA-03: 0 < #correct < G in every group, and always SIZE of them."""
    found = collector(filter=rule)
    batch, tally = found(WEIGHTS, 0, SAMPLING)
    assert len(batch.indices) == SIZE
    assert batch.kept.all()
    assert is_mixed(batch).all()
    assert_rows_belong_together(batch)
    assert len(set(tally.drawn)) == len(tally.drawn)
    metrics = batch.scores.metrics
    # Counted over all that was drawn, from the planted outcomes.
    mixed = sum(0 < SOLVED[i] < G for i in tally.drawn)
    assert metrics["curriculum/keep_rate"] == mixed / len(tally.drawn)
    assert metrics["curriculum/sampled_prompts"] == len(tally.drawn)
    assert metrics["curriculum/batch_filled"] == 1
    rate = np.mean([SOLVED[i] / G for i in tally.drawn])
    np.testing.assert_allclose(metrics["curriculum/sampled_pass_rate"], rate)
    # DATA-02: what an informative group costs is what was sampled, over the kept.
    cost = len(tally.drawn) * G * T / SIZE
    assert metrics["curriculum/tokens_per_kept_group"] == cost
    assert tally.verify_s == 0.5 * len(found._roll.asked)
    assert tally.collect_s > 0


def test_dynamic_samples_whole_batches_and_active_what_is_missing():
    """DATA-02, DATA-03: the same batch of groups, for fewer samples."""
    whole, part = collector(filter="dynamic"), collector(filter="active")
    by_batches, by_need = whole(WEIGHTS, 0, SAMPLING), part(WEIGHTS, 0, SAMPLING)
    assert set(whole._roll.asked) == {SIZE}
    assert part._roll.asked[0] == SIZE
    assert set(part._roll.asked) <= {8, 4, 2, 1}
    assert min(part._roll.asked) < SIZE
    assert len(by_need[1].drawn) < len(by_batches[1].drawn)
    assert by_need[0].indices.tolist() == by_batches[0].indices.tolist()


@pytest.mark.parametrize("at_once", [1, 4, 8])
def test_a_refill_is_of_whole_parts_that_are_sampled_at_once(at_once):
    """The sampler cuts a batch into parts of prompts_at_once, or takes one whole."""
    found = collector(filter="active", at_once=at_once)
    sizes = {found._refill(missing) for missing in range(1, SIZE + 1)}
    assert all(size <= at_once or size % at_once == 0 for size in sizes)
    found.size = 12  # 12, 6, 3: with 4 at once 6 cannot be cut, and 3 needs no cut
    assert found._refill(5) == {1: 6, 4: 12, 8: 6}[at_once]


def test_a_cost_per_useful_group_is_the_inverse_of_the_keep_rate():
    """DATA-02: over many steps, sampled groups / kept ones = 1 / keep rate."""
    found = collector(filter="active", max_generation_batches=40)
    groups = kept = 0
    for step in range(12):
        batch, tally = found(WEIGHTS, step, SAMPLING)
        groups, kept = groups + len(tally.drawn), kept + int(batch.kept.sum())
    # 12 of 52 problems are mixed, and every epoch holds each once; the last round of a
    # step may find a little more than it needs.
    np.testing.assert_allclose(groups / kept, 52 / 12, rtol=0.15)


def test_the_bound_is_kept_and_the_rest_is_outside_the_loss():
    """DATA-01: bounded; a short batch is filled up with groups that do not count."""
    found = collector(filter="dynamic", max_generation_batches=2)
    batch, tally = found(WEIGHTS, 0, SAMPLING)
    assert found._roll.asked == [SIZE, SIZE]
    assert len(tally.drawn) == 2 * SIZE
    mixed = sum(0 < SOLVED[i] < G for i in tally.drawn)
    assert 0 < mixed < SIZE  # else this shows nothing
    assert batch.kept.tolist() == [True] * mixed + [False] * (SIZE - mixed)
    np.testing.assert_array_equal(is_mixed(batch), batch.kept)
    assert_rows_belong_together(batch)
    assert batch.scores.metrics["curriculum/batch_filled"] == mixed / SIZE


def test_the_bound_may_be_an_error():
    found = collector(filter="active", max_generation_batches=1, when_short="error")
    with pytest.raises(
        BatchShort, match=r"only \d of 8 groups are informative after 8"
    ):
        found(WEIGHTS, 0, SAMPLING)


def test_what_is_left_of_a_small_set_is_drawn_once():
    """Ten problems: the second batch has two new ones; repeats do not count."""
    found = collector(filter="dynamic", count=10)
    batch, tally = found(WEIGHTS, 0, SAMPLING)
    assert sorted(tally.drawn) == list(range(10))
    assert found._roll.asked == [SIZE, SIZE]
    mixed = {i for i in range(10) if 0 < SOLVED[i] < G}
    assert set(batch.indices[batch.kept].tolist()) == mixed
    assert int(batch.kept.sum()) == len(mixed)
    assert found.curriculum.rates.sampled[:10].tolist() == [G] * 10


def test_masking_keeps_one_batch_and_marks_the_unanimous():
    """DATA-04: no refill; the batch shrinks."""
    found = collector(filter="mask")
    batch, _ = found(WEIGHTS, 0, SAMPLING)
    assert found._roll.asked == [SIZE]
    np.testing.assert_array_equal(batch.kept, is_mixed(batch))
    plain = collector()
    assert not plain.decides
    everything, _ = plain(WEIGHTS, 0, SAMPLING)
    assert everything.kept.all()
    assert everything.indices.tolist() == batch.indices.tolist()
    assert not [n for n in everything.scores.metrics if n.startswith("curriculum")]


def test_the_verdicts_decide_and_not_what_shaping_pays():
    """DATA-01: with lengths in the reward every group differs, and still teaches
    nothing about being right; judged on rewards all are kept."""
    batch, _ = collector(shaped=0.01, filter="mask")(WEIGHTS, 0, SAMPLING)
    np.testing.assert_array_equal(batch.kept, is_mixed(batch))
    paid, _ = collector(shaped=0.01, filter="mask", judged_on="reward")(
        WEIGHTS, 0, SAMPLING
    )
    assert paid.kept.all()


def test_metrics_are_means_over_all_that_was_sampled():
    found = collector(filter="dynamic")
    batch, tally = found(WEIGHTS, 0, SAMPLING)
    rate = np.mean([SOLVED[i] / G for i in tally.drawn])
    np.testing.assert_allclose(batch.scores.metrics["verifier/correct"], rate)
    assert batch.scores.metrics["judge/calls"] == len(tally.rounds) > 1


def test_failures_count_by_the_step_and_not_by_the_round():
    """2 of the 32 checks of a round, then 2 of the 4 of one that is one group large:
    together 4 of 36. A first round of nothing but failures ends the step at once."""

    def failing(*failed):
        found, plain = collector(filter="active", max_generation_batches=9), Planted()
        failed = iter(failed)

        def roll(weights, indices, step, sampling):
            scored = plain(weights, indices, step, sampling)
            example = Verdict(Status.TIMEOUT, 0.0, "slow")
            checks = Checks(len(indices) * G, next(failed, 0), example)
            scores = dataclasses.replace(scored.scores, checks={"answer": checks})
            return dataclasses.replace(scored, scores=scores)

        found._roll = roll
        return found, plain

    found, plain = failing(2, 2)
    _, tally = found(WEIGHTS, 0, SAMPLING)
    assert tally.checks["answer"].failed == 4
    assert len(plain.asked) > 1
    found, plain = failing(SIZE * G)
    with pytest.raises(VerifierFailure, match="100% of 32 checks"):
        found(WEIGHTS, 0, SAMPLING)
    assert plain.asked == [SIZE]


def test_every_sampled_group_is_remembered():
    found = collector(filter="dynamic", drop_pass_rate=1.0)
    _, tally = found(WEIGHTS, 0, SAMPLING)
    rates = found.curriculum.rates
    tried = np.flatnonzero(rates.sampled)
    assert sorted(tally.drawn) == tried.tolist()
    np.testing.assert_array_equal(rates.latest_correct[tried], SOLVED[tried])
    eligible = found.curriculum.eligible(1)
    np.testing.assert_array_equal(eligible[tried], SOLVED[tried] < G)


def test_a_problem_that_comes_twice_in_a_step_gets_other_keys():
    """One-shot training puts one problem in all places; equal keys would sample one
    completion over and over."""
    assert told_apart(np.array([3, 1, 3, 3]), 5).tolist() == [3, 1, 8, 13]
    assert told_apart(np.array([2, 0, 1]), 5).tolist() == [2, 0, 1]
