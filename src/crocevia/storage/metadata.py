"""What all tables register on: the names of their constraints, by one rule. Each table stands above its queries.

Times are Unix seconds (REAL); values that no query looks into are JSON text. A column exists where a query filters,
joins or sums.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import MetaData

SCHEMA: Final = "0097"  # the newest migration

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)
