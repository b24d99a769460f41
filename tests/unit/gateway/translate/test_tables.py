"""The tables say of every field exactly one thing."""

from __future__ import annotations

import pytest

from reef.gateway.translate import fields
from reef.gateway.translate.fields import Fields

TABLES = {name: table for name, table in vars(fields).items() if isinstance(table, Fields)}


@pytest.mark.parametrize("name", sorted(TABLES))
def test_every_field_stands_in_one_place_only(name: str) -> None:
    table = TABLES[name]
    known = [*table.plain, *table.shaped, *table.ignored, *table.refused, *table.named]
    assert len(known) == len(set(known))
    assert all(why for why in (*table.shaped.values(), *table.ignored.values()))
    assert all(limit.why for limit in (*table.refused.values(), *table.named.values()))


def test_a_value_that_asks_for_nothing_is_left_out_of_every_table() -> None:
    for table in TABLES.values():
        for name, limit in (*table.refused.items(), *table.named.items()):
            for value in (None, *limit.neutral):
                assert table.carry({name: value}) == ({}, [])
