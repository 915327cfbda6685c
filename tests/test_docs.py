"""The documents say what is: rows, paths, commands and settings are looked up."""

import ast
import dataclasses
import functools
import importlib.util
import pathlib
import re
import subprocess
import typing

import pytest

from rlvr_jax.config import Config, Objective
from rlvr_jax.core.presets import PRESETS

ROOT = pathlib.Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
STATUS = ROOT / "docs" / "status.md"

STATES = ("done", "partly", "not yet")
GROUPS = {
    "OBJ": 20,
    "VER": 32,
    "PG": 40,
    "KL": 14,
    "AGG": 20,
    "CLIP": 37,
    "DATA": 25,
    "ENT": 25,
    "REC": 40,
    "PK": 37,
    "SPU": 18,
    "BEH": 16,
    "PROC": 14,
    "TT": 30,
    "SFT": 20,
    "DIAG": 29,
}
ALL_IDS = [f"{g}-{n:02}" for g, size in GROUPS.items() for n in range(1, size + 1)]
ALL_IDS += [f"INT-{n}" for n in (*range(1, 10), "Q", "F")]
ID = re.compile(rf"\b(?:(?:{'|'.join(GROUPS)})-\d\d|INT-[1-9QF])\b")


def name_of(path):
    return path.relative_to(ROOT).as_posix()


@functools.cache
def committed():
    """Paths of the repository, as git lists them."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z"], capture_output=True, check=False
    )
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = listed.stdout.decode().split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


# docs/status.md


@dataclasses.dataclass(frozen=True)
class Row:
    id: str
    name: str
    places: list[str]
    tests: list[str]
    state: str
    note: str


def in_code(cell):
    return re.findall("`([^`]+)`", cell)


@functools.cache
def rows():
    found = []
    for line in STATUS.read_text("utf8").splitlines():
        if not ID.match(line.removeprefix("| ")):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        number, name, places, tests, state = cells
        state, _, note = state.partition(":")
        found.append(
            Row(number, name, in_code(places), in_code(tests), state, note.strip())
        )
    return found


@functools.cache
def functions_of(path):
    """`f` and `C::f` of a file."""
    found = set()
    for node in ast.parse((ROOT / path).read_text("utf8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            methods = (m for m in node.body if isinstance(m, ast.FunctionDef))
            found |= {f"{node.name}::{method.name}" for method in methods}
    return found


def test_status_has_every_row_once():
    assert [row.id for row in rows()] == ALL_IDS
    assert len(ALL_IDS) == 428


def test_states_are_of_the_three():
    assert {row.state for row in rows()} <= set(STATES)
    assert [row.id for row in rows() if (row.state == "partly") != bool(row.note)] == []


def test_rows_name_places_and_tests_that_exist():
    faults = []
    for row in rows():
        if row.state == "not yet":
            if row.places or row.tests:
                faults.append(f"{row.id}: 'not yet' has nothing to name")
            continue
        if not row.places or not row.tests:
            faults.append(f"{row.id}: {row.state!r} names no place or no test")
        faults += [f"{row.id}: no {p}" for p in row.places if not (ROOT / p).exists()]
        for test in row.tests:
            path, _, function = test.partition("::")
            is_test = function.rpartition("::")[2].startswith("test_")
            if not is_test or not path.startswith("tests/"):
                faults.append(f"{row.id}: {test} is no tests/FILE.py::test_NAME")
            elif not (ROOT / path).is_file() or function not in functions_of(path):
                faults.append(f"{row.id}: no test {test}")
    assert faults == []


def test_counts_at_the_top_are_those_of_the_rows():
    text = STATUS.read_text("utf8")
    counted = {
        state: int(count)
        for state, count in re.findall(
            r"^\| (done|partly|not yet) \| (\d+) \|", text, re.M
        )
    }
    assert counted == {
        state: sum(row.state == state for row in rows()) for state in STATES
    }


def test_rows_that_a_test_names_are_not_said_to_be_missing():
    """Whoever writes the test of a row changes the row too."""
    missing = {row.id for row in rows() if row.state == "not yet"}
    found = {
        f"{number}: {name_of(path)} names it, docs/status.md says 'not yet'"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if path != pathlib.Path(__file__)
        for number in ID.findall(path.read_text("utf8"))
        if number in missing
    }
    assert sorted(found) == []


def test_rows_are_named_in_tests_and_status_only():
    """The ids are those of a list that users do not have."""
    found = [
        name_of(path)
        for path in [*PAGES, *ROOT.glob("*/**/*.py")]
        if path != STATUS and not name_of(path).startswith("tests/")
        if ID.search(path.read_text("utf8"))
    ]
    assert found == []


# docs/papers.md


@functools.cache
def preset_tables():
    """Preset -> {setting: value} of its section's table."""
    text = (ROOT / "docs" / "papers.md").read_text("utf8")
    sections = re.split(r"^## ", text, flags=re.M)[1:]
    tables = {}
    for section in sections:
        heading = section.partition("\n")[0]
        if preset := re.search(r"\(preset `(\w+)`\)$", heading):
            cells = re.findall(r"^\| `([\w.]+)` \| `([^`]+)` \|", section, re.M)
            tables[preset[1]] = {name: ast.literal_eval(v) for name, v in cells}
    return tables


def test_papers_has_a_section_per_preset():
    assert sorted(preset_tables()) == sorted(PRESETS)


@pytest.mark.parametrize("preset", PRESETS)
def test_papers_states_the_settings_of_a_preset(preset):
    """Each setting that the preset changes is there, and every value said is true."""
    said = preset_tables()[preset]
    resolved = dataclasses.asdict(Objective(name=preset, **PRESETS[preset]))
    assert set(PRESETS[preset]) <= set(said)
    assert {name: resolved[name] for name in said} == said


def test_papers_names_functions_that_exist():
    """`module.function` in code font, where the module is one of core's."""
    text = (ROOT / "docs" / "papers.md").read_text("utf8")
    named = set(re.findall(r"`(\w+)\.(\w+)(?:\([^`]*\))?`", text))
    core = {path.stem for path in (ROOT / "rlvr_jax" / "core").glob("*.py")}
    settings = set(setting_names())  # critic is a section of the settings too
    named = {
        (module, name)
        for module, name in named
        if module in core and f"{module}.{name}" not in settings
    }
    assert len(named) > 30
    assert {
        f"{module}.{name}"
        for module, name in named
        if name not in functions_of(f"rlvr_jax/core/{module}.py")
    } == set()


def test_pages_count_the_presets_right():
    for page in ("README.md", "CHANGELOG.md"):
        counts = re.findall(r"(\d+) (?:published|presets)", (ROOT / page).read_text())
        assert set(counts) == {str(len(PRESETS))}, page


# docs/metrics.md

INNER = {
    "correction/squared_weight_mean",
    "logprob/advantage",
    "logprob/product",
    "mismatch/weight",
    "mismatch/weight_square",
    "ratio/square",
}
"""Sums that only other metrics are made of."""


def test_metrics_that_are_written_are_documented():
    """String constants of the trainer that look like a metric's name."""
    text = (ROOT / "docs" / "metrics.md").read_text("utf8")
    documented = set(re.findall(r"^\| `([^`]+)`", text, re.M))
    written = {
        node.value
        for path in (ROOT / "rlvr_jax" / "train").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if re.fullmatch(r"[a-z_]+/[a-z_@0-9]*[a-z0-9]", node.value)
    }
    assert len(written) > 50
    assert written - documented == INNER


# Links, trees, commands, settings


def test_links_lead_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf8")):
            file = target.partition("#")[0]
            if file and ":" not in target and not (page.parent / file).exists():
                broken.append(f"{name_of(page)}: {target}")
    assert broken == []


def test_every_page_is_linked_from_another():
    linked = {
        (page.parent / target.partition("#")[0]).resolve()
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf8"))
    }
    assert [name_of(page) for page in DOCS if page not in linked] == []


def tree_entries(text):
    """Paths of the trees in fenced blocks: one entry per line, children indented.

    A block is a tree when a line of it is `rlvr_jax/`, perhaps with words after it.
    """
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.M | re.S):
        if not re.search(r"^\s*rlvr_jax/(\s|$)", block, re.M):
            continue
        parents: list[tuple[int, str]] = []
        for line in block.splitlines():
            if not line.strip():
                continue
            indent = len(line) - len(line.lstrip())
            name = line.split()[0]
            while parents and parents[-1][0] >= indent:
                parents.pop()
            yield "".join(parent for _, parent in parents) + name
            if name.endswith("/"):
                parents.append((indent, name))


def test_trees_name_what_exists():
    missing = [
        f"{name_of(page)}: {entry}"
        for page in PAGES
        for entry in tree_entries(page.read_text("utf8"))
        if not (ROOT / entry).exists()
    ]
    assert missing == []


def test_a_tree_is_read_by_its_indentation():
    text = (
        "```\nrlvr_jax/   the package\n  core/\n    kl.py  KL\n  no.py\nsetup.py\n```\n"
    )
    expected = ["rlvr_jax/", "rlvr_jax/core/", "rlvr_jax/core/kl.py", "rlvr_jax/no.py"]
    assert list(tree_entries(text)) == [*expected, "setup.py"]


def commands():
    """(page, text) of what tells a user to type something."""
    paths = [*PAGES, *sorted(ROOT.glob("launch/*.py")), *ROOT.glob("configs/**/*.py")]
    return [(name_of(path), path.read_text("utf8")) for path in paths]


def module_exists(name):
    if name.partition(".")[0] not in ("rlvr_jax", "launch", "tests"):
        return importlib.util.find_spec(name) is not None
    place = ROOT / name.replace(".", "/")
    return place.with_suffix(".py").is_file() or (place / "__main__.py").is_file()


def test_commands_name_modules_and_recipes_that_exist():
    faults = []
    for page, text in commands():
        modules = set(re.findall(r"python3? -m ([a-z_][\w.]*\w)", text))
        recipes = set(re.findall(r"--config[= ]([\w/.-]+\.py)", text))
        faults += [f"{page}: -m {m}" for m in modules if not module_exists(m)]
        faults += [f"{page}: {r}" for r in recipes if not (ROOT / r).is_file()]
    assert faults == []


def setting_names(kind: type = Config, prefix=""):
    for name, hint in typing.get_type_hints(kind).items():
        yield prefix + name
        if dataclasses.is_dataclass(hint):
            yield from setting_names(typing.cast(type, hint), f"{prefix}{name}.")


def test_settings_that_are_quoted_exist():
    """`--config.a.b` in commands, and `section.field` in the code font of pages."""
    known = set(setting_names())
    sections = "|".join({name.partition(".")[0] for name in known if "." in name})
    in_code_font = re.compile(rf"`((?:{sections})\.[a-z_0-9]+)(?:=[^`]*)?`")
    faults = []
    for page, text in commands():
        quoted = set(re.findall(r"--config\.([a-z_][\w.]*\w)", text))
        if page.endswith(".md") and page != name_of(STATUS):
            quoted |= set(in_code_font.findall(text))
        faults += [f"{page}: {name}" for name in quoted - known]
    assert faults == []


# What does not belong into a public repository

PRIVATE = {
    "a path of some machine": r"/root/|/work/|/home/\w",
    "a temporary folder": r"(?<![\w.])/tmp/",
    "a folder beside the checkout": r"\.\./shared\b",
    "a package index": r"-index-url\b|\bartifactory\b",
    "a tool that wrote it": r"(?i)co-authored-by|generated with \[",
}


def test_no_file_holds_what_is_ours_alone():
    faults = []
    for path in committed():
        name = name_of(path)
        # Data from elsewhere says what it says.
        is_data = name.startswith("tests/data/") and path.name != "SOURCES.md"
        if is_data or path == pathlib.Path(__file__):
            continue
        content = path.read_bytes()
        if b"\0" in content:
            continue
        text = content.decode("utf8", "replace")
        faults += [
            f"{name}: {found[0]!r} is {what}"
            for what, pattern in PRIVATE.items()
            if not (what == "a temporary folder" and name.startswith("tests/"))
            if (found := re.search(pattern, text))
        ]
    assert faults == []


def test_versions_agree():
    pattern = r"^\s*version[=:]\s*\"([\d.]+)\""
    files = [ROOT / "setup.py", ROOT / "CITATION.cff"]
    versions = {re.search(pattern, f.read_text("utf8"), re.M)[1] for f in files}
    changes = (ROOT / "CHANGELOG.md").read_text("utf8")
    assert versions == {re.search(r"^## \[([\d.]+)\]", changes, re.M)[1]}
