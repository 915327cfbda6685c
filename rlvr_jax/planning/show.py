"""A pod plan as sections of labels and values."""

from collections.abc import Mapping, Sequence

from jax.sharding import AbstractMesh

from rlvr_jax.mesh.mesh import AXES, axes_in_words
from rlvr_jax.planning.advice import advice
from rlvr_jax.planning.exchange import Sent
from rlvr_jax.planning.pod_plan import GIB, PodPlan
from rlvr_jax.planning.timing import ASSUMPTION, chip_hours, dollars_per_step
from rlvr_jax.planning.work import Work
from rlvr_jax.train.plan import Sections

_PHASES = ("reshard", "prefill", "decode", "update")
_PROGRAMS = ("train", "reshard", "prefill", "decode")


def pod_sections(plan: PodPlan, *, price: float | None = None) -> Sections:
    """Section -> {label: value}.

    Args:
      plan: of `plan_pod`.
      price: dollars per chip-hour, in place of the list price.
    """
    found: Sections = {"pod": _pod(plan), "step": _step(plan), "FLOPs": _flops(plan)}
    for program in _PROGRAMS:
        found[f"memory of a device, {program}"] = _memory(plan, program)
    found["between devices"] = _links(plan)
    found["time"] = _time(plan, price)
    found["verdict"] = _verdict(plan)
    return found


def sharding_lines(plan: PodPlan) -> list[tuple[str, ...]]:
    """The table of every parameter, and a sum.

    Name, shape, split and bytes of one device; split and bytes while sampling.
    """
    rows: list[tuple[str, ...]] = [
        (
            row.name,
            str(row.shape),
            row.spec,
            f"{row.bytes_per_device:,}",
            row.sampled_spec,
            f"{row.sampled_bytes:,}",
        )
        for row in plan.rows
    ]
    total = sum(row.bytes_per_device for row in plan.rows)
    sampled = sum(row.sampled_bytes for row in plan.rows)
    numbers = f"{plan.architecture.num_parameters:,} numbers"
    return [*rows, ("all", numbers, "", f"{total:,}", "", f"{sampled:,}")]


def _pod(plan: PodPlan) -> dict[str, str]:
    topology, arch = plan.topology, plan.architecture
    return {
        "topology": f"{topology.name}: {topology.chips} chips, {topology.devices} "
        f"devices of {topology.hbm_gib_per_device:g} GiB",
        "mesh of training": axes_in_words(AbstractMesh(plan.mesh_shape, AXES)),
        "mesh of sampling": axes_in_words(AbstractMesh(plan.rollout_shape, AXES)),
        "model": f"{plan.config.model.architecture or plan.config.model.path}: "
        f"{arch.num_parameters:,} parameters, {arch.num_layers} layers",
        "host memory": f"{plan.host_gib:,.0f} GiB over all hosts while a checkpoint is "
        f"saved; they have {topology.chips * topology.chip.host_gib:,.0f}",
    }


def _step(plan: PodPlan) -> dict[str, str]:
    work = plan.work
    micro = work.micro[0] * work.micro[1]
    return {
        "sampled": f"{work.prompts} prompts x {work.generations} = {work.rows:,} "
        f"completions of up to {work.length:,} tokens, {_at_once(work)} at once",
        "updates": f"{work.updates}, each {work.rows // work.minibatches:,} "
        f"completions in {work.micros_per_update} micro-batches of {micro}",
        "tokens": f"{work.tokens:,} at most",
        "attention": _attention(work),
        **(
            {}
            if plan.sampled.why_dense == work.why_dense
            else {"attention of sampling": _attention(plan.sampled)}
        ),
        "LM head": "fused kernel, vocabulary over tensor"
        if not work.why_chunked
        else f"by chunks: {work.why_chunked}",
    }


def _attention(work: Work) -> str:
    return f"dense: {work.why_dense}" if work.why_dense else "splash kernel"


def _at_once(work: Work) -> str:
    if work.engine == "slots":
        return f"{work.decoding:,} in slots"
    return f"{work.at_once} prompts"


def _flops(plan: PodPlan) -> dict[str, str]:
    flops = plan.flops
    return {
        "sampling": f"{flops.prefill:.3g} prompts, {flops.decode:.3g} completions",
        "learning": f"{flops.forward:.3g} old and reference log-probs, "
        f"{flops.train:.3g} updates",
        "of the step": f"{flops.total:.3g} computed, {flops.useful:.3g} of them useful "
        "(no masked slots, nothing twice)",
    }


def _memory(plan: PodPlan, program: str) -> dict[str, str]:
    parts = plan.parts[program]
    found = {
        f"{name} (estimate)": f"{size / GIB:.2f} GiB" for name, size in parts.items()
    }
    found["sum (estimate)"] = f"{sum(parts.values()) / GIB:.2f} GiB"
    compiled = plan.compiled.get(program)
    if compiled is None:
        found["peak"] = "not compiled: the estimate stands in"
    elif compiled.refusal:
        found["peak"] = f"refused by the compiler: {compiled.refusal}"
    else:
        waiting = plan.resident_bytes[program] / GIB
        beside = f", {waiting:.2f} of it beside the program" if waiting else ""
        found["peak"] = (
            f"{plan.hbm_gib(program):.2f} GiB as compiled{beside} "
            f"({compiled.seconds:.0f} s to compile)"
        )
    return found


def _links(plan: PodPlan) -> dict[str, str]:
    """Results of collectives on one device: of a step by hand, of a program by XLA."""
    found = {f"{phase} (estimate)": _by_kind(plan.sent[phase]) for phase in plan.sent}
    for name, compiled in plan.compiled.items():
        known = compiled.collectives
        found[f"program {name}"] = (
            "the compiled program cannot be printed"
            if known is None
            else _in_gib(known.bytes_by_kind)
        )
    return found


def _by_kind(sent: Sequence[Sent]) -> str:
    kinds: dict[str, int | float] = {}
    for each in sent:
        kinds[each.kind] = kinds.get(each.kind, 0.0) + each.results
    return _in_gib(kinds)


def _in_gib(kinds: Mapping[str, int | float]) -> str:
    return (
        ", ".join(f"{kind} {size / GIB:,.2f} GiB" for kind, size in kinds.items())
        or "nothing"
    )


def _time(plan: PodPlan, price: float | None) -> dict[str, str]:
    time, total = plan.time, plan.time.total_s
    found = {
        name: f"{getattr(time, f'{name}_s'):,.1f} s, bound by {time.bound[name]}"
        for name in _PHASES
    }
    found["step"] = f"{total:,.0f} s, {plan.work.tokens / total:,.0f} tokens/s"
    cost = dollars_per_step(total, plan.topology, price)
    hours = chip_hours(total, plan.topology.chips)
    found["cost of a step"] = f"{hours:,.1f} chip-hours" + (
        "" if cost is None else f", ${cost:,.2f}"
    )
    found["assumed"] = ASSUMPTION
    return found


def _verdict(plan: PodPlan) -> dict[str, str]:
    peak = max(plan.hbm_gib(name) for name in plan.parts)
    room = plan.topology.hbm_gib_per_device
    answer = "yes" if plan.fits else "no"
    found = {"fits": f"{answer}: {peak:.1f} of {room:g} GiB at the peak"}
    for number, line in enumerate(advice(plan), 1):
        found[f"change {number}"] = line
    return found
