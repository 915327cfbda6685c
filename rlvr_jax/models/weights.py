"""Loads a decoder from a Hugging Face directory or a .gguf file, and saves one."""

import contextlib
import json
import math
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.experimental import multihost_utils
from jaxtyping import Array, Float

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.checkpoint_file import (
    CheckpointFile,
    Index,
    check_tensors,
    is_transposed,
)
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.hf_config import config_from_architecture, read_json
from rlvr_jax.models.hf_weights import (
    SCORE,
    SafetensorsDirectory,
    tensor_name,
    write_tensors,
)
from rlvr_jax.models.parameters import parameter_shapes, stacked_axes

_TOKEN_KEYS = ("bos_token_id", "eos_token_id", "pad_token_id")


def load_decoder(
    path: str | os.PathLike[str],
    *,
    dtype: jax.typing.DTypeLike = jnp.float32,
    shardings: Mapping[str, jax.sharding.Sharding] | None = None,
) -> Decoder:
    """Loads the decoder at `path`; peak host memory stays near one copy of it.

    Args:
      path: a Hugging Face directory (config.json, safetensors) or a .gguf file, whose
        weights are dequantised. "~" is expanded.
      dtype: of the parameters, whatever the file stores.
      shardings: parameter name (as `parameter_shapes` has it) -> where it lives; each
        device reads only its own part of the file. None: all on the default device.

    Raises:
      UserError: the path holds no model that can be loaded; the message names the
        file, and the key or tensor that is wrong.
    """
    with contextlib.closing(open_checkpoint(path)) as checkpoint:
        arrays = read_parameters(checkpoint, dtype=dtype, shardings=shardings)
        return decoder_from(checkpoint.architecture, arrays, dtype)


def read_parameters(
    checkpoint: CheckpointFile,
    *,
    dtype: jax.typing.DTypeLike,
    shardings: Mapping[str, jax.sharding.Sharding] | None = None,
) -> dict[str, jax.Array]:
    """The parameters of an open checkpoint by name; see `load_decoder`."""
    check_tensors(checkpoint)
    here = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    return {
        name: jax.make_array_from_callback(
            shape,
            here if shardings is None else shardings[name],
            _part_reader(checkpoint, name, shape, np.dtype(dtype)),
        )
        for name, shape in parameter_shapes(checkpoint.architecture).items()
    }


def open_checkpoint(path: str | os.PathLike[str]) -> CheckpointFile:
    """Opens a model without reading its weights; the caller closes it.

    Raises:
      UserError: as `load_decoder`.
    """
    place = pathlib.Path(path).expanduser()
    if place.suffix == ".gguf" and not place.is_dir():
        # Slow to import and needed for this kind of file only.
        from rlvr_jax.models.gguf_weights import GgufFile

        return GgufFile(place)
    if place.is_dir():
        return SafetensorsDirectory(place)
    raise UserError(
        f"model.path {str(path)!r} is neither a directory nor a .gguf file. Give a "
        "Hugging Face model directory; `python -m launch.fetch smollm2` makes one."
    )


def _part_reader(
    checkpoint: CheckpointFile, parameter: str, shape: tuple[int, ...], dtype: np.dtype
) -> Callable[[Index | None], np.ndarray]:
    """What reads the part `index` of our stacked parameter from the file."""
    flip, axes = is_transposed(parameter, shape), stacked_axes(parameter)

    def read(index: Index | None) -> np.ndarray:
        index = tuple(slice(None) for _ in shape) if index is None else index
        inner = index[axes:]
        if not axes:
            name = checkpoint.tensor_name(parameter)
            return checkpoint.read(name, inner).astype(dtype, copy=False)
        wanted = [range(n)[s] for n, s in zip(shape, index, strict=True)]
        part = np.empty([len(numbers) for numbers in wanted], dtype)
        for slot in np.ndindex(part.shape[:axes]):
            at = tuple(wanted[axis][i] for axis, i in enumerate(slot))
            name = checkpoint.tensor_name(parameter, at)
            values = checkpoint.read(name, inner[::-1] if flip else inner)
            part[slot] = values.T if flip else values
        return part

    return read


def decoder_from(
    arch: Architecture, arrays: Mapping[str, jax.Array], dtype: jax.typing.DTypeLike
) -> Decoder:
    """A decoder with given parameters; none are drawn."""
    abstract = nnx.eval_shape(lambda: Decoder(arch, rngs=nnx.Rngs(0), dtype=dtype))
    graphdef, state = nnx.split(abstract)
    values: dict[str, Any] = {"layers": {}}
    for name, array in arrays.items():
        inner = name.removeprefix("layers.")
        (values if inner == name else values["layers"])[inner] = array
    nnx.replace_by_pure_dict(state, values)
    return nnx.merge(graphdef, state)


def parameters_of(decoder: Decoder) -> dict[str, jax.Array]:
    """Parameter name, as `parameter_shapes` has it -> array."""
    layers = {f"layers.{name}": p[...] for name, p in decoder.layers.items()}
    top = {"embedding": decoder.embedding, "final_norm": decoder.final_norm}
    if not decoder.architecture.tie_embeddings:
        top["head"] = decoder.head
    return layers | {name: param[...] for name, param in top.items()}


def save_decoder(
    decoder: Decoder,
    directory: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str] | None = None,
    score: Float[Array, " D"] | None = None,
    max_shard_bytes: int = 5_000_000_000,
) -> None:
    """Writes config.json, generation_config.json and safetensors, in the own type.

    `transformers.AutoModelForCausalLM.from_pretrained(directory)` computes the same
    logits. The tokenizer's files are left to the data layer. Every process of a
    multi-host run calls this; the first one writes.

    Args:
      decoder: the policy.
      directory: made if need be; a model that is there already is replaced.
      source: the model that this one was trained from. Its generation settings
        (end tokens above all) are carried over, on top of a generation_config.json
        that `directory` holds already, as a tokenizer saved there writes one.
      score: what a reward model has in place of an LM head: its number is the product
        with a state. `AutoModelForSequenceClassification` then loads it.
      max_shard_bytes: of a file; a larger model is cut into several with an index.
    """
    arch = decoder.architecture
    parameters = parameters_of(decoder)
    if score is not None:
        parameters.pop("head", None)
        parameters[SCORE] = score[None]
    dtype = str(next(iter(parameters.values())).dtype)
    parts = {
        tensor_name(name, at): (name, at)
        for name, value in parameters.items()
        for at in np.ndindex(value.shape[: stacked_axes(name)])
    }

    def read(stored_name: str) -> np.ndarray:
        name, at = parts[stored_name]
        value = parameters[name][at]
        flip = is_transposed(name, parameters[name].shape)
        return _on_host(value).T if flip else _on_host(value)

    sizes = {
        stored: math.prod(parameters[name].shape[len(at) :])
        * parameters[name].dtype.itemsize
        for stored, (name, at) in parts.items()
    }
    if jax.process_index() != 0:
        for stored_name in sizes:  # take part in gathering what the first one writes
            read(stored_name)
        return
    place = pathlib.Path(directory).expanduser()
    place.mkdir(parents=True, exist_ok=True)
    write_tensors(place, sizes, read, max_shard_bytes=max_shard_bytes)
    settings = place / "generation_config.json"
    generation = read_json(settings) if settings.exists() else {}
    generation |= {} if source is None else generation_settings(source)
    config = config_from_architecture(arch, dtype=dtype, scores=score is not None)
    config |= {key: generation[key] for key in _TOKEN_KEYS if key in generation}
    for path, content in ((settings, generation), (place / "config.json", config)):
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf8")


def _on_host(array: jax.Array) -> np.ndarray:
    if array.is_fully_addressable:
        return np.asarray(array)
    return np.asarray(multihost_utils.process_allgather(array, tiled=True))


def generation_settings(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What generation_config.json holds, or else the special tokens of config.json.

    For a .gguf file: the special tokens of its metadata. `eos_token_id` is an int or a
    list of them; a key that the model does not state is left out.

    Raises:
      UserError: the path holds no readable model.
    """
    place = pathlib.Path(path).expanduser()
    if not place.is_dir():
        from rlvr_jax.models.gguf_weights import GgufFile

        return GgufFile(place).special_tokens()
    settings = read_json(place / "config.json")
    stated = {k: settings[k] for k in _TOKEN_KEYS if settings.get(k) is not None}
    if (place / "generation_config.json").exists():
        stated |= read_json(place / "generation_config.json")
    return stated
