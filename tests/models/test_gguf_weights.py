"""GGUF files: written here as llama.cpp's converter writes them, read back.

What is expected of the layout follows convert_hf_to_gguf.py of
https://github.com/ggml-org/llama.cpp (names, metadata, permuted Llama heads, Llama 3
divisors); the weights are those of small random models.
"""

import contextlib
import math
import re

import gguf
import numpy as np
import pytest
import torch

from rlvr_jax.models.architecture import RopeScaling
from rlvr_jax.models.gguf_weights import GgufFile
from rlvr_jax.models.hf_weights import SafetensorsDirectory
from rlvr_jax.models.weights import generation_settings, load_decoder, parameters_of
from tests.models import small_models

_BLOCK = {
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_TOP = {
    "model.embed_tokens.weight": "token_embd.weight",
    "model.norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}


def interleave_halves(values: np.ndarray, heads: int) -> np.ndarray:
    """llama.cpp's order of the rows of a head: 0, K/2, 1, K/2 + 1, ..."""
    half = len(values) // heads // 2
    order = [
        head * 2 * half + side * half + i
        for head in range(heads)
        for i in range(half)
        for side in (0, 1)
    ]
    return values[order]


def gguf_name(name: str) -> str:
    if name in _TOP:
        return _TOP[name]
    layer, inner = re.fullmatch(r"model\.layers\.(\d+)\.(.*)", name).groups()
    stem, kind = inner.rsplit(".", 1)
    return f"blk.{layer}.{_BLOCK[stem]}.{kind}"


def write_gguf(path, family: str, *, change=lambda writer: None) -> None:
    """The small model `family` as a GGUF file of float32 tensors."""
    made = small_models.model(family)
    config = made.config
    arch = {"mistral": "llama"}.get(config.model_type, config.model_type)
    writer = gguf.GGUFWriter(path, arch)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    head_dim = getattr(config, "head_dim", None) or (
        config.hidden_size // config.num_attention_heads
    )
    writer.add_key_length(head_dim)
    writer.add_value_length(head_dim)
    rope = config.rope_parameters
    writer.add_rope_freq_base(rope["rope_theta"])
    if rope["rope_type"] in ("linear", "yarn"):
        writer.add_rope_scaling_type(gguf.RopeScalingType(rope["rope_type"]))
        writer.add_rope_scaling_factor(rope["factor"])
    if rope["rope_type"] == "yarn":
        writer.add_rope_scaling_orig_ctx_len(rope["original_max_position_embeddings"])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    change(writer)
    for name, tensor in made.state_dict().items():
        if name == "lm_head.weight" and config.tie_word_embeddings:
            continue
        values = tensor.to(torch.float32).numpy()
        if arch == "llama" and "q_proj" in name:
            values = interleave_halves(values, config.num_attention_heads)
        if arch == "llama" and "k_proj" in name:
            values = interleave_halves(values, config.num_key_value_heads)
        writer.add_tensor(gguf_name(name), np.ascontiguousarray(values))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


IN_GGUF = [
    name
    for name in small_models.CONFIGS
    if name != "llama3_scaled" and not name.startswith("qwen3_moe")
]
"""Experts are refused in GGUF files, see the errors below."""


@pytest.mark.parametrize("family", IN_GGUF)
def test_equals_the_hugging_face_directory(family, tmp_path):
    write_gguf(tmp_path / "m.gguf", family)
    small_models.model(family).save_pretrained(tmp_path / "hf")
    ours, expected = load_decoder(tmp_path / "m.gguf"), load_decoder(tmp_path / "hf")
    found = parameters_of(ours)
    for name, values in parameters_of(expected).items():
        np.testing.assert_array_equal(found[name], values, name)
    # GGUF files of Mistral are of the llama kind; everything else is told apart.
    theirs = expected.architecture
    if family != "mistral":
        assert ours.architecture == theirs


def llama3_divisors(factor: float, head_dim: int, theta: float) -> np.ndarray:
    """rope_freqs.weight as the converter computes it."""
    divisors = []
    for i in range(0, head_dim, 2):
        wavelength = 2 * math.pi * theta ** (i / head_dim)
        if wavelength < 8192 / 4.0:
            divisors.append(1.0)
        elif wavelength > 8192 / 1.0:
            divisors.append(factor)
        else:
            smooth = (8192 / wavelength - 1.0) / (4.0 - 1.0)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, np.float32)


def test_llama3_scaling_is_recognised_by_its_divisors(tmp_path):
    divisors = llama3_divisors(8.0, 12, 10_000.0)
    assert len(set(divisors.tolist())) == 3  # kept, between, divided
    write_gguf(
        tmp_path / "m.gguf",
        "llama",
        change=lambda writer: writer.add_tensor("rope_freqs.weight", divisors),
    )
    assert load_decoder(tmp_path / "m.gguf").architecture.rope_scaling == RopeScaling(
        "llama3",
        8.0,
        original_max_positions=8192,
        low_freq_factor=1.0,
        high_freq_factor=4.0,
    )
    divisors[2] *= 1.1
    write_gguf(
        tmp_path / "other.gguf",
        "llama",
        change=lambda writer: writer.add_tensor("rope_freqs.weight", divisors),
    )
    with pytest.raises(ValueError, match=r"other\.gguf: rope_freqs\.weight does not"):
        load_decoder(tmp_path / "other.gguf")


def test_quantised_values_and_parts(tmp_path):
    """Q8_0 by hand: 32 signed bytes times one float16; any part equals the whole's."""
    values = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    stored = gguf.quants.quantize(values, gguf.GGMLQuantizationType.Q8_0)
    writer = gguf.GGUFWriter(tmp_path / "q.gguf", "llama")
    for key in ("block_count", "context_length", "feed_forward_length"):
        getattr(writer, f"add_{key}")(1)
    writer.add_embedding_length(64)
    writer.add_head_count(2)
    writer.add_key_length(4)
    writer.add_layer_norm_rms_eps(1e-5)
    kind = gguf.GGMLQuantizationType.Q8_0
    writer.add_tensor("blk.0.attn_q.weight", stored, raw_dtype=kind)
    writer.add_tensor("blk.0.attn_v.weight", stored, raw_dtype=kind)
    writer.add_tensor("token_embd.weight", stored, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    blocks = stored.reshape(8, 2, 34)
    scales = np.ascontiguousarray(blocks[..., :2]).view(np.float16).astype(np.float32)
    by_hand = (scales * blocks[..., 2:].view(np.int8)).reshape(8, 64)
    with contextlib.closing(GgufFile(tmp_path / "q.gguf")) as file:
        every = (slice(None), slice(None))
        whole = file.read("blk.0.attn_v.weight", every)
        np.testing.assert_array_equal(whole, by_hand)
        rotated = file.read("blk.0.attn_q.weight", every)
        # Two heads of four rows: halves (0, 2) and (1, 3) stand side by side.
        np.testing.assert_array_equal(rotated, by_hand[[0, 2, 1, 3, 4, 6, 5, 7]])
        part = (slice(1, 6), slice(10, 40))
        for name, all_of_it in (("attn_v", whole), ("attn_q", rotated)):
            found = file.read(f"blk.0.{name}.weight", part)
            np.testing.assert_array_equal(found, all_of_it[part])


def test_special_tokens(tmp_path):
    write_gguf(tmp_path / "m.gguf", "llama")
    assert generation_settings(tmp_path / "m.gguf") == {
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    write_gguf(
        tmp_path / "chat.gguf", "qwen2_tied", change=lambda w: w.add_eot_token_id(9)
    )
    assert generation_settings(tmp_path / "chat.gguf")["eos_token_id"] == [2, 9]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda w: w.add_expert_count(8), "llama.expert_count=8"),
        (lambda w: w.add_sliding_window(4096), "llama.attention.sliding_window=4096"),
        (lambda w: w.add_rope_dimension_count(6), "llama.rope.dimension_count=6"),
        (
            lambda w: w.add_rope_scaling_type(gguf.RopeScalingType.LONGROPE),
            "rope.scaling.type='longrope'",
        ),
    ],
)
def test_refuses_what_would_change_the_logits(tmp_path, change, named):
    write_gguf(tmp_path / "m.gguf", "llama", change=change)
    with pytest.raises(ValueError, match=rf"m\.gguf: .*{re.escape(named)}"):
        load_decoder(tmp_path / "m.gguf")


def test_refuses_other_architectures(tmp_path):
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "gemma3")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    with pytest.raises(ValueError, match=r"m\.gguf: general\.architecture='gemma3'"):
        load_decoder(tmp_path / "m.gguf")


@pytest.mark.parametrize("kept", [0, 3, 300, -5000])
def test_truncated_file(tmp_path, kept):
    path = tmp_path / "m.gguf"
    write_gguf(path, "llama")
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(ValueError, match=r"m\.gguf cannot be read as GGUF"):
        load_decoder(path)


def test_refuses_what_could_not_be_saved(tmp_path):
    """A Llama with biases of queries alone has no config.json."""
    bias = np.zeros(48, np.float32)
    write_gguf(
        tmp_path / "m.gguf",
        "llama",
        change=lambda writer: writer.add_tensor("blk.0.attn_q.bias", bias),
    )
    with pytest.raises(ValueError, match=r"m\.gguf: config\.json .* qkv_bias=True"):
        load_decoder(tmp_path / "m.gguf")


def test_missing_tensor(tmp_path):
    write_gguf(tmp_path / "m.gguf", "llama", change=lambda w: w.add_block_count(4))
    message = r"m\.gguf does not hold.*: blk\.3\.attn_norm\.weight is missing"
    with pytest.raises(ValueError, match=message):
        load_decoder(tmp_path / "m.gguf")


def test_sharded_parts_are_of_the_same_file(tmp_path):
    """The parts that eight devices would ask for, put together again."""
    write_gguf(tmp_path / "m.gguf", "smollm")
    small_models.model("smollm").save_pretrained(tmp_path / "hf")
    name = {"gguf": "blk.1.attn_k.weight", "hf": "model.layers.1.self_attn.k_proj"}
    with (
        contextlib.closing(GgufFile(tmp_path / "m.gguf")) as ours,
        contextlib.closing(SafetensorsDirectory(tmp_path / "hf")) as theirs,
    ):
        for start in range(0, 24, 3):
            part = (slice(start, start + 3), slice(start, start + 9))
            np.testing.assert_array_equal(
                ours.read(name["gguf"], part), theirs.read(name["hf"] + ".weight", part)
            )
