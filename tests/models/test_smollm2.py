"""A real model: logits, log-probs and greedy text as transformers computes them.

Expected numbers: tests/data/smollm2/SOURCES.md. They are float32 and themselves up to
4.7e-5 from a float64 computation of the same weights (logits up to 25); this decoder
was up to 8.8e-5 from it. TOLERANCE is the sum, rounded up.
"""

import dataclasses
import hashlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rlvr_jax.models.decoder import Decoder
from rlvr_jax.models.weights import load_decoder, parameters_of
from tests import smollm2

TOLERANCE = 1.5e-4
PROMPTS, NEW_TOKENS = 8, 32
# Below this gap of the two largest logits, two correct programs may choose either.
CLEAR_MARGIN = 0.02


@pytest.fixture(scope="module")
def decoder() -> Decoder:
    return load_decoder(smollm2.directory())


@pytest.fixture(scope="module")
def prompts() -> tuple[jax.Array, jax.Array]:
    """All eight, 4 to 44 tokens long, padded on the left."""
    rows = [smollm2.reference()[f"prompt_ids_{i}"] for i in range(PROMPTS)]
    width = max(map(len, rows))
    # Padded with a token that means something: only lengths may say what is padding.
    tokens = np.stack([np.pad(r, (width - len(r), 0), constant_values=1) for r in rows])
    return jnp.asarray(tokens), jnp.array([len(r) for r in rows])


@pytest.fixture(scope="module")
def outputs(decoder, prompts) -> dict[str, Any]:
    """Logits over the prompts and over the reference's own continuations."""
    tokens, lengths = prompts
    answers = jnp.stack(
        [smollm2.reference()[f"greedy_ids_{i}"] for i in range(PROMPTS)]
    )

    @nnx.jit
    def run(decoder, tokens, lengths, answers):
        hidden, _ = decoder.prefill(tokens, lengths)
        last, after, _ = decoder.forward(tokens, lengths, answers[:, None])
        states = jnp.concatenate([last[:, None], after[:, 0, :-1]], axis=1)
        return hidden @ decoder.head_weight.T, states @ decoder.head_weight.T

    prompt_logits, answer_logits = run(decoder, tokens, lengths, answers)
    return {
        "prompt": np.asarray(prompt_logits, np.float64),
        "answer": np.asarray(answer_logits, np.float64),
    }


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


@pytest.mark.parametrize("i", range(PROMPTS))
def test_logits_after_the_prompt(outputs, i):
    reference = smollm2.reference()
    logits = outputs["prompt"][i, -1]
    np.testing.assert_allclose(
        logits[reference[f"logit_ids_{i}"]],
        reference[f"logits_{i}"],
        rtol=0,
        atol=TOLERANCE,
    )
    total = logits.max() + np.log(np.exp(logits - logits.max()).sum())
    assert total == pytest.approx(reference[f"logsumexp_{i}"], abs=TOLERANCE)


@pytest.mark.parametrize("i", range(PROMPTS))
def test_logprobs_of_the_prompt(outputs, prompts, i):
    tokens, lengths = np.asarray(prompts[0])[i], int(prompts[1][i])
    own = slice(len(tokens) - lengths, None)
    logprobs = log_softmax(outputs["prompt"][i, own])[:-1]
    chosen = np.take_along_axis(logprobs, tokens[own][1:, None], axis=-1)[:, 0]
    np.testing.assert_allclose(
        chosen, smollm2.reference()[f"prompt_logprobs_{i}"], rtol=0, atol=TOLERANCE
    )


@pytest.mark.parametrize("i", range(PROMPTS))
def test_logprobs_entropies_and_margins_of_the_answer(outputs, i):
    reference = smollm2.reference()
    logits = outputs["answer"][i]
    logprobs = log_softmax(logits)
    ids = reference[f"greedy_ids_{i}"][:, None]
    top = np.sort(logits, axis=-1)[:, -2:]
    ours = {
        "logprobs": np.take_along_axis(logprobs, ids, axis=-1)[:, 0],
        "entropy": -(np.exp(logprobs) * logprobs).sum(axis=-1),
        "margin": top[:, 1] - top[:, 0],
    }
    for name, values in ours.items():
        np.testing.assert_allclose(
            values,
            reference[f"greedy_{name}_{i}"],
            rtol=0,
            atol=2 * TOLERANCE,  # a difference of two logits
            err_msg=name,
        )


def test_greedy_continuations(decoder, prompts):
    """Sampled token by token from the cache; ids count while the choice is clear."""
    tokens, lengths = prompts

    @nnx.jit
    def continue_greedily(decoder, tokens, lengths):
        hidden, prompt_cache = decoder.prefill(tokens, lengths)
        cache = decoder.empty_cache(prompt_cache, 1, NEW_TOKENS)

        def choose(hidden):
            return jnp.argmax(hidden @ decoder.head_weight.T, axis=-1)

        def step(carry, time):
            token, cache = carry
            hidden, cache = decoder.decode(token, time, prompt_cache, cache)
            return (choose(hidden), cache), token

        first = choose(hidden[:, -1:])
        return jax.lax.scan(step, (first, cache), jnp.arange(NEW_TOKENS))[1]

    ours = np.asarray(continue_greedily(decoder, tokens, lengths))[:, :, 0].T
    compared = 0
    for i in range(PROMPTS):
        clear = smollm2.reference()[f"greedy_margin_{i}"] > CLEAR_MARGIN
        until = NEW_TOKENS if clear.all() else int(np.argmin(clear))
        expected = smollm2.reference()[f"greedy_ids_{i}"]
        np.testing.assert_array_equal(ours[i, :until], expected[:until], f"prompt {i}")
        compared += until
    # Two of the eight have an unclear choice, late: nearly all tokens are compared.
    assert compared >= 0.8 * PROMPTS * NEW_TOKENS


@pytest.mark.parametrize("blocks", [0, 1, 13, 30])
def test_states_after_some_blocks(decoder, blocks):
    """Says where to look when logits differ: the state at the end of prompt 4."""
    reference = smollm2.reference()["hidden_4"]
    arch = dataclasses.replace(decoder.architecture, num_layers=blocks)
    part = nnx.merge(*nnx.split(decoder))
    part.architecture = arch
    for name, param in part.layers.items():
        part.layers[name] = nnx.Param(param[...][:blocks])
    ids = smollm2.reference()["prompt_ids_4"][None]
    hidden, _ = part.prefill(jnp.asarray(ids), jnp.array([ids.shape[1]]))
    expected = reference[blocks]
    if blocks < 30:  # ours come out normed; the reference's only at the end
        scale = np.asarray(decoder.final_norm[...])
        mean_square = np.mean(expected.astype(np.float64) ** 2)
        expected = expected / np.sqrt(mean_square + arch.rms_norm_eps) * scale
    np.testing.assert_allclose(hidden[0, -1], expected, rtol=0, atol=1e-4)


def test_the_directory_holds_the_reference_weights():
    """Byte for byte the file that the reference was computed from."""
    with (smollm2.directory() / "model.safetensors").open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    assert found == smollm2.reference_facts()["model_safetensors_sha256"]


@pytest.fixture(scope="module")
def from_gguf() -> Decoder:
    return load_decoder(smollm2.gguf_file())


def test_gguf_equals_the_directory(decoder, from_gguf):
    """The reference's weights are the dequantised ones rounded to float16, no less."""
    assert from_gguf.architecture == decoder.architecture
    exact, rounded = parameters_of(from_gguf), parameters_of(decoder)
    assert len(exact) == len(rounded) == 11  # nine stacks, embedding, final norm
    for name, expected in rounded.items():
        np.testing.assert_array_equal(exact[name].astype(jnp.float16), expected, name)


def test_gguf_unrounded_is_near_the_reference(from_gguf):
    """Without the rounding to float16, logits move by 0.024 at most (measured here)."""
    ids = smollm2.reference()["prompt_ids_7"]
    hidden, _ = from_gguf.prefill(jnp.asarray(ids)[None], jnp.array([len(ids)]))
    logits = np.asarray(hidden[0, -1] @ from_gguf.head_weight.T)
    expected = smollm2.reference()["logits_7"]
    difference = np.abs(logits[smollm2.reference()["logit_ids_7"]] - expected).max()
    assert 10 * TOLERANCE < difference < 0.03


@pytest.mark.slow
def test_bfloat16_moves_logprobs_as_little_as_torch_does():
    """Over 461 tokens, |log p - reference| is 0.031 on average here; torch's own
    bfloat16 run of the same model is 0.040 away (largest: 0.42 and 0.34)."""
    decoder = load_decoder(smollm2.directory(), dtype=jnp.bfloat16)
    reference = smollm2.reference()

    @nnx.jit
    def run(decoder, tokens, lengths):
        hidden, _ = decoder.prefill(tokens, lengths)
        head = decoder.head_weight.T
        return jnp.matmul(hidden, head, preferred_element_type=jnp.float32)

    rows = [
        np.concatenate([reference[f"prompt_ids_{i}"], reference[f"greedy_ids_{i}"]])
        for i in range(PROMPTS)
    ]
    width = max(map(len, rows))
    tokens = np.stack([np.pad(row, (width - len(row), 0)) for row in rows])
    lengths = jnp.array([len(row) for row in rows])
    logits = run(decoder, jnp.asarray(tokens), lengths)
    assert logits.dtype == jnp.float32
    differences = []
    for i, row in enumerate(rows):
        logprobs = log_softmax(np.asarray(logits[i, width - len(row) : -1]))
        chosen = np.take_along_axis(logprobs, row[1:, None], axis=-1)[:, 0]
        expected = [reference[f"{n}_logprobs_{i}"] for n in ("prompt", "greedy")]
        differences.append(np.abs(chosen - np.concatenate(expected)))
    assert 0.01 < np.concatenate(differences).mean() < 0.04
