"""SmartNoise SQL over DuckDB, which it takes for PostgreSQL; its usual options."""

from __future__ import annotations

import warnings
from typing import Any

from asked import opened, task, turns
from snsql import Privacy, from_connection

warnings.filterwarnings("ignore")


class Cursor:
    """DuckDB's, with rows to iterate over."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def execute(self, text: str) -> None:
        self.real.execute(text)
        self.description = self.real.description

    def __iter__(self) -> Any:
        return iter(self.real.fetchall())


class Connection:
    """DuckDB as the driver it expects."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def cursor(self) -> Cursor:
        return Cursor(self.real.cursor())

    def commit(self) -> None:
        """There is nothing to commit."""

    rollback = commit


def main() -> None:
    asked = task()
    connection = opened(asked)
    columns = {
        "id": {"private_id": True, "type": "int"},
        "grp": {"type": "int", "lower": 0, "upper": asked["groups"] - 1},
        "x": {"type": "float", "lower": 0.0, "upper": 500.0},
    }
    table = {"max_ids": asked["most"], "rows": asked["rows"], "censor_dims": False, **columns}
    privacy = Privacy(epsilon=asked["epsilon"], delta=asked["delta"])
    reader = from_connection(
        Connection(connection), privacy=privacy, metadata={"": {"main": {"t": table}}},
        engine="postgres",
    )  # fmt: skip
    turns(
        asked,
        lambda text: connection.sql(text).fetchall(),
        lambda text: reader.execute(text.replace("FROM t", "FROM main.t"))[1:],
    )


if __name__ == "__main__":
    main()
