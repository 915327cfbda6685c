"""The part of a Qwen3-MoE config.json that describes experts."""

from collections.abc import Callable, Mapping
from typing import Any

from rlvr_jax.errors import UserError
from rlvr_jax.models.architecture import Architecture


def experts_from_config(
    config: Mapping[str, Any], size: Callable[..., int], source: str
) -> dict[str, Any]:
    """The fields of `Architecture` about experts; every layer must have them.

    Args:
      config: the JSON object.
      size: (key, default) -> a positive int of it.
      source: where it is from, for error messages.

    Raises:
      UserError: some layers have experts and others not, or more are picked than
        there are.
    """
    step = config.get("decoder_sparse_step", 1)
    dense = config.get("mlp_only_layers") or []
    if step != 1 or dense:
        raise UserError(
            f"{source}: decoder_sparse_step={step} with mlp_only_layers={dense} mixes "
            "layers with experts and layers without. The decoder scans equal layers: "
            "decoder_sparse_step must be 1 and mlp_only_layers empty."
        )
    # transformers 5 writes num_local_experts, version 4 num_experts.
    experts = size("num_experts", config.get("num_local_experts") or 128)
    chosen = size("num_experts_per_tok", 8)
    if not chosen <= experts <= 65_536:
        raise UserError(
            f"{source}: num_experts={experts} must be at least "
            f"num_experts_per_tok={chosen}, and at most 65536."
        )
    return {
        "num_experts": experts,
        "num_experts_per_token": chosen,
        "moe_intermediate_size": size("moe_intermediate_size", 768),
        "norm_topk_prob": bool(config.get("norm_topk_prob", False)),
    }


def experts_to_config(arch: Architecture) -> dict[str, Any]:
    """What config.json says about them."""
    return {
        "num_experts": arch.num_experts,
        "num_experts_per_tok": arch.num_experts_per_token,
        "moe_intermediate_size": arch.moe_intermediate_size,
        "norm_topk_prob": arch.norm_topk_prob,
        "decoder_sparse_step": 1,
        "mlp_only_layers": [],
    }
