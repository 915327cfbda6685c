"""A .gguf file of llama.cpp as a source of weights, dequantised with `gguf`.

Metadata keys and tensor names: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

import math
import pathlib
from typing import Any

import gguf
import numpy as np

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture, RopeScaling
from rlvr_jax.models.checkpoint_file import Index
from rlvr_jax.models.hf_config import config_from_architecture

_TENSOR_NAMES = {
    "embedding": "token_embd.weight",
    "final_norm": "output_norm.weight",
    "head": "output.weight",
    "layers.attention_norm": "attn_norm.weight",
    "layers.query": "attn_q.weight",
    "layers.query_bias": "attn_q.bias",
    "layers.query_norm": "attn_q_norm.weight",
    "layers.key": "attn_k.weight",
    "layers.key_bias": "attn_k.bias",
    "layers.key_norm": "attn_k_norm.weight",
    "layers.value": "attn_v.weight",
    "layers.value_bias": "attn_v.bias",
    "layers.output": "attn_output.weight",
    "layers.output_bias": "attn_output.bias",
    "layers.mlp_norm": "ffn_norm.weight",
    "layers.gate": "ffn_gate.weight",
    "layers.gate_bias": "ffn_gate.bias",
    "layers.up": "ffn_up.weight",
    "layers.up_bias": "ffn_up.bias",
    "layers.down": "ffn_down.weight",
    "layers.down_bias": "ffn_down.bias",
}
_FAMILIES = ("llama", "qwen2", "qwen3")
_ROPE_FACTORS = "rope_freqs.weight"


class GgufFile:
    """One .gguf file, whose weights become float32 as they are read."""

    def __init__(self, path: pathlib.Path):
        """Opens the file and reads its metadata.

        Raises:
          UserError: no GGUF file, cut short, or a model that the decoder does not
            compute.
        """
        self.location = str(path)
        if not path.is_file():
            raise UserError(f"{path} does not exist.")
        try:
            self._reader = gguf.GGUFReader(path)
        except Exception as error:  # the reader raises whatever its parsing met
            raise UserError(
                f"{path} cannot be read as GGUF (cut short?): {error}"
            ) from None
        self._tensors = {t.name: t for t in self._reader.tensors}
        factors = self._tensors.pop(_ROPE_FACTORS, None)
        self.shapes = {
            name: tuple(int(size) for size in tensor.shape[::-1])
            for name, tensor in self._tensors.items()
        }
        self.architecture = self._architecture(
            None if factors is None else np.asarray(factors.data)
        )
        try:  # now, not after a long run: what is loaded must also be possible to save
            config_from_architecture(self.architecture, dtype="float32")
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    def tensor_name(self, parameter: str, at: tuple[int, ...] = ()) -> str:
        """See `CheckpointFile`."""
        name = _TENSOR_NAMES[parameter]
        return f"blk.{at[0]}.{name}" if at else name

    def read(self, name: str, index: Index) -> np.ndarray:
        """See `CheckpointFile`; dequantises only the rows that `index` asks for."""
        tensor = self._tensors[name]
        rows = np.arange(tensor.data.shape[0])
        arch = self.architecture
        if arch.family == "llama":
            if ".attn_q." in name:
                rows = _half_split_rows(arch.num_heads, arch.head_dim)
            if ".attn_k." in name:
                rows = _half_split_rows(arch.num_kv_heads, arch.head_dim)
        stored = tensor.data[rows[index[0]]]
        values = gguf.quants.dequantize(stored, tensor.tensor_type)
        return values[(slice(None), *index[1:])]

    def close(self) -> None:
        """See `CheckpointFile`."""
        self._tensors.clear()

    def special_tokens(self) -> dict[str, int | list[int]]:
        """bos, eos and pad ids under their Hugging Face names, where stated.

        Ends of a turn (eot) and of a message (eom) end a completion like eos, so with
        them `eos_token_id` is a list.
        """
        ends = [self._token_id(name) for name in ("eos", "eot", "eom")]
        ends = list(dict.fromkeys(i for i in ends if i is not None))
        found = {
            "bos_token_id": self._token_id("bos"),
            "eos_token_id": ends if len(ends) > 1 else (ends[0] if ends else None),
            "pad_token_id": self._token_id("padding"),
        }
        return {key: value for key, value in found.items() if value is not None}

    def _token_id(self, name: str) -> int | None:
        value = self._value(f"tokenizer.ggml.{name}_token_id")
        return None if value is None else int(value)

    def _value(self, key: str, default: Any = None) -> Any:
        field = self._reader.get_field(key)
        return default if field is None else field.contents()

    def _architecture(self, rope_factors: np.ndarray | None) -> Architecture:
        family = self._value("general.architecture")
        if family not in _FAMILIES:
            raise UserError(
                f"{self.location}: general.architecture={family!r} is not one of the "
                f"families that the decoder computes ({', '.join(_FAMILIES)})."
            )

        def setting(key: str, default: Any = None) -> Any:
            value = self._value(f"{family}.{key}", default)
            if not isinstance(value, int | float):
                raise UserError(
                    f"{self.location}: {family}.{key} must be one number for all "
                    f"layers, got {value!r}."
                )
            return value

        for key in ("expert_count", "attention.sliding_window", "logit_scale"):
            if setting(key, 0):
                raise UserError(
                    f"{self.location}: {family}.{key}={setting(key)} is not supported."
                )
        heads, width = setting("attention.head_count"), setting("embedding_length")
        head_dim = setting("attention.key_length", width // heads)
        rotated = setting("rope.dimension_count", head_dim)
        if (
            rotated != head_dim
            or setting("attention.value_length", head_dim) != head_dim
        ):
            raise UserError(
                f"{self.location}: {family}.rope.dimension_count={rotated} and "
                f"attention.value_length must equal the head's size, {head_dim}."
            )
        embedding = _TENSOR_NAMES["embedding"]
        if embedding not in self.shapes:
            raise UserError(f"{self.location}: {embedding} is missing.")
        theta = _shortest(setting("rope.freq_base", 10_000.0))
        return Architecture(
            vocab_size=self.shapes[embedding][0],
            hidden_size=width,
            intermediate_size=setting("feed_forward_length"),
            num_layers=setting("block_count"),
            num_heads=heads,
            num_kv_heads=setting("attention.head_count_kv", heads),
            head_dim=head_dim,
            rope_theta=theta,
            rope_scaling=self._rope_scaling(family, head_dim, theta, rope_factors),
            rms_norm_eps=_shortest(setting("attention.layer_norm_rms_epsilon")),
            max_positions=setting("context_length"),
            tie_embeddings="output.weight" not in self.shapes,
            qkv_bias="blk.0.attn_q.bias" in self.shapes,
            output_bias="blk.0.attn_output.bias" in self.shapes,
            mlp_bias="blk.0.ffn_gate.bias" in self.shapes,
            qk_norm=family == "qwen3",
            family=family,
        )

    def _rope_scaling(
        self, family: str, head_dim: int, theta: float, factors: np.ndarray | None
    ) -> RopeScaling | None:
        if factors is not None:
            return _llama3_scaling(factors, head_dim, theta, self.location)
        kind = self._value(f"{family}.rope.scaling.type", "none")
        if kind == "none":
            return None
        if kind not in ("linear", "yarn"):
            raise UserError(
                f"{self.location}: rope.scaling.type={kind!r} is not supported."
            )
        factor = float(self._value(f"{family}.rope.scaling.factor", 1.0))
        if kind == "linear":
            return RopeScaling("linear", factor)
        length = "rope.scaling.original_context_length"
        original = self._value(f"{family}.{length}")
        if original is None:
            raise UserError(f"{self.location}: yarn needs {family}.{length}.")
        return RopeScaling(
            "yarn",
            factor,
            original_max_positions=int(original),
            attention_factor=0.1 * math.log(factor) + 1.0,
        )


def _shortest(stored: float) -> float:
    """The number that was meant by a float32: 1e-5, not 9.99999974e-06."""
    return float(str(np.float32(stored)))


def _half_split_rows(heads: int, head_dim: int) -> np.ndarray:
    """Row of the file for each row of ours, in the query or key matrix of a Llama.

    llama.cpp rotates neighbours (2i, 2i + 1) where this decoder, like transformers,
    rotates (i, i + K/2), so its converter interleaves the halves of every head.
    """
    rows = np.arange(heads * head_dim).reshape(heads, head_dim // 2, 2)
    return rows.swapaxes(1, 2).reshape(-1)


def _llama3_scaling(
    factors: np.ndarray, head_dim: int, theta: float, location: str
) -> RopeScaling:
    """The Llama 3 scaling behind stored divisors of the rotary frequencies.

    The file has only the divisors, so the published settings are tried against them.
    """
    scaling = RopeScaling(
        "llama3",
        float(factors.max()),
        original_max_positions=8192,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
    )
    plain = theta ** -(np.arange(0, head_dim, 2) / head_dim)
    turns = scaling.original_max_positions * plain / (2 * np.pi)
    keep = np.clip((turns - 1.0) / 3.0, 0.0, 1.0)
    expected = 1.0 / (keep + (1.0 - keep) / scaling.factor)
    if factors.shape != expected.shape or not np.allclose(factors, expected, rtol=1e-4):
        raise UserError(
            f"{location}: {_ROPE_FACTORS} does not follow Llama 3's rope scaling "
            "(low_freq_factor 1, high_freq_factor 4, 8192 original positions)."
        )
    return scaling
