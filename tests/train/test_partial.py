"""Batches from completions that take several steps, with planted lengths."""

import collections
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.config import Config, CurriculumConfig, DataConfig, RolloutConfig
from rlvr_jax.data.curriculum import Curriculum, CurriculumExhausted
from rlvr_jax.data.rows import Problem
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.rollout.engine import Engine
from rlvr_jax.rollout.passage import EngineStats
from rlvr_jax.rollout.sampler import Sampling
from rlvr_jax.rollout.scoring import Scores
from rlvr_jax.train import partial, setup
from rlvr_jax.train.batches import PromptBatches
from rlvr_jax.train.completions import completion_rows
from rlvr_jax.train.waiting import packed, unpacked
from rlvr_jax.verifiers.base import Status, Verdict

SIZE, G, T, COUNT = 4, 2, 16, 40
SAMPLING = Sampling(G, T, (1,))
WEIGHTS = nnx.State({})
SOLVED = np.random.default_rng(0).integers(0, G + 1, COUNT)


class Planted(Engine):
    """An engine whose completions are as long as their keys say."""

    def __init__(self, lengths):
        super().__init__(nnx.split(nnx.Dict())[0], SAMPLING, 8)
        object.__setattr__(self, "length", lengths)

    def go_on(self, weights, prompts, rows, limits, *, version, enough):
        del weights
        assert enough is None
        target = np.array([self.length(int(key[0])) for key in rows.keys])
        room = np.minimum(limits, target)
        new = np.maximum(room - rows.lengths, 0)
        place = np.arange(T)
        fresh = (place >= rows.lengths[:, None]) & (place < room[:, None])
        problem = np.repeat(prompts.tokens[:, -1], len(room) // len(prompts.lengths))
        rows.tokens[:] = np.where(fresh, problem[:, None], rows.tokens)
        rows.versions[:] = np.where(fresh, version, rows.versions)
        rows.lengths[:] = np.maximum(room, rows.lengths)
        rows.ended[:] = rows.lengths == target
        return None, EngineStats(
            tokens=int(new.sum()), slot_steps=len(new) * int(new.max(initial=0))
        )


def score(indices, tokens, lengths, ended):
    del tokens, lengths
    assert ended.all()  # a group is judged when it is complete
    correct = (np.arange(G) < SOLVED[indices][:, None]).astype(np.float32)
    verdict = {1.0: Verdict(Status.CORRECT, 1.0), 0.0: Verdict(Status.WRONG, 0.0)}
    names = [f"{i}.{k}" for i in indices for k in range(G)]
    return Scores(
        rewards=correct,
        correct=correct,
        texts=names,
        verdicts=[verdict[float(value)] for value in correct.flat],
        metrics={"verifier/correct": float(correct.mean())},
        parts=correct[..., None],
        part_names=("answer",),
        part_weights=(1.0,),
        notes=[{} for _ in names],
    )


def mixed_lengths(key):
    """1 to 16 tokens, long ones rare."""
    return int(np.clip(np.random.default_rng(key).geometric(0.25), 1, T))


@pytest.fixture
def collector(monkeypatch):
    def make(lengths=mixed_lengths, count=COUNT, curriculum=None, **rollout):
        settings = {"token_budget": 3, "staleness": 0} | rollout
        rules = curriculum or CurriculumConfig()
        problems = [Problem(str(i), f"q{i}", "1", "math", {}) for i in range(count)]
        mesh = make_mesh((1, 1, 1), jax.devices()[:1])
        parts = setup.Setup.__new__(setup.Setup)
        for name, value in {
            "config": Config(curriculum=rules, rollout=RolloutConfig(**settings)),
            "mesh": mesh,
            "scorer": types.SimpleNamespace(judged=score),
            "train": types.SimpleNamespace(problems=problems),
            "sampler": types.SimpleNamespace(mesh=mesh, for_training=lambda x: x),
            "batches": PromptBatches([[i] for i in range(count)], SIZE, 1, 0, G, mesh),
        }.items():
            object.__setattr__(parts, name, value)
        engine = Planted(lengths)
        monkeypatch.setattr(partial, "engine_for", lambda *_: engine)
        return partial.PartialCollector(
            parts,
            Curriculum(
                rules,
                problems,
                DataConfig(),
                prompts_per_step=SIZE,
                max_completion_tokens=T,
                seed=0,
                streams=True,
            ),
        )

    return make


def steps(found, count, start=0):
    for step in range(start, start + count):
        yield step, *found(WEIGHTS, step, SAMPLING)


RULES = {"waiting_batches": 3, "max_group_age": 3}


@pytest.mark.parametrize(
    ("rule", "overdue", "waiting_batches"),
    [
        ("none", "finish", 1),
        ("none", "finish", 3),
        ("none", "drop", 3),
        ("dynamic", "finish", 3),
        ("active", "drop", 3),
    ],
)
def test_no_group_is_older_than_its_bound(collector, overdue, waiting_batches, rule):
    """DATA-07: the oldest token is at most max_group_age versions behind, the buffer
    holds at most waiting_batches, and every batch is full of complete groups."""
    found = collector(
        curriculum=CurriculumConfig(filter=rule, max_generation_batches=3),
        overdue=overdue,
        waiting_batches=waiting_batches,
        max_group_age=3,
    )
    oldest, dropped = 0, 0
    for step, batch, _ in steps(found, 30):
        metrics = batch.scores.metrics
        versions = np.asarray(batch.rollouts.versions)
        mask = np.asarray(batch.rollouts.token_mask)
        gaps = step - versions[mask & batch.kept[:, None, None]]
        assert gaps.max(initial=0) == metrics["rollout/token_gap_max"]
        if gaps.size:
            assert gaps.mean() == pytest.approx(metrics["rollout/token_gap_mean"])
            old = (gaps > 0).mean()
            assert old == pytest.approx(metrics["rollout/old_token_share"])
        assert len(found._waiting.groups) <= SIZE * waiting_batches
        assert metrics["rollout/waiting_groups"] == len(found._waiting.groups)
        assert np.asarray(batch.rollouts.ended).all()
        if rule == "none":
            assert batch.kept.all()
        oldest = max(oldest, int((step - versions[mask]).max()))
        dropped += metrics["rollout/dropped_groups"]
    assert oldest <= 3
    assert oldest == 3 or (rule, waiting_batches) != ("none", 3)
    assert dropped == 0 or overdue == "drop"
    assert dropped > 0 or (rule, overdue) != ("none", "drop")


def test_every_problem_of_the_stream_is_learned_from_once(collector):
    """Nothing is lost or doubled on the way: ten epochs of 40 problems."""
    found = collector(**RULES)
    counts = collections.Counter()
    for _, batch, _ in steps(found, 100):
        counts.update(batch.indices.tolist())
    counts.update(group.index for group in found._waiting.groups)
    assert sum(counts.values()) == 100 * SIZE + 3 * SIZE
    assert set(counts.values()) <= {10, 11}


def test_a_long_completion_is_sampled_over_its_steps(collector):
    """16 tokens at 5 a step: four versions, and the others wait no longer for it."""
    long = {}

    def lengths(key):
        long.setdefault(key, T if not long else 2)
        return long[key]

    found = collector(lengths, token_budget=5, waiting_batches=1, max_group_age=4)
    runs = []
    for step, batch, _ in steps(found, 5):
        rows = completion_rows(batch, found._setup.train.problems)
        runs += [(step, row["versions"]) for row in rows if row["tokens"] == T]
        assert batch.scores.metrics["rollout/finished_groups"] == 0
    assert runs == [(3, [[0, 5], [1, 5], [2, 5], [3, 1]])]


def test_a_step_without_enough_finishes_its_oldest(collector):
    """All completions are long: at first a batch has to be finished."""
    found = collector(lambda _: T, token_budget=4, waiting_batches=3, max_group_age=3)
    ages = []
    for step, batch, tally in steps(found, 8):
        ages.append(step - np.asarray(batch.rollouts.versions)[..., 0].max())
        finished = batch.scores.metrics["rollout/finished_groups"]
        assert finished == (SIZE if step < 3 else 0)
        assert tally.tokens > 0
    assert ages == [0, 1, 2, 3, 3, 3, 3, 3]


@pytest.mark.parametrize("at", [1, 4, 9])
def test_a_saved_buffer_goes_on_as_it_was(collector, at):
    """The state of a checkpoint, through JSON, gives the batches of the same run."""
    whole = collector(**RULES)
    expected = [batch for _, batch, _ in steps(whole, 14)]
    first = collector(**RULES)
    for _ in steps(first, at):
        pass
    saved = first.as_json(first.state())
    assert isinstance(saved["waiting"], str)
    assert len(saved["waiting"]) > 0
    again = collector(**RULES)
    again.restore(saved)
    for (_, ours, _), theirs in zip(
        steps(again, 14 - at, start=at), expected[at:], strict=True
    ):
        np.testing.assert_array_equal(ours.indices, theirs.indices)
        pairs = (jax.tree.leaves(batch.rollouts) for batch in (ours, theirs))
        for a, b in zip(*pairs, strict=True):
            np.testing.assert_array_equal(a, b)
        assert ours.scores.metrics == theirs.scores.metrics


def test_a_snapshot_is_not_changed_by_the_steps_after_it(collector):
    """What was under way before a batch is sampled again after a kill."""
    found = collector(**RULES)
    for _ in steps(found, 2):
        pass
    before = found.as_json(snapshot := found.state())["waiting"]
    for _ in steps(found, 3, start=2):
        pass
    assert found.as_json(snapshot)["waiting"] == before


def test_packed_groups_come_back_bit_for_bit(collector):
    found = collector(**RULES)
    for _ in steps(found, 2):
        pass
    groups = found._waiting.groups
    routes = np.arange(6, dtype=np.uint8).reshape(1, 2, 3)
    groups = (groups[0].__class__(7, 1, groups[0].rows, routes), *groups[1:])
    for ours, theirs in zip(unpacked(packed(groups)), groups, strict=True):
        assert (ours.index, ours.step) == (theirs.index, theirs.step)
        np.testing.assert_array_equal(ours.prompt_routes, theirs.prompt_routes)
        for name in ("keys", "tokens", "logprobs", "versions", "forced", "lengths"):
            a, b = getattr(ours.rows, name), getattr(theirs.rows, name)
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
    assert unpacked(packed([])) == ()


def test_the_sampling_policy_may_be_behind_as_well(collector):
    """With staleness 2 the policy of step 5 has learned from 3 steps."""
    found = collector(staleness=2, **RULES)
    newest = [
        int(np.asarray(batch.rollouts.versions).max())
        for _, batch, _ in steps(found, 6)
    ]
    assert newest[:3] == [0, 0, 0]
    assert newest[5] <= 3
    gap = found(WEIGHTS, 6, SAMPLING)[0].scores.metrics["rollout/token_gap_max"]
    assert 2 <= gap <= 2 + 3


def test_what_is_under_way_is_used_up_before_a_run_ends(collector):
    """No problem is drawn a second time: the last groups still come in."""
    found = collector(
        lambda _: 3,
        count=6,
        curriculum=CurriculumConfig(min_pass_rate=0.2, max_pass_rate=0.3),
        token_budget=2,
        waiting_batches=2,
        max_group_age=2,
    )
    seen, step = [], 0
    while step == 0 or found._waiting.groups:
        batch, _ = found(WEIGHTS, step, SAMPLING)
        counted = int(batch.scores.metrics["curriculum/keep_rate"] >= 0)
        seen += batch.indices.tolist() * counted
        step += 1
        assert step < 50
    assert set(seen) >= set(range(6))
    with pytest.raises(CurriculumExhausted):
        found(WEIGHTS, step, SAMPLING)


def test_keys_do_not_depend_on_who_is_drawn_beside(collector):
    """A group's keys are a function of (seed, step, problem, sample)."""
    from rlvr_jax.rollout.sampler import row_keys

    found = collector(**RULES)
    next(steps(found, 1))
    for group in found._waiting.groups:
        expected = row_keys(0, 0, jnp.array([group.index]), G)
        np.testing.assert_array_equal(
            group.rows.keys, np.asarray(jax.random.key_data(expected))[0]
        )
