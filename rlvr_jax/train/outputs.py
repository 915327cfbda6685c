"""What a run leaves in its folder at the end: summary, model and report."""

import pathlib
from typing import Any

import jax
from flax import nnx

from rlvr_jax.analysis.report import write_report
from rlvr_jax.models.lora import merged, save_adapters
from rlvr_jax.models.weights import save_decoder
from rlvr_jax.train import display
from rlvr_jax.train.clock import RunClock
from rlvr_jax.train.metrics import write_summary
from rlvr_jax.train.setup import Setup
from rlvr_jax.train.state import TrainState


def write_outputs(
    setup: Setup,
    folder: pathlib.Path,
    clock: RunClock,
    state: TrainState,
    step: int,
    scores: dict[str, Any],
) -> dict[str, Any]:
    """Writes them, prints where they are, and returns the summary.

    Args:
      setup: of the run.
      folder: of the run.
      clock: of the run.
      state: the last one.
      step: its number; less than config.steps where the run was stopped.
      scores: of the evaluations, "before" and "after"; None where there was none.
    """
    config, is_first = setup.config, jax.process_index() == 0
    summary = {
        "seconds": round(clock.seconds, 2),
        "processes": clock.processes,
        "steps": step,
        "finished": step == config.steps,
        "eval": scores,
        "pass_rates": setup.curriculum.rates.histogram().tolist(),
    }
    if not summary["finished"]:
        print(
            f"stopped at step {step} of {config.steps} and saved; the same command "
            "continues."
        )
    elif config.checkpoint.export:
        _export(setup, state, folder)
    if not is_first:
        return summary
    clock.write()
    write_summary(folder, summary)
    if scores["before"] and scores["after"]:
        display.print_evaluation(scores["before"], scores["after"])
    if config.logging.report and (folder / "metrics.jsonl").stat().st_size:
        write_report([folder], folder / "report.html")
        print(f"report: {folder / 'report.html'}")
    print(f"run folder: {folder}  ({summary['seconds']:.0f} s)")
    return summary


def _export(setup: Setup, state: TrainState, folder: pathlib.Path) -> None:
    """The policy as a Hugging Face directory, and its adapters if it has some."""
    decoder = nnx.merge(setup.step_plan.graphdef, state.parameters)
    save_adapters(decoder, folder / "adapter")
    if jax.process_index() == 0:
        setup.tokenizer.save(folder / "model")
    source = setup.config.model.path or None
    save_decoder(merged(decoder), folder / "model", source=source)
