"""Adapters of the misc formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
