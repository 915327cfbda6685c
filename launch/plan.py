"""Plans a run on a TPU pod, without a TPU and without the model's files.

    python -m launch.plan --config configs/dapo_qwen32b.py --topology v5p:4x4x4

Compiles sampling and the train step for the topology where libtpu is installed
(`pip install rlvr_jax[tpu]`, any machine), and prints memory, FLOPs, time and cost of a
step. `--search` looks for the mesh and batch sizes that fit, `--shardings` lists every
parameter, `--json` ends with one JSON object.
"""

import json
import os

# Nothing runs here: programs are only compiled, for chips that are elsewhere.
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import rich
from absl import flags as absl_flags
from rich.box import SIMPLE_HEAD
from rich.table import Column, Table

from launch import flags
from rlvr_jax.config import Config
from rlvr_jax.planning.chips import parse_topology
from rlvr_jax.planning.pod_plan import GIB, PodPlan, as_json, has_libtpu, plan_pod
from rlvr_jax.planning.programs import Compiled
from rlvr_jax.planning.search import search
from rlvr_jax.planning.show import pod_sections, sharding_lines
from rlvr_jax.train import display
from rlvr_jax.validate import ConfigError

_TOPOLOGY = absl_flags.DEFINE_string(
    "topology", None, "GENERATION:SIZES, as v5e:16x16, v5p:4x4x4, v6e:16x16."
)
_SEARCH = absl_flags.DEFINE_bool("search", False, "Look for settings that fit.")
_COMPILE = absl_flags.DEFINE_bool("compile", True, "False: estimates alone.")
_COMPILES = absl_flags.DEFINE_integer("compiles", 3, "Most candidates to compile.")
_SHARDINGS = absl_flags.DEFINE_bool("shardings", False, "List every parameter.")
_JSON = absl_flags.DEFINE_bool("json", False, "End with one JSON object.")
_LAYERS = absl_flags.DEFINE_integer("layers", None, "Depth in place of the model's.")
_PRICE = absl_flags.DEFINE_float("price", None, "Dollars per chip-hour.")


def main(config: Config) -> int:
    """Prints the plan; 0 if it fits, 1 if not."""
    if not _TOPOLOGY.value:
        raise ConfigError("plan: give a topology, as --topology=v5p:4x4x4.")
    plan = _plan(config)
    if plan is None:
        print("no mesh, micro-batch and remat policy fits: take more chips.")
        return 1
    if not plan.compiled:
        print(f"Not compiled ({_why_not()}): memory is an estimate.")
    display.print_plan(pod_sections(plan, price=_PRICE.value))
    if _SHARDINGS.value:
        _print_shardings(plan)
    if _JSON.value:
        print(json.dumps(as_json(plan)))
    return 0 if plan.fits else 1


def _plan(config: Config) -> PodPlan | None:
    topology = parse_topology(_TOPOLOGY.value or "")
    if not _SEARCH.value:
        return plan_pod(
            config,
            topology,
            layers=_LAYERS.value,
            compile_programs=_COMPILE.value,
            on_compiled=_tell,
        )
    compiles = _COMPILES.value if _COMPILE.value and has_libtpu() else 0
    found = search(config, topology, layers=_LAYERS.value, compiles=compiles)
    if not found:
        return None
    best = found[0].config
    apart = " --config.mesh.rollout_shape=()" if config.mesh.rollout_shape else ""
    print(
        f"best of {len(found)} that fit: --config.mesh.shape={best.mesh.shape}{apart} "
        f"--config.batch.micro_batch_size={best.batch.micro_batch_size} "
        f"{_at_once(best)} "
        f"--config.model.remat={best.model.remat}"
    )
    return found[0]


def _at_once(config: Config) -> str:
    if config.rollout.engine == "slots":
        return f"--config.rollout.slots={config.rollout.slots}"
    return f"--config.rollout.prompts_at_once={config.rollout.prompts_at_once}"


def _why_not() -> str:
    """Why there is a plan without compiled programs."""
    if not has_libtpu():
        return "libtpu is not installed"
    if not _COMPILE.value:
        return "--nocompile"
    return f"the {_COMPILES.value} best did not fit; --compiles=N tries more"


def _tell(name: str, program: Compiled) -> None:
    size = program.hbm_bytes / GIB
    print(f"{name}: compiled in {program.seconds:.0f} s, {size:.2f} GiB", flush=True)


def _print_shardings(plan: PodPlan) -> None:
    columns = [Column("parameter", no_wrap=True), "shape", "split", _bytes("master")]
    if any(row.spec != row.sampled_spec for row in plan.rows):
        columns += ["split, sampling", _bytes("sampling")]
    table = Table(*columns, box=SIMPLE_HEAD)
    for line in sharding_lines(plan):
        table.add_row(*line[: len(columns)])
    rich.print(table)


def _bytes(of: str) -> Column:
    """Bytes of one device."""
    return Column(f"bytes, {of}", no_wrap=True, justify="right")


if __name__ == "__main__":
    flags.run(main)
