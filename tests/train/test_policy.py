"""The policy of a run: its sizes, its place on the mesh, its copies."""

import dataclasses
import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import nnx

from rlvr_jax.config import Config, ModelConfig, Objective, OptimizerConfig
from rlvr_jax.core.presets import PRESETS
from rlvr_jax.mesh.mesh import make_mesh
from rlvr_jax.mesh.sharding import parameter_shardings
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.weights import parameters_of, save_decoder
from rlvr_jax.train.abstract import abstract_state
from rlvr_jax.train.optimizer import make_optimizer
from rlvr_jax.train.policy import (
    abstract_decoder,
    architecture_of,
    copied,
    loaded_critic,
    make_decoder,
    new_state,
)
from rlvr_jax.validate import ConfigError
from tests import tiny

SMALL = ModelConfig(
    hidden_size=32, intermediate_size=48, num_layers=2, num_heads=4, num_kv_heads=2
)
ARCHITECTURE = dataclasses.replace(tiny.ARCHITECTURE, vocab_size=60)


@pytest.fixture(scope="module")
def mesh():
    return make_mesh((2, 2, 2))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A model directory with a decoder of 60 ids, and the decoder."""
    folder = tmp_path_factory.mktemp("model") / "saved"
    decoder = Decoder(ARCHITECTURE, rngs=nnx.Rngs(3))
    save_decoder(decoder, folder)
    return folder, decoder


@pytest.fixture(scope="module")
def drawn(mesh):
    """A new decoder on eight devices."""
    return make_decoder(Config(seed=4, model=SMALL), ARCHITECTURE, mesh)


def test_a_new_decoder_has_the_sizes_of_the_settings():
    found = architecture_of(dataclasses.replace(SMALL, rope_theta=5e5), 60)
    assert found == dataclasses.replace(ARCHITECTURE, rope_theta=5e5)


def test_a_new_decoder_of_experts():
    """Each is as wide as intermediate_size, in Qwen3-MoE form, so that it exports."""
    found = architecture_of(dataclasses.replace(SMALL, num_experts=4), 60)
    assert found == dataclasses.replace(
        ARCHITECTURE,
        num_experts=4,
        num_experts_per_token=2,
        moe_intermediate_size=ARCHITECTURE.intermediate_size,
        qk_norm=True,
        family="qwen3_moe",
    )
    with pytest.raises(ConfigError, match="num_experts_per_token=2 of num_experts=1"):
        architecture_of(dataclasses.replace(SMALL, num_experts=1), 60)


@pytest.mark.parametrize("chosen", ["float32", "model"])
def test_the_type_of_the_head_is_part_of_the_definition(chosen, mesh):
    model = dataclasses.replace(SMALL, dtype="bfloat16", head_dtype=chosen)
    graphdef, shapes = abstract_decoder(Config(model=model), ARCHITECTURE, mesh)
    expected = {"float32": "float32", "model": "bfloat16"}[chosen]
    assert nnx.merge(graphdef, shapes).head_dtype == expected


@pytest.mark.parametrize(
    ("width", "heads", "kv_heads"),
    [(30, 4, 2), (36, 4, 2), (32, 4, 3), (32, 4, 8)],
)
def test_sizes_that_do_not_fit_together(width, heads, kv_heads):
    """The head dimension must be a whole even number; query heads share key heads."""
    model = ModelConfig(hidden_size=width, num_heads=heads, num_kv_heads=kv_heads)
    with pytest.raises(ConfigError) as caught:
        architecture_of(model, 60)
    assert str(caught.value) == (
        f"model: hidden_size={width} must be an even multiple of num_heads={heads}, "
        f"and that a multiple of num_kv_heads={kv_heads}."
    )


def test_a_saved_model_brings_its_own_sizes(saved):
    """The model may have more rows than the tokenizer has ids, not fewer."""
    model = ModelConfig(path=str(saved[0]))
    for ids in (50, 60):
        found = architecture_of(model, ids)
        assert (found.vocab_size, found.hidden_size, found.num_layers) == (60, 32, 2)
    with pytest.raises(ConfigError) as caught:
        architecture_of(model, 61)
    assert str(caught.value) == (
        f"model.path={saved[0]}: the tokenizer has 61 ids, the model 60 rows; they do "
        "not belong together."
    )


def test_a_path_without_a_model_is_an_error(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gpt_neox"}))
    with pytest.raises(ValueError, match="gpt_neox"):
        architecture_of(ModelConfig(path=str(tmp_path)), 60)


def test_a_new_policy_is_a_function_of_the_seed_alone(drawn, mesh):
    """Eight devices or one, the same numbers; another seed, others."""
    one = make_mesh((1, 1, 1), jax.devices()[:1])
    config = Config(seed=4, model=SMALL)
    same = make_decoder(config, ARCHITECTURE, one)[1]
    assert tiny.largest_difference(jax.device_get(drawn[1]), jax.device_get(same)) == 0
    config.seed = 5
    other = make_decoder(config, ARCHITECTURE, one)[1]
    assert tiny.largest_difference(jax.device_get(same), jax.device_get(other)) > 0.01


def test_parameters_lie_where_the_rules_say(drawn, saved, mesh):
    """A drawn policy and a loaded one alike, in float32."""
    config = Config(model=ModelConfig(path=str(saved[0]), dtype="bfloat16"))
    loaded = make_decoder(config, ARCHITECTURE, mesh)[1]
    expected = jax.tree.leaves(parameter_shardings(loaded, mesh))
    assert sum(not sharding.is_fully_replicated for sharding in expected) == 8
    for parameters in (drawn[1], loaded):
        leaves = jax.tree.leaves(parameters)
        for leaf, sharding in zip(leaves, expected, strict=True):
            assert leaf.dtype == jnp.float32
            assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim)
    plain = nnx.split(saved[1])[1]
    assert tiny.largest_difference(jax.device_get(loaded), jax.device_get(plain)) == 0


def test_remat_is_part_of_the_definition(saved, drawn, mesh):
    """ "layer" by default; switched off for a loaded one."""
    assert nnx.merge(*drawn).remat == "layer"
    model = ModelConfig(path=str(saved[0]), remat="none")
    decoder = nnx.merge(*make_decoder(Config(model=model), ARCHITECTURE, mesh))
    assert decoder.remat == "none"


def plan_on(mesh, policy, optimizer, *, beta):
    plan = tiny.plan(policy[0], Objective(beta=beta), optimizer=optimizer)
    return dataclasses.replace(plan, mesh=mesh)


@pytest.mark.parametrize("max_grad_norm", [0.0, 1.0])
def test_moments_are_split_like_their_parameters(drawn, mesh, max_grad_norm):
    config = Config(optimizer=OptimizerConfig(max_grad_norm=max_grad_norm))
    parameters = drawn[1]
    state = new_state(
        parameters, plan_on(mesh, drawn, make_optimizer(config), beta=0.1)
    )
    assert int(state.step) == 0
    assert state.step.sharding.is_fully_replicated
    trees = [
        optax.tree_utils.tree_get(state.optimizer, "mu"),
        optax.tree_utils.tree_get(state.optimizer, "nu"),
        state.reference,
    ]
    expected = jax.tree.leaves(parameter_shardings(parameters, mesh))
    for tree in trees:
        for leaf, sharding in zip(jax.tree.leaves(tree), expected, strict=True):
            assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim)
    # Everything else is a count, on every device.
    others = [x for x in jax.tree.leaves(state.optimizer) if x.ndim == 0]
    assert others
    assert all(leaf.sharding.is_fully_replicated for leaf in others)
    assert len(jax.tree.leaves(state.optimizer)) == 2 * len(expected) + len(others)


def test_a_reference_is_a_copy_that_outlives_the_parameters(mesh):
    policy = tiny.policy()
    parameters = policy[1]
    expected = [np.array(leaf) for leaf in jax.tree.leaves(parameters)]
    optimizer = optax.sgd(0.1)
    without = plan_on(mesh, policy, optimizer, beta=0.0)
    assert new_state(parameters, without).reference is None
    state = new_state(parameters, plan_on(mesh, policy, optimizer, beta=0.1))
    donate = jax.jit(lambda tree: jax.tree.map(jnp.negative, tree), donate_argnums=0)
    donate(state.parameters)
    leaves = jax.tree.leaves(state.reference)
    for leaf, before in zip(leaves, expected, strict=True):
        np.testing.assert_array_equal(leaf, before)


def test_a_copy_has_the_same_numbers(drawn):
    assert tiny.largest_difference(copied(drawn[1]), drawn[1]) == 0


@pytest.fixture(scope="module")
def scored(tmp_path_factory):
    """A reward model of the same architecture, with a head of ones."""
    folder = tmp_path_factory.mktemp("scores") / "saved"
    decoder = Decoder(ARCHITECTURE, rngs=nnx.Rngs(5))
    save_decoder(decoder, folder, score=jnp.ones(32))
    return folder, decoder


def critic_of(path, architecture, mesh, **model):
    config = Config(
        model=dataclasses.replace(SMALL, **model),
        objective=Objective(advantage="gae", scale_rewards="none"),
    )
    config.critic.path = str(path)
    return config, loaded_critic(config, architecture, mesh)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("lora_rank", [0, 3])
def test_a_critic_starts_from_a_reward_model(scored, mesh, tied, lora_rank):
    """OBJ-04: its parameters are those of the directory, in the form and on the devices
    of the policy's own, whatever the policy has beside them (LM head, adapters)."""
    architecture = dataclasses.replace(ARCHITECTURE, tie_embeddings=tied)
    config, values = critic_of(scored[0], architecture, mesh, lora_rank=lora_rank)
    graphdef, policy = make_decoder(config, architecture, mesh)
    plan = dataclasses.replace(
        tiny.plan(graphdef, config.objective, optimizer=make_optimizer(config)),
        mesh=mesh,
    )
    state = new_state(policy, plan, critic=values)
    found = state.critic.parameters
    assert jax.tree.structure(found["decoder"]) == jax.tree.structure(policy)
    expected = parameters_of(scored[1])
    decoder = nnx.merge(graphdef, found["decoder"])
    loaded = parameters_of(decoder)
    for name, value in expected.items():
        np.testing.assert_array_equal(loaded[name], value, name)
    np.testing.assert_array_equal(found["value_head"], np.ones(32))
    assert float(found["value_bias"]) == 0
    shardings = jax.tree.leaves(parameter_shardings(found, mesh))
    for leaf, sharding in zip(jax.tree.leaves(found), shardings, strict=True):
        assert leaf.sharding.is_equivalent_to(sharding, leaf.ndim)
    like = abstract_state(policy, plan, num_problems=0)
    assert [leaf.shape for leaf in like.leaves] == [
        leaf.shape for leaf in jax.tree.leaves(state)
    ]


def test_without_a_path_a_critic_starts_from_the_policy(scored, mesh):
    assert critic_of("", ARCHITECTURE, mesh)[1] is None
    config = Config()  # no critic at all
    config.critic.path = str(scored[0])
    assert loaded_critic(config, ARCHITECTURE, mesh) is None


def test_a_reward_model_of_another_architecture_is_refused(scored, mesh):
    """OBJ-04: before anything is compiled; what differs, and what to do."""
    deeper = dataclasses.replace(ARCHITECTURE, num_layers=3, vocab_size=61)
    said = (
        f"the reward model at {scored[0]} is not of the policy's architecture: "
        "vocab_size 60 against 61, num_layers 2 against 3. A critic is computed by the "
        "policy's program: give a reward model of the same base model (critic.path)."
    )
    with pytest.raises(ValueError, match=re.escape(said)):
        critic_of(scored[0], deeper, mesh)


def test_a_step_can_be_given_the_whole_state():
    """No two of its arrays share a buffer, for every preset: a program that is given
    both would be given one buffer twice."""
    graphdef, parameters = tiny.policy()
    for name, row in PRESETS.items():
        plan = tiny.plan(graphdef, Objective(name=name, **row))
        leaves = jax.tree.leaves(tiny.state(parameters, plan))
        buffers = [leaf.unsafe_buffer_pointer() for leaf in leaves]
        assert len(set(buffers)) == len(buffers), name
