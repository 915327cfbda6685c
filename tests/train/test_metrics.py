"""What a run writes survives kills, resumes and numbers that JSON does not have."""

import json
import os
import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
from tensorboardX.proto import event_pb2

from rlvr_jax.train import metrics


def records(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def write_steps(folder, steps, *, resume_step=0, tensorboard=False):
    with metrics.RunWriter(
        folder, tensorboard=tensorboard, resume_step=resume_step
    ) as writer:
        for step in steps:
            writer.metrics(step, {"reward/mean": step / 10})
            writer.completions(step, [{"completion": f"text {step}"}])


def test_lines_hold_step_time_and_values(tmp_path):
    write_steps(tmp_path, [0, 1])
    first, second = records(tmp_path / "metrics.jsonl")
    assert (first["step"], first["reward/mean"]) == (0, 0.0)
    assert (second["step"], second["reward/mean"]) == (1, 0.1)
    assert first["time"].endswith("+00:00")
    assert records(tmp_path / "completions.jsonl")[1] == {
        "completion": "text 1",
        "step": 1,
    }


def test_numpy_scalars_keep_every_digit(tmp_path):
    value = np.float32(0.1)
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        writer.metrics(0, {"a/b": value, "a/c": np.array(3), "a/d": np.array([2.0])[0]})
    (record,) = records(tmp_path / "metrics.jsonl")
    assert np.float32(record["a/b"]) == value
    assert (record["a/c"], record["a/d"]) == (3.0, 2.0)


def test_numbers_json_lacks_are_strings_that_float_reads(tmp_path):
    values = {"a/nan": float("nan"), "a/up": float("inf"), "a/down": float("-inf")}
    with metrics.RunWriter(tmp_path, tensorboard=True, resume_step=0) as writer:
        writer.metrics(0, values)
        writer.completions(0, [{"reward": np.float32("nan"), "advantage": np.inf}])

    def refuse(constant):  # json.loads accepts a bare NaN unless told not to
        raise AssertionError(f"{constant} is not JSON")

    text = (tmp_path / "metrics.jsonl").read_text()
    record = json.loads(text, parse_constant=refuse)
    assert np.isnan(float(record["a/nan"]))
    assert float(record["a/up"]) == float("inf")
    assert float(record["a/down"]) == float("-inf")
    row = json.loads(
        (tmp_path / "completions.jsonl").read_text(), parse_constant=refuse
    )
    assert (row["reward"], row["advantage"]) == ("NaN", "Infinity")


@pytest.mark.parametrize("text", ["", "\x00\x1b[31m\r\n", "解 → ∎", "\ud800", "\u2028"])
def test_any_text_stays_on_one_line(tmp_path, text):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        writer.completions(0, [{"completion": text}, {"completion": "next"}])
    first, second = records(tmp_path / "completions.jsonl")
    assert (first["completion"], second["completion"]) == (text, "next")


def test_resume_removes_steps_that_are_written_again(tmp_path):
    write_steps(tmp_path, range(5))
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=3) as writer:
        writer.metrics(3, {"reward/mean": 9.0})
    lines = records(tmp_path / "metrics.jsonl")
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert lines[-1]["reward/mean"] == 9.0
    steps = [line["step"] for line in records(tmp_path / "completions.jsonl")]
    assert steps == [0, 1, 2]


def test_new_run_in_a_used_folder_starts_empty(tmp_path):
    write_steps(tmp_path, range(3))
    write_steps(tmp_path, [0])
    assert [line["step"] for line in records(tmp_path / "metrics.jsonl")] == [0]


@pytest.mark.parametrize("cut", [1, 7, 30])
def test_half_written_last_line_is_removed(tmp_path, cut):
    write_steps(tmp_path, range(3))
    path = tmp_path / "metrics.jsonl"
    whole = path.read_bytes()
    path.write_bytes(
        whole + b'{"step": 3, "time": "2026-01-01", "reward/mean": 1}'[:cut]
    )
    write_steps(tmp_path, [3], resume_step=3)
    assert path.read_bytes().startswith(whole)
    assert [line["step"] for line in records(path)] == [0, 1, 2, 3]


def test_last_line_without_its_end_is_kept(tmp_path):
    write_steps(tmp_path, range(3))
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    write_steps(tmp_path, [3], resume_step=3)
    assert [line["step"] for line in records(path)] == [0, 1, 2, 3]


def test_damaged_line_in_the_middle_is_one_clear_error(tmp_path):
    write_steps(tmp_path, range(3))
    path = tmp_path / "metrics.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{oops", lines[2], ""]))
    with pytest.raises(ValueError, match=r"metrics\.jsonl line 2 .*set run_dir"):
        metrics.RunWriter(tmp_path, tensorboard=False, resume_step=3)


def test_bad_metrics_name_the_metric(tmp_path):
    with metrics.RunWriter(tmp_path, tensorboard=False, resume_step=0) as writer:
        with pytest.raises(ValueError, match="may not be named 'step'"):
            writer.metrics(0, {"step": 1.0})
        with pytest.raises(ValueError, match="'loss/total' needs a single number"):
            writer.metrics(0, {"loss/total": np.zeros(2)})
    assert (tmp_path / "metrics.jsonl").read_text() == ""
    with pytest.raises(ValueError, match="is closed"):
        writer.metrics(0, {"loss/total": 0.0})


KILLED = """
import sys
from rlvr_jax.train import metrics
writer = metrics.RunWriter(sys.argv[1], tensorboard=False, resume_step=0)
step = 0
while True:
    writer.metrics(step, {"reward/mean": float(step)})
    if step == 20:
        print("ready", flush=True)
    step += 1
"""


def test_kill_leaves_whole_lines(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE
    )
    assert child.stdout is not None
    with child.stdout:
        child.stdout.readline()
        os.kill(child.pid, signal.SIGKILL)
        child.wait()
    write_steps(tmp_path, [10], resume_step=10)
    lines = records(tmp_path / "metrics.jsonl")
    assert [line["step"] for line in lines] == list(range(11))
    assert [line["reward/mean"] for line in lines] == [*map(float, range(10)), 1.0]


def events(folder):
    """The events of all files, in TensorBoard's order: files sorted by name.

    A record is: length (uint64), its checksum (uint32), data, checksum (uint32).
    """
    found = []
    for path in sorted(folder.iterdir()):
        data = path.read_bytes()
        while data:
            (length,) = struct.unpack_from("<Q", data)
            found.append(event_pb2.Event.FromString(data[12 : 12 + length]))
            data = data[12 + length + 4 :]
    return found


def test_events_of_repeated_steps_are_purged(tmp_path):
    write_steps(tmp_path, range(4), tensorboard=True)
    write_steps(tmp_path, range(2, 4), resume_step=2, tensorboard=True)
    assert len(list((tmp_path / "events").iterdir())) == 2
    seen: list[tuple[int, float]] = []
    for event in events(tmp_path / "events"):
        # TensorBoard's rule: a session start at step n drops what came before of
        # steps >= n (EventAccumulator._CheckForRestartAndMaybePurge).
        if event.HasField("session_log") and event.session_log.status == 1:
            seen = [(step, value) for step, value in seen if step < event.step]
        for value in event.summary.value:
            assert value.tag == "reward/mean"
            seen.append((event.step, round(value.simple_value, 6)))
    assert seen == [(0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3)]


def test_pass_at_k_has_a_tag_that_tensorboard_allows(tmp_path):
    with metrics.RunWriter(tmp_path, tensorboard=True, resume_step=0) as writer:
        writer.metrics(0, {"evaluation/pass@8": 0.5})
    tags = [v.tag for e in events(tmp_path / "events") for v in e.summary.value]
    assert tags == ["evaluation/pass_at_8"]


def test_summary_is_replaced_whole(tmp_path):
    metrics.write_summary(tmp_path, {"seconds": 1.5, "eval": {}})
    metrics.write_summary(
        tmp_path, {"seconds": 2.5, "eval": {"before": {"pass@1": (0.1, 0.0, np.nan)}}}
    )
    assert json.loads((tmp_path / "summary.json").read_text()) == {
        "seconds": 2.5,
        "eval": {"before": {"pass@1": [0.1, 0.0, "NaN"]}},
    }
    assert [path.name for path in tmp_path.iterdir()] == ["summary.json"]


def test_a_process_that_does_not_write_leaves_nothing(tmp_path):
    """Of several processes only the first writes: the files are not even opened."""
    options = {"tensorboard": True, "resume_step": 0, "writes": False}
    with metrics.RunWriter(tmp_path, **options) as writer:
        writer.metrics(0, {"reward/mean": 1.0})
        writer.completions(0, [{"prompt": "p"}])
    assert list(tmp_path.iterdir()) == []
