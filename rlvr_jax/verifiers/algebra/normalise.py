r"""One spelling for what people write in many: Unicode to LaTeX, marks taken away.

Works on the text of one answer, before it is read as mathematics. No meaning is
decided here; 1,234 stays as it is.
"""

import re
import unicodedata

_SIGNS = {
    **dict.fromkeys("\u2212\u2013\u2014\u2010\u2011\ufe63\uff0d", "-"),
    **dict.fromkeys("\u00d7\u2715\u22c5\u00b7\u2219\u2217", "*"),
    **dict.fromkeys("\u00f7\u2215\u2044\uff0f", "/"),
    **dict.fromkeys("\u00a0\u2007\u2009\u202f\u200a\u2002\u2003\u3000", " "),
    **dict.fromkeys("\u20ac\u00a3\u00a5\u20b9", " "),
    **dict.fromkeys("\u2032\u2019", "'"),
    **dict.fromkeys("\u201c\u201d", '"'),
    "\u2220": r"\angle ",
    "\u25b3": r"\triangle ",
    "\u2264": r" \le ",
    "\u2a7d": r" \le ",
    "\u2265": r" \ge ",
    "\u2a7e": r" \ge ",
    "\u2260": r" \ne ",
    "\u2248": r" \approx ",
    "\u2243": r" \approx ",
    "\u221e": r"\infty ",
    "\u221a": r"\usqrt ",
    "\u221b": r"\ucbrt ",
    "\u2026": r"\ldots ",
    "\u2234": r"\therefore ",
    **dict.fromkeys("\u2192\u21d2", r"\Rightarrow "),
    "\u222a": r" \cup ",
    "\u2229": r" \cap ",
    "\u2205": r"\emptyset ",
    "\u2208": r" \in ",
    "\u2216": r" \setminus ",
    "\u00b1": r" \pm ",
    "\u2213": r" \mp ",
    "\u00b0": r"^\circ ",
    "\u00ba": r"^\circ ",
    "\u2103": r"^\circ C",
    "\u2109": r"^\circ F",
    **dict.fromkeys("\u2713\u2714\u2705", " "),
    "\u211d": r"\mathbb{R}",
    "\u3001": ", ",
    "\uff0c": ", ",
    "\uff1b": "; ",
    "\u3002": ".",
    "\u27e8": "(",
    "\u27e9": ")",
    "\u2308": r"\lceil ",
    "\u2309": r"\rceil ",
    "\u230a": r"\lfloor ",
    "\u230b": r"\rfloor ",
}
_GREEK = (
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi omicron "
    "pi rho finalsigma sigma tau upsilon phi chi psi omega"
).split()
_SIGNS |= {chr(0x3B1 + i): rf"\{name} " for i, name in enumerate(_GREEK)}
_SUPERSCRIPTS = (
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b\u207f"
)
_SUBSCRIPTS = "\u2080\u2081\u2082\u2083\u2084\u2085\u2086\u2087\u2088\u2089"
_RAISED = str.maketrans(_SUPERSCRIPTS, "0123456789-n")
_LOWERED = str.maketrans(_SUBSCRIPTS, "0123456789")
_FRACTION = re.compile("[\u00bc-\u00be\u2150-\u215e\u2189]")
"""One half and its like, in one character."""
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufe0e\ufe0f\u00ad\u034f]"
)

_COMMANDS = "frac|dfrac|tfrac|cfrac|sqrt|left|right|pi|text|infty|cdot|times|cup|pm|ln"
_ESCAPED_TWICE = re.compile(rf"\\\\(?=(?:{_COMMANDS})(?![a-zA-Z]))")
_LAYOUT = re.compile(
    r"\\(?:left|right)\s*\.|\\(?:left|right|middle|[bB]igg?[lrm]?|displaystyle"
    r"|textstyle|limits|nolimits|mathstrut|strut|rm|bf|it|tiny|small|normalsize|large"
    r"|Large|LARGE|huge|Huge|checkmark|textdollar|pounds|euro)(?![a-zA-Z])"
    r"|\\(?:text)?color\s*\{[^{}]{0,40}\}"
)
_THOUSANDS_GAP = re.compile(r"(?<=[0-9])\s*(?:\{\s*,\s*\}|,\s*\\!)\s*(?=[0-9])")
_SPACE = re.compile(
    r"(?<!\\)\\[,;:> ]|\\q?quad|\\(?:thinspace|enspace|hfill)(?![a-zA-Z])|~"
    r"|\\hspace\*?\s*\{[^{}]*\}|\\phantom\s*\{[^{}]*\}|[\n\t\r]"
)
_MATH_MARKS = re.compile(r"(?<!\\)\\[()\[\]]|(?<!\\)\$|(?<!\\)\\!")
_CONTINUED = re.compile(r"\\\\\s*&\s*=")
_ALIGNMENT = re.compile(
    r"\\(?:begin|end)\s*\{(?:align|aligned|equation|gather|gathered|split|math|cases)\*?\}"
)
_RAISED_O = re.compile(
    r"(?<=[0-9])\s*\^\s*(?:o\b|\{\s*(?:o|\\text\s*\{\s*o\s*\})\s*\})"
)
_EMPTY_ROOT = re.compile(r"\\sqrt\s*\{\s*\}(?=\s*\{)")
_ENDS = " \t\n*_`"


def visible(text: str) -> str:
    """The text without characters that are not seen, digits of all scripts as 0-9.

    Example:
      >>> visible("1\\u200b0 \\uff14 \\u0664")
      '10 4 4'
    """
    if text.isascii():
        return text
    text = _INVISIBLE.sub("", text)
    return _NOT_ASCII.sub(lambda match: _plain_character(match[0]), text)


def _plain_character(character: str) -> str:
    if "\uff01" <= character <= "\uff5e":
        return chr(ord(character) - 0xFEE0)
    if character.isdecimal():
        return str(unicodedata.decimal(character))
    if "\U0001d400" <= character <= "\U0001d7ff":  # letters in italics, bold, script
        return unicodedata.normalize("NFKC", character)
    return character


_OVER = re.compile(r"\{([^{}]*)\\over(?![a-zA-Z])([^{}]*)\}")
_CHOOSE = re.compile(r"\{([^{}]*)\\choose(?![a-zA-Z])([^{}]*)\}")
_TEMPERATURE = re.compile(
    r"\^\s*\{?\s*\\circ\s*\}?\s*(?:\\(?:text|mathrm|textrm|rm)\s*\{\s*([CF])\s*\}"
    r"|([CF])(?![a-zA-Z0-9_^{(]))"
)
_DOTTED = re.compile(
    r"(?<=[0-9.])\\dot\s*\{?([0-9])\}?(?:([0-9]*)\\dot\s*\{?([0-9])\}?)?"
)
"""The recurring digits of 0.1\\dot{6} and 0.\\dot{1}4285\\dot{7}."""
_GOES_ON = re.compile(
    r"(?<![0-9.,])([0-9]*\.[0-9]{2,60})\s*(?:\\[lc]?dots(?![a-zA-Z])|\.\.\.)(?!\s*[0-9.,])"
)
"""0.333... and the like."""
_AND_SO_ON = re.compile(r"(?<=,)\s*\.{3}\s*(?=,|\\?\}|$)")
"""Three dots in the place of members of a list."""
_LONGEST_CUT = 6
"""Digits after the point from which on a number that goes on may be cut off."""
_QUALIFIER = re.compile(
    r"\s*,?\s*\\text\s*\{\s*,?\s*for\s+(?:all|every|any|each)\b[^{},]*\}[^,]{0,60}$"
)
_MINUTES = re.compile(
    r"([0-9]+)\s*\^\s*\{?\s*\\circ\s*\}?\s*([0-9]+)\s*(?:'|\^\s*\{?\\prime\s*\}?)(?!')"
)
_PRIMES = re.compile(r"\^\s*\{?\s*((?:\\prime\s*)+)\}?")
_CROSS = re.compile(r"(?<=[0-9])\s*[xX]\s*(?=10\s*(?:\^|\*\*))")
_PLUS_MINUS = re.compile(r"^\s*\+\s*-(?=\s*[0-9a-z(\\])|\+\s*/\s*-")
_CURRENCY = re.compile(r"\b(?:US|CA|AU|HK|NZ|A|C|S)\s*\\?\$(?=\s*[0-9])")
_OUTWARD = re.compile(
    r"(^|\\(?:cup|cap|in|setminus)(?![a-zA-Z])|=)\s*([\[\]])([^\[\]]{1,200}[,;]"
    r"[^\[\]]{1,200})([\[\]])\s*(?=$|\\(?:cup|cap|setminus)(?![a-zA-Z]))"
)
"""Intervals in the French manner: ]a, b[ without its ends."""
_UNIT_FRACTION = re.compile(
    r"(?<=[0-9])(?:\\[,;: ]|[\s~])*\\[dt]?frac\s*"
    r"\{\s*\\(?:text|textrm|mathrm)\s*\{([^{}]{1,40})\}\s*\}"
    r"\s*\{\s*\\(?:text|textrm|mathrm)\s*\{([^{}]{1,40})\}\s*(\^\s*\{?[0-9]\}?)?\s*\}"
)
"""Behind a number: kilometres over hours, as one unit."""
_ORDINAL = re.compile(
    r"([0-9]{1,12})\s*(?:\^\s*)?\{?\s*(?:\\(?:text|textsuperscript|mathrm|textrm)\s*\{)?"
    r"\s*(?:st|nd|rd|th)\s*\}{0,2}"
)
"""As in 3rd and 3^{\\text{rd}}."""
_EMPTY_BRACES = re.compile(r"(?<=[0-9,.])\{\}")
_JOINER_BRACES = re.compile(r"(?<![a-zA-Z])(?<![a-zA-Z]\s)\{\s*(or|and)\s*\}")
_BROKEN_ROW = re.compile(r"(?<!\\)\\(?=[0-9-])")
_LEADING_RELATION = re.compile(
    r"^\s*(?:~|\\approx|\\sim|\\Rightarrow|\\therefore|[=-]>|=)(?![a-zA-Z])\s*"
)


def latex(text: str) -> str:
    r"""The text of an answer with layout gone and Unicode signs as LaTeX commands.

    Example:
      >>> latex("$\\left( \u221a3 ,\\; 2\u03c0 \\right)$.")
      '( \\usqrt 3 , 2\\pi )'
    """
    if not text.isascii():
        text = _ascii_signs(visible(text))
    text = _CURRENCY.sub(" ", text)
    if "," in text:
        text = _THOUSANDS_GAP.sub("{,}", text)
    if "\\" in text:
        text = _latex_layout(text)
    text = _GOES_ON.sub(_recurring, text)
    if ",..." in text.replace(" ", ""):
        text = _AND_SO_ON.sub(r"\\ldots ", text)
    if "10" in text:
        text = _CROSS.sub("*", text)
    if "+" in text:
        text = _PLUS_MINUS.sub(r"\\pm ", text)
    if "{" in text:
        text = _JOINER_BRACES.sub(r" \1 ", _EMPTY_BRACES.sub("", text))
    if "^" in text:
        text = _RAISED_O.sub(r"^\\circ ", text)
    text = _MATH_MARKS.sub(" ", text.replace(r"\$", " "))
    text = _LEADING_RELATION.sub("", trimmed(re.sub(r"\s+", " ", text)))
    if text[:1].isdigit() and (ordinal := _ORDINAL.fullmatch(text)):
        return ordinal[1]
    return _OUTWARD.sub(_inward, text).strip() if "]" in text or "[" in text else text


def _inward(match: re.Match) -> str:
    if match[2] + match[4] == "[]":
        return match[0]
    opening = "(" if match[2] == "]" else "["
    closing = ")" if match[4] == "[" else "]"
    return f"{match[1]} {opening}{match[3]}{closing} "


def _recurring(match: re.Match) -> str:
    """0.1666... with a line over what recurs; 3.14159... as it is, but for the dots."""
    digits = match[1]
    decimals = digits.partition(".")[2]
    for length in range(1, len(decimals) // 2 + 1):
        block = decimals[-length:]
        times = 3 if length == 1 else 2
        if decimals.endswith(block * times):
            while decimals.endswith(block * 2):
                decimals = decimals[:-length]
            start = digits.partition(".")[0] + "." + decimals[:-length]
            return rf"{start}\overline{{{block}}}"
    return digits if len(decimals) >= _LONGEST_CUT else match[0]


def trimmed(text: str) -> str:
    """Without the marks around an answer: emphasis, quotes, a final dot, outer braces.

    Example:
      >>> trimmed("**{42}.**")
      '42'
    """
    before = None
    while text != before:
        before = text
        text = text.strip(_ENDS)
        if len(text) > 2 and text[0] == text[-1] and text[0] in "\"'":
            text = text[1:-1]
        if text.endswith(tuple(".,;:")) and not text.endswith(".."):
            text = text[:-1]
        text = text.removesuffix(r"\\")
    inner = _without_outer_braces(text)
    return inner if inner == text else trimmed(inner)


def _without_outer_braces(text: str) -> str:
    opened = len(text) - len(text.lstrip("{"))
    closed = len(text) - len(text.rstrip("}"))
    depth = min(opened, closed)
    if not depth or "{" in text[depth:-depth] or "}" in text[depth:-depth]:
        return text
    inner = text[depth:-depth].strip()
    return text if "," in inner or not inner else inner  # {1, 2} is a set


def _aligned(text: str) -> str:
    """The lines of an align environment as a list; matrices keep their rows."""
    plain = _ALIGNMENT.sub(" ", text)
    if plain == text or r"\begin" in plain:
        return plain
    plain = _CONTINUED.sub("=", plain)
    return plain.replace("&", " ").replace(r"\\", ", ")


def _ascii_signs(text: str) -> str:
    text = re.sub(
        f"[{_SUPERSCRIPTS}]+", lambda m: f"^{{{m[0].translate(_RAISED)}}}", text
    )
    text = re.sub(
        f"[{_SUBSCRIPTS}]+", lambda m: f"_{{{m[0].translate(_LOWERED)}}}", text
    )
    text = _FRACTION.sub(_spelt_out, text)
    return "".join(_SIGNS.get(character, character) for character in text)


def _spelt_out(match: re.Match) -> str:
    return f" {unicodedata.normalize('NFKC', match[0])} ".replace("\u2044", "/")


def _latex_layout(text: str) -> str:
    if r"\begin" not in text:
        text = _ESCAPED_TWICE.sub(r"\\", text)
    else:
        text = _BROKEN_ROW.sub(r"\\\\", _aligned(text))
    if r"\over" in text:
        text = _OVER.sub(r"\\frac{\1}{\2}", text)
    if r"\choose" in text:
        text = _CHOOSE.sub(r"\\binom{\1}{\2}", text)
    if r"\dot" in text:
        text = _DOTTED.sub(r"\\overline{\1\2\3}", text)
    if r"\prime" in text:
        text = _PRIMES.sub(lambda match: "'" * match[1].count("prime"), text)
    if r"\text" in text:
        text = _QUALIFIER.sub("", text)
    if r"\text" in text or r"\mathrm" in text:
        text = _UNIT_FRACTION.sub(r"\\text{ \1/\2\3}", text)
    if r"\circ" in text:
        text = _MINUTES.sub(r"(\1+\2/60)^\\circ ", text)
        text = _TEMPERATURE.sub(r"\\text{ degrees \1\2}", text)
    text = _EMPTY_ROOT.sub(r"\\sqrt", text)
    text = _LAYOUT.sub(" ", text)
    return _SPACE.sub(" ", text)
