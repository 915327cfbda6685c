"""Architectures of published models, for plans made before their files are there.

Written down without the files at hand; a run checks the file at model.path against its
row.
"""

from rlvr_jax.models.architecture import Architecture

KNOWN: dict[str, Architecture] = {
    # Qwen/Qwen2.5-32B
    "qwen2.5-32b": Architecture(
        vocab_size=152_064,
        hidden_size=5120,
        intermediate_size=27_648,
        num_layers=64,
        num_heads=40,
        num_kv_heads=8,
        head_dim=128,
        rope_theta=1e6,
        max_positions=131_072,
        tie_embeddings=False,
        qkv_bias=True,
        family="qwen2",
    ),
    # Qwen/Qwen2.5-7B
    "qwen2.5-7b": Architecture(
        vocab_size=152_064,
        hidden_size=3584,
        intermediate_size=18_944,
        num_layers=28,
        num_heads=28,
        num_kv_heads=4,
        head_dim=128,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        max_positions=131_072,
        tie_embeddings=False,
        qkv_bias=True,
        family="qwen2",
    ),
    # Qwen/Qwen3-8B
    "qwen3-8b": Architecture(
        vocab_size=151_936,
        hidden_size=4096,
        intermediate_size=12_288,
        num_layers=36,
        num_heads=32,
        num_kv_heads=8,
        head_dim=128,
        rope_theta=1e6,
        rms_norm_eps=1e-6,
        max_positions=40_960,
        tie_embeddings=False,
        qk_norm=True,
        family="qwen3",
    ),
    # mistralai/Mistral-Small-24B-Base-2501, which Magistral Small starts from
    "mistral-small-24b": Architecture(
        vocab_size=131_072,
        hidden_size=5120,
        intermediate_size=32_768,
        num_layers=40,
        num_heads=32,
        num_kv_heads=8,
        head_dim=128,
        rope_theta=1e8,
        max_positions=32_768,
        tie_embeddings=False,
        family="mistral",
    ),
    # allenai/Olmo-3-1025-7B has these sizes, but norms after each block and a window of
    # 4,096 in three layers of four. The decoder computes neither: this row is for plans
    # (every layer attends to everything), not for loading that model.
    "olmo3-7b": Architecture(
        vocab_size=100_278,
        hidden_size=4096,
        intermediate_size=11_008,
        num_layers=32,
        num_heads=32,
        num_kv_heads=32,
        head_dim=128,
        rope_theta=5e5,
        rms_norm_eps=1e-6,
        max_positions=65_536,
        tie_embeddings=False,
        qk_norm=True,
        family="qwen3",
    ),
}
