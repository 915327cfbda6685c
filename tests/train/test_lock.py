"""One process at a time in a run folder, also where the last one died."""

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import threading
import time

import pytest

from rlvr_jax import config as config_lib
from rlvr_jax.config import Config
from rlvr_jax.train import lock as lock_module
from rlvr_jax.train import loop
from rlvr_jax.train.lock import Holder, LockLost, RunLock
from rlvr_jax.validate import ConfigError


def holder(folder) -> Holder:
    return Holder(**json.loads((folder / "lock").read_text()))


def write(folder, **changes) -> Holder:
    """A lock as another process left it."""
    mine = Holder("theirs", "another machine", "elsewhere", 7, "1")
    left = dataclasses.replace(mine, **changes)
    (folder / "lock").write_text(json.dumps(dataclasses.asdict(left)))
    return left


def test_it_is_held_for_the_body_and_then_gone(tmp_path):
    with RunLock(tmp_path):
        assert holder(tmp_path).pid == os.getpid()
    assert not list(tmp_path.iterdir())


def test_a_live_process_of_this_machine_refuses_at_once(tmp_path):
    with RunLock(tmp_path):
        began = time.monotonic()
        with pytest.raises(ConfigError) as caught, RunLock(tmp_path):
            pass
        assert time.monotonic() - began < 1
        assert str(caught.value).startswith(
            f"run_dir={tmp_path}: process {os.getpid()} on "
        )
        assert "at work in it" in str(caught.value)
    with RunLock(tmp_path):
        pass


def test_the_lock_of_a_process_killed_is_taken_over(tmp_path, capsys):
    """kill -9 leaves the file; its process is gone, which the kernel knows."""
    code = (
        "import os, pathlib, sys\n"
        "from rlvr_jax.train.lock import RunLock\n"
        "RunLock(pathlib.Path(sys.argv[1])).__enter__()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -9
    dead = holder(tmp_path)
    began = time.monotonic()
    with RunLock(tmp_path):
        assert holder(tmp_path).pid == os.getpid()
        assert time.monotonic() - began < 1
    assert f"{dead.pid} on {dead.host} is gone, taken over" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_a_number_used_again_is_another_process(tmp_path):
    """The pid lives, but its process started at another time than the holder's."""
    write(tmp_path, machine=lock_module._machine(), pid=os.getpid(), began="1")
    with RunLock(tmp_path):
        assert holder(tmp_path).token != "theirs"


@pytest.mark.parametrize("content", [None, b"", b"{", b"[]"])
def test_another_machine_that_is_silent_is_taken_over(tmp_path, capsys, content):
    """Whether it lives cannot be asked; nor if the file was cut off."""
    write(tmp_path)
    if content is not None:
        (tmp_path / "lock").write_bytes(content)
    began = time.monotonic()
    with RunLock(tmp_path, silence_s=0.3):
        assert 0.3 <= time.monotonic() - began < 2
        assert holder(tmp_path).pid == os.getpid()
    assert "watching it for up to 0.3 s" in capsys.readouterr().out


def test_another_machine_that_renews_its_lock_refuses(tmp_path):
    write(tmp_path)
    timer = threading.Timer(0.2, lambda: write(tmp_path, beats=1))
    timer.start()
    with (
        pytest.raises(ConfigError, match="process 7 on elsewhere is at work"),
        RunLock(tmp_path, silence_s=10.0),
    ):
        pass
    assert holder(tmp_path).token == "theirs"


def test_another_machine_that_gives_it_back_does_not(tmp_path):
    write(tmp_path)
    timer = threading.Timer(0.2, (tmp_path / "lock").unlink)
    timer.start()
    with RunLock(tmp_path, silence_s=10.0):
        assert holder(tmp_path).pid == os.getpid()


def test_a_new_lock_is_not_removed_for_the_stale_one_before_it(tmp_path):
    """Two watched the same stale lock; the faster one has it."""
    stale = write(tmp_path)
    write(tmp_path, token="faster")
    RunLock(tmp_path)._remove(stale)
    assert holder(tmp_path).token == "faster"
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def wait_until(true, seconds=5.0):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_it_is_renewed_while_it_is_held(tmp_path):
    with RunLock(tmp_path, beat_s=0.01) as lock:
        wait_until(lambda: holder(tmp_path).beats >= 3)
        lock.check()


def test_who_was_silent_for_too_long_stops(tmp_path):
    """A process held up for a minute (a machine suspended) finds another at work."""
    # Right after a beat the next is far: what is written within one would be replaced.
    with RunLock(tmp_path, beat_s=0.5) as lock:
        wait_until(lambda: holder(tmp_path).beats >= 1)
        (tmp_path / "lock").unlink()
        write(tmp_path)
        wait_until(lambda: lock._lost)
        with pytest.raises(LockLost, match="process 7 on elsewhere took it over"):
            lock.check()
    assert holder(tmp_path).token == "theirs"


def test_a_check_looks_for_itself(tmp_path):
    """After a suspension it may come before the thread has looked."""
    with RunLock(tmp_path, beat_s=600.0) as lock:
        lock.check()
        write(tmp_path)
        with pytest.raises(LockLost, match="process 7 on elsewhere took it over"):
            lock.check()


def test_settings_are_compared_once_the_folder_is_ours(tmp_path):
    """Another process may be about to write them."""
    config_lib.save(Config(seed=5), tmp_path / "config.json")
    with RunLock(tmp_path), pytest.raises(ConfigError, match="at work in it"):
        loop.run(Config(run_dir=str(tmp_path)))


def test_machines_are_told_apart_by_kernel_and_process_numbers():
    """Containers of one host have the host's name and numbers of their own."""
    if not pathlib.Path("/proc/self/ns/pid").exists():
        pytest.skip("Linux only")
    assert "pid:[" in lock_module._machine()
