"""The policy and its training state on the mesh, loaded or new."""

import dataclasses
import functools
import os
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from rlvr_jax.config import Config, ModelConfig
from rlvr_jax.mesh.sharding import parameter_shardings, parameter_spec
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.known import KNOWN
from rlvr_jax.models.lora import add_adapters
from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models.reward_model import load_reward_model
from rlvr_jax.models.weights import decoder_from, load_decoder, open_checkpoint
from rlvr_jax.train.critic import new_critic
from rlvr_jax.train.kernels import splash_of
from rlvr_jax.train.state import CriticState, RewardHistory, StepPlan, TrainState
from rlvr_jax.train.trainable import trainable_of
from rlvr_jax.validate import ConfigError


def architecture_of(model: ModelConfig, vocab_size: int) -> Architecture:
    """Of the model at `model.path`, or of a new small decoder.

    Raises:
      ConfigError: the sizes of a new decoder do not fit together, or the tokenizer
        has ids that the model has no row for.
      UserError: no readable model at the path.
    """
    if model.path:
        checkpoint = open_checkpoint(model.path)
        checkpoint.close()
        architecture = checkpoint.architecture
        if vocab_size > architecture.vocab_size:
            raise ConfigError(
                f"model.path={model.path}: the tokenizer has {vocab_size} ids, the "
                f"model {architecture.vocab_size} rows; they do not belong together."
            )
        _check_known(model, architecture)
        return architecture
    return new_architecture(model, vocab_size)


def new_architecture(model: ModelConfig, vocab_size: int) -> Architecture:
    """Of a decoder without a path, from its sizes in the settings.

    Raises:
      ConfigError: the sizes do not fit together.
    """
    if (
        model.hidden_size % (2 * model.num_heads)
        or model.num_heads % model.num_kv_heads
    ):
        raise ConfigError(
            f"model: hidden_size={model.hidden_size} must be an even multiple of "
            f"num_heads={model.num_heads}, and that a multiple of "
            f"num_kv_heads={model.num_kv_heads}."
        )
    experts: dict[str, Any] = {}
    if model.num_experts:
        if model.num_experts_per_token > model.num_experts:
            raise ConfigError(
                f"model: num_experts_per_token={model.num_experts_per_token} of "
                f"num_experts={model.num_experts}; pick at most all of them."
            )
        experts = {
            "num_experts": model.num_experts,
            "num_experts_per_token": model.num_experts_per_token,
            "moe_intermediate_size": model.intermediate_size,
            "qk_norm": True,
            "family": "qwen3_moe",
        }
    return Architecture(
        vocab_size=vocab_size,
        hidden_size=model.hidden_size,
        intermediate_size=model.intermediate_size,
        num_layers=model.num_layers,
        num_heads=model.num_heads,
        num_kv_heads=model.num_kv_heads,
        head_dim=model.hidden_size // model.num_heads,
        rope_theta=model.rope_theta,
        **experts,
    )


def _check_known(model: ModelConfig, found: Architecture) -> None:
    """What was planned for is what is loaded, as far as sizes go."""
    if not model.architecture:
        return
    sizes = ("hidden_size", "intermediate_size", "num_layers", "num_heads")
    planned = KNOWN[model.architecture]
    for size in (*sizes, "num_kv_heads", "head_dim"):
        ours, theirs = getattr(planned, size), getattr(found, size)
        if ours != theirs:
            raise ConfigError(
                f"model.architecture={model.architecture!r} has {size} {ours}, "
                f"model.path={model.path} has {theirs}. Name another, or leave it out."
            )


def make_decoder(
    config: Config, architecture: Architecture, mesh: Mesh
) -> tuple[nnx.GraphDef, nnx.State]:
    """Definition and float32 parameters, each on its part of the mesh."""
    if config.model.path:
        path = pathlib.Path(config.model.path).expanduser()
        decoder = load_decoder(
            path, dtype=jnp.float32, shardings=_shardings(architecture, mesh)
        )
        _prepare(decoder, config, mesh)
        return nnx.split(decoder)

    graphdef, shapes = abstract_decoder(config, architecture, mesh)
    shardings = parameter_shardings(shapes, mesh)
    new = functools.partial(_new, config, architecture, mesh)
    draw = jax.jit(lambda: nnx.split(new())[1], out_shardings=shardings)
    return graphdef, draw()


def load_reference(
    config: Config, parameters: nnx.State, mesh: Mesh
) -> nnx.State | None:
    """The parameters of model.reference_path, as the policy's; None without one.

    Raises:
      ConfigError: it has not the policy's parameters.
      UserError: no readable model at the path.
    """
    path = config.model.reference_path
    if not path:
        return None
    other = dataclasses.replace(
        config, model=dataclasses.replace(config.model, path=path, architecture="")
    )
    found = make_decoder(other, architecture_of(other.model, 0), mesh)[1]
    ours, theirs = (jax.tree.map(jnp.shape, tree) for tree in (parameters, found))
    if ours != theirs:
        raise ConfigError(
            f"model.reference_path={path} has not the parameters of the policy, and is "
            "computed as the policy is: give a model of the same architecture."
        )
    return found


def loaded_critic(
    config: Config, architecture: Architecture, mesh: Mesh
) -> dict[str, Any] | None:
    """Parameters of the critic that critic.path names; None: as of `new_critic`.

    Raises:
      UserError: no reward model there, or one of another architecture than the policy.
    """
    path = config.critic.path
    if not path or config.objective.advantage != "gae":
        return None
    return load_value_model(path, config, architecture, mesh)[1]


def load_value_model(
    path: str | os.PathLike[str], config: Config, architecture: Architecture, mesh: Mesh
) -> tuple[nnx.GraphDef, dict[str, Any]]:
    """A reward model in the form of a critic: its decoder's definition, its parameters.

    Args:
      path: a directory of `launch.reward_model` or of transformers.
      config: how it is computed (model.*).
      architecture: what it has to have.
      mesh: where its parameters go.

    Raises:
      UserError: no reward model there, or one of another architecture.
    """
    model = load_reward_model(
        path, architecture=architecture, shardings=lambda arch: _shardings(arch, mesh)
    )
    parameters = model.parameters
    if not architecture.tie_embeddings:
        # The policy's program has a place for an LM head; no value reads it.
        parameters["head"] = jnp.zeros_like(parameters["embedding"])
    decoder = decoder_from(architecture, parameters, jnp.float32)
    _prepare(decoder, config, mesh)
    graphdef, state = nnx.split(decoder)
    return graphdef, {
        "decoder": state,
        "value_head": jnp.asarray(model.score),
        "value_bias": jnp.zeros(()),
    }


def _shardings(architecture: Architecture, mesh: Mesh) -> dict[str, NamedSharding]:
    """Parameter name, as `parameter_shapes` has it -> its part of the mesh."""
    return {
        name: NamedSharding(
            mesh, parameter_spec(name.removeprefix("layers."), shape, mesh)
        )
        for name, shape in parameter_shapes(architecture).items()
    }


def abstract_parameters(
    config: Config, architecture: Architecture, mesh: Mesh
) -> tuple[nnx.GraphDef, nnx.State]:
    """As `make_decoder`, with shapes and shardings in place of arrays.

    For a run that goes on from a checkpoint: no file of the model is read and nothing
    is drawn, only to be replaced.
    """
    graphdef, shapes = abstract_decoder(config, architecture, mesh)
    return graphdef, jax.tree.map(
        lambda leaf, at: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=at),
        shapes,
        parameter_shardings(shapes, mesh),
    )


def abstract_decoder(
    config: Config, architecture: Architecture, mesh: Mesh
) -> tuple[nnx.GraphDef, nnx.State]:
    """Definition, and shapes in place of parameters: nothing is computed."""
    return nnx.split(nnx.eval_shape(lambda: _new(config, architecture, mesh)))


def _new(config: Config, architecture: Architecture, mesh: Mesh) -> Decoder:
    decoder = Decoder(architecture, rngs=nnx.Rngs(config.seed))
    _prepare(decoder, config, mesh)
    return decoder


def _prepare(decoder: Decoder, config: Config, mesh: Mesh) -> None:
    """What training sets on a decoder, whether loaded or new."""
    model = config.model
    decoder.remat = model.remat
    decoder.splash = splash_of(config, decoder.architecture, mesh)
    decoder.head_dtype = model.dtype if model.head_dtype == "model" else "float32"
    if model.lora_rank > 0:
        add_adapters(
            decoder, rank=model.lora_rank, alpha=model.lora_alpha, seed=config.seed
        )


def new_state(
    parameters: nnx.State,
    plan: StepPlan,
    *,
    num_problems: int = 0,
    reference: nnx.State | None = None,
    critic: dict[str, Any] | None = None,
) -> TrainState:
    """The state before the first step; moments are split like their parameters.

    Args:
      parameters: of the policy.
      plan: says which parts the objective needs.
      num_problems: of the training set, for advantage "running_mean".
      reference: what the KL term refers to; None for a copy of the parameters.
      critic: its parameters, where it does not start from the policy.
    """
    objective, mesh = plan.objective, plan.mesh
    everywhere = NamedSharding(mesh, PartitionSpec())
    parameters = jax.device_put(parameters, parameter_shardings(parameters, mesh))
    critic_state = history = coefficient = None
    if plan.critic_optimizer is not None:
        values = critic or new_critic(parameters, _width(plan, parameters))
        values = jax.device_put(values, parameter_shardings(values, mesh))
        moments = new_moments(values, plan.critic_optimizer, mesh)
        critic_state = CriticState(values, moments)
    if objective.advantage == "running_mean":
        shape = (num_problems, objective.baseline_window)
        history = jax.device_put(
            RewardHistory(jnp.zeros(shape), jnp.zeros(shape, bool)), everywhere
        )
    if objective.entropy_target > 0:
        # Two arrays: a step is given its state away, and no buffer twice.
        both = [jnp.float32(objective.entropy_coefficient) for _ in range(2)]
        coefficient = jax.device_put(tuple(both), everywhere)
    return TrainState(
        parameters=parameters,
        optimizer=new_moments(trainable_of(parameters), plan.optimizer, mesh),
        reference=_reference(parameters, reference) if objective.beta > 0 else None,
        step=jax.device_put(jnp.int32(0), everywhere),
        critic=critic_state,
        history=history,
        entropy_coefficient=coefficient,
        band_shift=jax.device_put(jnp.float32(0), everywhere)
        if objective.band_entropy > 0
        else None,
    )


def _reference(parameters: nnx.State, given: nnx.State | None) -> nnx.State:
    return copied(parameters) if given is None else given


def moment_shardings(parameters, optimizer: optax.GradientTransformation, mesh: Mesh):
    """Of the optimizer's state: moments are split like their parameters."""
    return optax.tree_utils.tree_map_params(
        optimizer,
        lambda _, sharding: sharding,
        jax.eval_shape(optimizer.init, parameters),
        parameter_shardings(parameters, mesh),
        transform_non_params=lambda _: NamedSharding(mesh, PartitionSpec()),
    )


def new_moments(parameters, optimizer: optax.GradientTransformation, mesh: Mesh):
    """The optimizer's state before any update, placed by `moment_shardings`."""
    shardings = moment_shardings(parameters, optimizer, mesh)
    return jax.jit(optimizer.init, out_shardings=shardings)(parameters)


def _width(plan: StepPlan, parameters: nnx.State) -> int:
    """Of the hidden states, which the critic's head reads."""
    head = nnx.eval_shape(lambda: nnx.merge(plan.graphdef, parameters).head_weight)
    return head.shape[-1]


@jax.jit
def copied(parameters: nnx.State) -> nnx.State:
    """A copy that donating the original leaves alone."""
    return jax.tree.map(jnp.copy, parameters)
