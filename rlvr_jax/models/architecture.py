"""The numbers that define a decoder, free of any file format."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class RopeScaling:
    """How rotary frequencies are stretched past the original context."""

    kind: str
    """"linear", "llama3" or "yarn"."""
    factor: float
    original_max_positions: int = 8192
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float = 1.0


@dataclasses.dataclass(frozen=True)
class Architecture:
    """One decoder of the Llama, SmolLM, Qwen2/2.5, Qwen3 and Qwen3-MoE families.

    Pre-norm blocks with RMSNorm, rotary grouped-query attention and a SiLU-gated MLP or
    a mixture of them (Qwen3-MoE).
    """

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    rms_norm_eps: float = 1e-5
    max_positions: int = 8192
    tie_embeddings: bool = True
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    num_experts: int = 0
    """Of every layer; 0: one MLP of `intermediate_size` per layer."""
    num_experts_per_token: int = 0
    moe_intermediate_size: int = 0
    norm_topk_prob: bool = True
    """The shares of a token's experts sum to 1; else they are those of all experts."""
    family: str = "llama"
    """`model_type` of config.json: "llama", "mistral", "qwen2", "qwen3" or
    "qwen3_moe"."""

    @property
    def num_parameters(self) -> int:
        """Trained numbers, embeddings included."""
        heads, kv_heads = (
            self.num_heads * self.head_dim,
            self.num_kv_heads * self.head_dim,
        )
        width, inner = self.hidden_size, self.intermediate_size
        attention = width * (2 * heads + 2 * kv_heads)
        biases = (
            self.qkv_bias * (heads + 2 * kv_heads)
            + self.output_bias * width
            + self.mlp_bias * (2 * inner + width)
        )
        norms = 2 * width + self.qk_norm * 2 * self.head_dim
        mlp = 3 * width * inner
        if self.num_experts:
            mlp = width * self.num_experts * (3 * self.moe_intermediate_size + 1)
        layer = attention + mlp + biases + norms
        tables = 1 if self.tie_embeddings else 2
        return self.num_layers * layer + tables * self.vocab_size * width + width
