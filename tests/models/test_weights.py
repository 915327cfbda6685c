"""Loading and saving: types, several files, damaged files."""

import json
import re

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
import safetensors.numpy
from flax import nnx

from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.hf_config import config_from_architecture
from rlvr_jax.models.weights import (
    generation_settings,
    load_decoder,
    parameters_of,
    save_decoder,
)

ARCH = Architecture(
    vocab_size=32,
    hidden_size=16,
    intermediate_size=24,
    num_layers=3,
    num_heads=4,
    num_kv_heads=2,
    head_dim=4,
    tie_embeddings=False,
)


@pytest.fixture
def decoder() -> Decoder:
    return Decoder(ARCH, rngs=nnx.Rngs(0))


@pytest.fixture
def directory(decoder, tmp_path):
    save_decoder(decoder, tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def rewrite(directory):
    """Changes the tensors of the saved file."""

    def change(edit) -> None:
        path = directory / "model.safetensors"
        tensors = safetensors.numpy.load_file(path)
        edit(tensors)
        safetensors.numpy.save_file(tensors, path)

    return change


def assert_equal(ours: Decoder, expected: Decoder) -> None:
    assert ours.architecture == expected.architecture
    found = parameters_of(ours)
    for name, values in parameters_of(expected).items():
        np.testing.assert_array_equal(found[name], values, name)
        assert found[name].dtype == values.dtype


def error_of(path) -> str:
    """What loading says; `path`, or a file in it, is always named."""
    with pytest.raises(ValueError, match=re.escape(str(path))) as caught:
        load_decoder(path)
    return str(caught.value)


def test_layer_weights_are_stored_transposed(decoder, directory):
    """By hand: row o of q_proj holds what output o takes from each input."""
    stored = safetensors.numpy.load_file(directory / "model.safetensors")
    for layer in range(3):
        np.testing.assert_array_equal(
            stored[f"model.layers.{layer}.self_attn.q_proj.weight"].T,
            decoder.layers["query"][...][layer],
        )
    np.testing.assert_array_equal(
        stored["model.embed_tokens.weight"], decoder.embedding[...]
    )
    assert len(stored) == 3 + 3 * 9


def test_a_loaded_decoder_is_like_a_drawn_one(decoder, directory):
    """Same structure, so that one compiled program serves both."""
    loaded = load_decoder(directory)
    assert nnx.split(loaded)[0] == nnx.split(decoder)[0]
    assert_equal(loaded, decoder)


@pytest.mark.parametrize("stored", [np.float16, ml_dtypes.bfloat16, np.float64])
def test_other_stored_types(decoder, directory, rewrite, stored):
    rewrite(lambda t: t.update({name: v.astype(stored) for name, v in t.items()}))
    found = parameters_of(load_decoder(directory))
    for name, values in parameters_of(decoder).items():
        expected = np.asarray(values).astype(stored).astype(np.float32)
        np.testing.assert_array_equal(found[name], expected, name)
    half = parameters_of(load_decoder(directory, dtype=jnp.bfloat16))
    assert {v.dtype for v in half.values()} == {jnp.dtype(jnp.bfloat16)}


def test_bfloat16_is_saved_as_it_is(decoder, tmp_path):
    save_decoder(decoder, tmp_path / "wide")
    half = load_decoder(tmp_path / "wide", dtype=jnp.bfloat16)
    save_decoder(half, tmp_path / "half")
    assert_equal(load_decoder(tmp_path / "half", dtype=jnp.bfloat16), half)
    config = json.loads((tmp_path / "half" / "config.json").read_text())
    assert config["torch_dtype"] == "bfloat16"
    stored = safetensors.numpy.load_file(tmp_path / "half" / "model.safetensors")
    assert {v.dtype for v in stored.values()} == {np.dtype(ml_dtypes.bfloat16)}


def test_several_files_with_an_index(decoder, tmp_path):
    save_decoder(decoder, tmp_path, max_shard_bytes=4000)
    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    files = {p.name: p for p in tmp_path.glob("*.safetensors")}
    assert len(files) > 3
    assert set(index["weight_map"].values()) == set(files)
    assert index["metadata"]["total_size"] == 4 * ARCH.num_parameters
    for name, path in files.items():
        held = safetensors.numpy.load_file(path)
        assert {index["weight_map"][tensor] for tensor in held} == {name}
        # One tensor may be larger than a file should be; two together never are.
        assert len(held) == 1 or sum(v.nbytes for v in held.values()) <= 4000
    assert_equal(load_decoder(tmp_path), decoder)
    save_decoder(decoder, tmp_path)  # replaced by a single file
    assert [p.name for p in tmp_path.glob("model*")] == ["model.safetensors"]
    assert_equal(load_decoder(tmp_path), decoder)


def test_generation_settings_are_carried_over(decoder, directory, tmp_path):
    settings = {"eos_token_id": [2, 7], "pad_token_id": 0, "top_p": 0.9}
    (directory / "generation_config.json").write_text(json.dumps(settings))
    save_decoder(decoder, tmp_path / "trained", source=directory)
    assert generation_settings(tmp_path / "trained") == settings
    config = json.loads((tmp_path / "trained" / "config.json").read_text())
    assert (config["eos_token_id"], config["pad_token_id"]) == ([2, 7], 0)
    assert "top_p" not in config


def test_a_tokenizer_saved_before_keeps_its_end_tokens(decoder, tmp_path):
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [4, 5]}')
    save_decoder(decoder, tmp_path)
    assert generation_settings(tmp_path) == {"eos_token_id": [4, 5]}


def test_special_tokens_of_config_when_there_is_no_other_file(directory):
    (directory / "generation_config.json").unlink()
    config = json.loads((directory / "config.json").read_text())
    config |= {"eos_token_id": 5, "bos_token_id": None}
    (directory / "config.json").write_text(json.dumps(config))
    assert generation_settings(directory) == {"eos_token_id": 5}


def test_missing_tensor(directory, rewrite):
    rewrite(lambda t: t.pop("model.layers.1.mlp.up_proj.weight"))
    assert "model.layers.1.mlp.up_proj.weight is missing" in error_of(directory)


def test_missing_head_is_not_taken_from_the_embedding(directory, rewrite):
    rewrite(lambda t: t.pop("lm_head.weight"))
    assert "lm_head.weight is missing" in error_of(directory)


def test_extra_tensor(directory, rewrite):
    name = "model.layers.0.self_attn.q_proj.bias"
    rewrite(lambda t: t.update({name: np.zeros(16, np.float32)}))
    assert f"{name} is not part of this architecture" in error_of(directory)


def test_misshapen_tensor(directory, rewrite):
    name = "model.layers.2.self_attn.k_proj.weight"
    rewrite(lambda t: t.update({name: t[name].T.copy()}))
    message = f"{name} has shape [16, 8], expected [8, 16]"
    assert message in error_of(directory)


def test_many_problems_are_counted(directory):
    config = config_from_architecture(ARCH, dtype="float32")
    config["num_hidden_layers"] = 5
    (directory / "config.json").write_text(json.dumps(config))
    assert "(and 15 more)" in error_of(directory)  # 2 layers of 9 tensors, 3 named


def test_integers_are_no_weights(directory, rewrite):
    rewrite(lambda t: t.update({"model.norm.weight": np.ones(16, np.int8)}))
    assert "model.norm.weight is stored as I8" in error_of(directory)


def test_stored_rotary_frequencies_are_left_alone(decoder, directory, rewrite):
    name = "model.layers.0.self_attn.rotary_emb.inv_freq"
    rewrite(lambda t: t.update({name: np.zeros(2, np.float32)}))
    assert_equal(load_decoder(directory), decoder)


def test_tied_head_may_be_stored_twice(directory, rewrite):
    config = json.loads((directory / "config.json").read_text())
    config["tie_word_embeddings"] = True
    (directory / "config.json").write_text(json.dumps(config))
    assert "lm_head.weight differs from model.embed_tokens" in error_of(directory)
    rewrite(lambda t: t.update({"lm_head.weight": t["model.embed_tokens.weight"]}))
    assert load_decoder(directory).architecture.tie_embeddings


@pytest.mark.parametrize("kept", [0, 6, 400, -1])
def test_truncated_file(directory, kept):
    path = directory / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    assert "model.safetensors cannot be read" in error_of(directory)


def test_file_of_the_index_is_missing(decoder, tmp_path):
    save_decoder(decoder, tmp_path, max_shard_bytes=4000)
    gone = sorted(tmp_path.glob("*.safetensors"))[1]
    gone.unlink()
    assert f"{gone.name} does not exist" in error_of(tmp_path)


def test_index_places_a_tensor_elsewhere(decoder, tmp_path):
    save_decoder(decoder, tmp_path, max_shard_bytes=4000)
    path = tmp_path / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    places = index["weight_map"]
    places["model.norm.weight"] = next(
        file for file in places.values() if file != places["model.norm.weight"]
    )
    path.write_text(json.dumps(index))
    assert "lacks model.norm.weight" in error_of(tmp_path)


def test_directory_without_weights(directory):
    (directory / "model.safetensors").unlink()
    (directory / "pytorch_model.bin").touch()
    error = error_of(directory)
    assert "neither model.safetensors nor" in error
    assert "pytorch_model.bin is a pickle" in error


@pytest.mark.parametrize("path", ["nowhere", "nowhere.gguf"])
def test_path_that_does_not_exist(tmp_path, path):
    error_of(tmp_path / path)
