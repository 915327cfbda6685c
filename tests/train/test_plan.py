"""The plan names every choice that a method's name alone leaves open."""

import dataclasses
import types

import jax
from flax import nnx

from rlvr_jax.config import (
    BatchConfig,
    Config,
    ModelConfig,
    Objective,
    RolloutConfig,
)
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.mesh.mesh import make_mesh, rearranged
from rlvr_jax.mesh.sharding import bytes_per_device, parameter_shardings
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.train.plan import gib, plan_sections
from rlvr_jax.train.setup import Setup
from tests import tiny

PARAMETERS = tiny.policy()[1]


def sections(config=None, resumes_at=None, **parts):
    """The plan of a run of tiny policies; only what the plan reads is there."""
    problem = types.SimpleNamespace(verifier="math")
    values = {
        "config": config or Config(),
        "mesh": make_mesh((2, 2, 2)),
        "architecture": tiny.ARCHITECTURE,
        "parameters": PARAMETERS,
        "train": types.SimpleNamespace(problems=[problem] * 1200, dropped=3),
        "batches": types.SimpleNamespace(slots=16),
        "sampling": "training",
        "evaluation": None,
        "warmup": None,
    }
    # A Setup without its constructor: stubs stand in for data and evaluation.
    setup = object.__new__(Setup)
    values |= parts
    values.setdefault("sampler", types.SimpleNamespace(mesh=values["mesh"]))
    for name, value in values.items():
        object.__setattr__(setup, name, value)
    return plan_sections(setup, resumes_at)


def test_the_disclosure_of_a_grpo_run():
    """DIAG-11, item by item: group size, std, aggregation, KL estimator and placement,
    clip range, updates per batch, and what happens to completions that are cut."""
    objective = Objective(name="grpo", **PRESETS["grpo"])
    batch = BatchConfig(
        prompts_per_step=16,
        minibatches_per_step=4,
        epochs_per_step=2,
        micro_batch_size=8,
    )
    rollout = RolloutConfig(num_generations=8, temperature=0.9, top_p=0.95)
    config = Config(objective=objective, batch=batch, rollout=rollout)
    found = sections(config)
    assert found["objective"] == {
        "from": "preset grpo",
        "group": "8 completions per prompt",
        "prompts": "all, each once per epoch",
        "groups of one outcome": "not filtered, they count in the denominator",
        "reward shaping": "none",
        "advantage": "reward - group mean, divided by the std of the group "
        "(ddof 0, + 1e-06)",
        "old policy": "the policy at the start of the step, recomputed by the trainer",
        "surrogate": "clip: token ratio, epsilon_low 0.2, epsilon_high 0.2, "
        "dual_clip 0.0",
        "off-policy correction": "none",
        "aggregation": "sequence_mean",
        "KL": "0.04 x k3 in the loss",
        "cut completions": "stay in the loss",
        "entropy": "no bonus",
        "updates per rollout": "4 minibatches x 2 epochs",
    }
    # 16 prompts x 8; 4 minibatches, twice: 8 updates of 32, in 4 parts of 8.
    assert "16 prompts x 8 = 128 completions" in found["step"]["rollouts"]
    assert found["step"]["updates"] == (
        "8 per step, 32 completions each, in 4 micro-batches of 8"
    )
    assert found["step"]["sampling"] == "temperature 0.9, top-p 0.95"
    # Lengths 1 to 256, evenly: (255 / 2) / 256 of the slots are empty. One prompt per
    # micro-batch and four row devices: 8 rows, or 4 if they fit, hold its 8.
    assert found["step"]["padding"] == (
        "50% where lengths are evenly spread from 1 to 256; with batch.packing: 50%"
    )


def test_the_padding_that_packing_leaves():
    """8 prompts x 8, half full on average: 32 of 64 rows, or of 40 packed ones."""
    one = make_mesh((1, 1, 1), jax.devices()[:1])
    config = Config(batch=BatchConfig(packing=True))
    assert sections(config, mesh=one)["step"]["padding"] == (
        "50% where lengths are evenly spread from 1 to 256; packed: 20%"
    )
    halves = Config(batch=BatchConfig(micro_batch_size=4))
    assert sections(halves, mesh=one)["step"]["padding"] == (
        "50% where lengths are evenly spread from 1 to 256"
    )


def test_no_kl_and_no_truncation_are_said_too():
    found = sections()
    assert found["objective"]["KL"] == "none, no reference model"
    assert found["step"]["sampling"] == "temperature 1.0, whole vocabulary"
    assert "reference" not in found["memory per device"]


def test_the_run_and_its_data():
    found = sections(Config(run_dir="here", steps=9, seed=4), resumes_at=5)
    assert found["run"]["folder"] == "here"
    assert found["run"]["steps"] == "9 (resumes at 5), seed 4"
    assert found["run"]["devices"] == "8 cpu as data 2, fsdp 2, tensor 2"
    assert found["data"] == {
        "training": "1,200 problems of packaged:gsm8k (3 too long, left out)",
        "verified by": "math",
    }
    assert sections()["run"]["steps"] == "100 (from the beginning), seed 0"
    assert found["model"]["policy"] == "new, drawn from the seed"


def test_an_evaluation_and_a_cold_start():
    evaluation = types.SimpleNamespace(
        prompts=types.SimpleNamespace(problems=[0] * 40),
        sampling=types.SimpleNamespace(num_generations=4),
    )
    config = Config()
    config.warmup.steps = 50
    found = sections(config, evaluation=evaluation, warmup=object())
    assert found["data"]["held out"] == "40 problems x 4 completions"
    assert found["data"]["cold start"] == "50 steps of 64 solutions"
    programs = "sample once, train step once, evaluation sample once, cold start once"
    assert found["programs"]["compiled"] == programs


def test_memory_by_hand():
    """On one device: 4 bytes a parameter, twice that in moments; a cache of keys and
    values, 2 layers x 2 heads x 8 x 2 bytes x 2, for 8 x 16 + 64 x 256 slots."""
    config = Config(model=ModelConfig(dtype="bfloat16"))
    config.objective.beta = 0.1
    one = make_mesh((1, 1, 1), jax.devices()[:1])
    wide = dataclasses.replace(tiny.ARCHITECTURE, hidden_size=4096)
    shapes = nnx.split(nnx.eval_shape(lambda: Decoder(wide, rngs=nnx.Rngs(0))))[1]
    found = sections(config, mesh=one, parameters=shapes)["memory per device"]
    weights = 4 * wide.num_parameters
    assert gib(weights) != gib(2 * weights)
    assert found["parameters"] == found["gradients"] == gib(weights)
    assert found["Adam moments"] == gib(2 * weights)
    assert found["reference"] == gib(weights)
    slots = 8 * 16 + 64 * 256
    assert found["cache while sampling"] == gib(2 * 2 * 2 * 8 * 2 * slots)
    assert found["weights while sampling"] == gib(2 * wide.num_parameters)


def test_two_meshes_are_both_said():
    """Of two key-value heads, four tensor devices hold one each; rows over two. Rows
    of an embedding of 61 do not divide over four devices, its columns over two."""
    mesh = make_mesh((1, 8, 1))
    sampler = types.SimpleNamespace(mesh=rearranged(mesh, (1, 2, 4)))
    wide = dataclasses.replace(tiny.ARCHITECTURE, hidden_size=4096)
    shapes = nnx.split(nnx.eval_shape(lambda: Decoder(wide, rngs=nnx.Rngs(0))))[1]
    found = sections(mesh=mesh, sampler=sampler, parameters=shapes)
    assert found["run"]["devices"] == (
        "8 cpu as data 1, fsdp 8, tensor 1; sampling as data 1, fsdp 2, tensor 4"
    )
    slots = 8 * 16 + 64 * 256
    memory = found["memory per device"]
    assert memory["cache while sampling"] == gib(2 * 2 * 1 * 8 * 4 * slots / 2)
    split = bytes_per_device(shapes, parameter_shardings(shapes, sampler.mesh))
    assert memory["weights while sampling"] == gib(split)
    more = 61 * 4096 * 4 * (1 / 2 - 1 / 8)
    assert split - 4 * wide.num_parameters / 8 > more
    one = sections(mesh=mesh, parameters=shapes)["memory per device"]
    assert one["weights while sampling"] == one["parameters"]
    assert one["weights while sampling"] != memory["weights while sampling"]


def test_sizes_for_reading():
    assert gib(3 * 2**30) == "3.00 GiB"
    assert gib(1.5 * 2**20) == "1.5 MiB"
