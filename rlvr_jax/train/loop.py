"""A run from settings to summary: evaluate, then sample, verify, learn, save."""

import dataclasses
import pathlib
import resource
import sys
import time
from typing import Any

import jax
import numpy as np

from rlvr_jax import config as config_lib
from rlvr_jax.config import Config
from rlvr_jax.data.curriculum import BatchShort, CurriculumExhausted
from rlvr_jax.mesh.processes import anywhere, ending_together
from rlvr_jax.train import display, replay
from rlvr_jax.train.abstract import abstract_state
from rlvr_jax.train.after_updates import reset
from rlvr_jax.train.ahead import Ahead
from rlvr_jax.train.checkpoint import Checkpoints
from rlvr_jax.train.clock import RunClock
from rlvr_jax.train.collect import Batch, Collector
from rlvr_jax.train.completions import completion_rows
from rlvr_jax.train.evaluation import as_metrics
from rlvr_jax.train.extras import extras_for
from rlvr_jax.train.first_state import first_state
from rlvr_jax.train.guard import DivergenceGuard
from rlvr_jax.train.interrupts import stop_on_signals
from rlvr_jax.train.learner import Learner
from rlvr_jax.train.lock import RunLock
from rlvr_jax.train.metrics import RunWriter, write_json
from rlvr_jax.train.optimizer import learning_rate_schedule, updates_made
from rlvr_jax.train.outputs import write_outputs
from rlvr_jax.train.partial import PartialCollector
from rlvr_jax.train.plan import plan_sections
from rlvr_jax.train.resume import (
    check_not_lost,
    check_same_problems,
    check_same_run,
    check_steps,
    fingerprint,
)
from rlvr_jax.train.setup import Setup, prepare, versions
from rlvr_jax.train.stall import Stall
from rlvr_jax.train.state import StepPlan, TrainState
from rlvr_jax.train.step import Extras
from rlvr_jax.train.watch import HangWatch
from rlvr_jax.verifiers.pool import VerifierPool


def run(config: Config) -> dict[str, Any]:
    """Runs or resumes `config` in its run_dir and returns the summary.

    Raises:
      UserError, FileNotFoundError: before step 0, what to change.
      OSError: the disk is full; what was saved before is whole.
      LockLost: another process took the folder over.
      VerifierFailure: too many verifiers crashed or timed out; the run can resume.
    """
    folder = pathlib.Path(config.run_dir).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    reward = config.reward
    with (
        RunLock(folder) as lock,
        VerifierPool(reward.workers, reward.timeout_s) as pool,
        stop_on_signals() as stop,
        Checkpoints(folder / "checkpoints", config.checkpoint) as checkpoints,
        ending_together(lock.release),
    ):
        check_same_run(config, folder)
        check_steps(config.steps, checkpoints.latest)
        check_not_lost(folder, checkpoints.latest, config.checkpoint.every_steps)
        clock = RunClock(folder, writes=jax.process_index() == 0)
        setup = prepare(config, pool, resumes=checkpoints.latest is not None)
        display.print_plan(plan_sections(setup, resumes_at=checkpoints.latest))
        if jax.process_index() == 0:
            config_lib.save(config, folder / "config.json")
            write_json(folder / "versions.json", versions())
        run = _Run(setup, folder, checkpoints, clock, lock)
        try:
            return run.to_the_end(stop)
        finally:
            run.ahead.close()


class _Run:
    """One process's part of a run."""

    def __init__(
        self,
        setup: Setup,
        folder: pathlib.Path,
        checkpoints: Checkpoints,
        clock: RunClock,
        lock: RunLock,
    ):
        self.setup, self.config, self.folder = setup, setup.config, folder
        self.checkpoints, self.clock, self.lock = checkpoints, clock, lock
        self.is_first = jax.process_index() == 0
        partial = self.config.rollout.token_budget > 0
        collector = PartialCollector if partial else Collector
        self.collect = collector(setup, setup.curriculum)
        self.ahead = Ahead(
            lambda weights, step: self.collect(weights, step, setup.at(step).sampling),
            self.collect.state,
            staleness=self.config.rollout.staleness,
            steps=self.config.steps,
        )
        self.learner = Learner(setup.step_plan, setup.batches.put)
        self.learning_rate = learning_rate_schedule(self.config)
        self.before: dict[str, Any] | None = None
        self.stall = Stall(self.config.objective.reset_after_evaluations)
        # Of all training data: not again for the checkpoint of every step.
        self.problems = fingerprint(setup.train.problems)
        self.guard = DivergenceGuard(self.config.optimizer.max_nonfinite_steps)
        self.watch = HangWatch(
            folder / "stacks",
            factor=self.config.logging.slow_step_factor,
            process_index=jax.process_index(),
        )

    def to_the_end(self, stop) -> dict[str, Any]:
        config = self.config
        state, step = self._start()
        with RunWriter(
            self.folder,
            tensorboard=config.logging.tensorboard,
            resume_step=step,
            writes=self.is_first,
        ) as writer:
            if step == 0:
                self.before = self._evaluate(state, 0, writer)
                self._stalls(0, self.before)
            with display.progress(config.steps, start=step) as progress:
                while step < config.steps and not anywhere(bool(stop)):
                    state = self._between_steps(state, step, writer)
                    with self.watch.step(step):
                        state, metrics = self._step_or_save(state, step, writer)
                    writer.metrics(step, metrics)
                    self.guard.check(step, metrics)
                    self.lock.check()
                    self.clock.note()
                    progress.update(step, metrics)
                    step += 1
            self._save(state, step)
            finished = step == config.steps
            after = self._evaluate(state, step, writer) if finished else None
        scores = {"before": self.before, "after": after}
        return write_outputs(self.setup, self.folder, self.clock, state, step, scores)

    def _between_steps(
        self, state: TrainState, step: int, writer: RunWriter
    ) -> TrainState:
        """Evaluates, resets and saves, where it is time to."""
        settings, scores = self.config.checkpoint, None
        if self._due(step, self.config.evaluation.every_steps):
            scores = self._evaluate(state, step, writer)
            if self._stalls(step, scores):
                state = reset(state, self.setup.step_plan)
            if self.stall.last == step:  # Also in a run that resumes right after it.
                writer.metrics(step, {"reference/reset": 1.0})
        is_candidate = scores is not None and settings.keep_best > 0
        if is_candidate or self._due(step, settings.every_steps):
            self._save(state, step)
        return state

    def _stalls(self, step: int, scores: dict[str, Any] | None) -> bool:
        """Whether the score has stopped rising (objective.reset_after_evaluations)."""
        return scores is not None and self.stall(step, scores["pass@1"][0])

    @staticmethod
    def _due(step: int, every: int) -> bool:
        return every > 0 and step > 0 and step % every == 0

    def _start(self) -> tuple[TrainState, int]:
        """The newest checkpoint, or a new state after the cold start."""
        setup = self.setup
        if self.checkpoints.latest is None:
            return first_state(setup), 0
        like = abstract_state(
            setup.parameters,
            setup.step_plan,
            num_problems=len(setup.train.problems),
            behaviours=self.config.rollout.staleness,
            rollout_mesh=setup.sampler.mesh,
        )
        state, extra = self.checkpoints.restore(like=like)
        check_same_problems(setup.train.problems, extra.get("problems"))
        self.before = extra["before"]
        self.stall.restore(extra["stall"])
        self.collect.restore(extra)
        self.ahead.resume(state.behaviour, int(state.step))
        self.checkpoints.drop_superseded()
        return dataclasses.replace(state, behaviour=None), int(state.step)

    def _save(self, state: TrainState, step: int) -> None:
        """What `_start` goes on from, unless that is there already."""
        if self.checkpoints.latest == step:
            return
        extra = {
            "before": self.before,
            "stall": self.stall.state(),
            "problems": self.problems,
        }
        extra |= self.collect.as_json(self.ahead.state())
        if self.config.rollout.staleness > 0:
            weights = self.setup.sampler.weights(state.parameters)
            state = dataclasses.replace(state, behaviour=self.ahead.behaviour(weights))
        self.checkpoints.save(state, step, extra)

    def _step_or_save(self, state: TrainState, step: int, writer: RunWriter):
        """A step; what was learned is saved where the rules end the run."""
        try:
            return self._step(state, step, writer)
        except (CurriculumExhausted, BatchShort):
            self._save(state, step)
            raise

    def _step(self, state: TrainState, step: int, writer: RunWriter):
        """Samples, verifies and learns from one batch."""
        begun = time.perf_counter()
        batch, extras, figures = self._next_batch(state, step)
        sampled = time.perf_counter()
        limit = self.setup.at(step).sampling.max_completion_tokens
        self._save_replay(state, step, batch, extras, self.learner.plan(limit))
        state, metrics = self.learner(state, batch, extras, limit)
        done = time.perf_counter()
        metrics |= batch.scores.metrics | figures
        metrics |= {
            "optimizer/learning_rate": self._rate(state),
            "time/update_s": done - sampled,
            "time/step_s": done - begun,
            "memory/peak_rss_gib": peak_rss_gib(),
        }
        every = self.config.logging.completions_every_steps
        if every > 0 and step % every == 0:
            self._show_completions(step, batch, writer)
        return state, metrics

    def _next_batch(
        self, state: TrainState, step: int
    ) -> tuple[Batch, Extras | None, dict[str, float]]:
        """A batch, what its advantages need beside it, and how fast it came.

        The sampler's copy of the weights ends here: learning needs the room.
        """
        setup = self.setup.at(step)
        weights = setup.sampler.weights(state.parameters)
        batch, tally, weights, age = self.ahead(weights, step)
        collected = time.perf_counter()
        extras = extras_for(
            setup,
            weights,
            batch.indices,
            step,
            batch.scores,
            kept=batch.kept if self.collect.decides else None,
        )
        extras_s = time.perf_counter() - collected
        rollout_s = tally.collect_s - tally.verify_s + extras_s
        figures = {
            "rollout/version_gap": age,
            "time/rollout_s": rollout_s,
            "time/verify_s": tally.verify_s,
            "speed/tokens_per_s": tally.tokens / rollout_s,
        }
        return batch, extras, figures

    def _rate(self, state: TrainState) -> float:
        """Of the last update that was made."""
        last = max(updates_made(state.optimizer) - 1, 0)
        return float(np.asarray(self.learning_rate(last)))

    def _save_replay(
        self,
        state: TrainState,
        step: int,
        batch: Batch,
        extras: Extras | None,
        plan: StepPlan,
    ) -> None:
        every = self.config.replay.save_every
        if every == 0 or step % every:
            return
        put = self.setup.batches.put
        scores = (put(batch.scores.rewards), put(batch.scores.correct))
        kept = None if extras is None else extras.kept_groups
        arrays = replay.capture(state, batch.rollouts, *scores, plan, kept)
        replay.save(self.folder / "replay" / f"step_{step}.npz", arrays, plan, step)

    def _evaluate(self, state: TrainState, step: int, writer: RunWriter):
        evaluation = self.setup.evaluation
        if evaluation is None:
            return None
        scores, metrics = evaluation(self.setup.sampler.weights(state.parameters))
        writer.metrics(step, as_metrics(scores) | metrics)
        self.checkpoints.best.note(step, scores["pass@1"][0])
        if step == 0:
            display.print_evaluation(scores)
        return {name: list(score) for name, score in scores.items()}

    def _show_completions(self, step: int, batch: Batch, writer: RunWriter) -> None:
        rows = completion_rows(batch, self.setup.train.problems)
        writer.completions(step, rows)
        shown = self.config.logging.completions_shown
        spread = np.linspace(0, len(rows) - 1, shown).astype(int) if shown else []
        display.print_completions([rows[i] for i in spread], step=step)


def peak_rss_gib() -> float:
    """Largest resident memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)
