"""A small recipe that can be planned on the eight virtual CPU devices."""

import dataclasses

from rlvr_jax.config import BatchConfig, Config, DataConfig, ModelConfig, RolloutConfig
from rlvr_jax.models.architecture import Architecture

ARCHITECTURE = Architecture(
    vocab_size=256,
    hidden_size=256,
    intermediate_size=512,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=64,
    tie_embeddings=False,
)


def of_depth(layers: int) -> Architecture:
    """The same with so many layers."""
    return dataclasses.replace(ARCHITECTURE, num_layers=layers)


def recipe(**batch) -> Config:
    """Four prompts of 64 tokens with two completions of 65."""
    settings = {"prompts_per_step": 4, "logprob_chunk_tokens": 520} | batch
    config = Config(
        model=ModelConfig(hidden_size=256, intermediate_size=512, num_layers=2),
        data=DataConfig(max_prompt_tokens=64),
        rollout=RolloutConfig(num_generations=2, max_completion_tokens=65),
        batch=BatchConfig(**settings),
    )
    return config
