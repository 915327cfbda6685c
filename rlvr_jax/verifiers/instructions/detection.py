"""Is a response in a language? IFEval asks `langdetect`, so its answer is the rule.

Without that package `identify` decides, which differs on very short texts and texts in
capitals, where langdetect's answers have little to do with the language: it calls
"THE TRAIN LEAVES AT NOON." Vietnamese.
"""

import functools
import importlib
from collections.abc import Callable

from rlvr_jax.verifiers.identify import identify, words


def follows(response: str, language: str) -> bool:
    """Whether the response is in the language; one without words is, as in IFEval."""
    detector = _langdetect()
    if detector is None:
        found = identify(response) if words(response) else language
    else:
        found = detector(response) or language
    # langdetect says "zh-cn" and "zh-tw" for Chinese, which IFEval never asks for.
    return language in (found, found and found.partition("-")[0])


def warm_up() -> None:
    """Loads the language profiles, which takes half a second, before any deadline."""
    follows("warm", "en")


@functools.cache
def _langdetect() -> Callable[[str], str | None] | None:
    """What langdetect says, None for a text it finds nothing in; None if not there."""
    try:
        langdetect = importlib.import_module("langdetect")
    except ImportError:
        return None
    factory = langdetect.DetectorFactory()
    factory.load_profile(langdetect.PROFILES_DIRECTORY)
    factory.set_seed(0)  # else the answer on a short text may change between calls

    def detect(text: str) -> str | None:
        detector = factory.create()
        detector.append(text)
        try:
            return detector.detect()
        except langdetect.LangDetectException:
            return None

    return detect
