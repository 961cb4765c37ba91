"""What a person does in Superset, through its API: connect, browse, build data sets, chart.

Run by Superset's own Python; prints one line of JSON for each step. Values of private tables are
shown as their types, or, where noise is less than a chart shows (STEPS_EXACT), as they are.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

ADMIN = {"username": "admin", "password": "admin-of-a-test", "provider": "db"}


def _cell(value: object) -> object:
    if os.environ.get("STEPS_EXACT"):
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return "null" if value is None else "number" if number else type(value).__name__


class Steps:
    """An application and its client."""

    def __init__(self) -> None:
        from superset.app import create_app

        self.app = create_app()
        with self.app.app_context():
            security = self.app.appbuilder.sm
            security.sync_role_definitions()
            role = security.find_role("Admin")
            security.add_user("admin", "A", "D", "a@example.org", role, password=ADMIN["password"])
        self.client = self.app.test_client()
        token = self._json(self.client.post("/api/v1/security/login", json=ADMIN))["access_token"]
        self.head = {"Authorization": f"Bearer {token}"}
        self.database = 0

    def _json(self, said: Any) -> Any:
        return json.loads(said.data)

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        said = self.client.open(f"/api/v1/{path}", method=method, json=body, headers=self.head)
        return said.status_code, self._json(said)

    def connect(self) -> Any:
        uri = os.environ["STEPS_URI"]
        status, _ = self.call(
            "POST", "database/test_connection/", {"sqlalchemy_uri": uri, "database_name": "x"}
        )
        created, body = self.call(
            "POST",
            "database/",
            {"database_name": "shop", "sqlalchemy_uri": uri, "expose_in_sqllab": True},
        )
        self.database = body.get("id", 0)
        return (status, created) if created == 201 else body

    def schemas(self) -> Any:
        return sorted(self.call("GET", f"database/{self.database}/schemas/")[1].get("result", []))

    def tables(self) -> Any:
        found = self.call("GET", f"database/{self.database}/tables/?q=(schema_name:public)")[1]
        return [(t["value"], t["type"]) for t in found.get("result", [])]

    def columns(self) -> Any:
        path = f"database/{self.database}/table_metadata/?name=orders&schema=public"
        found = self.call("GET", path)[1]
        return [(c["name"], c["type"], c["comment"]) for c in found.get("columns", [])]

    def keys(self) -> Any:
        found = self.call(
            "GET", f"database/{self.database}/table_metadata/?name=orders&schema=public"
        )[1]
        return [
            (k.get("referred_table"), k.get("column_names")) for k in found.get("foreignKeys", [])
        ]

    def dataset(self, table: str) -> Any:
        body = {"database": self.database, "schema": "public", "table_name": table}
        status, made = self.call("POST", "dataset/", body)
        found = self.call("GET", f"dataset/{made.get('id')}")[1].get("result", {})
        return status, [
            (c["column_name"], c["type"], c["is_dttm"]) for c in found.get("columns", [])
        ]

    def virtual(self) -> Any:
        sql = "SELECT o.channel, o.amount, c.age FROM orders o JOIN customers c USING (customer_id)"
        body = {"database": self.database, "schema": "public", "table_name": "joined", "sql": sql}
        status, made = self.call("POST", "dataset/", body)
        found = self.call("GET", f"dataset/{made.get('id')}")[1].get("result", {})
        return status, [c["column_name"] for c in found.get("columns", [])]

    def chart(self, dataset: int, public: int = 1, **query: Any) -> Any:
        body = {
            "datasource": {"id": dataset, "type": "table"}, "force": False, "result_format": "json",
            "result_type": "full", "queries": [{"row_limit": 100, "orderby": [], **query}],
        }  # fmt: skip
        status, found = self.call("POST", "chart/data", body)
        if status != 200:
            return status, sorted(found)
        answer = found["result"][0]
        rows = [
            [v if i < public else _cell(v) for i, v in enumerate(row.values())]
            for row in answer["data"]
        ]
        return status, answer["colnames"], answer["coltypes"], sorted(rows, key=str)


def _sum(column: str) -> dict[str, Any]:
    return {
        "expressionType": "SIMPLE",
        "column": {"column_name": column},
        "aggregate": "SUM",
        "label": f"SUM({column})",
    }


COUNT = {"expressionType": "SQL", "sqlExpression": "COUNT(*)", "label": "count"}


def _grain(column: str, grain: str) -> dict[str, Any]:
    return {"timeGrain": grain, "columnType": "BASE_AXIS", "sqlExpression": column, "label": column,
            "expressionType": "SQL"}  # fmt: skip


def main() -> None:
    s = Steps()
    channel = [{"col": "channel", "op": "IN", "val": ["web", "shop"]}]
    steps = {
        "connect": s.connect,
        "schemas": s.schemas,
        "tables": s.tables,
        "columns": s.columns,
        "foreign keys": s.keys,
        "a data set of orders": lambda: s.dataset("orders"),
        "a data set of visits": lambda: s.dataset("visits"),
        "a data set of countries": lambda: s.dataset("countries"),
        "a data set of a query": s.virtual,
        "a table of groups": lambda: s.chart(
            1, columns=["channel"], metrics=[COUNT, _sum("amount")], filters=channel
        ),
        "bars": lambda: s.chart(2, columns=["page"], metrics=[COUNT], orderby=[["page", True]]),
        "a time series by month": lambda: s.chart(
            2, columns=[_grain("started", "P1M")], metrics=[COUNT], orderby=[["started", True]]
        ),
        "a time series by quarter": lambda: s.chart(
            1, columns=[_grain("placed", "P3M")], metrics=[COUNT]
        ),
        "a time range": lambda: s.chart(
            2,
            0,
            columns=[],
            metrics=[COUNT],
            granularity="started",
            time_range="2024-02-01 : 2024-05-01",
        ),
        "filter values": lambda: s.chart(1, columns=["channel"], metrics=[], filters=channel),
        "a big number": lambda: s.chart(1, 0, columns=[], metrics=[_sum("amount")]),
        "a filter on an aggregate": lambda: s.chart(
            2,
            columns=["page"],
            metrics=[COUNT],
            extras={"having": "COUNT(*) > -1000000"},
            orderby=[["page", True]],
        ),
        "a chart of a query": lambda: s.chart(
            4, columns=["channel"], metrics=[COUNT], filters=channel
        ),
        "a public table": lambda: s.chart(
            3, 9, columns=["continent", "country"], metrics=[], orderby=[["country", True]]
        ),
        "samples of a private table": lambda: s.chart(
            1, 0, columns=["amount", "placed"], metrics=[]
        ),
    }
    for name, step in steps.items():
        try:
            saw = step()
        except Exception as error:  # noqa: BLE001
            saw = f"FAILED {type(error).__name__} {error}"
        sys.stdout.write(json.dumps({"check": name, "saw": saw}) + "\n")


if __name__ == "__main__":
    main()
