"""Many hostile samples through one pool: every one gets its status, nothing is left.

Each kind of sample has the one status that it may end with; what a sample does is in
`hostile.py` or, for the math verifier, in its text.
"""

import collections
import gc
import os
import pathlib
import random
import threading
import uuid

import pytest

from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.pool import VerifierPool

HERE = pathlib.Path(__file__).parent
HOSTILE = f"{HERE / 'hostile.py'}:"
TIMEOUT_S = 1.0
BOX = r"\boxed{%s}"
NEST = "{" * 3000 + "1" + "}" * 3000


def own(function, answer="x"):
    return Sample(HOSTILE + function, "x", answer)


def math(text, answer="4"):
    return Sample("math", text, answer)


EITHER = (Status.CRASH, Status.TIMEOUT)
HARMLESS = [
    (math(BOX % "4"), Status.CORRECT),
    (math(BOX % "5"), Status.WRONG),
    (math("no idea"), Status.UNPARSEABLE),
    (math(BOX % "9^{9^{9^{9}}}"), Status.WRONG),
    (math(BOX % NEST), Status.WRONG),
    (math(BOX % ("1+" * 5000 + "1")), Status.WRONG),
    (math("\\boxed{" * 5000), Status.UNPARSEABLE),
    (math("\ud800\x00\u202e" + BOX % "4" + "\U0001f600"), Status.CORRECT),
    (math("x" * 300_000 + BOX % "4"), Status.CORRECT),
    (math(BOX % "4", ""), Status.BAD_REFERENCE),
    (math(BOX % "4", {1, 2}), Status.BAD_REFERENCE),
    (Sample("exact", "<think>no</think> Yes.", "yes"), Status.CORRECT),
    (Sample("countdown", "<answer>1+1</answer>", None), Status.BAD_REFERENCE),
    (own("echo"), Status.CORRECT),
    (own("print_10_mb"), Status.CORRECT),
    (own("read_input"), Status.CORRECT),
    (own("raise_error"), Status.CRASH),
    (own("raise_unprintable"), Status.CRASH),
    (own("sys_exit"), Status.CRASH),
    (own("junk"), Status.CRASH),
    (own("not_a_number"), Status.CRASH),
    (own("kill_trainer"), Status.CRASH),
    (own("no_such_function"), Status.CRASH),
    (Sample("nowhere.py:check", "x", "x"), Status.CRASH),
]
"""They cost their worker nothing."""
DEADLY = [
    (own("exit_now"), Status.CRASH),
    (own("segfault"), Status.CRASH),
    (own("interrupt_itself"), Status.CRASH),
    (own("close_descriptors"), Status.CRASH),
    (own("talk_out_of_turn"), Status.CRASH),
    (own("forge"), Status.CRASH),
    (own("eat_memory"), EITHER),  # full before the deadline, or after it
    (own("loop_forever"), Status.TIMEOUT),
    (own("loop_in_c"), Status.TIMEOUT),
    (own("fork_escaping"), Status.TIMEOUT),
]
"""They cost a worker each, or a deadline."""


def mixed(count, deadly, seed=0):
    """`count` samples, `deadly` of them deadly, every kind among them, shuffled."""
    chosen = random.Random(seed)
    rows = [DEADLY[i % len(DEADLY)] for i in range(deadly)]
    rows += [HARMLESS[i % len(HARMLESS)] for i in range(count - deadly)]
    chosen.shuffle(rows)
    return [sample for sample, _ in rows], [status for _, status in rows]


def resident_mib():
    """Memory of this process now."""
    gc.collect()
    pages = int(pathlib.Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def descendants(mark):
    """Processes born in this environment, wherever they went since."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = entry.read_bytes()
        except OSError:
            continue
        if mark.encode() in environment and b"RLVR_JAX_VERIFIER=" in environment:
            found.append(entry.parent.name)
    return found


def soak(batches, monkeypatch, *, threads=2):
    """Runs the batches in turn, each from several threads; memory after each."""
    mark = f"RLVR_JAX_TEST_SOAK={uuid.uuid4().hex}"
    monkeypatch.setenv(*mark.split("="))
    descriptors = len(os.listdir("/proc/self/fd"))
    memory = []
    with VerifierPool(2, TIMEOUT_S, memory_limit_mb=512) as pool:
        for samples, expected in batches:
            got = [None] * len(samples)

            def work(start, samples=samples, got=got):
                got[start::threads] = pool.verify(samples[start::threads])

            started = [threading.Thread(target=work, args=(i,)) for i in range(threads)]
            for thread in started:
                thread.start()
            for thread in started:
                thread.join()
            wrong = collections.Counter(
                (sample.verifier.rpartition(":")[2], str(status), str(verdict))
                for sample, status, verdict in zip(samples, expected, got, strict=True)
                if verdict is None
                or verdict.status not in (status if status is EITHER else (status,))
            )
            assert wrong == {}
            memory.append(resident_mib())
    assert descendants(mark) == []
    assert len(os.listdir("/proc/self/fd")) <= descriptors
    return memory


def test_a_few_hundred(monkeypatch):
    """Two of each deadly kind among 400, from two threads at once."""
    soak([mixed(400, 20)], monkeypatch)


@pytest.mark.slow
def test_twenty_thousand(monkeypatch):
    """Ten rounds of 2000 with 40 deadly ones each; memory does not grow with rounds.

    The first rounds fill caches and pools; after them 16 MiB is far below what keeping
    the samples (5 MB of text a round) or their verdicts would add.
    """
    memory = soak([mixed(2000, 40, seed) for seed in range(10)], monkeypatch)
    assert max(memory[3:]) - memory[2] < 16
