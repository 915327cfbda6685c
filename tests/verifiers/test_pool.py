"""The pool: one bad sample never costs another."""

import concurrent.futures
import os
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid

import pytest

from rlvr_jax.verifiers import pool as pool_module
from rlvr_jax.verifiers import process, protocol
from rlvr_jax.verifiers.base import Sample, Status
from rlvr_jax.verifiers.pool import VerifierPool

HERE = pathlib.Path(__file__).parent
HOSTILE = f"{HERE / 'hostile.py'}:"
TIMEOUT_S = 1.5
RUN = f"RLVR_JAX_TEST_RUN={uuid.uuid4().hex}"
"""In the environment of every process that these tests start, to find them by."""


@pytest.fixture(scope="module", autouse=True)
def _environment():
    name, _, value = RUN.partition("=")
    os.environ[name] = value
    yield
    del os.environ[name]


@pytest.fixture(scope="module")
def pool():
    with VerifierPool(2, TIMEOUT_S, memory_limit_mb=512) as pool:
        pool.check([HOSTILE + "echo", "math"])
        yield pool


def sample(function, completion="x", answer="x"):
    return Sample(HOSTILE + function, completion, answer)


@pytest.mark.parametrize(
    ("function", "status", "words"),
    [
        ("loop_forever", Status.TIMEOUT, "1.5 s"),
        ("loop_in_c", Status.TIMEOUT, "1.5 s"),
        ("fork_escaping", Status.TIMEOUT, "1.5 s"),
        ("exit_now", Status.CRASH, "exited with code 3"),
        ("sys_exit", Status.CRASH, "SystemExit"),
        ("raise_error", Status.CRASH, "KeyError: 'deliberate' (hostile.py:"),
        ("raise_unprintable", Status.CRASH, "Nasty"),
        ("segfault", Status.CRASH, "SIGSEGV"),
        ("interrupt_itself", Status.CRASH, "SIGTERM"),
        ("signal_without_a_name", Status.CRASH, "killed by signal 40"),
        ("eat_memory", Status.CRASH, "MemoryError"),
        ("close_descriptors", Status.CRASH, "worker"),
        ("talk_out_of_turn", Status.CRASH, "worker"),
        ("forge", Status.CRASH, "worker"),
        ("kill_trainer", Status.CRASH, "PermissionError"),
        ("junk", Status.CRASH, "dict"),
        ("not_a_number", Status.CRASH, "nan"),
        ("no_such_function", Status.CRASH, "no 'no_such_function'"),
        ("print_10_mb", Status.CORRECT, ""),
        ("read_input", Status.CORRECT, ""),
    ],
)
def test_a_bad_function_costs_its_own_sample_only(pool, function, status, words):
    """Around the bad one, good samples keep their order and their verdicts."""
    answers = [str(i) for i in range(10)]
    good = [sample("echo", answer, answer) for answer in answers]
    wrong = [sample("echo", answer, "y") for answer in answers]
    verdicts = pool.verify([*good, sample(function), *wrong])
    assert [v.status for v in verdicts[:10]] == [Status.CORRECT] * 10
    assert verdicts[10].status is status
    assert words in verdicts[10].detail
    assert [v.status for v in verdicts[11:]] == [Status.WRONG] * 10
    workers = _workers(pool)
    assert _marked_processes() == workers


def test_kill_9_of_a_worker_costs_no_sample(pool, tmp_path):
    """It says nothing about the sample, which is verified once more; not for ever."""
    answers = [str(i) for i in range(10)]
    good = [sample("echo", answer, answer) for answer in answers]
    once = sample("killed_once", answer=str(tmp_path / "called"))
    verdicts = pool.verify([*good, once, sample("killed_always"), *good])
    assert [v.status for v in verdicts[:11]] == [Status.CORRECT] * 11
    assert verdicts[11].status is Status.CRASH
    assert "SIGKILL" in verdicts[11].detail
    assert [v.status for v in verdicts[12:]] == [Status.CORRECT] * 10


def test_order_is_kept_when_later_samples_finish_first(pool):
    naps = [0.3, 0.0, 0.1, 0.0, 0.2, 0.0]
    samples = [Sample(HOSTILE + "nap", "", nap) for nap in naps]
    samples = [
        each
        for i, nap in enumerate(samples)
        for each in (nap, sample("score", answer=i / 10))
    ]
    scores = [verdict.score for verdict in pool.verify(samples)]
    assert scores == [x for i in range(6) for x in (1.0, i / 10)]


def test_threads_share_the_pool(pool):
    """Four threads of 50 samples each get their own verdicts."""
    results = {}

    def work(name):
        samples = [sample("score", answer=(name * 50 + i) / 1000) for i in range(50)]
        results[name] = [verdict.score for verdict in pool.verify(samples)]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in range(4):
        assert results[name] == [(name * 50 + i) / 1000 for i in range(50)]


def test_no_samples_give_no_verdicts(pool):
    assert pool.verify([]) == []


def test_a_sample_that_is_no_json_is_a_bad_reference(pool):
    bad, good = pool.verify([Sample("exact", "x", {1, 2}), Sample("exact", "x", "x")])
    assert (bad.status, good.status) == (Status.BAD_REFERENCE, Status.CORRECT)
    assert "not JSON" in bad.detail


def test_large_and_odd_completions_arrive_whole(pool):
    """Two megabytes, and text that no encoding has: a lone surrogate."""
    texts = ["x" * 2**21, "\ud800 \x00 é 中"]
    verdicts = pool.verify([sample("echo", text, text) for text in texts])
    assert [verdict.status for verdict in verdicts] == [Status.CORRECT] * 2


def test_verdicts_tell_the_seconds_they_took(pool):
    slow, timeout = pool.verify(
        [Sample(HOSTILE + "nap", "", 0.3), sample("loop_forever")]
    )
    assert 0.3 <= slow.seconds < TIMEOUT_S
    assert timeout.seconds == TIMEOUT_S


def test_verifiers_read_the_answer_segment_unless_they_declare_more(pool):
    """DIAG-21, DIAG-23: thinking text does not reach a verifier that reads answers."""
    completion = "<think>yes</think>no"
    echo, whole = pool.verify(
        [sample("echo", completion, "no"), sample("whole", completion)]
    )
    assert (echo.status, whole.status) == (Status.CORRECT, Status.CORRECT)
    names = [HOSTILE + "echo", HOSTILE + "whole", "format:think"]
    assert list(pool.check(names).values()) == ["answer", "completion", "completion"]


def test_check_says_what_is_wrong_with_a_name(pool):
    with pytest.raises(ValueError, match="did you mean 'math'"):
        pool.check(["maths"])


def test_workers_are_replaced_after_their_share_of_samples():
    with VerifierPool(1, 5.0, max_tasks_per_worker=3) as pool:
        verdicts = pool.verify([sample("process_id") for _ in range(7)])
    processes = [verdict.detail for verdict in verdicts]
    assert processes[0] == processes[1] == processes[2] != processes[3]
    assert len(set(processes)) == 3


def test_an_import_does_not_count_against_the_deadline():
    """The module takes 1.5 s to import; the sample may take 0.5 s."""
    with VerifierPool(1, 0.5) as pool:
        (verdict,) = pool.verify([Sample(f"{HERE / 'slow_import.py'}:check", "", "")])
    assert verdict.status is Status.CORRECT
    assert verdict.seconds < 0.5


def test_workers_that_cannot_start_are_one_clear_error(monkeypatch):
    monkeypatch.setattr(
        process.WorkerProcess,
        "command",
        (sys.executable, "-c", "raise SystemExit('the disk is on fire')"),
    )
    with VerifierPool(2, 1.0) as pool:
        with pytest.raises(RuntimeError, match="the disk is on fire"):
            pool.verify([sample("echo"), sample("echo")])


@pytest.mark.parametrize(
    "answer", [{}, {"status": "splendid"}, {"status": "correct", "score": "high"}]
)
def test_a_worker_that_writes_nonsense_is_replaced(answer):
    """A well-formed message with the right number, but no verdict in it."""

    class Worker(process.WorkerProcess):
        def __init__(self):
            self.loaded = {"exact": "answer"}

        def ask(self, request, timeout_s):
            return answer

    outcome = pool_module._do(Worker(), pool_module._Task("exact", {}), 1.0)
    assert outcome.worker_is_lost
    assert outcome.value.status is Status.CRASH
    assert "nonsense" in outcome.value.detail


@pytest.mark.parametrize("error", [RecursionError(), OSError("disk"), KeyError("id")])
def test_a_thread_of_the_pool_outlives_any_error(error):
    """Else the call that waits for its verdict would wait for ever."""

    class Worker(process.WorkerProcess):
        def __init__(self):
            self.loaded = {"exact": "answer"}

        def ask(self, request, timeout_s):
            raise error

    outcome = pool_module._do(Worker(), pool_module._Task("exact", {}), 1.0)
    assert outcome.worker_is_lost
    assert outcome.value.status is Status.CRASH
    assert type(error).__name__ in outcome.value.detail


def test_a_message_nested_without_end_closes_the_line():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall((200_000).to_bytes(4, "big") + b"[" * 200_000)
        with pytest.raises(protocol.Closed):
            protocol.receive(ours, time.monotonic() + 5.0)


@pytest.mark.parametrize("name", ["socketpair", "pipe", "TemporaryFile"])
def test_no_descriptor_for_a_worker_is_an_error_and_no_hang(monkeypatch, name):
    module = {"socketpair": process.socket, "pipe": process.os}
    owner = module.get(name, process.tempfile)

    def refuse(*_):
        raise OSError(24, "Too many open files")

    with VerifierPool(1, 1.0) as pool:
        pool.verify([sample("echo"), sample("exit_now")])
        monkeypatch.setattr(owner, name, refuse)
        with concurrent.futures.ThreadPoolExecutor() as threads:
            waiting = [threads.submit(pool.verify, [sample("exit_now")] * 2)]
            with pytest.raises(RuntimeError, match="Too many open files"):
                waiting[0].result(30)


def test_a_restart_while_the_pool_closes_serves_nobody(monkeypatch):
    """Three naps of 3 s wait; the worker that was being started must not take them."""
    starting, go = threading.Event(), threading.Event()
    begin = process.WorkerProcess.__init__

    def late(self, *arguments):
        if starting.is_set():
            go.wait(30)
        begin(self, *arguments)

    monkeypatch.setattr(process.WorkerProcess, "__init__", late)
    pool = VerifierPool(1, 10.0)
    pool.verify([sample("echo")])
    starting.set()
    waiting = threading.Thread(target=_refused, args=[pool])
    waiting.start()
    time.sleep(0.5)
    closing = threading.Thread(target=pool.close)
    closing.start()
    time.sleep(0.2)
    go.set()
    closing.join(6)
    assert not closing.is_alive()
    waiting.join(6)


def _refused(pool):
    naps = [Sample(f"{HERE / 'hostile.py'}:nap", "", 3.0)] * 3
    with pytest.raises(RuntimeError, match="closed"):
        pool.verify([sample("exit_now"), *naps])


def test_closing_does_not_wait_for_a_slow_import(tmp_path):
    slow = tmp_path / "sleeps.py"
    slow.write_text("import time\ntime.sleep(60)\ndef check(sample): return True\n")
    pool = VerifierPool(1, 5.0, preload=[f"{slow}:check"])
    time.sleep(1.5)
    start = time.monotonic()
    pool.close()
    assert time.monotonic() - start < 10.0


def test_closing_ends_a_call_that_waits():
    pool = VerifierPool(1, 60.0)
    raised = []

    def wait():
        try:
            pool.verify([sample("loop_forever"), sample("echo")])
        except RuntimeError as error:
            raised.append(str(error))

    pool.verify([sample("echo")])
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    pool.close()
    thread.join(5)
    assert raised == ["the verifier pool is closed"]
    with pytest.raises(RuntimeError, match="closed"):
        pool.verify([sample("echo")])


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match="timeout_s > 0"):
        VerifierPool(1, 0.0)


def test_workers_start_without_jax_or_numpy():
    """A worker with the math verifier loaded holds no device and starts fast."""
    code = (
        "import rlvr_jax.verifiers.worker, rlvr_jax.verifiers.registry as r, sys\n"
        "r.resolve('math'), r.resolve('countdown'), r.resolve('format:think')\n"
        "print([m for m in ('jax', 'numpy', 'flax', 'torch') if m in sys.modules])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "[]"


_TRAINER = """
import sys
from rlvr_jax.verifiers.base import Sample
from rlvr_jax.verifiers.pool import VerifierPool

pool = VerifierPool(2, 60.0)
pool.verify([Sample("{hostile}echo", "", "")] * 4)
print("ready", flush=True)
pool.verify([Sample("{hostile}{function}", "", "")] * 2)
"""


@pytest.mark.parametrize("function", ["loop_in_c", "nap_with_child"])
def test_kill_9_of_the_trainer_leaves_no_process(tmp_path, function):
    """Neither workers busy in C code nor what they started outlive the trainer."""
    own = tmp_path / "own.py"
    own.write_text(
        "import subprocess, time\n"
        "def echo(sample): return True\n"
        "def loop_in_c(sample): return 7 ** (10**9) > 0\n"
        "def nap_with_child(sample):\n"
        "    subprocess.Popen(['sleep', '600'])\n"
        "    time.sleep(600)\n"
    )
    code = _TRAINER.format(hostile=f"{own}:", function=function)
    before = _marked_processes()
    trainer = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    )
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "ready\n"
    _wait_until(lambda: len(_marked_processes() - before) >= 2)
    time.sleep(0.5)
    assert _marked_processes() - before
    trainer.send_signal(signal.SIGKILL)
    trainer.wait()
    trainer.stdout.close()
    _wait_until(lambda: _marked_processes() == before)
    assert _marked_processes() == before


def test_a_fork_of_the_trainer_does_not_keep_workers_alive(tmp_path):
    """As data loaders fork: the copy outlives the trainer, the workers do not."""
    code = (
        "import os, sys, time\n"
        "from rlvr_jax.verifiers.base import Sample\n"
        "from rlvr_jax.verifiers.pool import VerifierPool\n"
        "pool = VerifierPool(1, 60.0)\n"
        "pool.verify([Sample('exact', 'x', 'x')])\n"
        "if os.fork() == 0:\n"
        "    os.close(1)\n"
        "    time.sleep(600)\n"
        "print('ready', flush=True)\n"
        "time.sleep(600)\n"
    )
    before = _marked_processes()
    trainer = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert trainer.stdout is not None
    assert trainer.stdout.readline() == "ready\n"
    assert _marked_processes() - before
    trainer.kill()
    trainer.wait()
    trainer.stdout.close()
    _wait_until(lambda: _marked_processes() == before)
    assert _marked_processes() == before
    os.killpg(trainer.pid, signal.SIGKILL)  # the fork


def _workers(pool):
    """The processes of the pool, once fresh ones have taken the place of lost ones."""
    _wait_until(
        lambda: (
            {p.pid for p in pool._processes.values()} == _marked_processes()
            and len(pool._processes) == pool.workers
        )
    )
    return {process.pid for process in pool._processes.values()}


def _wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.05)


def _marked_processes():
    """Verifier workers of this test run, and what they started, wherever it went."""
    found = set()
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            environment = entry.read_bytes()
        except OSError:
            continue
        if b"RLVR_JAX_VERIFIER=" in environment and RUN.encode() in environment:
            found.add(int(entry.parent.name))
    return found
