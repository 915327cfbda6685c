"""Which kernels a run takes, and that a step by them learns the same."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import pytest
from flax import nnx

from rlvr_jax.config import Config, ModelConfig
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.models.splash import Splash
from rlvr_jax.train.kernels import (
    head_kernel_of,
    splash_of,
    why_chunked,
    why_dense,
)
from rlvr_jax.train.step import train_step
from rlvr_jax.validate import ConfigError
from tests import tiny

ONE, FOUR = {"tensor": 1}, {"tensor": 4}


def test_attention_of_a_pod():
    """Two key-value heads are one for each of two devices, not for four."""
    arch = tiny.ARCHITECTURE
    assert why_dense("auto", arch, ONE, tpu=True) == ""
    assert why_dense("auto", arch, ONE, tpu=False) == "the devices are no TPUs"
    assert why_dense("splash", arch, ONE, tpu=False) == ""
    assert "'dense'" in why_dense("dense", arch, ONE, tpu=True)
    assert why_dense("auto", arch, FOUR, tpu=True) == (
        "2 key-value heads do not divide over tensor 4"
    )
    assert "batch.packing" in why_dense("auto", arch, ONE, tpu=True, packed=True)
    with pytest.raises(ConfigError, match="'splash': 2 key-value heads do not"):
        why_dense("splash", arch, FOUR, tpu=True)


def test_the_head_of_a_pod():
    assert why_chunked("auto", 64, FOUR, tpu=True) == ""
    assert "'chunked'" in why_chunked("chunked", 64, FOUR, tpu=True)
    assert "no TPUs" in why_chunked("auto", 64, FOUR, tpu=False)
    assert "vocabulary of 61" in why_chunked("auto", 61, FOUR, tpu=True)
    assert "kept sets" in why_chunked("auto", 64, FOUR, tpu=True, kept_sets=True)
    assert "head_dtype" in why_chunked("auto", 64, FOUR, tpu=True, rounded=True)
    with pytest.raises(ConfigError, match="'fused': kept sets"):
        why_chunked("fused", 64, ONE, tpu=True, kept_sets=True)


def test_what_a_run_here_takes():
    """Nothing by itself; what is asked for by name, interpreted."""
    mesh = make_mesh((2, 2, 2))
    given = {"kept_sets": False, "rounded": False}
    assert splash_of(Config(), tiny.ARCHITECTURE, mesh) is None
    assert head_kernel_of("auto", mesh, 8, 64, **given) is None
    asked = Config(model=ModelConfig(attention="splash"))
    found = splash_of(asked, tiny.ARCHITECTURE, mesh)
    assert found == Splash(mesh, least_queries=2, interpret=True)
    found = head_kernel_of("fused", mesh, 8, 64, **given)
    assert (found.row_axes, found.vocabulary_axis) == (("data", "fsdp"), "tensor")
    assert found.interpret
    # Six rows do not divide over four devices: each computes all of them.
    assert head_kernel_of("fused", mesh, 6, 64, **given).row_axes == ()


@pytest.fixture(scope="module")
def learned():
    """Parameters and entropy after one step on a mesh, by the kernels or not."""
    graphdef, parameters = tiny.policy(num_layers=1, vocab_size=64)
    rollouts, rewards = tiny.rollouts(graphdef, parameters), tiny.rewards()

    @functools.cache
    def run(shape, kernels):
        decoder = nnx.merge(graphdef, parameters)
        changes = {}
        if kernels:
            mesh = make_mesh(shape, jax.devices()[: math.prod(shape)])
            decoder.splash = Splash(mesh, least_queries=2, interpret=True)
            changes = {"logprob_kernel": "fused"}
        plan = tiny.plan(nnx.split(decoder)[0], mesh_shape=shape, micro_batch_size=4)
        plan = dataclasses.replace(plan, **changes)
        step = jax.jit(functools.partial(train_step, plan=plan))
        state = tiny.state(parameters, plan)
        new, metrics = step(state, rollouts, rewards, rewards)
        return jax.device_get((new.parameters, metrics["entropy/mean"]))

    return run


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), pytest.param((1, 2, 2), marks=pytest.mark.slow)]
)
def test_a_step_by_both_kernels_learns_the_same(learned, shape):
    """On one device; on a mesh, groups over two devices, heads and vocabulary over
    two."""
    found = learned(shape, kernels=True)
    assert jnp.isfinite(found[1])
    assert tiny.largest_difference(found, learned((1, 1, 1), kernels=False)) < 2e-6
