"""Small random models of every family, made by transformers, to compare with."""

import copy
import functools
from typing import Any

import numpy as np
import torch
import transformers

transformers.utils.logging.disable_progress_bar()

_SIZES = {
    "vocab_size": 97,
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
}
_LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    # So short that rows of 30 tokens meet all three kinds of frequency.
    "original_max_position_embeddings": 32,
    "rope_theta": 10_000.0,
}
_YARN = {
    "rope_type": "yarn",
    "factor": 4.0,
    "original_max_position_embeddings": 64,
    "rope_theta": 10_000.0,
}
_LINEAR = {"rope_type": "linear", "factor": 4.0, "rope_theta": 10_000.0}
_EXPERTS = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 28}
CONFIGS: dict[str, tuple[type, dict[str, Any]]] = {
    "llama": (transformers.LlamaConfig, {"tie_word_embeddings": False}),
    "llama_biased": (
        transformers.LlamaConfig,
        {"attention_bias": True, "mlp_bias": True, "head_dim": 16},
    ),
    "llama3_scaled": (transformers.LlamaConfig, {"rope_parameters": _LLAMA3}),
    "llama_linear": (transformers.LlamaConfig, {"rope_parameters": _LINEAR}),
    "smollm": (
        transformers.LlamaConfig,
        {
            "num_attention_heads": 9,
            "num_key_value_heads": 3,
            "hidden_size": 72,
            "tie_word_embeddings": True,
            "rope_parameters": {"rope_type": "default", "rope_theta": 100_000.0},
        },
    ),
    "mistral": (transformers.MistralConfig, {"sliding_window": None, "head_dim": 16}),
    "qwen2_tied": (transformers.Qwen2Config, {"tie_word_embeddings": True}),
    "qwen2_untied": (
        transformers.Qwen2Config,
        {
            "num_key_value_heads": 1,
            "rope_parameters": {"rope_type": "default", "rope_theta": 1_000_000.0},
        },
    ),
    "qwen2_yarn": (transformers.Qwen2Config, {"rope_parameters": _YARN}),
    # Heads together are 4 * 20 = 80 wide, the model 48.
    "qwen3": (transformers.Qwen3Config, {"head_dim": 20}),
    "qwen3_biased_tied": (
        transformers.Qwen3Config,
        {"head_dim": 16, "attention_bias": True, "tie_word_embeddings": True},
    ),
    "qwen3_moe": (
        transformers.Qwen3MoeConfig,
        {"head_dim": 20, "norm_topk_prob": True} | _EXPERTS,
    ),
    "qwen3_moe_unnormalised": (
        transformers.Qwen3MoeConfig,
        _EXPERTS | {"num_experts_per_tok": 3, "attention_bias": True},
    ),
}


@functools.cache
def model(name: str) -> transformers.PreTrainedModel:
    """A model whose every parameter is drawn, norms and biases too."""
    kind, settings = CONFIGS[name]
    config = kind(**(_SIZES | settings), bos_token_id=1, eos_token_id=2, pad_token_id=2)
    config._attn_implementation = "eager"
    made = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter_name, parameter in made.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if "norm" in parameter_name:
                parameter.copy_(1.0 + 0.3 * noise)
            else:
                # About the size that keeps activations near 1, so that scores of
                # attention differ and logits are of order 1.
                fan_in = parameter.shape[-1] if parameter.ndim > 1 else 4
                parameter.copy_(noise * fan_in**-0.5)
    return made.eval()


@functools.cache
def reward_model(name: str) -> transformers.PreTrainedModel:
    """The same decoder with a drawn head of one number in place of an LM head."""
    base = model(name)
    config = copy.deepcopy(base.config)
    config.num_labels = 1
    made = transformers.AutoModelForSequenceClassification.from_config(
        config, dtype=torch.float32
    )
    made.model.load_state_dict(base.model.state_dict())
    with torch.no_grad():
        made.score.weight.normal_(generator=torch.Generator().manual_seed(8))
    return made.eval()


def score(made: transformers.PreTrainedModel, ids: np.ndarray) -> float:
    """Of one row without padding."""
    with torch.no_grad():
        return float(made(torch.as_tensor(ids)[None].long()).logits[0, 0])


def logits(made: transformers.PreTrainedModel, ids: np.ndarray) -> np.ndarray:
    """Of one row without padding, [tokens, vocabulary]."""
    with torch.no_grad():
        return made(torch.as_tensor(ids)[None].long()).logits[0].float().numpy()
