"""SmartNoise SQL over DuckDB, which it takes for PostgreSQL; its usual options.

Its epsilon is that of a column. So that a whole query costs what it costs elsewhere, each query is
asked at the epsilon at which it says that it costs that much.
"""

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
    place = Connection(connection)

    def reader(epsilon: float) -> Any:
        privacy = Privacy(epsilon=epsilon, delta=asked["delta"])
        metadata = {"": {"main": {"t": table}}}
        return from_connection(place, privacy=privacy, metadata=metadata, engine="postgres")

    readers: dict[str, Any] = {}

    def answered(text: str) -> list[Any]:
        text = text.replace("FROM t", "FROM main.t")
        if text not in readers:
            cost = reader(asked["epsilon"]).get_privacy_cost(text)[0]
            readers[text] = reader(asked["epsilon"] ** 2 / cost)
        found: list[Any] = readers[text].execute(text)[1:]
        return found

    turns(asked, lambda text: connection.sql(text).fetchall(), answered)


if __name__ == "__main__":
    main()
