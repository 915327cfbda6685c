"""Adapters of the advantages formulas."""

from tests.golden.case import Adapter

ADAPTERS: dict[str, Adapter] = {}
