"""What a chart of a report is made of; the charts themselves stand in catalog.py."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Chart:
    """Metrics drawn on one pair of axes, in one unit."""

    title: str
    unit: str
    """"share" is shown in percent, "" has no unit."""
    lines: tuple[tuple[str, str], ...]
    """(metric, its label in the legend)."""
    note: str = ""
    """One sentence on how to read it."""
    stacked: bool = False
    """The lines are parts of a whole: drawn as areas when there is one run."""
    whole: tuple[str, str] | None = None
    """The whole that stacked parts belong to, drawn as a line above them."""

    log: bool = False
    """The lines are magnitudes apart; drawn so when all values are above 0."""
    essential: bool = False
    """Drawn also when it is 0 at every step; other charts are then only named."""

    @property
    def metrics(self) -> tuple[tuple[str, str], ...]:
        """All (metric, label) pairs of the chart."""
        return self.lines if self.whole is None else (*self.lines, self.whole)


@dataclasses.dataclass(frozen=True)
class Section:
    """Charts under one heading."""

    title: str
    charts: tuple[Chart, ...]
