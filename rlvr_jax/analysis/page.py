"""The report's HTML shell and style; everything is inline, nothing is fetched."""

import html
from collections.abc import Iterable, Sequence

from rlvr_jax.analysis import svg, text

CSS = """
:root {
  color-scheme: light dark;
  --sans: system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  --page: #f6f7f9; --card: #ffffff; --line: #e1e4e8; --grid: #e9ecef;
  --ink: #22272e; --soft: #57606a; --muted: #848d97;
  --good: #12805c; --bad: #c0392b; --warn: #96690a; --warn-ground: #fff6dd;
  LIGHT
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #101418; --card: #181d23; --line: #2c333b; --grid: #29303a;
    --ink: #e2e6ea; --soft: #aab2bb; --muted: #87919c;
    --good: #4cc38a; --bad: #f2766b; --warn: #e3b341; --warn-ground: #2c2510;
    --s1: #6ba8f2; --s2: #ef8a55; --s3: #3fbf8c; --s4: #a88ff2; --s5: #e57aa8;
    --s6: #d9ac3a; --s7: #86b9cb; --s8: #c2a372;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 var(--sans); }
main { max-width: 1240px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; line-height: 1.2; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 40px 0 12px; }
h3 { font-size: 14px; margin: 0; font-weight: 600; }
p { margin: 0; }
.soft { color: var(--soft); }
.small { font-size: 12.5px; }
.facts { display: flex; flex-wrap: wrap; gap: 6px 28px; margin: 16px 0 0; }
.facts div { min-width: 0; }
.facts dt { font-size: 12px; color: var(--muted); }
.facts dd { margin: 0; overflow-wrap: anywhere; }
.tiles { display: grid; gap: 12px; margin-top: 24px;
  grid-template-columns: repeat(auto-fit, minmax(250px, 1fr)); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px;
  padding: 14px 16px; min-width: 0; }
.tile b { display: block; font-size: 24px; line-height: 1.35; font-weight: 600; }
.tile .unit { font-size: 15px; font-weight: 500; color: var(--soft); }
.charts { display: grid; gap: 14px;
  grid-template-columns: repeat(auto-fill, minmax(min(360px, 100%), 1fr)); }
.chart { display: flex; flex-direction: column; }
.chart svg { display: block; width: 100%; height: auto; margin-top: auto;
  padding-top: 6px; stroke-linejoin: round; }
.card + .charts, .two + .charts { margin-top: 14px; }
.above { margin: -8px 0 12px; }
.below { margin-top: 10px; }
h1 + .card { margin-top: 16px; }
h1.next { margin-top: 56px; border-top: 1px solid var(--line); padding-top: 24px; }
table + .small, .wide + .small { margin-top: 10px; }
.chart .unit { color: var(--muted); font-weight: 400; }
.legend { display: flex; flex-wrap: wrap; gap: 0 14px; font-size: 12.5px;
  color: var(--soft); margin: 2px 0 0; padding: 0; list-style: none; }
.legend b { color: var(--ink); font-weight: 600; }
.legend i { display: inline-block; width: 16px; height: 3px; border-radius: 2px;
  vertical-align: middle; margin-right: 6px; background: currentColor; }
.legend .dash2, .legend .dash3, .legend .dash4 { width: 23px; border-radius: 0; }
.legend .dash2 { background:
  repeating-linear-gradient(90deg, currentColor 0 5px, transparent 5px 9px); }
.legend .dash3 { background:
  repeating-linear-gradient(90deg, currentColor 0 2px, transparent 2px 5px); }
.legend .dash4 { background: repeating-linear-gradient(
  90deg, currentColor 0 8px, transparent 8px 11px, currentColor 11px 13px,
  transparent 13px 16px); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 6px 12px 6px 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-size: 12.5px; font-weight: 500; color: var(--muted); }
tr:last-child td { border-bottom: 0; }
td.number, th.number { text-align: right; white-space: nowrap; padding-right: 16px; }
.good { color: var(--good); } .bad { color: var(--bad); }
.warnings { background: var(--warn-ground); border-color: var(--warn);
  margin-top: 20px; }
.warnings ul { margin: 4px 0 0; padding-left: 20px; }
.two { display: grid; gap: 14px; grid-template-columns: 3fr 2fr; align-items: start; }
@media (max-width: 900px) { .two { grid-template-columns: 1fr; } }
.gallery { display: grid; gap: 14px; margin: 8px 0 22px; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(360px, 100%), 1fr)); }
.tags { display: flex; flex-wrap: wrap; gap: 2px 12px; font-size: 12.5px;
  color: var(--soft); align-items: baseline; }
.tags .verdict { font-weight: 600; }
pre { font: 12.5px/1.45 var(--mono); white-space: pre-wrap; overflow-wrap: anywhere;
  margin: 8px 0 0; max-height: 200px; overflow-y: auto; }
pre.prompt { color: var(--soft); border-left: 3px solid var(--line);
  padding-left: 10px; max-height: 130px; }
details > summary { cursor: pointer; font-weight: 600; }
details table { margin-top: 10px; }
code { font: 12.5px var(--mono); overflow-wrap: anywhere; }
"""


def escaped(value: object) -> str:
    r"""Any value as HTML text.

    Example:
      >>> escaped('<b> & "c"\x00')
      '&lt;b&gt; &amp; &quot;c&quot;\\x00'
    """
    return html.escape(text.visible(str(value)))


def document(title: str, body: Iterable[str]) -> str:
    """A whole page."""
    light = " ".join(
        f"--s{number}: {color};" for number, color in enumerate(svg.SERIES_COLORS, 1)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{CSS.replace('LIGHT', light)}</style>"
        "\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def facts(pairs: Iterable[tuple[str, str]]) -> str:
    """Label over value, in a row; pairs without a value are left out."""
    items = [
        f"<div><dt>{escaped(label)}</dt><dd>{escaped(value)}</dd></div>"
        for label, value in pairs
        if value
    ]
    return f'<dl class="facts">{"".join(items)}</dl>' if items else ""


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], numbers: int) -> str:
    """A table of HTML cells whose columns from `numbers` on are right-aligned."""

    def cells(tag: str, row: Sequence[str]) -> str:
        return "".join(
            f'<{tag} class="number">{cell}</{tag}>'
            if column >= numbers
            else f"<{tag}>{cell}</{tag}>"
            for column, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{cells('th', headings)}</tr></thead>"
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def legend(entries: Iterable[tuple[str, str, str, int]]) -> str:
    """Colour keys: (CSS colour, label, value or "", line style from 1)."""
    items = []
    for color, label, value, style in entries:
        key = f'<i class="dash{style}" style="color: {color}"></i>'
        number = f" <b>{escaped(value)}</b>" if value else ""
        items.append(f"<li>{key}{escaped(label)}{number}</li>")
    return f'<ul class="legend">{"".join(items)}</ul>'
