"""What to change in a recipe whose step does not fit."""

from rlvr_jax.planning.pod_plan import PodPlan
from rlvr_jax.planning.work import Work


def advice(plan: PodPlan) -> list[str]:
    """What to change, for each program that does not fit; empty if all do."""
    work, room = plan.work, plan.topology.hbm_gib_per_device
    found = []
    if plan.hbm_gib("train") > room or _refused(plan, "train"):
        rows = work.micro[0] * work.micro[1]
        devices = plan.mesh_shape[0] * plan.mesh_shape[1]
        if rows > devices:
            found.append(
                f"train: batch.micro_batch_size={rows} gives a device "
                f"{rows // devices} rows; {devices} would give it one."
            )
        elif plan.mesh_shape[2] < work.architecture.num_kv_heads:
            found.append(
                f"train: one row of {work.length} tokens per device is the least; "
                "split it over more devices by the last number of mesh.shape "
                f"(tensor, now {plan.mesh_shape[2]})."
            )
        else:
            found.append(
                "train: shorten rollout.max_completion_tokens, or take more chips."
            )
        leaner = {"layer": "groups", "groups": ""}.get(work.remat, "layer")
        if leaner:
            found.append(f"train: set model.remat={leaner!r}.")
        if work.copies > 1:
            found.append("train: objective.beta=0 leaves the reference model out.")
    if plan.hbm_gib("reshard") > room or _refused(plan, "reshard"):
        found.append(
            "reshard: split the sampler's weights over more devices, by fsdp and "
            f"tensor of mesh.rollout_shape (now {plan.rollout_shape})."
        )
    for name in ("prefill", "decode"):
        if plan.hbm_gib(name) > room or _refused(plan, name):
            found.append(_sample_fewer(name, work))
    return found


def _sample_fewer(name: str, work: Work) -> str:
    if work.engine == "slots":
        # A prompt that is read takes less than the slots that wait beside it.
        smaller = max(1, work.decoding // 2)
        return (
            f"{name}: decode fewer completions at once, rollout.slots={smaller} "
            f"(now {work.decoding}); every device has all of them, split by heads."
        )
    smaller = max(1, work.at_once // 2)
    return (
        f"{name}: sample fewer prompts at once, rollout.prompts_at_once={smaller} "
        f"(now {work.at_once})."
    )


def _refused(plan: PodPlan, name: str) -> bool:
    return name in plan.compiled and bool(plan.compiled[name].refusal)
