"""The safetensors files of a Hugging Face directory: names, reading, writing."""

import contextlib
import json
import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.checkpoint_file import Index
from rlvr_jax.models.hf_config import read_architecture, read_json

SCORE = "score"
"""What a reward model has in place of an LM head, [1, D]."""
TENSOR_NAMES = {
    SCORE: "score.weight",
    "embedding": "model.embed_tokens.weight",
    "final_norm": "model.norm.weight",
    "head": "lm_head.weight",
    "layers.attention_norm": "input_layernorm.weight",
    "layers.query": "self_attn.q_proj.weight",
    "layers.query_bias": "self_attn.q_proj.bias",
    "layers.query_norm": "self_attn.q_norm.weight",
    "layers.key": "self_attn.k_proj.weight",
    "layers.key_bias": "self_attn.k_proj.bias",
    "layers.key_norm": "self_attn.k_norm.weight",
    "layers.value": "self_attn.v_proj.weight",
    "layers.value_bias": "self_attn.v_proj.bias",
    "layers.output": "self_attn.o_proj.weight",
    "layers.output_bias": "self_attn.o_proj.bias",
    "layers.mlp_norm": "post_attention_layernorm.weight",
    "layers.gate": "mlp.gate_proj.weight",
    "layers.gate_bias": "mlp.gate_proj.bias",
    "layers.up": "mlp.up_proj.weight",
    "layers.up_bias": "mlp.up_proj.bias",
    "layers.down": "mlp.down_proj.weight",
    "layers.down_bias": "mlp.down_proj.bias",
    "layers.router": "mlp.gate.weight",
    "layers.expert_gate": "mlp.experts.{}.gate_proj.weight",
    "layers.expert_up": "mlp.experts.{}.up_proj.weight",
    "layers.expert_down": "mlp.experts.{}.down_proj.weight",
}
_FLOATS = ("F32", "F16", "BF16", "F64")
_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def tensor_name(parameter: str, at: tuple[int, ...] = ()) -> str:
    """The Hugging Face name of our `parameter`, of one (layer, expert) if stacked."""
    name = TENSOR_NAMES[parameter]
    return f"model.layers.{at[0]}.{name.format(*at[1:])}" if at else name


class SafetensorsDirectory:
    """config.json and model.safetensors, or several files with an index."""

    def __init__(self, directory: pathlib.Path):
        """Opens all files and reads their headers, no weights yet.

        Raises:
          UserError: a file is missing, cut short or of another kind; it is named.
        """
        self.location = str(directory)
        self.architecture: Architecture = read_architecture(directory)
        self._stack = contextlib.ExitStack()
        self._files: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}
        for file, names in _files_of(directory):
            self._open(directory / file, names)

    def _open(self, path: pathlib.Path, names: list[str] | None) -> None:
        try:
            handle = safetensors.safe_open(path, framework="np")
            handle = self._stack.enter_context(handle)
        except FileNotFoundError:
            raise UserError(
                f"{path} does not exist, though {_INDEX} names it."
            ) from None
        except (OSError, safetensors.SafetensorError) as error:
            raise UserError(
                f"{path} cannot be read as safetensors (cut short?): {error}"
            ) from None
        held = set(handle.keys())
        for name in held if names is None else names:
            if name not in held:
                raise UserError(f"{path} lacks {name}, which {_INDEX} places there.")
            # Frequencies that old checkpoints store; they follow from config.json.
            if name.endswith("rotary_emb.inv_freq"):
                continue
            part = handle.get_slice(name)
            if part.get_dtype() not in _FLOATS:
                raise UserError(
                    f"{path}: {name} is stored as {part.get_dtype()}; only "
                    f"{', '.join(_FLOATS)} can be loaded."
                )
            self._files[name] = handle
            self.shapes[name] = tuple(part.get_shape())

    def tensor_name(self, parameter: str, at: tuple[int, ...] = ()) -> str:
        """See `CheckpointFile`."""
        return tensor_name(parameter, at)

    def read(self, name: str, index: Index) -> np.ndarray:
        """See `CheckpointFile`; reads no more than `index` from disk."""
        return self._files[name].get_slice(name)[index]

    def close(self) -> None:
        """See `CheckpointFile`."""
        self._stack.close()


def _files_of(directory: pathlib.Path) -> list[tuple[str, list[str] | None]]:
    """File names and the names of their tensors; None for all that a file holds."""
    if (directory / _SINGLE).exists():
        return [(_SINGLE, None)]
    index = directory / _INDEX
    if not index.exists():
        pickled = sorted(p.name for p in directory.glob("pytorch_model*.bin"))
        hint = f" {pickled[0]} is a pickle: convert it." if pickled else ""
        raise UserError(f"{directory} holds neither {_SINGLE} nor {_INDEX}.{hint}")
    places = read_json(index).get("weight_map")
    if not isinstance(places, dict) or not places:
        raise UserError(f"{index} has no weight_map of tensor -> file.")
    names: dict[str, list[str]] = {}
    for name, file in places.items():
        names.setdefault(file, []).append(name)
    return list(names.items())


def write_tensors(
    directory: pathlib.Path,
    sizes: Mapping[str, int],
    read: Callable[[str], np.ndarray],
    *,
    max_shard_bytes: int,
) -> None:
    """Writes tensors as one safetensors file, or as several with an index.

    Args:
      directory: gets the files; those of an earlier model there are replaced.
      sizes: tensor name -> bytes, in the order of writing.
      read: tensor name -> values. Called once a name; the results of one file are
        held together.
      max_shard_bytes: of a file, unless a single tensor is larger.
    """
    shards = _shards(sizes, max_shard_bytes)
    files = (
        [_SINGLE]
        if len(shards) == 1
        else [
            f"model-{number:05}-of-{len(shards):05}.safetensors"
            for number in range(1, len(shards) + 1)
        ]
    )
    for old in [*directory.glob("model*.safetensors"), directory / _INDEX]:
        old.unlink(missing_ok=True)
    for file, names in zip(files, shards, strict=True):
        # Under another name until it is whole, so that no reader meets half a file.
        partial = directory / f"{file}.partial"
        partial.touch()
        mode = partial.stat().st_mode  # save_file would leave it readable to us alone
        safetensors.numpy.save_file(
            {name: np.ascontiguousarray(read(name)) for name in names},
            partial,
            metadata={"format": "pt"},  # transformers asks for it
        )
        partial.chmod(mode)
        os.replace(partial, directory / file)
    if len(shards) > 1:
        index = {
            "metadata": {"total_size": sum(sizes.values())},
            "weight_map": {
                name: file
                for file, names in zip(files, shards, strict=True)
                for name in names
            },
        }
        (directory / _INDEX).write_text(json.dumps(index, indent=2) + "\n")


def _shards(sizes: Mapping[str, int], max_bytes: int) -> list[list[str]]:
    shards: list[list[str]] = [[]]
    held = 0
    for name, size in sizes.items():
        if shards[-1] and held + size > max_bytes:
            shards.append([])
            held = 0
        shards[-1].append(name)
        held += size
    return shards
