"""Every family against transformers: what it saves we load, what we save it loads."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from flax import nnx

from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.weights import load_decoder, parameters_of, save_decoder
from tests.models import small_models

# Float32 programs that add in another order: logits of order 1 agreed to 3e-6.
TOLERANCE = 1e-5
PROMPT_LENGTHS, SLOTS = (11, 3, 7), 11
GENERATIONS, TOKENS = 2, 6

families = pytest.mark.parametrize("family", small_models.CONFIGS)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """family -> a directory that transformers wrote."""

    def save(family: str):
        directory = tmp_path_factory.getbasetemp() / f"hf-{family}"
        if not directory.exists():
            small_models.model(family).save_pretrained(directory)
        return directory

    return save


def rows() -> tuple[list[np.ndarray], np.ndarray]:
    """Prompts of unequal length, and completions of each."""
    rng = np.random.default_rng(3)
    prompts = [rng.integers(0, 97, size) for size in PROMPT_LENGTHS]
    return prompts, rng.integers(0, 97, (len(prompts), GENERATIONS, TOKENS))


@nnx.jit
def run(decoder, tokens, lengths, completions):
    """Logits of prompts, and of completions in each of the ways to read them."""
    hidden, prompts = decoder.prefill(tokens, lengths)
    _, together, _ = decoder.forward(tokens, lengths, completions)
    read, _ = decoder.read(completions, prompts)
    cache = decoder.empty_cache(prompts, GENERATIONS, TOKENS)

    def step(cache, time):
        hidden, cache = decoder.decode(completions[:, :, time], time, prompts, cache)
        return cache, hidden

    _, decoded = jax.lax.scan(step, cache, jnp.arange(TOKENS))
    head = decoder.head_weight.T
    decoded = jnp.moveaxis(decoded, 0, 2)
    ways = {"forward": together, "read": read, "decode": decoded}
    return hidden @ head, {name: states @ head for name, states in ways.items()}


def padded_prompts() -> tuple[jax.Array, jax.Array]:
    padded = [np.pad(p, (SLOTS - len(p), 0), constant_values=5) for p in rows()[0]]
    return jnp.asarray(np.stack(padded)), jnp.asarray(PROMPT_LENGTHS)


def check_logits(decoder: Decoder, made, tolerance: float) -> None:
    """Left-padded ragged prompts of ours, against one row at a time of theirs."""
    prompts, completions = rows()
    prefilled, ways = run(decoder, *padded_prompts(), jnp.asarray(completions))
    for i, prompt in enumerate(prompts):
        expected = small_models.logits(made, prompt)
        ours = prefilled[i, SLOTS - len(prompt) :]
        np.testing.assert_allclose(ours, expected, rtol=0, atol=tolerance)
        for g in range(GENERATIONS):
            row = np.concatenate([prompt, completions[i, g]])
            expected = small_models.logits(made, row)[len(prompt) :]
            for name, ours in ways.items():
                np.testing.assert_allclose(
                    ours[i, g], expected, rtol=0, atol=tolerance, err_msg=name
                )


@families
def test_logits_equal_those_of_transformers(family, saved):
    made = small_models.model(family)
    expected = small_models.logits(made, rows()[0][0])
    assert expected.std() > 0.3  # not a comparison of nothings
    check_logits(load_decoder(saved(family)), made, TOLERANCE)


@families
def test_transformers_loads_what_we_save(family, saved, tmp_path):
    decoder = load_decoder(saved(family))
    save_decoder(decoder, tmp_path / "ours", source=saved(family))
    theirs, report = transformers.AutoModelForCausalLM.from_pretrained(
        tmp_path / "ours",
        dtype=torch.float32,
        attn_implementation="eager",
        output_loading_info=True,
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys"))
    made = small_models.model(family)
    for prompt in rows()[0]:
        # The same weights in the same program: not one bit differs.
        np.testing.assert_array_equal(
            small_models.logits(theirs, prompt), small_models.logits(made, prompt)
        )
    assert theirs.generation_config.eos_token_id == 2
    assert type(theirs) is type(made)


@families
def test_what_we_save_we_load(family, saved, tmp_path):
    decoder = load_decoder(saved(family))
    save_decoder(decoder, tmp_path / "ours")
    again = load_decoder(tmp_path / "ours")
    assert again.architecture == decoder.architecture
    ours = parameters_of(again)
    for name, expected in parameters_of(decoder).items():
        np.testing.assert_array_equal(ours[name], expected, name)


@families
def test_older_spelling_of_rope(family, saved, tmp_path):
    """transformers 4 wrote rope_theta and rope_scaling at the top of config.json."""
    config = json.loads((saved(family) / "config.json").read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope["rope_type"] == "default" else rope
    config["torch_dtype"] = config.pop("dtype")
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "model.safetensors").symlink_to(saved(family) / "model.safetensors")
    now = load_decoder(saved(family)).architecture
    assert load_decoder(tmp_path).architecture == now


@pytest.mark.parametrize("family", ["smollm", "qwen2_untied", "qwen3"])
def test_bfloat16_directory(family, saved, tmp_path):
    """A bfloat16 file read as float32 is transformers' float32 run of those weights."""
    stored = transformers.AutoModelForCausalLM.from_pretrained(
        saved(family), dtype=torch.bfloat16, attn_implementation="eager"
    )
    stored.save_pretrained(tmp_path)
    check_logits(load_decoder(tmp_path), stored.float(), TOLERANCE)


@pytest.mark.parametrize("family", ["smollm", "qwen2_untied", "qwen3"])
def test_bfloat16_computation(family, saved):
    """In bfloat16 we are as far from the float32 logits as transformers is."""
    exact = small_models.model(family)
    theirs = transformers.AutoModelForCausalLM.from_pretrained(
        saved(family), dtype=torch.bfloat16, attn_implementation="eager"
    )
    decoder = load_decoder(saved(family), dtype=jnp.bfloat16)
    hidden, _ = nnx.jit(Decoder.prefill)(decoder, *padded_prompts())
    assert hidden.dtype == jnp.bfloat16
    prefilled = jnp.matmul(
        hidden, decoder.head_weight.T, preferred_element_type=jnp.float32
    )
    squares: dict[str, list[float]] = {"ours": [], "theirs": []}
    for i, prompt in enumerate(rows()[0]):
        expected = small_models.logits(exact, prompt)
        both = {
            "ours": prefilled[i, SLOTS - len(prompt) :],
            "theirs": small_models.logits(theirs, prompt),
        }
        for who, values in both.items():
            squares[who].append(float(np.square(values - expected).mean()))
    ours, others = (np.sqrt(np.mean(squares[who])) for who in ("ours", "theirs"))
    # bfloat16 has 8 bits: rounding alone makes some 1e-2 of logits of order 1.
    assert 1e-3 < ours < 1.25 * others
