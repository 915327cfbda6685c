"""Names and shapes of a decoder's parameters."""

from rlvr_jax.models.architecture import Architecture

EXPERTS = "layers.expert_"
"""How names of parameters begin that have one matrix per layer and expert."""


def stacked_axes(parameter: str) -> int:
    """How many leading axes a parameter has that files do not: layers, experts."""
    if parameter.startswith(EXPERTS):
        return 2
    return int(parameter.startswith("layers."))


def parameter_shapes(arch: Architecture) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every parameter; layer weights are [L, inputs, outputs].

    Those of experts are [L, E, inputs, outputs].
    """
    width, inner, layers = arch.hidden_size, arch.intermediate_size, arch.num_layers
    heads, kv_heads = arch.num_heads * arch.head_dim, arch.num_kv_heads * arch.head_dim
    shapes: dict[str, tuple[int, ...]] = {
        "attention_norm": (width,),
        "query": (width, heads),
        "key": (width, kv_heads),
        "value": (width, kv_heads),
        "output": (heads, width),
        "mlp_norm": (width,),
    }
    if arch.num_experts:
        shapes["router"] = (width, arch.num_experts)
        experts, inner = arch.num_experts, arch.moe_intermediate_size
        shapes |= {
            "expert_gate": (experts, width, inner),
            "expert_up": (experts, width, inner),
            "expert_down": (experts, inner, width),
        }
    else:
        shapes |= {"gate": (width, inner), "up": (width, inner), "down": (inner, width)}
    if arch.qkv_bias:
        shapes |= {
            "query_bias": (heads,),
            "key_bias": (kv_heads,),
            "value_bias": (kv_heads,),
        }
    if arch.output_bias:
        shapes["output_bias"] = (width,)
    if arch.mlp_bias:
        shapes |= {"gate_bias": (inner,), "up_bias": (inner,), "down_bias": (width,)}
    if arch.qk_norm:
        shapes |= {"query_norm": (arch.head_dim,), "key_norm": (arch.head_dim,)}
    named = {f"layers.{name}": (layers, *shape) for name, shape in shapes.items()}
    named |= {"embedding": (arch.vocab_size, width), "final_norm": (width,)}
    if not arch.tie_embeddings:
        named["head"] = (arch.vocab_size, width)
    return named
