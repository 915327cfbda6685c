"""`launch.train` with a fault of its own making.

`python -m tests.end_to_end.phases FAULT -- arguments of launch.train`, where FAULT is

- `none`
- `die:PHASE:COUNT:SECONDS`: SIGKILL to itself, that long after the phase began for the
  COUNT-th time. (A kill from outside comes in the same way, but hardly ever while a
  checkpoint of a few milliseconds is written.)
- `worker:COUNT`: SIGKILL to a verifier process during the COUNT-th verification.
- `nan:FIRST:LAST`: gradients of these steps are not numbers.

Phases that begin are appended to the file in $RLVR_PHASES, one a line.
"""

import functools
import os
import pathlib
import signal
import sys
import threading

import jax
import jax.numpy as jnp

PHASES = ("start", "rollout", "verify", "update", "save", "evaluate", "finish")


def watch(actions: dict[str, tuple[int, object]]) -> None:
    """Notes each phase, and calls `action()` at the COUNT-th beginning of one."""
    from rlvr_jax.rollout.scoring import Scorer
    from rlvr_jax.train import loop
    from rlvr_jax.train.checkpoint import Checkpoints
    from rlvr_jax.train.collect import Collector
    from rlvr_jax.train.learner import Learner

    places = {
        "start": (loop, "prepare"),
        "rollout": (Collector, "__call__"),
        "verify": (Scorer, "__call__"),
        "update": (Learner, "__call__"),
        "save": (Checkpoints, "save"),
        "evaluate": (loop._Run, "_evaluate"),
        "finish": (loop, "write_outputs"),
    }
    notes = os.open(os.environ["RLVR_PHASES"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for phase, (owner, name) in places.items():
        wrap(owner, name, phase, notes, *actions.get(phase, (0, None)))


def wrap(owner, name, phase, notes, count, action):
    plain, calls = getattr(owner, name), 0

    @functools.wraps(plain)
    def noted(*args, **kwargs):
        nonlocal calls
        calls += 1
        os.write(notes, f"{phase}\n".encode())
        if calls == count:
            action()
        return plain(*args, **kwargs)

    setattr(owner, name, noted)


def die_after(seconds: float) -> None:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL))
    timer.daemon = True
    timer.start()


def kill_a_worker() -> None:
    """Once it has work: a moment after the verification began."""

    def kill():
        children = pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        for thread in pathlib.Path("/proc/self/task").iterdir():
            children += (thread / "children").read_text()
        os.kill(int(children.split()[0]), signal.SIGKILL)

    threading.Timer(0.005, kill).start()


def poison(first: int, last: int) -> None:
    """Makes the gradients of some steps NaN, inside the compiled step."""
    from rlvr_jax.train import step

    update, mean_gradients = step._update, step.mean_gradients

    def poisoned_update(state, *args):
        bad = (state.step >= first) & (state.step <= last)

        def poisoned(*given):
            gradients, rest = mean_gradients(*given)
            spoilt = jax.tree.map(lambda g: jnp.where(bad, jnp.nan, g), gradients)
            return spoilt, rest

        step.mean_gradients = poisoned
        return update(state, *args)

    step._update = poisoned_update


def arm(fault: str) -> None:
    """Prepares the fault."""
    kind, *words = fault.split(":")
    actions = {}
    if kind == "die":
        action = functools.partial(die_after, float(words[2]))
        actions[words[0]] = (int(words[1]), action)
    elif kind == "worker":
        actions["verify"] = (int(words[0]), kill_a_worker)
    elif kind == "nan":
        poison(int(words[0]), int(words[1]))
    watch(actions)


if __name__ == "__main__":
    split = sys.argv.index("--")
    fault = sys.argv[1]
    sys.argv = ["launch/train.py", *sys.argv[split + 1 :]]
    # Late, as flags are defined when they are imported.
    from launch import flags, train

    arm(fault)
    flags.run(train.main)
