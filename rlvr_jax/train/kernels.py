"""Which of the TPU kernels a run takes, and why not the others.

A setting names a form, or says "auto": the kernel on TPU where it takes the shapes, the
plain form elsewhere. A kernel asked for by name runs interpreted on other devices.
"""

from collections.abc import Mapping

from jax.sharding import Mesh

from rlvr_jax.config import Config
from rlvr_jax.core.fused_head import HeadKernel
from rlvr_jax.mesh.mesh import ROW_AXES, row_devices
from rlvr_jax.models.architecture import Architecture
from rlvr_jax.models.splash import Splash
from rlvr_jax.validate import ConfigError


def on_tpu(mesh: Mesh) -> bool:
    """Whether these are TPUs, present or planned for."""
    return mesh.devices.flat[0].platform == "tpu"


def why_dense(
    setting: str,
    architecture: Architecture,
    sizes: Mapping[str, int],
    tpu: bool,
    *,
    packed: bool = False,
) -> str:
    """Why attention goes without the splash kernel; "" if it does not.

    Args:
      setting: model.attention.
      architecture: of the decoder.
      sizes: of the mesh axes.
      tpu: whether the devices are TPUs.
      packed: completions share rows (batch.packing), which the kernel cannot tell apart
        behind a prompt that all of them see; prompts still go by it.

    Raises:
      ConfigError: "splash" is asked for and cannot be.
    """
    heads, tensor = architecture.num_kv_heads, sizes["tensor"]
    if setting == "dense":
        return "model.attention is 'dense'"
    if packed:
        return "completions share rows (batch.packing)"
    if heads % tensor:
        reason = f"{heads} key-value heads do not divide over tensor {tensor}"
        if setting == "splash":
            raise ConfigError(
                f"model.attention='splash': {reason}. Change mesh.shape (of sampling: "
                "mesh.rollout_shape), or leave it at 'auto'."
            )
        return reason
    return "" if tpu or setting == "splash" else "the devices are no TPUs"


def splash_of(config: Config, architecture: Architecture, mesh: Mesh) -> Splash | None:
    """What the decoder of a run attends by; None for the dense form."""
    setting, tpu = config.model.attention, on_tpu(mesh)
    if why_dense(setting, architecture, mesh.shape, tpu):
        return None
    if setting == "auto":
        return Splash(mesh, interpret=not tpu)
    return Splash(mesh, least_queries=2, interpret=not tpu)


def why_chunked(
    setting: str,
    vocabulary: int,
    sizes: Mapping[str, int],
    tpu: bool,
    *,
    kept_sets: bool = False,
    rounded: bool = False,
) -> str:
    """Why the LM head goes by chunks; "" if its kernel is taken.

    Args:
      setting: model.logprob_kernel.
      vocabulary: V.
      sizes: of the mesh axes.
      tpu: whether the devices are TPUs.
      kept_sets: the sampler truncates, and its sets are replayed.
      rounded: logits are rounded to a type below float32.

    Raises:
      ConfigError: "fused" is asked for and cannot be.
    """
    tensor = sizes["tensor"]
    if setting == "chunked":
        return "model.logprob_kernel is 'chunked'"
    reasons = [
        (kept_sets, "kept sets (rollout.top_p, top_k, min_p) are replayed by chunks"),
        (rounded, "model.head_dtype='model' rounds logits, which chunks do"),
        (
            vocabulary % tensor > 0,
            f"a vocabulary of {vocabulary} does not divide over tensor {tensor}",
        ),
    ]
    for holds, reason in reasons:
        if holds and setting == "fused":
            raise ConfigError(
                f"model.logprob_kernel='fused': {reason}. Change that, or leave it at "
                "'auto'."
            )
        if holds:
            return reason
    return "" if tpu or setting == "fused" else "the devices are no TPUs"


def head_kernel_of(
    setting: str,
    mesh: Mesh,
    rows: int,
    vocabulary: int,
    *,
    kept_sets: bool,
    rounded: bool,
) -> HeadKernel | None:
    """What log-probs of `rows` rows are computed by; None for chunks."""
    tpu = on_tpu(mesh)
    if why_chunked(
        setting, vocabulary, mesh.shape, tpu, kept_sets=kept_sets, rounded=rounded
    ):
        return None
    return HeadKernel(
        mesh=mesh,
        row_axes=ROW_AXES if rows % row_devices(mesh) == 0 else (),
        vocabulary_axis="tensor" if mesh.shape["tensor"] > 1 else None,
        interpret=not tpu,
    )
