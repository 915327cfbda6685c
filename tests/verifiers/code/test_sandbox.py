"""Cells: what a program in one can see, change, use and leave behind."""

import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from rlvr_jax.verifiers.base import Sample, Status, apply
from rlvr_jax.verifiers.code import judge, sandbox, view, wire
from rlvr_jax.verifiers.code.remote import Program
from rlvr_jax.verifiers.pool import VerifierPool
from tests.verifiers.code import tasks


def _offered():
    kinds = []
    for kind in sandbox.ISOLATIONS[:2]:
        try:
            sandbox.Cell(kind, sandbox.Limits()).close()
            kinds.append(kind)
        except sandbox.Refused:
            pass
    return kinds


OFFERED = _offered()
each_kind = pytest.mark.parametrize("kind", OFFERED)


def _run(kind, source, stdin=b"", **limits):
    with sandbox.Cell(kind, sandbox.Limits(**limits)) as cell:
        return cell.run([textwrap.dedent(source)], stdin)


def test_this_machine_offers_a_cell():
    """These tests would show nothing where none is possible."""
    assert sandbox.isolation() == OFFERED[0]


@each_kind
def test_the_system_is_read_only_and_the_rest_is_not_there(kind, tmp_path):
    """VER-18: only /tmp and /dev/shm can be written; neither is that of the machine."""
    source = f"""
        import os
        seen = [p for p in ("/proc/1", "/sys/kernel", "/etc/passwd", {str(tmp_path)!r},
                            {str(pathlib.Path(__file__).parents[2])!r},
                            os.path.expanduser("~root/.ssh")) if os.path.exists(p)]
        print(seen)
        for folder in ("/", "/usr/lib", "/dev", "/bin", os.path.dirname(os.__file__)):
            try:
                open(folder + "/written", "w")
                print("wrote in", folder)
            except OSError:
                pass
        open("here", "w").write("x")
        print(os.getcwd(), sorted(os.listdir(".")), os.environ["HOME"])
    """
    before = set(os.listdir("/tmp"))
    output = _run(kind, source)
    # The interpreter and its packages are readable where they are, under /tmp too.
    shown = view.of_this_machine()
    paths = [pathlib.Path(path) for path in shown.directories + shown.packages]
    installed = {path.parts[2] for path in paths if path.is_relative_to("/tmp")}
    files = sorted({"here", *installed})
    assert output.stdout.decode() == f"[]\n/tmp {files} /tmp\n"
    assert "here" not in set(os.listdir("/tmp")) - before


@each_kind
def test_no_network_no_rights_no_other_process(kind):
    source = """
        import ctypes, os, socket
        for address in (("127.0.0.1", 22), ("1.1.1.1", 80)):
            try:
                socket.create_connection(address, 0.2)
                print("connected")
            except OSError:
                pass
        libc = ctypes.CDLL(None)
        print(os.getuid() == 0, libc.mount(b"/", b"/tmp", None, 4096, None))
        print(libc.sethostname(b"x", 1), os.getppid(), os.getpid())
        for process in range(3, 5000):
            try:
                os.kill(process, 0)
                print("sees", process)
            except ProcessLookupError:
                pass
        print(sorted(os.environ))
    """
    lines = _run(kind, source).stdout.decode().splitlines()
    assert lines[:2] == ["False -1", "-1 1 2"]
    ours = {"HOME", "LANG", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "PATH"}
    ours |= {"PYTHONHASHSEED", "PYTHONUTF8", "TMPDIR"}
    added = {"PWD", "LC_CTYPE", "RLVR_JAX_VERIFIER"}  # by shells, C and the pool
    assert set(eval(lines[2])) - added == ours


@each_kind
def test_a_program_gets_no_descriptor_but_its_own(kind):
    """Standard streams only: nothing of the verifier's or of the cell's."""
    source = """
        import os
        for number in range(3, 64):
            try:
                print(number, os.fstat(number))
            except OSError:
                pass
    """
    assert _run(kind, source).stdout == b""


@each_kind
def test_limits(kind):
    source = """
        import os, resource
        names = ("AS", "CORE", "CPU", "NOFILE", "NPROC")
        print([resource.getrlimit(getattr(resource, "RLIMIT_" + n))[1] for n in names])
        children = 0
        try:
            while children < 100:
                if os.fork() == 0:
                    import time
                    time.sleep(60)
                children += 1
        except OSError:
            pass
        print(children)
        try:
            with open("big", "wb") as file:
                for _ in range(100):
                    file.write(bytes(1 << 20))
        except OSError:
            pass
        print(os.path.getsize("big") >> 20)
    """
    lines = _run(kind, source, memory_mb=300).stdout.decode().splitlines()
    assert lines[0] == f"[{300 << 20}, 0, 5, 64, 16]"
    assert 10 <= int(lines[1]) <= 15  # of 16, the cell's own processes apart
    assert int(lines[2]) == 16


@each_kind
def test_what_a_run_leaves_behind_is_ended(kind):
    """A daemon that has left its group and holds the output open ends with the run."""
    source = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
        os.wait()
        print("done", flush=True)
        os._exit(0)
    """
    others = """
        import os
        seen = []
        for process in range(2, 1000):
            try:
                os.kill(process, 0)
                seen.append(process)
            except ProcessLookupError:
                pass
        print(seen == [os.getpid()])
    """
    with sandbox.Cell(kind, sandbox.Limits()) as cell:
        output = cell.run([textwrap.dedent(source)], b"")
        assert output == sandbox.Output(b"done\n", 0)
        assert cell.run([textwrap.dedent(others)], b"").stdout == b"True\n"


@each_kind
def test_numpy_is_there_and_other_packages_are_not(kind):
    """Pytest is installed where this runs; a program cannot import or see it."""
    source = """
        import os, numpy
        print(numpy.add(1, 2))
        print([n for n in os.listdir(os.path.dirname(numpy.__path__[0]))
               if not n.startswith("numpy")])
        import pytest
    """
    output = _run(kind, source)
    assert output == sandbox.Output(b"3\n[]\n", 1)


@pytest.mark.parametrize(
    ("value", "status"), [("mean([1, 3])", "correct"), ("array([2.0])", "wrong")]
)
def test_a_number_of_numpy_is_a_number(value, status):
    cases = {"function": "f", "cases": [{"args": [], "expected": 2.0}]}
    program = f"import numpy\ndef f(): return numpy.{value}"
    assert str(tasks.verdict(program, cases).status) == status


def test_output_is_limited_and_input_may_be_left_unread():
    (kind, *_) = OFFERED
    with pytest.raises(sandbox.Gone, match="wrote more than 1048576 bytes"):
        _run(kind, "while True: print('x' * 9999)")
    assert _run(kind, "print(1)", b"x" * 3_000_000).stdout == b"1\n"
    echo = "import sys\nsys.stdout.write(sys.stdin.read())"
    assert _run(kind, echo, b"x" * 900_000).stdout == b"x" * 900_000


@pytest.mark.parametrize(
    ("source", "ending"),
    [
        ("", 0),
        ("import sys\nsys.exit(3)", 3),
        ("import sys\nsys.exit('bad')", 1),
        ("1 / 0", 1),
        ("import os\nos.abort()", -signal.SIGABRT),
        ("def f(: pass", 1),
        ("import atexit\natexit.register(print, 'bye')", 0),
        ("exit()", 0),
        ("quit(3)", 3),
        ("import sys\nsys.stdout.close()", 0),
    ],
)
def test_endings(source, ending):
    """As Python's own exit codes; signals are negative."""
    assert _run(OFFERED[0], source).ending == ending


@pytest.mark.parametrize(
    "source",
    [
        "print(input())",
        "print(input())\nexit()",
        "import io, sys\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer)\n"
        "print(input())",
        "import sys\nsys.stdout = open(1, 'w')\nprint(sys.stdin.read(9))",
        "import os, sys\nsys.stdout.write(os.read(0, 9).decode())",
        "import atexit, io, sys\nkept, sys.stdout = sys.stdout, io.StringIO()\n"
        "atexit.register(lambda: kept.write(sys.stdout.getvalue()))\nprint(input())",
        "import threading\nthreading.Thread(target=lambda: print(input())).start()",
    ],
)
def test_ways_to_read_and_write(source):
    """Each prints the line it is given under `python program.py` (tried by hand)."""
    assert _run(OFFERED[0], source, b"5 6\n").stdout.strip() == b"5 6"


def test_an_answer_without_the_nonce_of_its_call_counts_for_nothing():
    source = (
        "import sys\n"
        "def f(x):\n"
        "    frame = sys._getframe(1)\n"
        "    while 'connection' not in frame.f_locals: frame = frame.f_back\n"
        '    body = b\'{"value": 6, "nonce": "forged"}\'\n'
        "    line = frame.f_locals['connection']\n"
        "    line.sendall(len(body).to_bytes(4) + body)\n"
        "    return 5\n"
    )
    with sandbox.Cell(OFFERED[0], sandbox.Limits()) as cell:
        program = Program(cell, [source])
        with pytest.raises(sandbox.Gone, match="no answer"):
            program.function("f")(1)
        with pytest.raises(sandbox.Gone):  # and it stays so
            program.function("f")(1)
        program.close()


def test_nonces_differ():
    assert len({wire.nonce() for _ in range(100)}) == 100


def test_refused_without_isolation(monkeypatch):
    """No cell, no verdict: a crash that says what to do, never a run in the open."""

    def nothing(isolation):
        raise PermissionError("not here")

    monkeypatch.setattr(sandbox.starting, "start", nothing)
    sandbox._best.cache_clear()
    try:
        with pytest.raises(sandbox.Refused) as refusal:
            apply(judge.verify, Sample("code", tasks.RIGHT, tasks.CALLS))
    finally:
        sandbox._best.cache_clear()
    for part in ("bubblewrap: not here", "namespaces: not here", "=rlimits"):
        assert part in str(refusal.value)


def test_a_setting_chooses_the_isolation(monkeypatch):
    monkeypatch.setenv(sandbox.SETTING, OFFERED[-1])
    assert f"({OFFERED[-1]})" in tasks.verdict(tasks.RIGHT, tasks.CALLS).detail
    monkeypatch.setenv(sandbox.SETTING, "none")
    with pytest.raises(sandbox.Refused, match="'none' is none of bubblewrap"):
        tasks.verdict(tasks.RIGHT, tasks.CALLS)


def test_limits_alone_where_asked_for(monkeypatch):
    """Plain rlimits: a verdict that says so, or a refusal to run programs as root."""
    monkeypatch.setenv(sandbox.SETTING, "rlimits")
    daemon = "import os\nif os.fork() == 0:\n    os.setsid()\n    while True: pass\n"
    try:
        verdict = tasks.verdict(daemon + tasks.RIGHT, tasks.CALLS)
    except sandbox.Refused as error:
        refusal = str(error)
        assert (os.geteuid(), "for root alone" in refusal) == (0, True)
    else:
        assert verdict.status is Status.CORRECT
        assert "(rlimits)" in verdict.detail


def test_nothing_outlives_a_verifier_that_is_killed():
    """SIGKILL to the process that verifies, in the middle of an endless program."""
    script = (
        "import os, sys\n"
        "from rlvr_jax.verifiers.code import sandbox\n"
        "from rlvr_jax.verifiers.code.sandbox import Cell, Limits\n"
        "cell = Cell(sandbox.isolation(), Limits(60, 60))\n"
        "print('started', flush=True)\n"
        "cell.run(['import os\\nos.fork()\\nwhile True: pass'], b'')\n"
    )
    mark = f"test-{os.getpid()}"
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        env=os.environ | {"RLVR_JAX_VERIFIER": mark, "PYTHONPATH": os.getcwd()},
    )
    with process:
        assert process.stdout.readline() == b"started\n"
        time.sleep(0.3)
        assert len(_marked(mark)) >= 3
        process.kill()
    deadline = time.monotonic() + 5
    while _marked(mark) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert _marked(mark) == []


def _marked(mark):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark.encode() in entry.read_bytes() and _lives(entry.parent):
                found.append(int(entry.parent.name))
        except OSError:
            pass
    return found


def _lives(process):
    return ") Z " not in (process / "stat").read_text()


def test_the_pool_may_kill_a_verifier_in_its_work():
    """A deadline of the pool shorter than the program's: timeout, then as before."""
    endless = "def sum_even(xs):\n    while True: pass\n"
    with VerifierPool(1, 0.5, preload=["code"]) as pool:
        samples = [
            Sample("code", source, tasks.CALLS) for source in (endless, tasks.RIGHT)
        ]
        statuses = [str(verdict.status) for verdict in pool.verify(samples)]
    assert statuses == ["timeout", "correct"]


def test_a_lost_cell_is_no_fault_of_the_program(monkeypatch):
    """The process that makes cells is killed in mid-call: a crash, not a wrong."""
    if sandbox.isolation() != "namespaces":
        pytest.skip("bubblewrap makes each cell by itself")
    program = "import time\ndef sum_even(xs):\n    time.sleep(1)\n"
    killer = threading.Timer(0.4, lambda: sandbox.starting._mint()._process.kill())
    killer.start()
    with pytest.raises(RuntimeError, match="could not be judged: the cell is gone"):
        tasks.verdict(program, tasks.CALLS)
    killer.join()
    assert tasks.verdict(tasks.RIGHT, tasks.CALLS).status is Status.CORRECT


def test_a_lower_limit_of_the_verifier_itself_holds():
    """A worker with less memory than `memory_mb` gives what it has."""
    with VerifierPool(1, 20.0, memory_limit_mb=400, preload=["code"]) as pool:
        (verdict,) = pool.verify([Sample("code", tasks.RIGHT, tasks.CALLS)])
    assert verdict.status is Status.CORRECT


def test_verdicts_from_several_threads():
    """Eight at once share one process that makes cells; none gets another's answer."""
    values = range(24)

    def check(value):
        reference = {"function": "f", "cases": [{"args": [], "expected": value}]}
        return tasks.verdict(f"def f(): return {value}", reference).status

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        assert set(threads.map(check, values)) == {Status.CORRECT}


@pytest.mark.slow
def test_thousands_of_cells_leave_nothing_behind():
    """One process, 3000 cells: its descriptors and memory stay as they are."""

    def state():
        memory = pathlib.Path("/proc/self/status").read_text()
        resident = int(memory.partition("VmRSS:")[2].split()[0])
        return len(os.listdir("/proc/self/fd")), resident

    for count in range(3000):
        assert tasks.verdict(tasks.RIGHT, tasks.CALLS).status is Status.CORRECT
        if count == 100:
            before = state()
    after = state()
    assert after[0] == before[0]
    assert after[1] < before[1] + 10_000  # KiB
