"""Whatever befalls a run, the same command continues it bit for bit, or says why not.

The whole table, with 50 kills: `python -m pytest -m slow -n0 -s
tests/end_to_end/test_faults.py`.
"""

import collections
import gzip
import json
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import time

import pytest

from tests.end_to_end import command
from tests.end_to_end.phases import PHASES
from tests.end_to_end.test_train import assert_same_run

FLAGS = ("--config.logging.report=false", "--config.warmup.steps=10")
KILLED = -9


def start(run_dir, fault: str = "none", *flags: str) -> subprocess.Popen:
    """`launch.train` with a fault; phases it went through end up in run_dir.phases."""
    words = ["tests.end_to_end.phases", fault, "--"]
    words += [f"--config={command.RECIPE}", f"--config.run_dir={run_dir}"]
    phases = {"RLVR_PHASES": f"{run_dir}.phases"}
    return command.launch([*words, *FLAGS, *flags], f"{run_dir}.log", **phases)


def run(run_dir, fault: str = "none", *flags: str) -> tuple[int, str]:
    """Exit status and what was printed."""
    code = start(run_dir, fault, *flags).wait(timeout=300)
    return code, pathlib.Path(f"{run_dir}.log").read_text()


def continued(run_dir, *flags: str) -> str:
    """The same command, to the end."""
    code, printed = run(run_dir, "none", *flags)
    assert code == 0, printed
    return printed


def assert_one_error(code: int, printed: str, *words: str) -> None:
    assert code == 2, printed
    assert printed.count("error: ") == 1, printed
    assert "Traceback" not in printed, printed
    for word in words:
        assert word in printed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run that nothing befalls."""
    run_dir = tmp_path_factory.mktemp("faults") / "whole"
    continued(run_dir)
    return run_dir


def killed_again_and_again(faults, count, whole, folder) -> collections.Counter:
    """Runs killed `count` times by the faults in turn, continued each time, and equal
    at the end to the one that was not; counts where they died."""
    deaths, number = collections.Counter(), 0
    run_dir = folder / "0"
    faults = iter(faults)
    while sum(deaths[phase] for phase in PHASES) < count:
        code, printed = run(run_dir, next(faults))
        if code == 0:  # It ended before the fault.
            assert_same_run(run_dir, whole)
            number += 1
            run_dir = folder / str(number)
            continue
        assert code == KILLED, printed
        deaths[pathlib.Path(f"{run_dir}.phases").read_text().split()[-1]] += 1
        deaths["half-written checkpoints"] += bool(
            list(run_dir.glob("checkpoints/*.orbax-checkpoint-tmp"))
        )
    checkpoints = run_dir / "checkpoints"
    if (checkpoints / "6").exists() and not (checkpoints / "4").exists():
        # As a kill leaves it between the last save and the deletion of the oldest.
        shutil.copytree(checkpoints / "5", checkpoints / "4")
    continued(run_dir)
    assert_same_run(run_dir, whole)
    # What killed saves left behind does not pile up.
    assert {p.name for p in checkpoints.iterdir()} == {"5", "6"}
    deaths["runs"] = number + 1
    return deaths


def test_kill_9_in_a_save_an_update_and_at_the_end(whole, tmp_path):
    faults = ("die:save:2:0.002", "die:update:2:0.02", "die:finish:1:0.1")
    assert killed_again_and_again(faults, 3, whole, tmp_path)["runs"] == 1


def random_kills(seed: int):
    """Moments all over a run; short delays are likelier, as most phases are short."""
    drawn = random.Random(seed)
    while True:
        phase = drawn.choice(PHASES)
        # A process begins and ends once.
        time = 1 if phase in ("start", "finish") else drawn.randint(1, 3)
        yield f"die:{phase}:{time}:{drawn.random() ** 3:.4f}"


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_fifty_kills(whole, tmp_path, table):
    deaths = killed_again_and_again(random_kills(seed=0), 50, whole, tmp_path)
    where = ", ".join(f"{phase} {deaths[phase]}" for phase in PHASES)
    table("kill -9", 50, f"{deaths['runs']} runs, all as if nothing had been; {where}")
    half = deaths["half-written checkpoints"]
    table("  of these with a half-written checkpoint", half, "the one before it used")


@pytest.mark.slow
def test_a_verifier_process_killed_within_a_step(whole, tmp_path, table):
    """Its sample is verified once more: rewards do not depend on who was killed."""
    code, printed = run(tmp_path / "run", "worker:3")
    assert code == 0, printed
    assert_same_run(tmp_path / "run", whole)
    table("a verifier process killed within a step", 1, "as if nothing had been")


@pytest.mark.slow
def test_a_gradient_that_is_no_number_is_left_out(tmp_path, table):
    """Killed after it and continued, the run is the one that was not killed."""
    fault = "nan:2:2"
    assert run(tmp_path / "whole", fault)[0] == 0
    shares = {
        line["step"]: line["optimizer/not_finite"]
        for line in command.metrics(tmp_path / "whole")
        if "optimizer/not_finite" in line
    }
    assert shares == {0: 0, 1: 0, 2: 1, 3: 0, 4: 0, 5: 0}
    process = start(tmp_path / "killed", fault)
    command.wait_for_steps(process, tmp_path / "killed", 4)
    process.kill()
    process.wait()
    assert run(tmp_path / "killed", fault)[0] == 0
    assert_same_run(tmp_path / "killed", tmp_path / "whole")
    table("NaN in the gradient of one step", 1, "left out, the run goes on")


@pytest.mark.slow
def test_too_many_gradients_that_are_no_numbers_end_the_run(tmp_path, table):
    code, printed = run(tmp_path / "run", "nan:1:9")
    assert_one_error(code, printed, "in steps 1 to 4", "optimizer.max_nonfinite_steps")
    table("NaN in every gradient from step 1", 1, "one error: steps 1 to 4")


def spoil(folder: pathlib.Path, how: str) -> None:
    """Damages the largest file of a checkpoint: the arrays."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: path.stat().st_size)
    data = bytearray(largest.read_bytes())
    if how == "cut":
        data = data[: len(data) // 2]
    else:
        data[len(data) // 2] ^= 0x10
    largest.write_bytes(data)


@pytest.mark.parametrize("how", [pytest.param("cut", marks=pytest.mark.slow), "bit"])
def test_a_damaged_checkpoint_is_named_and_the_one_before_used(
    whole, tmp_path, how, table
):
    """Half of a file, and one bit of it: the latter only a checksum can see."""
    run_dir = tmp_path / "run"
    shutil.copytree(whole, run_dir)
    spoil(run_dir / "checkpoints" / "6", how)
    printed = continued(run_dir)
    assert "checkpoint: step 6 cannot be read (" in printed
    assert "The run goes on from step 5" in printed
    assert_same_run(run_dir, whole)
    table(f"checkpoint damaged ({how})", 1, "named, the one before used, same run")


@pytest.mark.slow
def test_every_checkpoint_damaged_is_one_error(whole, tmp_path, table):
    """Also at the next start: nothing is moved, and no record is lost."""
    run_dir = tmp_path / "run"
    shutil.copytree(whole, run_dir)
    for step in ("5", "6"):
        spoil(run_dir / "checkpoints" / step, "cut")
    for _ in range(2):
        assert_one_error(*run(run_dir), "checkpoint: none to restore", "step 5: ")
    for name in ("metrics.jsonl", "completions.jsonl"):
        assert (run_dir / name).read_bytes() == (whole / name).read_bytes()
    shutil.rmtree(run_dir / "checkpoints")
    assert_one_error(*run(run_dir), "its checkpoints are gone")
    shutil.copytree(whole / "checkpoints", run_dir / "checkpoints", dirs_exist_ok=True)
    continued(run_dir)
    assert_same_run(run_dir, whole)
    table("every checkpoint damaged", 1, "one error; with a copy of them, same run")


def problems(path: pathlib.Path, count: int = 40) -> str:
    """Writes a data file and returns its text."""
    rows = [
        {"question": f"{a} + {b} =", "answer": str(a + b), "solution": str(a + b)}
        for a in range(5)
        for b in range(8)
    ]
    text = "".join(json.dumps(row) + "\n" for row in rows[:count])
    path.write_bytes(
        gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode()
    )
    return text


@pytest.mark.slow
@pytest.mark.parametrize("name", ["rows.jsonl", "rows.jsonl.gz"])
def test_a_data_file_that_was_cut_off(tmp_path, name, table):
    """In the middle of a row, and of a compressed block."""
    data = tmp_path / name
    problems(data)
    data.write_bytes(data.read_bytes()[: data.stat().st_size * 2 // 3])
    flags = (f"--config.data.train={data}", "--config.data.task_options={}")
    words = "cut off or damaged" if name.endswith("gz") else "is not JSON"
    assert_one_error(*run(tmp_path / "run", "none", *flags), name, "line", words)
    table(f"{name} cut off", 1, "one error that names file and line")


@pytest.mark.slow
def test_a_data_file_cut_off_at_the_end_of_a_row(tmp_path, table):
    """No row is broken, but the order of the data would be another: refused until the
    file is back, then the run goes on as if nothing had been."""
    data = tmp_path / "rows.jsonl"
    flags = (f"--config.data.train={data}", "--config.data.task_options={}")
    problems(data)
    continued(tmp_path / "whole", *flags)
    process = start(tmp_path / "run", "none", *flags)
    command.wait_for_steps(process, tmp_path / "run", 3)
    process.kill()
    process.wait()
    problems(data, 33)
    assert_one_error(
        *run(tmp_path / "run", "none", *flags),
        "data.train: the training problems changed since the checkpoint (",
    )
    problems(data)
    continued(tmp_path / "run", *flags)
    assert_same_run(tmp_path / "run", tmp_path / "whole")
    table("data file cut off at a row, before a restart", 1, "one error; file put back")


@pytest.mark.slow
def test_a_disk_that_is_full(whole, tmp_path, table):
    """No file may grow beyond 20 kB from some moment on, as a full disk would have it:
    one error, checkpoints as they were, and the same run once there is room."""
    process = start(tmp_path / "run")
    command.wait_for_steps(process, tmp_path / "run", 2)
    while not list((tmp_path / "run" / "checkpoints").glob("[0-9]")):
        assert process.poll() is None
        time.sleep(0.01)  # until the first is whole: saving goes on beside the steps
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (20_000, 20_000))
    code = process.wait(timeout=120)
    printed = (tmp_path / "run.log").read_text()
    assert_one_error(code, printed, "checkpoint: cannot be saved under", "is whole")
    continued(tmp_path / "run")
    assert_same_run(tmp_path / "run", whole)
    table("files cannot grow (RLIMIT_FSIZE)", 1, "one error, then as the whole run")


@pytest.mark.slow
@pytest.mark.parametrize("room_kb", [16, 300, 500, 700])
def test_a_small_disk(whole, tmp_path, room_kb, table):
    """A real one, where the machine lets us mount it: full at several moments."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={room_kb}k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no right to mount a disk")
    try:
        code, printed = run(disk / "run")
        assert_one_error(code, printed)
        # Of a checkpoint, or of metrics.jsonl.
        assert "No space left" in printed or "is the disk full?" in printed
        resize = ["mount", "-o", "remount,size=8m", str(disk)]
        subprocess.run(resize, check=True)
        continued(disk / "run")
        assert_same_run(disk / "run", whole)
    finally:
        shutil.copytree(disk, tmp_path / "copy", dirs_exist_ok=True)
        subprocess.run(["umount", str(disk)], check=False)
    table(f"disk full at {room_kb} kB", 1, "one error; with more room as the whole run")


@pytest.mark.slow
def test_a_second_process_on_the_same_folder_is_refused(whole, tmp_path, table):
    """The first is held meanwhile, and then goes on as if nothing had been."""
    run_dir = tmp_path / "run"
    first = start(run_dir)
    command.wait_for_steps(first, run_dir, 1)
    first.send_signal(signal.SIGSTOP)
    shutil.copyfile(f"{run_dir}.log", tmp_path / "first.log")
    code, printed = run(run_dir)
    assert_one_error(code, printed, f"process {first.pid} on ", "is at work in it")
    first.send_signal(signal.SIGCONT)
    assert first.wait(timeout=120) == 0
    assert_same_run(run_dir, whole)
    assert not (run_dir / "lock").exists()
    table("a second process on the folder", 1, "one error; the first goes on")


LINES: list[tuple[str, int, str]] = []


@pytest.fixture(scope="module")
def table():
    """Collects the lines of the fault table; printed once all tests are through."""
    yield lambda *line: LINES.append(line)
    width = max((len(fault) for fault, _, _ in LINES), default=0)
    print()
    for fault, count, outcome in LINES:
        print(f"{fault:{width}}  {count:3}  {outcome}")
