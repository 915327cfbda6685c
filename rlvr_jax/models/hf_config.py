"""config.json of a Hugging Face directory, read into an `Architecture` and written.

A setting that would change the logits and that the decoder does not have is an error
that names it; settings that only matter elsewhere (dropout, caching) are left alone.
"""

import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture, RopeScaling
from rlvr_jax.models.hf_experts import experts_from_config, experts_to_config

Config = Mapping[str, Any]

# What transformers takes for a key that a family's config.json leaves out.
_DEFAULTS: dict[str, dict[str, Any]] = {
    "llama": {"max_position_embeddings": 2048},
    "mistral": {
        "num_key_value_heads": 8,
        "max_position_embeddings": 131_072,
        "sliding_window": 4096,
    },
    "qwen2": {"num_key_value_heads": 32, "max_position_embeddings": 32_768},
    "qwen3": {
        "num_key_value_heads": 32,
        "head_dim": 128,
        "max_position_embeddings": 32_768,
    },
    "qwen3_moe": {"num_key_value_heads": 4, "max_position_embeddings": 32_768},
}
_CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "qwen3_moe": "Qwen3MoeForCausalLM",
}
_BIASED = ("llama", "qwen3", "qwen3_moe")
"""Families with a switch for biases of attention."""
_QWEN3 = ("qwen3", "qwen3_moe")
# The only values under which these keys leave the decoder's logits as they are.
_REQUIRED_VALUES: dict[str, tuple[Any, ...]] = {
    "hidden_act": ("silu", "swish"),
    "quantization_config": (None,),
    "partial_rotary_factor": (None, 1.0),
    "rope_interleaved": (None, False),
}


def read_architecture(directory: pathlib.Path) -> Architecture:
    """The architecture that `directory`/config.json describes.

    Raises:
      UserError: config.json is missing or no JSON object, or describes a model that
        the decoder does not compute; the message names file and key.
    """
    return architecture_from_config(
        read_json(directory / "config.json"), source=str(directory / "config.json")
    )


def read_json(path: pathlib.Path) -> dict[str, Any]:
    """A JSON object from a file; errors name the file."""
    try:
        value = json.loads(path.read_text(encoding="utf8"))
    except FileNotFoundError:
        raise UserError(
            f"{path} does not exist; a Hugging Face model directory holds config.json "
            "and model.safetensors (model.path in a config)."
        ) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(value, dict):
        raise UserError(f"{path} holds a {type(value).__name__}, not a JSON object.")
    return value


def architecture_from_config(config: Config, *, source: str) -> Architecture:
    """The architecture that the content of a config.json describes.

    Args:
      config: the JSON object.
      source: where it is from, for error messages.

    Raises:
      UserError: as `read_architecture`.
    """
    family = config.get("model_type")
    if family not in _DEFAULTS:
        raise UserError(
            f"{source}: model_type={family!r} is not one of the families that the "
            f"decoder computes ({', '.join(_DEFAULTS)})."
        )
    config = {**_DEFAULTS[family], **config}
    _refuse_unsupported(config, source)

    def size(key: str, default: int | None = None) -> int:
        value = config.get(key)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise UserError(f"{source}: {key} must be a positive int, got {value!r}.")
        return value

    heads, width = size("num_attention_heads"), size("hidden_size")
    kv_heads = size("num_key_value_heads", heads)
    head_dim = size("head_dim", width // heads)
    if heads % kv_heads or head_dim % 2:
        raise UserError(
            f"{source}: num_attention_heads={heads} must be a multiple of "
            f"num_key_value_heads={kv_heads}, and head_dim={head_dim} even."
        )
    theta, scaling = _rope(config, source)
    has_bias = bool(config.get("attention_bias"))
    return Architecture(
        vocab_size=size("vocab_size"),
        hidden_size=width,
        intermediate_size=size("intermediate_size"),
        num_layers=size("num_hidden_layers"),
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_dim=head_dim,
        rope_theta=theta,
        rope_scaling=scaling,
        rms_norm_eps=float(config.get("rms_norm_eps", 1e-6)),
        max_positions=size("max_position_embeddings"),
        tie_embeddings=bool(config.get("tie_word_embeddings", False)),
        # Qwen2 has these biases without a key for them, Mistral never has any.
        qkv_bias=family == "qwen2" or (family in _BIASED and has_bias),
        output_bias=family in _BIASED and has_bias,
        mlp_bias=family == "llama" and bool(config.get("mlp_bias")),
        qk_norm=family in _QWEN3,
        family=family,
        **(experts_from_config(config, size, source) if family == "qwen3_moe" else {}),
    )


def config_from_architecture(
    arch: Architecture, *, dtype: str, scores: bool = False
) -> dict[str, Any]:
    """The config.json of a model, as transformers 4 and 5 read it.

    Args:
      arch: the model.
      dtype: of the stored weights: "float32", "float16" or "bfloat16".
      scores: it is a reward model: a classifier of one label.

    Raises:
      UserError: config.json of this family cannot say what the model has, as a Llama
        with biases of queries but not of outputs.
    """
    config: dict[str, Any] = {
        "architectures": [_CLASSES[arch.family]],
        "model_type": arch.family,
        "vocab_size": arch.vocab_size,
        "hidden_size": arch.hidden_size,
        "intermediate_size": arch.intermediate_size,
        "num_hidden_layers": arch.num_layers,
        "num_attention_heads": arch.num_heads,
        "num_key_value_heads": arch.num_kv_heads,
        "head_dim": arch.head_dim,
        "hidden_act": "silu",
        "rms_norm_eps": arch.rms_norm_eps,
        "max_position_embeddings": arch.max_positions,
        "tie_word_embeddings": arch.tie_embeddings,
        # rope_parameters, transformers 5's spelling, would be dropped by version 4
        # without a word; both versions read this one.
        "rope_theta": arch.rope_theta,
        "rope_scaling": _scaling_to_config(arch.rope_scaling),
        "torch_dtype": dtype,
    }
    if arch.family == "mistral":
        config["sliding_window"] = None
    if arch.family in ("qwen2", *_QWEN3):
        config["use_sliding_window"] = False
    if arch.family in _BIASED:
        config["attention_bias"] = arch.qkv_bias
    if arch.family == "qwen3_moe":
        config |= experts_to_config(arch)
    if arch.family == "llama":
        config["mlp_bias"] = arch.mlp_bias
    if scores:
        name = _CLASSES[arch.family].replace("CausalLM", "SequenceClassification")
        config |= {"architectures": [name], "id2label": {"0": "LABEL_0"}}
        config["label2id"] = {"LABEL_0": 0}
    if architecture_from_config(config, source="config.json") != arch:
        raise UserError(
            f"config.json of model_type {arch.family!r} cannot describe a model with "
            f"qkv_bias={arch.qkv_bias}, output_bias={arch.output_bias}, "
            f"mlp_bias={arch.mlp_bias}, qk_norm={arch.qk_norm}, "
            f"num_experts={arch.num_experts}."
        )
    return config


def _refuse_unsupported(config: Config, source: str) -> None:
    for key, allowed in _REQUIRED_VALUES.items():
        value = config.get(key, allowed[0])
        if value not in allowed:
            raise UserError(
                f"{source}: {key}={value!r} is not supported; the decoder computes "
                f"{' or '.join(map(repr, allowed))} only."
            )
    layers = config.get("layer_types") or []
    if set(layers) - {"full_attention"}:
        raise UserError(
            f"{source}: layer_types={sorted(set(layers))} is not supported; every "
            "layer of the decoder is 'full_attention'."
        )
    # Qwen keeps a window in its config without using it, unless the switch is on and
    # a layer lies above max_window_layers.
    qwen = config["model_type"] in ("qwen2", *_QWEN3)
    in_use = config.get("sliding_window") is not None and (
        config.get("use_sliding_window", False)
        and config.get("max_window_layers", 28) < config.get("num_hidden_layers", 0)
        if qwen and not layers
        else config["model_type"] == "mistral"
    )
    if in_use:
        raise UserError(
            f"{source}: sliding_window={config['sliding_window']} is not supported. If "
            "no sequence of yours is longer than the window, write null there: the "
            "logits are the same."
        )


def _rope(config: Config, source: str) -> tuple[float, RopeScaling | None]:
    """Base and scaling, from rope_theta + rope_scaling or from rope_parameters."""
    rope = config.get("rope_scaling") or config.get("rope_parameters") or {}
    if not isinstance(rope, Mapping) or any(isinstance(v, dict) for v in rope.values()):
        raise UserError(f"{source}: rope settings per layer are not supported: {rope}")
    theta = float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0)
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise UserError(
            f"{source}: partial_rotary_factor={rope['partial_rotary_factor']} is not "
            "supported; the decoder rotates whole heads."
        )
    kind = rope.get("rope_type", rope.get("type", "default"))
    if kind in (None, "default"):
        return theta, None
    needed = {
        "linear": ("factor",),
        "llama3": ("factor", "low_freq_factor", "high_freq_factor"),
        "yarn": ("factor",),
    }
    if kind not in needed:
        raise UserError(
            f"{source}: rope_type={kind!r} is not supported; the decoder computes "
            f"'default', {', '.join(map(repr, needed))}."
        )
    for key in needed[kind]:
        if not isinstance(rope.get(key), int | float):
            raise UserError(
                f"{source}: rope_type={kind!r} needs a number {key}, got {rope}."
            )
    if rope.get("truncate", True) is not True:
        raise UserError(f"{source}: yarn with truncate=false is not supported.")
    original = (
        config.get("original_max_position_embeddings")
        or rope.get("original_max_position_embeddings")
        or config["max_position_embeddings"]
    )
    return theta, _scaling_from_config(kind, rope, original)


def _scaling_from_config(kind: str, rope: Config, original: int) -> RopeScaling:
    factor = float(rope["factor"])
    if kind == "linear":
        return RopeScaling("linear", factor)
    if kind == "llama3":
        return RopeScaling(
            "llama3",
            factor,
            original_max_positions=original,
            low_freq_factor=float(rope["low_freq_factor"]),
            high_freq_factor=float(rope["high_freq_factor"]),
        )
    return RopeScaling(
        "yarn",
        factor,
        original_max_positions=original,
        beta_fast=float(rope.get("beta_fast") or 32.0),
        beta_slow=float(rope.get("beta_slow") or 1.0),
        attention_factor=_yarn_attention_factor(rope, factor),
    )


def _yarn_attention_factor(rope: Config, factor: float) -> float:
    """What cos and sin are multiplied by: 0.1 ln(factor) + 1 unless stated."""
    if rope.get("attention_factor") is not None:
        return float(rope["attention_factor"])

    def magnitude(weight: float) -> float:
        return 0.1 * weight * math.log(factor) + 1.0 if factor > 1 else 1.0

    over, under = rope.get("mscale"), rope.get("mscale_all_dim")
    if over and under:
        return magnitude(over) / magnitude(under)
    return magnitude(1.0)


def _scaling_to_config(scaling: RopeScaling | None) -> dict[str, Any] | None:
    if scaling is None:
        return None
    config: dict[str, Any] = {"rope_type": scaling.kind, "factor": scaling.factor}
    if scaling.kind == "linear":
        return config
    config["original_max_position_embeddings"] = scaling.original_max_positions
    if scaling.kind == "llama3":
        return config | {
            "low_freq_factor": scaling.low_freq_factor,
            "high_freq_factor": scaling.high_freq_factor,
        }
    return config | {
        "beta_fast": scaling.beta_fast,
        "beta_slow": scaling.beta_slow,
        "attention_factor": scaling.attention_factor,
    }
