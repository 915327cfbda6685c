"""config.json as published models have it, and what must be refused."""

import dataclasses
import json
import math
import re

import pytest

from rlvr_jax.models.architecture import Architecture, RopeScaling
from rlvr_jax.models.hf_config import (
    architecture_from_config,
    config_from_architecture,
    read_architecture,
)

# Keys as in the published config.json of each model (files on the Hugging Face hub);
# keys that say nothing about the computation are left out.
LLAMA_3_2_1B = {
    "model_type": "llama",
    "attention_bias": False,
    "head_dim": 64,
    "hidden_act": "silu",
    "hidden_size": 2048,
    "intermediate_size": 8192,
    "max_position_embeddings": 131072,
    "mlp_bias": False,
    "num_attention_heads": 32,
    "num_hidden_layers": 16,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_scaling": {
        "factor": 32.0,
        "high_freq_factor": 4.0,
        "low_freq_factor": 1.0,
        "original_max_position_embeddings": 8192,
        "rope_type": "llama3",
    },
    "rope_theta": 500000.0,
    "tie_word_embeddings": True,
    "vocab_size": 128256,
}
QWEN2_5_7B = {
    "model_type": "qwen2",
    "attention_dropout": 0.0,
    "hidden_act": "silu",
    "hidden_size": 3584,
    "intermediate_size": 18944,
    "max_position_embeddings": 131072,
    "max_window_layers": 28,
    "num_attention_heads": 28,
    "num_hidden_layers": 28,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-06,
    "rope_theta": 1000000.0,
    "sliding_window": 131072,
    "tie_word_embeddings": False,
    "use_sliding_window": False,
    "vocab_size": 152064,
}
QWEN3_0_6B = {
    "model_type": "qwen3",
    "attention_bias": False,
    "head_dim": 128,
    "hidden_act": "silu",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "max_position_embeddings": 40960,
    "max_window_layers": 28,
    "num_attention_heads": 16,
    "num_hidden_layers": 28,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-06,
    "rope_scaling": None,
    "rope_theta": 1000000,
    "sliding_window": None,
    "tie_word_embeddings": True,
    "use_sliding_window": False,
    "vocab_size": 151936,
}
MISTRAL_7B_V3 = {
    "model_type": "mistral",
    "hidden_act": "silu",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "max_position_embeddings": 32768,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "rms_norm_eps": 1e-05,
    "rope_theta": 1000000.0,
    "sliding_window": None,
    "tie_word_embeddings": False,
    "vocab_size": 32768,
}


def read(config: dict) -> Architecture:
    return architecture_from_config(config, source="config.json")


@pytest.mark.parametrize(
    ("config", "parameters"),
    [
        # Sizes that the model cards state: 1.23B, 7.61B, 0.6B (596,049,920) and 7.25B.
        (LLAMA_3_2_1B, 1_235_814_400),
        (QWEN2_5_7B, 7_615_616_512),
        (QWEN3_0_6B, 596_049_920),
        (MISTRAL_7B_V3, 7_248_023_552),
    ],
)
def test_published_models_have_their_published_size(config, parameters):
    assert read(config).num_parameters == parameters


def test_llama3_scaling():
    assert read(LLAMA_3_2_1B).rope_scaling == RopeScaling(
        "llama3",
        32.0,
        original_max_positions=8192,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
    )


def test_biases_and_norms_by_family():
    flags = {
        config["model_type"]: (a.qkv_bias, a.output_bias, a.mlp_bias, a.qk_norm)
        for config in (LLAMA_3_2_1B, QWEN2_5_7B, QWEN3_0_6B, MISTRAL_7B_V3)
        for a in [read(config | {"attention_bias": True, "mlp_bias": True})]
    }
    # Qwen2 and Mistral have no such keys: theirs stay as the family is.
    assert flags == {
        "llama": (True, True, True, False),
        "qwen2": (True, False, False, False),
        "qwen3": (True, True, False, True),
        "mistral": (False, False, False, False),
    }


def test_what_is_left_out_is_what_transformers_takes():
    bare = {
        "vocab_size": 10,
        "hidden_size": 64,
        "intermediate_size": 8,
        "num_hidden_layers": 1,
        "num_attention_heads": 32,
    }
    llama = read(bare | {"model_type": "llama"})
    assert (llama.num_kv_heads, llama.head_dim) == (32, 2)
    assert (llama.rope_theta, llama.rms_norm_eps) == (10_000.0, 1e-6)
    assert not llama.tie_embeddings
    assert read(bare | {"model_type": "qwen3"}).head_dim == 128
    assert read(bare | {"model_type": "qwen2"}).num_kv_heads == 32
    mistral = bare | {"model_type": "mistral", "sliding_window": None}
    assert read(mistral).num_kv_heads == 8


def test_head_dim_null_is_width_over_heads():
    """SmolLM2's config.json has no head_dim, others have null."""
    config = LLAMA_3_2_1B | {"head_dim": None}
    assert read(config).head_dim == 64


def test_both_spellings_of_rope():
    old = QWEN2_5_7B | {
        "rope_scaling": {
            "type": "yarn",
            "factor": 4.0,
            "original_max_position_embeddings": 32768,
        }
    }
    new = {k: v for k, v in QWEN2_5_7B.items() if k != "rope_theta"} | {
        "rope_parameters": {
            "rope_type": "yarn",
            "rope_theta": 1000000.0,
            "factor": 4.0,
            "original_max_position_embeddings": 32768,
        }
    }
    assert read(old) == read(new)
    scaling = read(new).rope_scaling
    assert scaling is not None
    # YaRN, https://arxiv.org/abs/2309.00071, eq. 22: 0.1 ln(s) + 1.
    assert scaling.attention_factor == pytest.approx(0.1 * math.log(4.0) + 1.0)
    assert (scaling.beta_fast, scaling.beta_slow) == (32.0, 1.0)


def test_window_that_no_layer_uses_is_no_window():
    above = {"use_sliding_window": True, "sliding_window": 4096}
    assert read(QWEN2_5_7B | above | {"max_window_layers": 28}).family == "qwen2"
    with pytest.raises(ValueError, match="sliding_window=4096"):
        read(QWEN2_5_7B | above | {"max_window_layers": 27})


@pytest.mark.parametrize(
    ("base", "change", "named"),
    [
        (LLAMA_3_2_1B, {"model_type": "gemma3"}, "model_type='gemma3'"),
        (LLAMA_3_2_1B, {"model_type": None}, "model_type=None"),
        (LLAMA_3_2_1B, {"hidden_act": "gelu"}, "hidden_act='gelu'"),
        (
            LLAMA_3_2_1B,
            {"quantization_config": {"quant_method": "gptq"}},
            "quantization_config",
        ),
        (LLAMA_3_2_1B, {"partial_rotary_factor": 0.5}, "partial_rotary_factor=0.5"),
        (LLAMA_3_2_1B, {"rope_interleaved": True}, "rope_interleaved"),
        (
            QWEN3_0_6B,
            {"rope_parameters": {"rope_theta": 1e6, "partial_rotary_factor": 0.25}},
            "partial_rotary_factor=0.25",
        ),
        (
            LLAMA_3_2_1B,
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "rope_type='dynamic'",
        ),
        (
            LLAMA_3_2_1B,
            {"rope_scaling": {"rope_type": "longrope", "factor": 2.0}},
            "rope_type='longrope'",
        ),
        (
            LLAMA_3_2_1B,
            {"rope_scaling": {"rope_type": "llama3", "factor": 2.0}},
            "low_freq_factor",
        ),
        (LLAMA_3_2_1B, {"rope_scaling": {"rope_type": "linear"}}, "number factor"),
        (
            QWEN2_5_7B,
            {"rope_scaling": {"type": "yarn", "factor": 2.0, "truncate": False}},
            "truncate",
        ),
        (
            QWEN3_0_6B,
            {"rope_parameters": {"full_attention": {"rope_theta": 1e6}}},
            "per layer",
        ),
        (
            QWEN3_0_6B,
            {"layer_types": ["full_attention", "sliding_attention"]},
            "layer_types",
        ),
        (MISTRAL_7B_V3, {"sliding_window": 4096}, "sliding_window=4096"),
        (LLAMA_3_2_1B, {"vocab_size": None}, "vocab_size must be a positive int"),
        (LLAMA_3_2_1B, {"hidden_size": "2048"}, "hidden_size must be a positive"),
        (LLAMA_3_2_1B, {"num_key_value_heads": 5}, "num_key_value_heads=5"),
        (LLAMA_3_2_1B, {"head_dim": 63}, "head_dim=63"),
    ],
)
def test_refuses_what_would_change_the_logits(base, change, named):
    with pytest.raises(ValueError, match=rf"^config\.json: .*{re.escape(named)}"):
        read(base | change)


def test_mistral_without_the_key_has_a_window():
    """transformers takes 4096 where config.json leaves sliding_window out."""
    config = {k: v for k, v in MISTRAL_7B_V3.items() if k != "sliding_window"}
    with pytest.raises(ValueError, match="sliding_window=4096"):
        read(config)


@pytest.mark.parametrize(
    "config", [LLAMA_3_2_1B, QWEN2_5_7B, QWEN3_0_6B, MISTRAL_7B_V3]
)
def test_written_config_reads_back_equal(config):
    arch = read(config)
    written = config_from_architecture(arch, dtype="bfloat16")
    assert read(json.loads(json.dumps(written))) == arch
    assert written["torch_dtype"] == "bfloat16"


def test_a_model_that_config_cannot_describe_is_refused():
    """One key, attention_bias, stands for queries and outputs of a Llama."""
    arch = dataclasses.replace(read(LLAMA_3_2_1B), qkv_bias=True)
    with pytest.raises(ValueError, match="qkv_bias=True, output_bias=False"):
        config_from_architecture(arch, dtype="float32")


def test_yarn_reads_back_equal():
    yarn = {"type": "yarn", "factor": 4.0, "beta_fast": 16, "attention_factor": 1.5}
    arch = read(QWEN3_0_6B | {"rope_scaling": yarn})
    assert arch.rope_scaling is not None
    assert arch.rope_scaling.attention_factor == 1.5
    assert arch.rope_scaling.original_max_positions == 40960
    assert read(config_from_architecture(arch, dtype="float32")) == arch


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "does not exist"),
        ("{", "cannot be read as JSON"),
        ("[]", "holds a list"),
    ],
)
def test_unreadable_file(tmp_path, content, message):
    if content is not None:
        (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=rf"config\.json.*{message}"):
        read_architecture(tmp_path)
