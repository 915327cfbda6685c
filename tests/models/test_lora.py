"""Adapters: nothing at first, frozen weights, and one matrix once merged."""

import dataclasses
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy
from flax import nnx

from rlvr_jax.config import Objective
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.lora import (
    TARGETS,
    add_adapters,
    is_adapter,
    merged,
    save_adapters,
)
from rlvr_jax.train.step import train_step
from rlvr_jax.train.trainable import trainable_of, with_trainable
from tests import tiny


def adapted_policy(rank=3):
    graphdef, parameters = tiny.policy()
    decoder = nnx.merge(graphdef, parameters)
    add_adapters(decoder, rank=rank, alpha=6.0, seed=1)
    return decoder


def logits(decoder):
    tokens, lengths = tiny.prompts()
    last, after, _ = decoder.forward(tokens, lengths, tokens[:, None, :3] % 50)
    return jnp.concatenate([last, after[:, 0, -1]]) @ decoder.head_weight.T


def drawn(decoder):
    """The same adapters as after some training: B is not zero."""
    for index, name in enumerate(TARGETS):
        up = decoder.layers[name + "_lora_b"]
        key = jax.random.key(index)
        up[...] = 0.3 * jax.random.normal(key, up[...].shape)
    return decoder


def test_a_new_adapter_changes_nothing():
    plain = nnx.merge(*tiny.policy())
    np.testing.assert_array_equal(logits(adapted_policy()), logits(plain))


def test_merging_keeps_the_function():
    decoder = drawn(adapted_policy())
    plain = merged(decoder)
    assert not any("lora" in name for name in plain.layers)
    assert (
        float(jnp.abs(logits(decoder) - logits(nnx.merge(*tiny.policy()))).max()) > 0.1
    )
    # float32 rounding of logits of up to 20.
    np.testing.assert_allclose(logits(plain), logits(decoder), atol=5e-5)


def test_saved_adapters_rebuild_the_update(tmp_path):
    """W' - W = (alpha / r) B A in the layout of peft: A [r, in], B [out, r]."""
    decoder = drawn(adapted_policy())
    save_adapters(decoder, tmp_path)
    config = json.loads((tmp_path / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"]) == (3, 6.0)
    assert config["target_modules"] == sorted(
        ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
    )
    tensors = safetensors.numpy.load_file(tmp_path / "adapter_model.safetensors")
    assert len(tensors) == 2 * len(TARGETS) * 2
    stem = "base_model.model.model.layers.1.self_attn.q_proj"
    down, up = tensors[f"{stem}.lora_A.weight"], tensors[f"{stem}.lora_B.weight"]
    update = (merged(decoder).layers["query"][...] - decoder.layers["query"][...])[1]
    np.testing.assert_allclose((2.0 * up @ down).T, update, atol=1e-5)


def test_a_decoder_without_adapters_saves_none(tmp_path):
    save_adapters(nnx.merge(*tiny.policy()), tmp_path / "adapter")
    assert not (tmp_path / "adapter").exists()


@pytest.fixture(scope="module")
def stepped():
    """A step of a policy with adapters: (before, after, moments)."""
    graphdef, parameters = nnx.split(adapted_policy())
    plan = tiny.plan(
        graphdef, Objective(overlong_filter=False), optimizer=optax.adam(0.1)
    )
    state = tiny.state(parameters, plan)
    step = jax.jit(
        functools.partial(train_step, plan=plan),
        compiler_options={"xla_backend_optimization_level": 0},
    )
    rollouts = tiny.rollouts(*tiny.policy())
    new, metrics = step(state, rollouts, tiny.rewards(), tiny.rewards())
    return state, new, metrics


def test_a_step_changes_adapters_alone(stepped):
    state, new, metrics = stepped
    old = jax.tree_util.tree_leaves_with_path(state.parameters)
    for (path, before), after in zip(old, jax.tree.leaves(new.parameters), strict=True):
        name = [k.key for k in path if isinstance(k, jax.tree_util.DictKey)][-1]
        moved = float(jnp.abs(after - before).max()) > 0
        # A's first gradient is B = 0 times something.
        assert moved == name.endswith("_lora_b"), name
    assert float(metrics["grad/norm"]) > 0


def test_moments_exist_for_adapters_alone(stepped):
    state, new, _ = stepped
    moments = optax.tree_utils.tree_get(new.optimizer, "mu")
    assert set(moments) == set(trainable_of(state.parameters))
    assert all(is_adapter(name) for name in moments)


def test_the_gradient_is_that_of_the_same_function_unsplit():
    """d loss / d B with W frozen equals the full gradient's part for B."""
    graphdef, parameters = nnx.split(drawn(adapted_policy()))

    def loss(parameters):
        return (logits(nnx.merge(graphdef, parameters)) ** 2).sum()

    trainable = trainable_of(parameters)
    parts = jax.grad(lambda t: loss(with_trainable(parameters, t)))(trainable)
    whole = trainable_of(jax.grad(loss)(parameters))
    for name, gradient in parts.items():
        np.testing.assert_allclose(gradient, whole[name], rtol=1e-4, atol=1e-4)


def test_without_adapters_everything_is_trainable():
    _, parameters = tiny.policy()
    assert trainable_of(parameters) is parameters
    doubled = jax.tree.map(lambda leaf: 2 * leaf, parameters)
    assert with_trainable(parameters, doubled) is doubled


def test_adapters_have_the_shapes_of_their_weights():
    decoder = adapted_policy(rank=5)
    assert isinstance(decoder, Decoder)
    arch = dataclasses.replace(tiny.ARCHITECTURE)
    assert decoder.layers["down_lora_a"][...].shape == (2, arch.intermediate_size, 5)
    assert decoder.layers["down_lora_b"][...].shape == (2, 5, arch.hidden_size)
