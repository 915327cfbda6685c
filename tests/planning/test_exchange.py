"""What devices send, beside what libtpu compiled."""

import dataclasses

import pytest

from rlvr_jax.planning.chips import parse_topology
from rlvr_jax.planning.exchange import Sent
from rlvr_jax.planning.pod_plan import GIB, plan_pod
from tests.planning.test_pod_plan import FSDP, plan, pod

SIX_LAYERS = {
    "mesh__shape": (4, 8, 8),
    "batch__micro_batch_size": 64,
    "rollout__max_completion_tokens": 4352,
}
"""Of Qwen2.5-32B on v6e:16x16; compiled with libtpu 0.0.52."""


def by_kind(sent: list[Sent]) -> dict[str, float]:
    return {each.kind: each.results / GIB for each in sent}


@pytest.fixture(scope="module")
def six():
    topology = parse_topology("v6e:16x16")
    return plan_pod(pod(**SIX_LAYERS), topology, layers=6, compile_programs=False)


def test_prompts_as_compiled(six):
    """Of 64 prompts libtpu's program gathers 0.6813 GiB and sums 0.5078, of which
    0.0391 are looked-up embeddings; a step reads 512 prompts."""
    found = by_kind(six.sent["prefill"])
    assert found["all-gather"] == pytest.approx(8 * 0.6813, rel=0.005)
    assert found["all-reduce"] == pytest.approx(8 * (0.5078 - 0.0391), rel=0.005)


def test_decoding_as_compiled(six):
    """Prompts and completions together: 22,599 GiB gathered and 143.3 summed, of which
    10.9 are looked-up embeddings of 32 rows in 8 x 4,352 steps, and of prompts."""
    prefill, decode = by_kind(six.sent["prefill"]), by_kind(six.sent["decode"])
    gathered = prefill["all-gather"] + decode["all-gather"]
    assert gathered == pytest.approx(22_599, rel=0.06)
    summed = prefill["all-reduce"] + decode["all-reduce"]
    assert summed == pytest.approx(143.3 - 10.9, rel=0.01)


def test_updates_by_hand():
    """A micro-batch of 1 prompt x 16 over 16 row devices: one row and its prompt. Two
    sums of a layer forward, two backward, one made again, two for the old log-probs."""
    found = plan()
    micros = 512
    tokens = 20_480 + 2048
    sums = micros * 64 * 7 * tokens * 5120 * 2
    update = {each.kind: each for each in found.sent["update"]}
    assert update["all-reduce"] == Sent("all-reduce", sums, parts=4)
    numbers = found.parts["train"]["parameters"] / 4
    scattered = Sent("reduce-scatter", micros * 4 * numbers, parts=16)
    assert update["reduce-scatter"] == scattered
    # A part of 32.76e9 numbers in bfloat16, without embedding, head and last norm.
    layers = numbers - 2 * 152_064 * 5120 / 64
    gathered = update["all-gather"].results
    assert gathered == pytest.approx(micros * 4 * 2 * 16 * layers, rel=1e-4)


def test_axes_of_one_device_send_nothing():
    """By fsdp alone: no sums of activations, nor of gradients over "data"."""
    kinds = {name: set(by_kind(sent)) for name, sent in plan(**FSDP).sent.items()}
    assert kinds == {
        "prefill": {"all-gather"},
        "decode": {"all-gather"},
        "update": {"all-gather", "reduce-scatter"},
    }


def test_slots_read_a_prompt_at_a_time():
    """Every device reads each of 512 prompts, some at a time: 2,048 tokens, 64 layers
    of two sums, 5,120 numbers in bfloat16."""
    found = plan(rollout__engine="slots", rollout__slots=64)
    rounds = found.sampled.prefills
    assert found.sampled.at_once * rounds == 512
    (summed,) = (e for e in found.sent["prefill"] if e.kind == "all-reduce")
    assert summed.results == 512 * 2048 * 64 * 2 * 5120 * 2


def test_adapters_are_summed_over_all_row_devices():
    """They are whole on every device; the weights have no gradient."""
    found = plan(model__lora_rank=16)
    gradients = [sent for sent in found.sent["update"] if sent.parts == 16]
    assert {sent.kind for sent in gradients} == {"all-gather", "all-reduce"}
    adapters = next(sent for sent in gradients if sent.kind == "all-reduce")
    assert adapters.results == 512 * 4 * found.work.adapters


@pytest.mark.parametrize(
    ("kind", "received"),
    [("all-gather", 75.0), ("reduce-scatter", 300.0), ("all-reduce", 150.0)],
)
def test_bytes_in_a_ring_of_four(kind, received):
    """Of a result of 100: three others send their quarter; three send all of it, to be
    added up; or a quarter is added up and the sums are gathered."""
    assert Sent(kind, 100.0, 4).received == received
    assert dataclasses.replace(Sent(kind, 100.0, 4), parts=1).received == 0
