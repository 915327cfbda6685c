"""What a compiled program sends between devices, read from its HLO text."""

import dataclasses
import math
import re
from collections.abc import Mapping, Sequence

KINDS = (
    "all-gather",
    "all-reduce",
    "reduce-scatter",
    "all-to-all",
    "collective-permute",
)
_BYTES = {
    "pred": 1,
    "s8": 1,
    "u8": 1,
    "bf16": 2,
    "f16": 2,
    "s16": 2,
    "u16": 2,
    "f32": 4,
    "s32": 4,
    "u32": 4,
    "f64": 8,
    "s64": 8,
    "u64": 8,
}
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) .*\{\s*$")
_OP = re.compile(rf"= (.+?) ({'|'.join(KINDS)})(-start)?\(")
_CALLS = re.compile(r"(?:calls|to_apply|body|condition)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
_TRIPS = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')
_CONDITION = re.compile(r"condition=%?([\w.\-]+)")
_CONSTANT = re.compile(r"%?([\w.\-]+) = s32\[\]\S* constant\((\d+)\)")
_BELOW = re.compile(r" compare\(([^)]*)\), direction=LT")
_SHAPE = re.compile(r"(\w+)\[([\d,]*)\]")


@dataclasses.dataclass(frozen=True)
class Collectives:
    """Per run of the program: bytes of results on one device, by kind."""

    bytes_by_kind: dict[str, int]
    unknown_loops: int
    """Loops around collectives that do not say how often they run at most; counted
    once."""

    @property
    def total(self) -> int:
        """Bytes of all kinds."""
        return sum(self.bytes_by_kind.values())


def collectives_of(text: str) -> Collectives:
    """Counts the collectives of a program, each as often as the loops around it run.

    A loop that may end early, as sampling does, counts to its limit. libtpu does not
    write down how often one runs, but its condition compares a counter with a number.

    Args:
      text: `Compiled.as_text()`.
    """
    entry, computations = _computations(text)
    sent: dict[str, list[tuple[str, int]]] = {}
    calls: dict[str, list[tuple[str, int | None]]] = {}
    for current, lines in computations.items():
        sent[current], calls[current] = [], []
        for line in lines:
            found = _OP.search(line)
            if found:
                sent[current].append((found[2], _size(found[1], bool(found[3]))))
            trips = _trips(line, computations) if " while(" in line else 1
            calls[current] += [(name, trips) for name in _CALLS.findall(line)]
            for names in _BRANCHES.findall(line):
                calls[current] += [(n.strip().lstrip("%"), 1) for n in names.split(",")]
    totals: dict[str, int] = {kind: 0 for kind in KINDS}
    unknown = 0

    def visit(name: str, times: int) -> bool:
        """Adds a computation `times` over; whether it sends anything."""
        nonlocal unknown
        sends = bool(sent.get(name))
        for kind, size in sent.get(name, ()):
            totals[kind] += times * size
        for callee, trips in calls.get(name, ()):
            inner = visit(callee, times * (1 if trips is None else trips))
            unknown += trips is None and inner
            sends |= inner
        return sends

    visit(entry, 1)
    return Collectives({k: v for k, v in totals.items() if v}, unknown)


def _computations(text: str) -> tuple[str, dict[str, list[str]]]:
    """The entry's name, and the lines of every computation by its name."""
    entry, found, lines = "", {}, []
    for line in text.splitlines():
        head = _HEAD.match(line)
        if head and not line.startswith(" "):
            lines = found[head[2]] = []
            entry = head[2] if head[1] else entry
        else:
            lines.append(line)
    return entry, found


def _trips(line: str, computations: Mapping[str, Sequence[str]]) -> int | None:
    """How often the loop of a line runs, at most; None if it does not say."""
    if known := _TRIPS.search(line):
        return int(known[1])
    condition = _CONDITION.search(line)
    return _limit(computations.get(condition[1], ())) if condition else None


def _limit(condition: Sequence[str]) -> int | None:
    """The number that a loop's counter is compared with, if there is one."""
    constants: dict[str, int] = {}
    for line in condition:
        if found := _CONSTANT.search(line):
            constants[found[1]] = int(found[2])
    for line in condition:
        if found := _BELOW.search(line):
            for operand in found[1].split(","):
                name = operand.strip().split("%")[-1]
                if name in constants:
                    return constants[name]
    return None


def _size(shape: str, started: bool) -> int:
    """Bytes of a result; "-start" has (operands, results), of which the last counts."""
    parts = [
        math.prod([int(n) for n in dims.split(",") if n]) * _BYTES[kind]
        for kind, dims in _SHAPE.findall(shape)
        if kind in _BYTES
    ]
    return max(parts, default=0) if started else sum(parts)
