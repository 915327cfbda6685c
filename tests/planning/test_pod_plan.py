"""Plans by the estimate, and programs compiled for devices that are there."""

import dataclasses

import jax
import pytest

from rlvr_jax.config import MeshConfig
from rlvr_jax.mesh.mesh import make_mesh, rearranged
from rlvr_jax.planning.abstract_run import abstract_run
from rlvr_jax.planning.advice import advice
from rlvr_jax.planning.chips import CHIPS, Topology, parse_topology
from rlvr_jax.planning.collectives import Collectives
from rlvr_jax.planning.pod_plan import (
    GIB,
    as_json,
    has_libtpu,
    plan_pod,
    planned_architecture,
)
from rlvr_jax.planning.programs import Compiled, compiled, topology_meshes
from rlvr_jax.planning.search import search
from rlvr_jax.planning.show import pod_sections, sharding_lines
from rlvr_jax.planning.timing import chip_hours, dollars_per_step
from rlvr_jax.validate import ConfigError
from tests.planning import small


def pod(**changes):
    """Qwen2.5-32B with DAPO's batch on 64 chips, by the estimate."""
    config = small.recipe()
    config.model = dataclasses.replace(
        config.model, path="none", architecture="qwen2.5-32b", dtype="bfloat16"
    )
    config.mesh = MeshConfig((1, 16, 4))
    config.mesh.rollout_shape = changes.pop("sampling", ())
    config.data.max_prompt_tokens = 2048
    config.rollout.num_generations = 16
    config.rollout.max_completion_tokens = 20_480
    config.rollout.prompts_at_once = 64
    config.batch.prompts_per_step = 512
    config.batch.minibatches_per_step = 16
    config.batch.micro_batch_size = 16
    for name, value in changes.items():
        section, _, field = name.partition("__")
        setattr(getattr(config, section), field, value)
    return config


FSDP = {
    "mesh__shape": (1, 64, 1),
    "batch__minibatches_per_step": 8,
    "batch__micro_batch_size": 64 * 16,
}
"""A prompt for each of the 64 devices of one axis."""
EMBEDDING_AND_HEAD = 2 * 2 * 152_064 * 5120 / 64
"""Bytes of one of 64 devices, in bfloat16."""


def plan(topology="v5p:4x4x4", **changes):
    return plan_pod(pod(**changes), parse_topology(topology), compile_programs=False)


def test_memory_of_the_dapo_run_by_hand():
    """32.76e9 numbers over 64 devices, 4 bytes each, twice that in Adam's moments; keys
    and values of 64 x 16 rows, 64 layers x 2 of 8 heads, 128 wide, in bfloat16."""
    found = plan()
    parts = found.parts["decode"]
    numbers = found.architecture.num_parameters / 64
    # Norms and biases are on every device: a hundredth more.
    assert parts["training state"] == pytest.approx(12 * numbers, rel=0.01)
    assert parts["weights"] == pytest.approx(2 * numbers, rel=0.01)
    slots = 64 * (2048 + 16 * 20_480) / 16
    assert parts["cache"] == slots * 2 * 64 * 2 * 128 * 2
    assert found.hbm_gib("decode") == sum(parts.values()) / GIB
    assert found.fits
    assert advice(found) == []


def test_activations_of_each_remat_by_hand():
    """4 prompts x 16 on 16 row devices: one completion of each prompt for a device,
    which reads all four prompts whole."""

    def activations(remat):
        sizes = {"rollout__max_completion_tokens": 8192, "batch__micro_batch_size": 64}
        return plan(**sizes, model__remat=remat).parts["train"]["activations"]

    inputs = 4 * (8192 + 2048) * 5120 * 2
    # Of 64 layers; of 8 groups and the 8 layers of one.
    found = activations("layer") - activations("groups")
    assert found == pytest.approx((64 - 16) * inputs)


def test_kernels_in_the_plan():
    """Which are taken, or why not; memory without scores and logits. A device has one
    row of 20,480 tokens and 10 heads: 64 layer inputs, one layer's work
    (three of 27,648 / 4, two of 40 heads / 4, four of 5,120 numbers per token), and a
    log-sum-exp of every head and token in 128 lanes of float32."""
    found = plan()
    assert pod_sections(found)["step"]["attention"] == "splash kernel"
    assert pod_sections(found)["step"]["LM head"].startswith("fused kernel")
    tokens = 20_480 + 2048
    inputs = 64 * tokens * 5120 * 2
    layer = tokens * (3 * 27_648 / 4 + 2 * 5120 / 4 + 4 * 5120) * 2
    parts = found.parts["train"]
    assert parts["activations"] == inputs + layer + 10 * 20_480 * 128 * 4
    assert parts["LM head, whole, and its gradient"] == 2 * 2 * 152_064 / 4 * 5120
    chunked = plan(rollout__top_p=0.9, model__attention="dense")
    assert "kept sets" in pod_sections(chunked)["step"]["LM head"]
    assert pod_sections(chunked)["step"]["attention"].startswith("dense: model.att")
    assert "logits" in chunked.parts["train"]
    assert chunked.parts["train"]["activations"] > parts["activations"]


def test_the_plan_as_json():
    found = as_json(plan())
    assert found["fits"] is True
    programs = {"train", "reshard", "prefill", "decode"}
    assert set(found["hbm_gib_per_chip"]) == programs
    assert found["compile_s"] is None
    sent = plan().sent
    assert set(sent) == {"prefill", "decode", "update"}
    assert found["collective_bytes"] == sum(e.results for s in sent.values() for e in s)
    assert found["flops_per_step"] == plan().flops.total


def test_bytes_between_devices_of_a_program_that_cannot_be_printed():
    """As libtpu's of an update often: those by hand stay, XLA's are not made up."""
    sent = Collectives({"all-gather": 2**30}, 0)
    programs = {"prefill": sent, "train": None}
    found = dataclasses.replace(
        plan(),
        compiled={n: Compiled(0.0, 1.0, collectives=c) for n, c in programs.items()},
    )
    shown = pod_sections(found)["between devices"]
    assert shown["program prefill"] == "all-gather 1.00 GiB"
    assert shown["program train"] == "the compiled program cannot be printed"
    assert shown["update (estimate)"].startswith("all-gather ")


def test_adapters_and_short_moments_by_hand():
    """LoRA of rank 16: 64 layers of seven matrices, (inputs + outputs) x 16 numbers of
    each on every device; they alone have moments (4 and 2 bytes) and gradients."""
    full = plan()
    found = plan(model__lora_rank=16, optimizer__moment_dtype="bfloat16")
    numbers = full.parts["train"]["parameters"] / 4
    sizes = 4 * 5120 + 2 * (5120 + 1024) + 3 * (5120 + 27_648)
    adapters = 64 * 16 * sizes
    parts = found.parts["train"]
    assert parts["parameters"] == 4 * (numbers + adapters)
    assert parts["optimizer"] == 6 * adapters
    assert parts["gradients"] == 8 * adapters
    alone = plan(model__lora_rank=16, batch__micro_batch_size=0)
    assert alone.parts["train"]["gradients"] == 4 * adapters
    assert full.parts["train"]["optimizer"] == 8 * numbers
    state = found.parts["decode"]["training state"]
    assert state == 4 * (numbers + adapters) + 6 * adapters


def test_a_value_model_by_hand():
    """Parameters, moments and gradients of its own, 20 bytes of each number."""
    plain, found = plan(), plan(objective__advantage="gae")
    numbers = plain.parts["train"]["parameters"] / 4
    assert found.parts["train"]["critic"] == 20 * numbers
    waiting = [each.parts["decode"]["training state"] for each in (found, plain)]
    assert waiting[0] - waiting[1] == 12 * numbers
    assert found.time.update_s > 1.5 * plain.time.update_s


def test_a_checkpoint_holds_each_number_once():
    """Two replicas along data hold twice as much in memory, and write it once."""
    one, two = plan(mesh__shape=(1, 16, 4)), plan(mesh__shape=(2, 8, 4))
    numbers = one.architecture.num_parameters
    assert one.host_gib == pytest.approx(12 * numbers / GIB, rel=0.01)
    assert two.host_gib == pytest.approx(one.host_gib, rel=0.01)


def test_a_new_model_is_planned_with_its_experts():
    config = small.recipe()
    config.model.num_experts, config.model.num_experts_per_token = 8, 2
    found = planned_architecture(config)
    assert (found.num_experts, found.moe_intermediate_size) == (8, 512)
    assert found.rope_theta == config.model.rope_theta
    config.mesh = MeshConfig((1, 1, 1))
    held = plan_pod(
        config, Topology("v5e:1x1", CHIPS["v5e"], 1), compile_programs=False
    )
    assert held.parts["train"]["parameters"] == 4 * found.num_parameters
    layer = 256 * (2 * (4 + 2) * 64 + 8 * (3 * 512 + 1))
    assert held.parts["train"]["one layer's weights, whole"] == 2 * 4 * layer


def test_what_does_not_fit_is_told_what_to_change():
    found = plan(rollout__prompts_at_once=512)
    assert not found.fits
    assert advice(found) == [
        "decode: sample fewer prompts at once, rollout.prompts_at_once=256 (now 512)."
    ]
    found = plan("v5e:8x8", batch__micro_batch_size=64)
    told = " ".join(advice(found))
    assert "batch.micro_batch_size=64 gives a device 4 rows; 16 would" in told
    assert "prompts_at_once=32" in told
    sections = pod_sections(found)
    assert sections["verdict"]["fits"].startswith("no: ")
    assert len(sections["verdict"]) == 1 + len(advice(found))


def test_the_estimate_of_the_compiled_decode_program():
    """libtpu gave 81.85 GiB for this program on v5p:4x4x4, and the state waits beside
    it; the estimate is within 3 %."""
    found = plan()
    compiled_gib = 81.85 + found.resident_bytes["decode"] / GIB
    assert found.hbm_gib("decode") == pytest.approx(compiled_gib, rel=0.03)


def test_time_and_cost_by_hand():
    """REC-36: chip-hours are seconds x chips / 3600, dollars that times the price."""
    topology = parse_topology("v5p:4x4x4")
    assert dollars_per_step(3600.0, topology, None) == 64 * 4.20
    assert dollars_per_step(1800.0, topology, 2.0) == 64.0
    assert dollars_per_step(1.0, parse_topology("tpu7x:2x2x1"), None) is None
    found = plan()
    # Updates wait for compute: FLOPs at 40 % of 64 x 459 TFLOP/s.
    flops = found.flops.train + found.flops.forward
    assert found.time.bound["update"] == "compute"
    assert found.time.update_s == pytest.approx(flops / (0.4 * 64 * 459e12))


def test_links_carry_weights_one_way():
    """Cloud TPU documentation: 1,200 GB/s of a v5p chip are both directions together. A
    decoding step gathers 15 of 16 parts of the layers' weights in bfloat16 and adds up
    what tensor devices made; 16 prompts at a time wait for it, 32 times 64 tokens."""
    found = plan(rollout__max_completion_tokens=64, rollout__prompts_at_once=16)
    assert found.time.bound["decode"] == "links"
    layers = found.parts["decode"]["weights"] - EMBEDDING_AND_HEAD
    summed = 2 * 64 * 16 * 5120 * 2  # of 16 rows, twice a layer, in a ring of four
    sent = 32 * 64 * (15 * layers + 2 * 3 / 4 * summed)
    assert found.time.decode_s == pytest.approx(sent / (0.7 * 600e9), rel=1e-4)


def test_costs_of_published_runs():
    """REC-36: 27 h on 8 A100 are 216 A100-hours; 17,920 GPU-hours are 9.96 times 1,800;
    $534,700 for 512 H800 over three weeks are $2.07 an hour."""
    assert chip_hours(27 * 3600.0, 8) == 216
    assert round(chip_hours(3600.0, 17_920) / chip_hours(3600.0, 1800), 2) == 9.96
    assert round(534_700 / chip_hours(21 * 24 * 3600.0, 512), 2) == 2.07


def test_shapes_and_positions_are_checked():
    with pytest.raises(ValueError, match=r"mesh\.shape=.* does not fill 64 devices"):
        plan(mesh__shape=(1, 3, 4))
    with pytest.raises(ValueError, match=r"mesh\.rollout_shape=.* does not fill 64"):
        plan(sampling=(1, 3, 4))
    with pytest.raises(ValueError, match=r"\(mesh\.rollout_shape=\(1, 4, 16\)\)"):
        plan(sampling=(1, 4, 16))
    with pytest.raises(ConfigError, match="202048 positions; the model has 131072"):
        plan(rollout__max_completion_tokens=200_000)
    config = pod()
    config.model.architecture = ""
    with pytest.raises(ConfigError, match="name one of qwen"):
        planned_architecture(config)
    assert planned_architecture(small.recipe(), layers=3).num_layers == 3


def test_slots_by_hand():
    """Of 8,192 completions 512 decode at a time; each slot has its prompt's keys and
    values beside its own, on every device, two of the eight heads of each."""
    found = plan(
        rollout__engine="slots", rollout__slots=512, rollout__prompts_at_once=0
    )
    parts = found.parts["decode"]
    assert parts["cache"] == 512 * (2048 + 20_480) * 2 * 64 * 2 * 128 * 2
    assert found.parts["prefill"]["cache"] == 8 * 2048 * 2 * 64 * 2 * 128 * 2
    assert found.work.sampling_rounds == 16
    assert "512 in slots at once" in pod_sections(found)["step"]["sampled"]
    assert not found.fits
    assert advice(found) == [
        "decode: decode fewer completions at once, rollout.slots=256 (now 512); every "
        "device has all of them, split by heads."
    ]
    few = plan(rollout__engine="slots", rollout__slots=8, batch__prompts_per_step=512)
    assert few.fits


def test_policies_under_way_by_hand():
    """Two steps behind: two policies in bfloat16 beside the state, and the caches of
    the batch under way beside the update; with whole batches these are in a program."""
    settings = {"rollout__engine": "slots", "rollout__slots": 64}
    fresh = plan(**settings)
    stale = plan(**settings, rollout__staleness=2)
    policies = 2 * fresh.parts["decode"]["weights"]
    states = [p.parts["decode"]["training state"] for p in (stale, fresh)]
    assert states[0] - states[1] == policies
    train = stale.parts["train"]
    assert train["policies under way"] == policies
    assert train["slots under way"] == stale.parts["decode"]["cache"]
    assert stale.resident_bytes["train"] == policies + train["slots under way"]
    assert "policies under way" not in fresh.parts["train"]
    assert "slots under way" not in plan(rollout__staleness=2).parts["train"]


def test_search_changes_the_slots_of_an_engine_that_has_them():
    config = pod(rollout__engine="slots", rollout__slots=64, rollout__prompts_at_once=0)
    found = search(config, parse_topology("v5p:4x4x4"), compiles=0)
    assert found
    assert {each.config.rollout.prompts_at_once for each in found} == {0}
    slots = {each.config.rollout.slots for each in found}
    assert slots <= {1, 2, 4, 8, 16, 32, 64}
    assert len(slots) > 1


def test_the_programs_of_the_slots_are_those_that_run():
    """Prefill of 8 prompts; decoding holds its slots: 16 prompts and completions."""
    config = small.recipe()
    config.rollout.engine, config.rollout.slots = "slots", 4
    config.mesh = MeshConfig((2, 2, 2))
    run = abstract_run(config, small.ARCHITECTURE, make_mesh((2, 2, 2)))
    assert run.work.decoding == 4
    read = compiled(run, "prefill")
    found = compiled(run, "decode")
    assert read.refusal == found.refusal == ""
    cache = 4 * (64 + 65) * 2 * 2 * 1 * 64 * 4
    assert found.hbm_bytes > cache


def test_the_table_of_shardings_adds_up():
    found = plan()
    *rows, total = sharding_lines(found)
    table = {row[0]: row for row in rows}
    assert table["layers.query"][2] == "-, fsdp, tensor"
    assert table["layers.query"][3] == f"{64 * 5120 * 5120 * 4 // 64:,}"
    assert table["final_norm"][3] == f"{5120 * 4:,}"
    assert int(total[3].replace(",", "")) == sum(r.bytes_per_device for r in found.rows)


def test_sampling_on_another_mesh_by_hand():
    """Training by fsdp alone, sampling with the heads over eight devices.

    A float32 state of 12 bytes a number waits; of 2 bytes a number each device sends as
    much as it receives. A decode step reads the weights of 8 devices and the cache at
    70 % of 2,765 GB/s; over 64 devices it waits for those of 63 at 70 % of 600 GB/s.
    """
    one = plan(**FSDP)
    two = plan(**FSDP, sampling=(1, -1, 8))
    assert (two.mesh_shape, two.rollout_shape) == ((1, 64, 1), (1, 8, 8))
    numbers = two.architecture.num_parameters / 64
    parts = two.parts["reshard"]
    # Norms and biases are on every device: a hundredth more.
    assert parts["training state"] == pytest.approx(12 * numbers, rel=0.01)
    assert parts["weights"] == pytest.approx(2 * numbers, rel=0.01)
    assert parts["on their way"] == pytest.approx(2 * parts["weights"], rel=0.01)
    assert one.parts["reshard"]["on their way"] == 0
    assert two.hbm_gib("reshard") == sum(parts.values()) / GIB
    # What waits beside the program does not count its arguments, the parameters.
    beside = two.resident_bytes["decode"] - two.resident_bytes["reshard"]
    assert beside == parts["training state"] / 3
    assert two.parts["train"] == one.parts["train"]
    assert two.parts["decode"]["cache"] == one.parts["decode"]["cache"]
    assert two.parts["decode"]["logits"] == one.parts["decode"]["logits"]
    steps, bandwidth = 20_480 * 512 // 64, 0.7 * 2765e9
    weights, cache = parts["weights"], two.parts["decode"]["cache"]
    read, links = steps * (8 * weights + cache), 0.7 * 1200e9 / 2
    assert (one.time.bound["decode"], two.time.bound["decode"]) == ("links", "memory")
    assert two.time.decode_s == pytest.approx(read / bandwidth, rel=0.01)
    assert one.time.decode_s == pytest.approx(
        steps * 63 * (weights - EMBEDDING_AND_HEAD) / links, rel=0.01
    )
    assert two.time.update_s == one.time.update_s
    # Four bytes of a number are read and two written; to send these takes longer.
    assert two.time.reshard_s == pytest.approx(2 * numbers / links, rel=0.01)
    assert one.time.reshard_s == pytest.approx(6 * numbers / bandwidth, rel=0.01)
    copies = plan(**FSDP, sampling=(8, 1, 8))
    assert copies.time.bound["reshard"] == "links"
    assert copies.time.reshard_s == pytest.approx(16 * numbers / links, rel=0.01)
    total = two.time.reshard_s + two.time.prefill_s + two.time.decode_s
    assert two.time.total_s == total + two.time.update_s


def test_both_meshes_are_shown():
    found = plan(**FSDP, sampling=(1, 8, 8))
    sections = pod_sections(found)
    assert sections["pod"]["mesh of training"] == "data 1, fsdp 64, tensor 1"
    assert sections["pod"]["mesh of sampling"] == "data 1, fsdp 8, tensor 8"
    assert sections["time"]["reshard"].startswith("0.")
    assert "attention of sampling" not in sections["step"]
    *rows, total = sharding_lines(found)
    query = next(row for row in rows if row[0] == "layers.query")
    numbers = 64 * 5120 * 5120 // 64
    assert query[2:] == (
        "-, fsdp",
        f"{numbers * 4:,}",
        "-, fsdp, tensor",
        f"{numbers * 2:,}",
    )
    assert int(total[5].replace(",", "")) == sum(
        row.sampled_bytes for row in found.rows
    )
    # Sixteen tensor devices share eight key-value heads.
    heads = pod(**FSDP, sampling=(1, 4, 16))
    heads.model.architecture = "qwen3-8b"
    found = plan_pod(heads, parse_topology("v5p:4x4x4"), compile_programs=False)
    step = pod_sections(found)["step"]
    assert step["attention"] == "splash kernel"
    assert step["attention of sampling"] == (
        "dense: 8 key-value heads do not divide over tensor 16"
    )


def test_a_reshard_that_does_not_fit_is_told_what_to_change():
    """Whole weights on each of 64 chips: 61 GiB beside the state."""
    found = plan("v6e:8x8", **FSDP, sampling=(64, 1, 1))
    assert found.hbm_gib("reshard") > found.topology.hbm_gib_per_device
    told = " ".join(advice(found))
    assert "fsdp and tensor of mesh.rollout_shape (now (64, 1, 1))" in told


def test_a_batch_that_does_not_divide_is_refused_as_training_would():
    """32 prompts or 16 completions over 64 devices of one axis; 4 x 16 do."""
    with pytest.raises(ConfigError, match=r"^mesh: a micro-batch: row_spec: 1 x 64 "):
        plan(mesh__shape=(1, 64, 1), batch__micro_batch_size=512)
    found = plan(mesh__shape=(4, 16, 1), batch__micro_batch_size=64)
    one_row = 20_480 + 2048
    assert found.parts["train"]["activations"] >= 64 * one_row * 5120 * 2
    assert found.parts["train"]["activations"] < 2 * 64 * one_row * 5120 * 2


def test_the_search_finds_meshes_of_two_row_axes():
    """Of 256 chips no one axis divides a minibatch of 32 prompts x 16 into rows that
    fit, as 40 heads divide over no more than 8 of them."""
    found = search(pod(), parse_topology("v6e:16x16"), compiles=0)
    assert all(1 < each.mesh_shape[0] < 256 for each in found)
    assert found[0].mesh_shape[2] == 8


def test_search_finds_what_fits_and_the_fastest_first():
    config = pod(rollout__prompts_at_once=0)
    topology = parse_topology("v5p:4x4x4")
    assert not plan(rollout__prompts_at_once=0).fits
    found = search(config, topology, compiles=0)
    assert found
    assert all(each.fits for each in found)
    seconds = [each.time.total_s for each in found]
    assert seconds == sorted(seconds)
    assert found[0].time.total_s <= plan().time.total_s
    with pytest.raises(ConfigError, match="positions; the model has 131072"):
        search(pod(rollout__max_completion_tokens=200_000), topology, compiles=0)
    # No slice of four v5e chips holds 32B parameters with Adam.
    assert search(config, parse_topology("v5e:2x2"), compiles=0) == []


def test_programs_compile_on_eight_devices():
    """The same lowering on devices that are there: arguments fill the peak from below,
    and a program on a mesh of eight sends something."""
    config = small.recipe()
    config.mesh = MeshConfig((2, 2, 2))
    run = abstract_run(config, small.ARCHITECTURE, make_mesh((2, 2, 2)))
    found = compiled(run, "prefill")
    assert found.refusal == ""
    held = [leaf for leaf in jax.tree.leaves(run.weights)]
    least = sum(
        leaf.dtype.itemsize * leaf.sharding.shard_shape(leaf.shape)[0] for leaf in held
    )
    assert found.hbm_bytes > least
    assert found.collectives is not None
    assert found.collectives.total > 0


def test_the_reshard_program_of_two_meshes():
    """Arguments of 4 bytes a number, results of 4; nothing is whole on any device."""
    config = small.recipe(prompts_per_step=8)
    mesh = make_mesh((1, 8, 1))
    other = rearranged(mesh, (1, 2, 4))
    run = abstract_run(config, small.ARCHITECTURE, mesh, other)
    found = compiled(run, "reshard")
    numbers = sum(leaf.size for leaf in jax.tree.leaves(run.parameters))
    assert 2 * 4 * numbers / 8 < found.hbm_bytes < 4 * 4 * numbers / 8
    assert found.collectives is not None
    assert 0 < found.collectives.total < 2 * 4 * numbers / 8


@pytest.mark.slow
@pytest.mark.skipif(not has_libtpu(), reason="needs libtpu")
@pytest.mark.parametrize(
    ("topology", "shape", "sampling", "sent"),
    [
        # From the rows of all 64 to the columns of 8: each its share, once.
        ("v5p:4x4x4", (1, 64, 1), (1, 8, 8), 1.0),
        # Whole columns of 8, of which each of 32 copies is gathered from 32.
        ("v6e:16x16", (1, 256, 1), (32, 1, 8), 33 / 32),
    ],
)
def test_the_reshard_program_of_32_billion(topology, shape, sampling, sent):
    """What a device is sent is what it samples with, in two bytes a number, and nothing
    is whole on any of them; the estimate of the peak is within a fifth."""
    config = pod(mesh__shape=shape, sampling=sampling, batch__minibatches_per_step=2)
    config.batch.micro_batch_size = 0
    found = plan_pod(config, parse_topology(topology), compile_programs=False)
    meshes = topology_meshes(topology, shape, sampling)
    run = abstract_run(config, found.architecture, *meshes)
    program = compiled(run, "reshard")
    weights = found.parts["reshard"]["weights"]
    assert program.collectives is not None
    assert program.collectives.total == pytest.approx(sent * weights, rel=0.01)
    peak = (program.hbm_bytes + found.resident_bytes["reshard"]) / GIB
    assert found.hbm_gib("reshard") == pytest.approx(peak, rel=0.2)


@pytest.mark.slow
@pytest.mark.skipif(not has_libtpu(), reason="needs libtpu")
def test_all_programs_compile_for_a_slice():
    config = small.recipe(micro_batch_size=4)
    config.mesh = MeshConfig((1, 2, 2))
    config.model.num_kv_heads = 2
    chip = CHIPS["v6e"]
    found = plan_pod(config, Topology("v6e:2x2", chip, 4))
    assert found.fits
    assert set(found.compiled) == {"train", "reshard", "prefill", "decode"}
    assert as_json(found)["compile_s"] > 0
    assert found.hbm_gib("train") < 1
