"""A run from settings to summary: evaluate, then sample, verify, learn, save."""

import dataclasses
import functools
import pathlib
import resource
import sys
import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from flax import nnx

from rlvr_jax import config as config_lib
from rlvr_jax.analysis.report import write_report
from rlvr_jax.config import Config
from rlvr_jax.data.curriculum import BatchShort, CurriculumExhausted
from rlvr_jax.mesh.mesh import fetch
from rlvr_jax.mesh.processes import anywhere, ending_together
from rlvr_jax.models.lora import merged, save_adapters
from rlvr_jax.models.weights import save_decoder
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
from rlvr_jax.train.guard import DivergenceGuard
from rlvr_jax.train.interrupts import stop_on_signals
from rlvr_jax.train.lock import RunLock
from rlvr_jax.train.metrics import RunWriter, write_json, write_summary
from rlvr_jax.train.micro_batches import packing_for
from rlvr_jax.train.optimizer import learning_rate_schedule, updates_made
from rlvr_jax.train.partial import PartialCollector
from rlvr_jax.train.plan import plan_sections
from rlvr_jax.train.policy import new_state
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
from rlvr_jax.train.step import Extras, train_step
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
        self.learners: dict[int, Callable] = {}
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
        return self._finish(state, step, after)

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
        setup, plan = self.setup, self.setup.step_plan
        num_problems = len(setup.train.problems)
        if self.checkpoints.latest is not None:
            like = abstract_state(
                setup.parameters,
                plan,
                num_problems=num_problems,
                behaviours=self.config.rollout.staleness,
                rollout_mesh=setup.sampler.mesh,
            )
            state, extra = self.checkpoints.restore(like=like)
            check_same_problems(setup.train.problems, extra.get("problems"))
            self.before = extra["before"]
            self.stall.restore(extra["stall"])
            self.collect.restore(extra)
            self.ahead.resume(state.behaviour, int(state.step))
            return dataclasses.replace(state, behaviour=None), int(state.step)
        parameters = setup.parameters
        if setup.warmup is not None:
            begun = time.perf_counter()
            parameters, losses = setup.warmup.run(parameters)
            units = {"likelihood": " nats/token", "rectified": " per token, rectified"}
            print(
                f"cold start: {len(losses)} steps, loss {losses[0]:.3f} -> "
                f"{losses[-1]:.3f}{units[self.config.warmup.loss]}, "
                f"{time.perf_counter() - begun:.0f} s",
                flush=True,
            )
        state = new_state(
            parameters,
            plan,
            num_problems=num_problems,
            reference=setup.reference,
            critic=setup.critic,
        )
        return state, 0

    def _step_or_save(self, state: TrainState, step: int, writer: RunWriter):
        """A step; what was learned is saved where the rules end the run."""
        try:
            return self._step(state, step, writer)
        except (CurriculumExhausted, BatchShort):
            self._save(state, step)
            raise

    def _step(self, state: TrainState, step: int, writer: RunWriter):
        """Samples, verifies and learns from one batch."""
        setup = self.setup.at(step)
        begun = time.perf_counter()
        weights = setup.sampler.weights(state.parameters)
        batch, tally, weights, age = self.ahead(weights, step)
        scores = batch.scores
        collected = time.perf_counter()
        extras = extras_for(
            setup,
            weights,
            batch.indices,
            step,
            scores,
            kept=batch.kept if self.collect.decides else None,
        )
        sampled = time.perf_counter()
        put = setup.batches.put
        limit = setup.sampling.max_completion_tokens
        self._save_replay(state, step, batch, extras, self._plan(limit))
        del weights  # the sampler's copy is not needed while learning
        packing, shares = packing_for(setup.step_plan, batch.rollouts)
        state, metrics = self._learner(limit)(
            state,
            batch.rollouts,
            put(scores.rewards),
            put(scores.correct),
            extras,
            packing,
        )
        metrics = {name: float(value) for name, value in fetch(metrics).items()}
        done = time.perf_counter()
        rollout_s = tally.collect_s - tally.verify_s + sampled - collected
        metrics |= scores.metrics | shares
        metrics |= {
            "optimizer/learning_rate": self._rate(state),
            "rollout/version_gap": age,
            "time/rollout_s": rollout_s,
            "time/verify_s": tally.verify_s,
            "time/update_s": done - sampled,
            "time/step_s": done - begun,
            "speed/tokens_per_s": tally.tokens / rollout_s,
            "memory/peak_rss_gib": peak_rss_gib(),
        }
        every = self.config.logging.completions_every_steps
        if every > 0 and step % every == 0:
            self._show_completions(step, batch, writer)
        return state, metrics

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

    def _learner(self, max_completion_tokens: int):
        """The jitted train step; one for each length that a stage allows."""
        if max_completion_tokens not in self.learners:
            plan = self._plan(max_completion_tokens)
            program = functools.partial(train_step, plan=plan)
            self.learners[max_completion_tokens] = jax.jit(program, donate_argnums=0)
        return self.learners[max_completion_tokens]

    def _plan(self, max_completion_tokens: int) -> StepPlan:
        return dataclasses.replace(
            self.setup.step_plan, max_completion_tokens=max_completion_tokens
        )

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

    def _save(self, state: TrainState, step: int) -> None:
        """Unless that is there already."""
        if self.checkpoints.latest == step:
            return
        extra = {
            "before": self.before,
            "stall": self.stall.state(),
            "problems": self.problems,
        }
        extra |= self.collect.as_json(self.ahead.state())
        state = self._with_behaviour(state)
        self.checkpoints.save(state, step, extra)

    def _with_behaviour(self, state: TrainState) -> TrainState:
        """With the policies of batches under way, where there are some."""
        if self.config.rollout.staleness == 0:
            return state
        weights = self.setup.sampler.weights(state.parameters)
        return dataclasses.replace(state, behaviour=self.ahead.behaviour(weights))

    def _finish(self, state: TrainState, step: int, after) -> dict[str, Any]:
        """Summary, export and report; prints where they are."""
        config = self.config
        summary = {
            "seconds": round(self.clock.seconds, 2),
            "processes": self.clock.processes,
            "steps": step,
            "finished": step == config.steps,
            "eval": {"before": self.before, "after": after},
            "pass_rates": self.setup.curriculum.rates.histogram().tolist(),
        }
        if not summary["finished"]:
            print(
                f"stopped at step {step} of {config.steps} and saved; the same command "
                "continues."
            )
        elif config.checkpoint.export:
            decoder = nnx.merge(self.setup.step_plan.graphdef, state.parameters)
            save_adapters(decoder, self.folder / "adapter")
            source = config.model.path or None
            if self.is_first:
                self.setup.tokenizer.save(self.folder / "model")
            save_decoder(merged(decoder), self.folder / "model", source=source)
        if not self.is_first:
            return summary
        self.clock.write()
        write_summary(self.folder, summary)
        if self.before and after:
            display.print_evaluation(self.before, after)
        if config.logging.report and (self.folder / "metrics.jsonl").stat().st_size:
            write_report([self.folder], self.folder / "report.html")
            print(f"report: {self.folder / 'report.html'}")
        print(f"run folder: {self.folder}  ({summary['seconds']:.0f} s)")
        return summary


def peak_rss_gib() -> float:
    """Largest resident memory of this process so far, in GiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**30 if sys.platform == "darwin" else 2**20)
