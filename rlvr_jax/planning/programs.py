"""The four programs of a step, compiled for a pod that is not there.

libtpu compiles for a named topology on any machine.
"""

import contextlib
import dataclasses
import os
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax.sharding import Mesh

from rlvr_jax.errors import UserError
from rlvr_jax.mesh.mesh import make_mesh, rearranged
from rlvr_jax.planning import slot_programs
from rlvr_jax.planning.abstract_run import (
    AbstractRun,
    extras_of,
    per_row_shape,
    prompt_shapes,
    rollouts_of,
)
from rlvr_jax.planning.collectives import Collectives, collectives_of
from rlvr_jax.rollout.sampler import sample
from rlvr_jax.train.step import train_step

NAMES = ("reshard", "prefill", "decode", "train")
"""In the order of a step: the sampler's weights are made, sampled with, let go."""


@dataclasses.dataclass(frozen=True)
class Compiled:
    """What a compiled program said of itself."""

    hbm_bytes: float
    """Peak of one device, arguments included."""
    seconds: float
    """Of compiling."""
    refusal: str = ""
    """Why it was not compiled; `hbm_bytes` is then what it asked for, 0 if unsaid."""
    collectives: Collectives | None = None
    """None where the program cannot be read."""


def topology_meshes(
    name: str, shape: tuple[int, ...], rollout_shape: tuple[int, ...] = ()
) -> tuple[Mesh, Mesh]:
    """Meshes of training and sampling over the devices of a named topology.

    Raises:
      ImportError: libtpu is not installed.
      UserError: a shape does not fill the topology, or libtpu does not know it.
    """
    # Before libtpu starts: no questions to a metadata server that is not there.
    os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")
    # No chip is opened, so plans need not wait for one another.
    os.environ.setdefault("ALLOW_MULTIPLE_LIBTPU_LOAD", "1")
    import libtpu  # noqa: F401 - an extra; without it the plan is an estimate
    from jax.experimental import topologies

    try:
        with _without_native_log():
            topology = topologies.get_topology_desc(platform="tpu", topology_name=name)
    except Exception as error:
        raise UserError(
            f"plan: libtpu does not know the topology {name!r}: {error}"
        ) from error
    mesh = make_mesh(shape, topology.devices)
    return mesh, rearranged(mesh, rollout_shape)


@contextlib.contextmanager
def _without_native_log() -> Iterator[None]:
    """libtpu prints a stack trace beside each error that it raises, and warnings that
    there is no TPU."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def compiled(run: AbstractRun, name: str) -> Compiled:
    """Compiles one of NAMES ahead of time for the devices of the run."""
    begun = time.perf_counter()
    lowered = lower(run, name)
    try:
        program = lowered.compile()
    except Exception as error:
        asked = _asked_for(str(error))
        if asked is None:
            raise
        seconds = time.perf_counter() - begun
        return Compiled(asked, seconds, refusal=_first_line(str(error)))
    seconds = time.perf_counter() - begun
    memory: Any = program.memory_analysis()
    peak = getattr(memory, "peak_memory_in_bytes", 0) or (
        memory.argument_size_in_bytes
        + memory.temp_size_in_bytes
        + memory.output_size_in_bytes
        - memory.alias_size_in_bytes
    )
    try:
        with _without_native_log():
            text = program.as_text()
    except Exception:  # libtpu cannot print some v5p and tpu7x programs
        text = None
    return Compiled(
        float(peak), seconds, collectives=None if text is None else collectives_of(text)
    )


def lower(run: AbstractRun, name: str) -> jax.stages.Lowered:
    """Traces one of NAMES for the shapes of the run."""
    work, mesh, graphdef = run.work, run.sampler.mesh, run.sampler.graphdef
    if name == "train":
        return _lower_train(run)
    if name == "reshard":
        program: Any = run.sampler.weights
        return program.lower(run.parameters)
    if work.engine == "slots":
        args = (graphdef, run.weights, work, mesh)
        if name == "prefill":
            return slot_programs.lower_prefill(*args)
        return slot_programs.lower_decode(*args, run.sampling)
    if name == "prefill":

        @jax.jit
        def prefill(weights, tokens, lengths):
            return nnx.merge(graphdef, weights).prefill(tokens, lengths)

        return prefill.lower(run.weights, *prompt_shapes(work, mesh, work.at_once))
    keys = jax.eval_shape(lambda: jax.random.key(0))
    return sample.lower(
        graphdef,
        run.weights,
        *prompt_shapes(work, mesh, work.prompts),
        per_row_shape(work, mesh, keys.dtype),
        sampling=run.sampling,
    )


def _lower_train(run: AbstractRun) -> jax.stages.Lowered:
    given = (run.state, rollouts_of(run), extras_of(run))
    trees = [part.tree for part in given]

    def learn(state, rollouts, extras, rewards, correct):
        parts = (state, rollouts, extras)
        trio = [jax.tree.unflatten(t, p) for t, p in zip(trees, parts, strict=True)]
        state, rollouts, extras = trio
        return train_step(state, rollouts, rewards, correct, extras, plan=run.plan)

    scores = per_row_shape(run.work, run.plan.mesh, jnp.float32)
    return jax.jit(learn, donate_argnums=0).lower(
        *(part.leaves for part in given), scores, scores
    )


def _asked_for(message: str) -> float | None:
    """Bytes of memory that a refused program wanted; None for another error."""
    found = re.search(r"Used ([\d.]+)([KMGT]) of [\d.]+[KMGT] hbm", message)
    if found:
        return float(found[1]) * 1024 ** ("KMGT".index(found[2]) + 1)
    return 0.0 if "RESOURCE_EXHAUSTED" in message else None


def _first_line(message: str) -> str:
    return message.strip().splitlines()[0][:300]
