"""Reward models against transformers: what it saves we load, and the other way."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import transformers
from jax.sharding import SingleDeviceSharding
from safetensors.numpy import load_file, save_file

from rlvr_jax.models.parameters import parameter_shapes
from rlvr_jax.models.reward_model import load_reward_model
from rlvr_jax.models.weights import (
    decoder_from,
    load_decoder,
    open_checkpoint,
    parameters_of,
    save_decoder,
)
from tests.models import small_models

FAMILIES = ("llama", "smollm", "qwen2_untied", "qwen3", "qwen3_moe")
families = pytest.mark.parametrize("family", FAMILIES)
# The last is not the id 2, which is padding here: transformers would score the one
# before it.
IDS = np.array([3, 14, 15, 92, 65, 35, 8])
ON_ONE = SingleDeviceSharding(jax.devices()[0])


def placed(architecture):
    return dict.fromkeys(parameter_shapes(architecture), ON_ONE)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """family -> directories of a policy and of a reward model, by transformers."""

    def save(family: str):
        folder = tmp_path_factory.getbasetemp() / f"rm-{family}"
        if not folder.exists():
            small_models.model(family).save_pretrained(folder / "policy")
            small_models.reward_model(family).save_pretrained(folder / "scores")
        return folder / "policy", folder / "scores"

    return save


def architecture_at(path):
    checkpoint = open_checkpoint(path)
    checkpoint.close()
    return checkpoint.architecture


def our_score(model, architecture) -> float:
    untied = dataclasses.replace(architecture, tie_embeddings=True)
    decoder = decoder_from(untied, model.parameters, jnp.float32)
    states, _ = decoder.prefill(jnp.asarray(IDS)[None], jnp.array([len(IDS)]))
    return float(states[0, -1] @ model.score)


@families
def test_scores_equal_those_of_transformers(family, saved):
    """OBJ-04: any reward model of one label of the policy's architecture will do."""
    policy, scores = saved(family)
    architecture = architecture_at(policy)
    model = load_reward_model(scores, architecture=architecture, shardings=placed)
    expected = small_models.score(small_models.reward_model(family), IDS)
    assert abs(expected) > 0.1
    np.testing.assert_allclose(our_score(model, architecture), expected, atol=2e-5)


@families
def test_transformers_loads_what_we_save(family, saved, tmp_path):
    policy, scores = saved(family)
    decoder = load_decoder(policy)
    model = load_reward_model(
        scores, architecture=decoder.architecture, shardings=placed
    )
    save_decoder(decoder, tmp_path, source=policy, score=jnp.asarray(model.score))
    theirs, report = transformers.AutoModelForSequenceClassification.from_pretrained(
        tmp_path,
        dtype=torch.float32,
        attn_implementation="eager",
        output_loading_info=True,
    )
    assert not any(report[kind] for kind in ("missing_keys", "unexpected_keys"))
    made = small_models.reward_model(family)
    assert type(theirs) is type(made)
    assert theirs.config.num_labels == 1
    assert small_models.score(theirs, IDS) == small_models.score(made, IDS)
    again = load_reward_model(
        tmp_path, architecture=decoder.architecture, shardings=placed
    )
    np.testing.assert_array_equal(again.score, model.score)


def test_an_lm_head_that_is_stored_too_is_not_read(saved, tmp_path):
    policy, _ = saved("llama")
    decoder = load_decoder(policy)
    save_decoder(decoder, tmp_path, score=jnp.ones(48))
    assert "head" in parameters_of(decoder)
    path = tmp_path / "model.safetensors"
    held = load_file(path)
    assert "lm_head.weight" not in held
    save_file(held | {"lm_head.weight": np.zeros((97, 48), np.float32)}, path)
    model = load_reward_model(
        tmp_path, architecture=decoder.architecture, shardings=placed
    )
    assert "head" not in model.parameters


def test_what_is_no_reward_model_of_the_policy_is_named(saved, tmp_path):
    policy, scores = saved("qwen2_untied")
    architecture = architecture_at(policy)
    with pytest.raises(ValueError, match=r"needs score\.weight .* has no such tensor"):
        load_reward_model(policy, architecture=architecture, shardings=placed)
    wider = dataclasses.replace(architecture, num_layers=4, rope_theta=1e4)
    with pytest.raises(ValueError, match="num_layers 3 against 4, rope_theta 1000000"):
        load_reward_model(scores, architecture=wider, shardings=placed)
    longer = dataclasses.replace(architecture, max_positions=9, tie_embeddings=True)
    load_reward_model(scores, architecture=longer, shardings=placed)
    with pytest.raises(ValueError, match="does not exist"):
        load_reward_model(tmp_path / "no", architecture=architecture, shardings=placed)
    config = small_models.reward_model("qwen2_untied").config
    two = transformers.Qwen2ForSequenceClassification(
        type(config).from_dict(config.to_dict() | {"id2label": {0: "a", 1: "b"}})
    )
    two.save_pretrained(tmp_path / "two")
    with pytest.raises(ValueError, match=r"one label.*has shape \[2, 48\]"):
        load_reward_model(tmp_path / "two", architecture=architecture, shardings=placed)
