"""Words that may follow a number: units, currency, and which of them are the same."""

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
    "miles per hour": "mph",
    "kilometres per hour": "kph kmh",
    "unit": "unit units",
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

LETTERS = frozenset(word for word in _CANONICAL if len(word) == 1)
"""Units of one letter; after a number they may be variables as well."""

PERCENT = frozenset(["percent", "pct", "percentage"])
SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9}


def canonical(words: str) -> str | None:
    """One name for a unit however it is spelt; None if it is no unit known here.

    Example:
      >>> canonical("hrs"), canonical("hours"), canonical("apples")
      ('hour', 'hour', None)
    """
    words = words.strip().rstrip(".")
    return _CANONICAL.get(words) or _CANONICAL.get(words.lower())
