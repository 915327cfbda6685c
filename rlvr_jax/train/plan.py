"""What is about to run, in words and numbers, before anything compiles."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from rlvr_jax.mesh.mesh import axes_in_words, row_devices
from rlvr_jax.mesh.sharding import bytes_per_device, parameter_shardings
from rlvr_jax.train.disclosure import disclosure
from rlvr_jax.train.micro_batches import micro_batch_shape
from rlvr_jax.train.packing import layout_of
from rlvr_jax.train.setup import Setup

Sections = dict[str, dict[str, str]]


def plan_sections(setup: Setup, resumes_at: int | None) -> Sections:
    """The plan as section -> {label: value}; `display.print_plan` shows it."""
    config = setup.config
    start = "from the beginning" if resumes_at is None else f"resumes at {resumes_at}"
    return {
        "run": {
            "folder": config.run_dir,
            "steps": f"{config.steps} ({start}), seed {config.seed}",
            "devices": f"{jax.device_count()} {jax.devices()[0].platform} as "
            + _devices(setup),
        },
        "model": _model(setup),
        "data": _data(setup),
        "step": _step(setup),
        "objective": disclosure(config),
        "memory per device": _memory(setup),
        "programs": _programs(setup),
    }


def _devices(setup: Setup) -> str:
    """The mesh, or those of training and sampling."""
    training, sampling = setup.mesh, setup.sampler.mesh
    if sampling == training:
        return axes_in_words(training)
    return f"{axes_in_words(training)}; sampling as {axes_in_words(sampling)}"


def _model(setup: Setup) -> dict[str, str]:
    arch, model = setup.architecture, setup.config.model
    return {
        "policy": model.path or "new, drawn from the seed",
        "size": f"{arch.num_parameters:,} parameters: {arch.num_layers} layers of "
        f"{arch.hidden_size}, vocabulary {arch.vocab_size:,}",
        "type": f"{model.dtype} activations, float32 master weights, "
        f"remat {model.remat}",
    }


def _data(setup: Setup) -> dict[str, str]:
    config, train = setup.config, setup.train
    verifiers = sorted({p.verifier for p in train.problems})
    found = {
        "training": f"{len(train.problems):,} problems of {config.data.train}"
        + (f" ({train.dropped} too long, left out)" if train.dropped else ""),
        "verified by": ", ".join(verifiers),
    }
    if setup.evaluation:
        n = setup.evaluation.sampling.num_generations
        found["held out"] = (
            f"{len(setup.evaluation.prompts.problems)} problems x {n} completions"
        )
    if setup.warmup:
        warmup = config.warmup
        found["cold start"] = f"{warmup.steps} steps of {warmup.batch_size} solutions"
    return found


def _step(setup: Setup) -> dict[str, str]:
    config, batch = setup.config, setup.config.batch
    generations = config.rollout.num_generations
    rows = batch.prompts_per_step * generations
    updates = batch.updates_per_step
    per_update = rows // batch.minibatches_per_step
    size = batch.micro_batch_size or per_update
    tokens = rows * config.rollout.max_completion_tokens
    rollout = config.rollout
    cut = [
        f"{name} {value}"
        for name, value, off in (
            ("top-k", rollout.top_k, 0),
            ("top-p", rollout.top_p, 1.0),
            ("min-p", rollout.min_p, 0.0),
        )
        if value != off
    ]
    found = {
        "rollouts": f"{batch.prompts_per_step} prompts x {generations} = {rows} "
        f"completions of up to {rollout.max_completion_tokens} tokens "
        f"(prompts up to {setup.batches.slots}); at most {tokens:,} tokens",
        "sampling": f"temperature {rollout.temperature}"
        + (", " + ", ".join(cut) if cut else ", whole vocabulary"),
        "updates": f"{updates} per step, {per_update} completions each, in "
        f"{per_update // size} micro-batches of {size}",
        "padding": _padding(setup),
    }
    if rollout.token_budget:
        share = rollout.pause_share
        paused = f", until {share:.0%} are finished" if share < 1 else ""
        waiting = rollout.waiting_batches * batch.prompts_per_step
        found["partial rollouts"] = (
            f"{rollout.token_budget} tokens per completion and step{paused}; {waiting} "
            f"groups wait, at most {rollout.max_group_age} steps, then "
            + {"finish": "they are finished", "drop": "they are dropped"}[
                rollout.overdue
            ]
        )
    return found


def _padding(setup: Setup) -> str:
    """What share of an update's slots is padding, for lengths of all sizes."""
    batch, rollout = setup.config.batch, setup.config.rollout
    count, generations = batch.prompts_per_step, rollout.num_generations
    limit = rollout.max_completion_tokens
    prompts, whole = micro_batch_shape(
        count // batch.minibatches_per_step, generations, batch.micro_batch_size
    )
    lengths = np.linspace(1, limit, count * generations).astype(int)
    lengths = np.random.default_rng(0).permutation(lengths).reshape(count, generations)
    share = 1 - lengths.sum() / (lengths.size * limit)
    said = f"{share:.0%} where lengths are evenly spread from 1 to {limit}"
    if whole < generations:  # parts of groups are never packed
        return said
    layout = layout_of(lengths, limit, micro_batch_prompts=prompts, mesh=setup.mesh)
    if layout is not None:
        slots = count // prompts * layout.size * layout.tokens
        share = 1 - lengths.sum() / slots
    packed = "packed" if batch.packing else "with batch.packing"
    return f"{said}; {packed}: {share:.0%}"


def _memory(setup: Setup) -> dict[str, str]:
    config, arch, mesh = setup.config, setup.architecture, setup.mesh
    weights = bytes_per_device(
        setup.parameters, parameter_shardings(setup.parameters, mesh)
    )
    copies = {"parameters": 1, "Adam moments": 2, "gradients": 1}
    if config.objective.beta > 0:
        copies["reference"] = 1
    if config.objective.advantage == "gae":
        copies["critic, its moments and gradients"] = 4
    found = {name: gib(count * weights) for name, count in copies.items()}
    width = jnp.dtype(config.model.dtype).itemsize
    sampling = setup.sampler.mesh
    split = parameter_shardings(setup.parameters, sampling)
    numbers = bytes_per_device(setup.parameters, split) // 4
    found["weights while sampling"] = gib(width * numbers)
    prompts = config.rollout.prompts_at_once or config.batch.prompts_per_step
    rows = prompts * config.rollout.num_generations
    slots = prompts * setup.batches.slots + rows * config.rollout.max_completion_tokens
    kv_heads = math.ceil(arch.num_kv_heads / sampling.shape["tensor"])
    per_slot = 2 * arch.num_layers * kv_heads * arch.head_dim * width
    found["cache while sampling"] = gib(slots * per_slot / row_devices(sampling))
    # A chunk's logits live about three times over: logits, log-probs, their gradient.
    chunk = max(config.batch.logprob_chunk_tokens, 1) * arch.vocab_size * 4 * 3
    found["logits in training"] = gib(chunk / row_devices(mesh))
    return found


def _programs(setup: Setup) -> dict[str, str]:
    shapes = {"sample": "once", "train step": "once"}
    if setup.evaluation and setup.evaluation.sampling != setup.sampling:
        shapes["evaluation sample"] = "once"
    if setup.warmup:
        shapes["cold start"] = "once"
    return {"compiled": ", ".join(f"{name} {count}" for name, count in shapes.items())}


def gib(size: int | float) -> str:
    """Bytes for reading."""
    return f"{size / 2**30:.2f} GiB" if size > 2**28 else f"{size / 2**20:.1f} MiB"
