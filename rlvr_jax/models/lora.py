"""Low-rank adapters (LoRA): train a few numbers beside frozen weights.

y = x W + (alpha / rank) x A B, with W frozen, A [inputs, rank] drawn and
B [rank, outputs] zero at the start, so that a new adapter changes nothing.
https://arxiv.org/abs/2106.09685
"""

import json
import os
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import safetensors.numpy
from flax import nnx

from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import DOWN, UP, Decoder
from rlvr_jax.models.hf_weights import tensor_name
from rlvr_jax.models.parameters import parameter_shapes

TARGETS = ("query", "key", "value", "output", "gate", "up", "down")
"""Weights of a layer that get an adapter; a mixture's experts get none."""


def add_adapters(decoder: Decoder, *, rank: int, alpha: float, seed: int) -> None:
    """Gives every target of the decoder a new adapter, in place.

    Args:
      decoder: without adapters.
      rank: of A B.
      alpha: the update is scaled by alpha / rank.
      seed: of A.
    """
    rngs = nnx.Rngs(seed)
    for name in TARGETS:
        if name not in decoder.layers:
            continue
        weight = decoder.layers[name][...]
        layers, inputs, outputs = weight.shape
        drawn = jax.random.normal(rngs.params(), (layers, inputs, rank), weight.dtype)
        decoder.layers[name + DOWN] = nnx.Param(drawn * inputs**-0.5)
        decoder.layers[name + UP] = nnx.Param(
            jnp.zeros((layers, rank, outputs), weight.dtype)
        )
    decoder.lora_scale = alpha / rank


def adapter_shapes(architecture: Architecture, rank: int) -> list[tuple[int, ...]]:
    """Of all arrays of `add_adapters`; [] for rank 0."""
    found: list[tuple[int, ...]] = []
    for name, shape in parameter_shapes(architecture).items():
        if rank and name.removeprefix("layers.") in TARGETS:
            layers, inputs, outputs = shape
            found += [(layers, inputs, rank), (layers, rank, outputs)]
    return found


def merged(decoder: Decoder) -> Decoder:
    """The same function as one decoder without adapters: W + (alpha / rank) A B."""
    plain = nnx.clone(decoder)
    for name in TARGETS:
        if name + DOWN not in plain.layers:
            continue
        down, up = plain.layers[name + DOWN][...], plain.layers[name + UP][...]
        update = jnp.einsum("lir,lro->lio", down, up) * decoder.lora_scale
        plain.layers[name][...] = plain.layers[name][...] + update
        del plain.layers[name + DOWN], plain.layers[name + UP]
    return plain


def is_adapter(name: str) -> bool:
    """Whether a parameter of that name belongs to an adapter."""
    return name.endswith((DOWN, UP))


def save_adapters(decoder: Decoder, directory: str | os.PathLike[str]) -> None:
    """Writes the adapters as `peft` reads them; does nothing for a decoder without.

    Every process of a multi-host run calls this; the first one writes.
    """
    tensors: dict[str, np.ndarray] = {}
    adapted = [name for name in TARGETS if name + DOWN in decoder.layers]
    if not adapted:
        return
    for name in adapted:
        for kind, suffix in ((DOWN, "lora_A"), (UP, "lora_B")):
            for layer, value in enumerate(fetch(decoder.layers[name + kind][...])):
                stored = tensor_name(f"layers.{name}", (layer,)).removesuffix(".weight")
                tensors[f"base_model.model.{stored}.{suffix}.weight"] = (
                    np.ascontiguousarray(value.T)
                )
    if jax.process_index() != 0:
        return
    place = pathlib.Path(directory).expanduser()
    place.mkdir(parents=True, exist_ok=True)
    new = place / ".adapter_model.safetensors.new"
    safetensors.numpy.save_file(tensors, new)
    new.replace(place / "adapter_model.safetensors")
    rank = decoder.layers["query" + DOWN][...].shape[-1]
    modules = {
        tensor_name(f"layers.{name}", (0,)).removesuffix(".weight").rpartition(".")[2]
        for name in adapted
    }
    config = {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "r": rank,
        "lora_alpha": decoder.lora_scale * rank,
        "target_modules": sorted(modules),
        "bias": "none",
    }
    (place / "adapter_config.json").write_text(json.dumps(config, indent=2) + "\n")
