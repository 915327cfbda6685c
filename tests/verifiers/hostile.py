"""Verifiers as a careless or hostile user might write them, for the pool to load."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time


def echo(sample):
    return sample.completion == sample.answer


def whole(sample):
    return "<think>" in sample.completion


whole.reads = "completion"


def process_id(sample):
    from rlvr_jax.verifiers.base import Status, Verdict

    return Verdict(Status.CORRECT, 1.0, str(os.getpid()))


def score(sample):
    return float(sample.answer)


def nap(sample):
    time.sleep(float(sample.answer))
    return True


def loop_forever(sample):
    while True:
        pass


def loop_in_c(sample):
    return 7 ** (10**9) > 0  # holds the interpreter's lock


def exit_now(sample):
    os._exit(3)


def sys_exit(sample):
    sys.exit(0)


def raise_error(sample):
    raise KeyError("deliberate")


def raise_unprintable(sample):
    class Nasty(Exception):
        def __str__(self):
            raise ValueError

    raise Nasty


def segfault(sample):
    ctypes.string_at(0)


def print_10_mb(sample):
    for _ in range(10):
        print("x" * 2**20)
        os.write(1, b"y" * 2**20)
        sys.stderr.write("z" * 2**20)
    return True


def read_input(sample):
    return sys.stdin.read() == ""


def eat_memory(sample):
    held = []
    while True:
        held.append(bytearray(2**26))  # address space, at once


def close_descriptors(sample):
    os.closerange(0, 4096)
    return True


def junk(sample):
    return {"score": 1}


def not_a_number(sample):
    return float("nan")


def kill_trainer(sample):
    os.kill(os.getppid(), signal.SIGKILL)
    return True


def fork_escaping(sample):
    """Children that leave the process group and lose their parent."""
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(600)
            os._exit(0)
    subprocess.Popen(["sleep", "600"])
    time.sleep(600)


def talk_out_of_turn(sample):
    """Writes bytes that are no message to every descriptor it can find."""
    _write_everywhere(b"\x00\x00\x00\x05hello")
    return True


def forge(sample):
    """Answers in the worker's place, for this request and the next ones."""
    for number in range(20):
        text = json.dumps({"id": number, "status": "correct", "detail": []})
        _write_everywhere(len(text).to_bytes(4, "big") + text.encode())
    return False


def _write_everywhere(data):
    for descriptor in range(3, 30):
        try:
            os.write(descriptor, data)
        except OSError:
            pass


def interrupt_itself(sample):
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)


def signal_without_a_name(sample):
    os.kill(os.getpid(), 40)
    time.sleep(60)


def killed_once(sample):
    """Dies by kill -9 at the first call: `sample.answer` is a file that it leaves."""
    try:
        open(sample.answer, "x").close()
    except FileExistsError:
        return True
    os.kill(os.getpid(), signal.SIGKILL)


def killed_always(sample):
    os.kill(os.getpid(), signal.SIGKILL)
