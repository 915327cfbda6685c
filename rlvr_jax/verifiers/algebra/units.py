"""Words that may follow a number: units, currency, and which of them are the same."""

import re

_NAMES = {
    "metre": "m meter meters metre metres",
    "centimetre": "cm centimeter centimeters centimetre centimetres",
    "millimetre": "mm millimeter millimeters millimetre millimetres",
    "kilometre": "km kilometer kilometers kilometre kilometres",
    "inch": "in inch inches",
    "foot": "ft foot feet",
    "yard": "yd yard yards",
    "mile": "mi mile miles",
    "gram": "g gram grams",
    "kilogram": "kg kilogram kilograms",
    "milligram": "mg milligram milligrams",
    "pound": "lb lbs pound pounds",
    "ounce": "oz ounce ounces",
    "ton": "ton tons tonne tonnes",
    "second": "s sec secs second seconds",
    "minute": "min mins minute minutes",
    "hour": "h hr hrs hour hours",
    "day": "day days",
    "week": "week weeks",
    "month": "month months",
    "year": "yr yrs year years",
    "litre": "L liter liters litre litres",
    "millilitre": "ml mL milliliter milliliters millilitre millilitres",
    "dollar": "dollar dollars usd USD",
    "cent": "cent cents",
    "euro": "euro euros EUR",
    "degree": "deg degs degree degrees",
    "radian": "rad rads radian radians",
    "mile/hour": "mph",
    "kilometre/hour": "kph kmh kmph",
    "celsius": "celsius centigrade",
    "fahrenheit": "fahrenheit",
    "gallon": "gal gallon gallons",
    "hertz": "Hz hz",
    "volt": "V volt volts",
    "watt": "W watt watts",
    "newton": "N newton newtons",
    "joule": "J joule joules",
    "kelvin": "K kelvin kelvins",
}
_CANONICAL = {word: name for name, words in _NAMES.items() for word in words.split()}
UNITS = frozenset(word for word in _CANONICAL if len(word) > 1) | {
    "pct", "percent", "sq", "pts", "pt", "hrs", "pm", "am", "eq", "cu",
}  # fmt: skip
"""Runs of letters that, after a number, are a word and no product of variables."""

LETTERS = frozenset(word for word in _CANONICAL if len(word) == 1) | {"\\Omega"}
"""Units of one letter; after a number they may be variables as well."""

_SPACED_SIGN = re.compile(r"\s*([/^])\s*")
_PER = re.compile(r"/|\s+per\s+")
_DEGREES = re.compile(
    r"^degrees?\s+(celsius|centigrade|fahrenheit|[CF]$)", re.IGNORECASE
)
_SCALES = {"C": "celsius", "F": "fahrenheit"}
_POWERED = re.compile(
    r"(?:(?P<before>sq\.?|square|cu\.?|cubic)\s+)?(?P<name>[a-zA-Z]+)"
    r"(?:\^\{?(?P<power>[0-9])\}?|\s+(?P<after>squared|cubed))?"
)
_POWERS = {"sq": "2", "cu": "3"}

PERCENT = frozenset(["percent", "pct", "percentage"])
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}


def canonical(words: str) -> str | None:
    """One name for a unit however it is spelt; None if it is no unit known here.

    Example:
      >>> canonical("hrs"), canonical("hours"), canonical("apples")
      ('hour', 'hour', None)
    """
    if words.startswith("mod "):
        return words
    words = _SPACED_SIGN.sub(r"\1", words.strip().rstrip("."))
    words = _DEGREES.sub(lambda match: _SCALES.get(match[1], match[1]), words)
    parts = [_part(part) for part in _PER.split(words)]
    return None if None in parts else "/".join(map(str, parts))


def conflict(one: str | None, other: str | None) -> bool:
    """Whether two units as `canonical` returns them exclude each other.

    A power that only one of them has does not: 12 cm for an area is careless, 12 cm^3
    is something else.

    Example:
      >>> conflict("metre^2", "metre^3"), conflict("metre^2", "metre")
      (True, False)
    """
    if one is None or other is None or one == other:
        return False
    first, _, power = one.partition("^")
    second, _, power_too = other.partition("^")
    return first != second or bool(power and power_too)


def _part(words: str) -> str | None:
    match = _POWERED.fullmatch(words)
    if match is None:
        return None
    name = _CANONICAL.get(match["name"]) or _CANONICAL.get(match["name"].lower())
    power = match["power"] or _POWERS.get((match["before"] or match["after"] or "")[:2])
    return f"{name}^{power}" if name and power else name
