"""What a run shows while it runs: the plan, progress, completions, evaluations.

On a terminal the progress is a live bar; elsewhere (a log file, a pipe) it is one
plain line per step. Model output is never read as rich markup.
"""

import contextlib
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, SupportsFloat

import rich
import rich.box
import rich.progress
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from rlvr_jax.analysis import text as texts

SHOWN = (
    ("reward/mean", "reward {:.3f}"),
    ("pass_rate/mean", "pass rate {:.1%}"),
    ("entropy/mean", "entropy {:.3f}"),
    ("completion/length_mean", "length {:.0f}"),
    ("warmup/loss", "loss {:.3f}"),
    ("speed/tokens_per_s", "{:,.0f} tokens/s"),
)
VERDICT_STYLES = {"correct": "green", "wrong": "red"}


def print_plan(
    sections: Mapping[str, Mapping[str, str]], *, console: Console | None = None
) -> None:
    """Prints one table of what is about to run: section -> {label: value}."""
    console = console or rich.get_console()
    table = Table(title="Plan", box=rich.box.SIMPLE_HEAD, show_header=False)
    # Folded, not cut: rich's cutting mark is not in every terminal's encoding.
    table.add_column(style="bold", overflow="fold")
    table.add_column(overflow="fold")
    table.add_column(overflow="fold")
    for section, rows in sections.items():
        for number, (label, value) in enumerate(rows.items()):
            name = section if number == 0 else ""
            table.add_row(*(_safe(cell, console) for cell in (name, label, value)))
        table.add_section()
    console.print(table)


class StepProgress:
    """Shows finished steps and their metrics; made by `progress`."""

    def __init__(self, total: int, start: int, console: Console) -> None:
        """Starts the clock at step `start` of `total`."""
        self.total = total
        self.done = start
        self._console = console
        self._times = deque([time.perf_counter()], maxlen=21)
        self._first = True
        self._bar: _Bar | None = None

    def update(self, step: int, values: Mapping[str, SupportsFloat]) -> None:
        """Shows the metrics of a step that has finished.

        Args:
          step: its number as in metrics.jsonl, from 0; step + 1 of `total` are done.
          values: its metrics; those in `SHOWN` appear, the others are ignored.
        """
        self.done = step + 1
        self._times.append(time.perf_counter())
        if self._first and len(self._times) > 2:
            self._times.popleft()
            self._first = False
        stats = [
            form.format(float(values[name])) for name, form in SHOWN if name in values
        ]
        if self._bar is not None:
            self._bar.show(self.done, [*stats, f"ETA {self.eta()}"])
            return
        if "time/step_s" in values:
            stats.append(f"{float(values['time/step_s']):.2f} s/step")
        parts = [f"{self.done}/{self.total} steps", *stats, f"ETA {self.eta()}"]
        self._console.print(
            "  ".join(parts), markup=False, highlight=False, soft_wrap=True
        )

    def eta(self) -> str:
        """Time left at the mean pace of the last 20 steps.

        The first step compiles, so it counts only until there is a second one.
        """
        if len(self._times) < 2:
            return "?"
        pace = (self._times[-1] - self._times[0]) / (len(self._times) - 1)
        return texts.duration(pace * max(self.total - self.done, 0))


@contextlib.contextmanager
def progress(
    total: int,
    *,
    start: int = 0,
    description: str = "train",
    console: Console | None = None,
) -> Iterator[StepProgress]:
    """A progress display for steps `start` to `total` - 1, for a `with` block.

    What is printed to the same console within the block (`print_completions`,
    `rich.print`) appears above the live bar.

    Example:
      >>> with progress(2) as steps:
      ...     steps.update(0, {"reward/mean": 0.25})  # doctest: +ELLIPSIS
      1/2 steps reward 0.250 ETA ...
    """
    console = console or rich.get_console()
    steps = StepProgress(total, start, console)
    if not console.is_terminal or console.is_dumb_terminal:
        yield steps
        return
    with _Bar(description, start, total, console) as bar:
        steps._bar = bar
        yield steps


def print_completions(
    rows: Sequence[Mapping[str, Any]],
    *,
    step: int | None = None,
    max_characters: int = 1200,
    console: Console | None = None,
) -> None:
    """Prints sampled completions with what they were paid for.

    Args:
      rows: as `RunWriter.completions` takes them; a missing key is left out.
      step: named in the heading.
      max_characters: of a completion; its middle is cut. A prompt shows its last
        quarter of that.
      console: where to; the current standard output by default.
    """
    console = console or rich.get_console()
    for number, row in enumerate(rows, 1):
        grid = Table.grid(padding=(0, 2))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        prompt = texts.tail(str(row.get("prompt", "")), max_characters // 4)
        completion = str(row.get("completion", ""))
        cut = texts.head_and_tail(completion, max_characters)
        grid.add_row("prompt", _safe(prompt, console))
        shown = _safe(cut, console) if completion else Text("(empty)", style="dim")
        grid.add_row("completion", shown)
        for key in ("answer", "reference", "detail"):
            if row.get(key) not in (None, ""):
                cell = texts.head_and_tail(str(row[key]), max_characters // 4)
                grid.add_row(key, _safe(cell, console))
        grid.add_row("verdict", _verdict_line(row, console))
        heading = "" if step is None else f"step {step}, "
        title = f"{heading}sample {number} of {len(rows)}"
        console.print(Panel(grid, title=Text(title), title_align="left"))


def print_evaluation(
    before: Mapping[str, Any],
    after: Mapping[str, Any] | None = None,
    *,
    console: Console | None = None,
) -> None:
    """Prints held-out scores with their 95 % intervals, before and after training.

    Args:
      before: metric -> (mean, low, high), or a number that has no interval.
      after: the same, or None when training has not happened yet.
      console: where to; the current standard output by default.
    """
    console = console or rich.get_console()
    table = Table(title="Evaluation, mean [95 % interval]", box=rich.box.SIMPLE_HEAD)
    table.add_column("metric")
    table.add_column("before" if after is not None else "now", justify="right")
    if after is not None:
        for heading in ("after", "change", "intervals"):
            table.add_column(heading, justify="right")
    names = [*before, *(name for name in after or {} if name not in before)]
    for name in names:
        cells = [Text(name), _interval(before.get(name))]
        if after is not None:
            cells.append(_interval(after.get(name)))
            cells.extend(_compared(before.get(name), after.get(name)))
        table.add_row(*cells)
    console.print(table)


class _Bar(rich.progress.Progress):
    """rich's bar with a second line for the metrics of the last step."""

    def __init__(
        self, description: str, start: int, total: int, console: Console
    ) -> None:
        self._stats = Text("")
        super().__init__(
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            console=console,
        )
        self._task = self.add_task(description, completed=start, total=total)

    def show(self, done: int, stats: Iterable[str]) -> None:
        self._stats = Text("  ".join(stats))
        self.update(self._task, completed=done)
        self.refresh()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield Group(*super().get_renderables(), self._stats)


def _safe(value: object, console: Console) -> Text:
    """Text that neither rich, nor the terminal, nor its encoding can trip over."""
    shown = texts.visible(str(value))
    encoded = shown.encode(console.encoding, errors="backslashreplace")
    return Text(encoded.decode(console.encoding))


def _verdict_line(row: Mapping[str, Any], console: Console) -> Text:
    verdict = str(row.get("verdict", "unverified"))
    line = _safe(verdict, console)
    line.stylize(f"bold {VERDICT_STYLES.get(verdict, 'yellow')}")
    if row.get("reward") is not None:
        line.append(f"  reward {float(row['reward']):.2f}")
    if row.get("advantage") is not None:
        line.append(f"  advantage {float(row['advantage']):+.2f}")
    if row.get("tokens") is not None:
        line.append(f"  {row['tokens']} tokens")
    if row.get("truncated"):
        line.append("  cut at the limit", style="yellow")
    return line


def _interval(score: Any) -> Text:
    if score is None:
        return Text("-")
    if isinstance(score, SupportsFloat):
        return Text(f"{float(score):.3f}")
    mean, low, high = (float(part) for part in score)
    return Text(f"{mean:.3f} [{low:.3f}, {high:.3f}]")


def _compared(before: Any, after: Any) -> list[Text]:
    """The change of the mean, and whether the two intervals lie apart."""
    if before is None or after is None:
        return [Text("-"), Text("-")]
    if isinstance(before, SupportsFloat) or isinstance(after, SupportsFloat):
        return [Text("-"), Text("-")]
    change = Text(f"{float(after[0]) - float(before[0]):+.3f}")
    if after[1] > before[2]:
        return [change, Text("higher", style="green")]
    if after[2] < before[1]:
        return [change, Text("lower", style="red")]
    return [change, Text("overlap")]
