"""What a run shows: readable in a log, live on a terminal, safe with any text."""

import io

import pytest
import rich.console

from rlvr_jax.train import display

VALUES = {
    "reward/mean": 0.5,
    "pass_rate/mean": 0.4844,
    "entropy/mean": 0.312,
    "completion/length_mean": 111.6,
    "speed/tokens_per_s": 12345.6,
    "time/step_s": 1.5,
    "grad/norm": 3.0,
}
HOSTILE = [
    "[/red] [bold]unclosed [link=x]",
    "\x1b[2J\x1b]0;title\x07 bell\x00",
    "解 π ≈ 3.14159 🙂 \u202eright to left",
    "lone \ud800 surrogate",
    "",
    "\r\rover\b\bwritten",
]


def make_console(*, terminal=False, width=100, encoding="utf-8"):
    """A console onto a byte buffer, so that encoding errors are real."""
    buffer = io.BytesIO()
    file = io.TextIOWrapper(buffer, encoding=encoding, newline="\n")
    console = rich.console.Console(
        file=file, force_terminal=terminal, width=width, _environ={"TERM": "xterm"}
    )

    def read():
        file.flush()
        return buffer.getvalue().decode(encoding)

    return console, read


def completion(**changes):
    row = {
        "prompt": "What is 6 * 7?",
        "completion": "6 * 7 = 42, so \\boxed{42}",
        "answer": "42",
        "reference": "42",
        "verdict": "correct",
        "reward": 1.0,
        "advantage": 1.6536,
        "tokens": 12,
        "truncated": False,
    }
    return row | changes


def test_plan_shows_every_section_and_value():
    console, read = make_console()
    display.print_plan(
        {"batch": {"prompts": "8", "completions": "64"}, "model": {"path": "[x]"}},
        console=console,
    )
    lines = [line.split() for line in read().splitlines()]
    assert ["batch", "prompts", "8"] in lines
    assert ["completions", "64"] in lines
    assert ["model", "path", "[x]"] in lines


def test_log_gets_one_plain_line_per_step():
    console, read = make_console(width=40)
    with display.progress(3, console=console) as steps:
        for step in range(3):
            steps.update(step, VALUES)
    lines = read().splitlines()
    assert len(lines) == 3
    assert lines[0].startswith(
        "1/3 steps  reward 0.500  pass rate 48.4%  entropy 0.312  length 112  "
        "12,346 tokens/s  1.50 s/step  ETA "
    )
    assert lines[2].endswith("ETA 0 s")
    assert "\x1b" not in read()


def test_metrics_that_are_missing_are_left_out():
    console, read = make_console()
    with display.progress(2, console=console) as steps:
        steps.update(0, {"reward/mean": float("nan")})
    assert read().startswith("1/2 steps  reward nan  ETA ")


def test_terminal_gets_a_live_bar_with_metrics():
    console, read = make_console(terminal=True)
    with display.progress(4, start=1, console=console) as steps:
        steps.update(1, VALUES)
        console.print("a line above the bar")
        steps.update(2, VALUES)
    out = read()
    assert "3/4" in out
    assert "pass rate 48.4%" in out
    assert "a line above the bar" in out
    assert "\x1b[?25h" in out  # the cursor is shown again


def test_bar_is_closed_when_the_run_is_interrupted():
    console, read = make_console(terminal=True)
    with pytest.raises(KeyboardInterrupt), display.progress(4, console=console):
        raise KeyboardInterrupt
    assert "\x1b[?25h" in read()


def test_eta_follows_the_pace_without_the_compiling_step(monkeypatch):
    # The clock: start, then a first step of 100 s (compiling), then steps of 2 s.
    times = iter([0.0, 100.0, 102.0, 104.0])
    monkeypatch.setattr(display.time, "perf_counter", lambda: next(times))
    steps = display.StepProgress(63, 0, make_console()[0])
    assert steps.eta() == "?"
    steps.update(0, {})
    assert steps.eta() == "1 h 43 min"  # 62 left * 100 s = 6200 s
    steps.update(1, {})
    assert steps.eta() == "2 min 02 s"  # 61 left * 2 s
    steps.update(2, {})
    assert steps.eta() == "2 min 00 s"  # 60 left * 2 s


def test_completion_shows_text_verdict_and_pay():
    console, read = make_console()
    display.print_completions([completion()], step=20, console=console)
    out = read()
    assert "step 20, sample 1 of 1" in out
    assert "correct  reward 1.00  advantage +1.65  12 tokens" in out
    assert "What is 6 * 7?" in out
    assert "\\boxed{42}" in out
    assert "cut at the limit" not in out


def test_long_texts_are_cut_and_say_so():
    row = completion(
        prompt="p" * 500 + "the question",
        completion="start" + "x" * 5000 + "the end",
        truncated=True,
    )
    console, read = make_console()
    display.print_completions([row], max_characters=400, console=console)
    out = " ".join(read().replace("│", " ").split())
    assert "[... 412 characters ...]" in out  # 512 - 400 / 4
    assert "[... 4,612 characters ...]" in out  # 5012 - 400
    assert "the question" in out
    assert "the end" in out
    assert "cut at the limit" in out


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "latin-1"])
@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_can_be_shown(text, encoding):
    row = completion(prompt=text, completion=text, answer=text, verdict=text)
    console, read = make_console(encoding=encoding)
    display.print_completions([row], console=console)
    display.print_plan({text: {text: text}}, console=console)
    out = read()
    assert "reward 1.00" in out
    for control in "\x1b\x00\x07\x08\r\u202e":
        assert control not in out
    if text.startswith("[/red]"):
        assert "[/red] [bold]unclosed [link=x]" in out
    if not text:
        assert "(empty)" in out


def test_rows_may_lack_everything():
    console, read = make_console()
    display.print_completions([{}], console=console)
    assert "unverified" in read()


def test_evaluation_table_compares_intervals():
    console, read = make_console()
    before = {"pass@1": [0.31, 0.25, 0.37], "pass@8": [0.7, 0.6, 0.8], "x": 0.25}
    after = {"pass@1": [0.58, 0.52, 0.64], "pass@8": [0.75, 0.65, 0.85], "x": 0.5}
    display.print_evaluation(before, after, console=console)
    lines = [" ".join(line.split()) for line in read().splitlines()]
    assert "pass@1 0.310 [0.250, 0.370] 0.580 [0.520, 0.640] +0.270 higher" in (lines)
    assert "pass@8 0.700 [0.600, 0.800] 0.750 [0.650, 0.850] +0.050 overlap" in lines
    assert "x 0.250 0.500 - -" in lines


def test_evaluation_before_training_has_no_comparison():
    console, read = make_console()
    display.print_evaluation({"pass@1": (0.31, 0.25, 0.37)}, console=console)
    assert "0.310 [0.250, 0.370]" in read()
    assert "change" not in read()
