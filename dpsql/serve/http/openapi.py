"""The OpenAPI description of the requests and responses of the HTTP face."""

from __future__ import annotations

from typing import Any

from dpsql.service.settings import SETTINGS

ARROW = "application/vnd.apache.arrow.stream"
DATABASE = "dpsql-database"
LARGEST_BODY = 1 << 20
_VALUE: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_ERROR = {
    "type": "object",
    "required": ["code", "headline", "why", "instead", "position"],
    "properties": {
        "code": {"type": "string"},
        "headline": {"type": "string"},
        "why": {"type": "string"},
        "instead": {"type": "string"},
        "position": {
            "type": ["integer", "null"],
            "minimum": 1,
            "description": "the first character of the statement is 1",
        },
        "also": {
            "type": "array",
            "description": "what else is wrong with the statement",
            "items": {"$ref": "#/components/schemas/Error"},
        },
    },
}
_NUMBERS: dict[str, Any] = {name: {"type": "number"} for name in ("epsilon", "delta", "rho")}
_COST = {
    "type": "object",
    "required": ["epsilon", "delta", "rho"],
    "properties": _NUMBERS,
}
_RHO: dict[str, Any] = {
    "type": ["number", "null"],
    "description": "null if the account does not compose in zCDP",
}
_TOTAL = {**_COST, "properties": {**_NUMBERS, "rho": _RHO}}
_ACCOUNT = {
    "type": "object",
    "required": ["account", "epsilon", "delta", "rho", "total", "renews"],
    "properties": {
        "account": {"type": "string"},
        "epsilon": {"type": "number"},
        "delta": {"type": "number"},
        "rho": _RHO,
        "total": _TOTAL,
        "renews": {"type": ["string", "null"]},
    },
}
_REMAINING = {
    "type": "object",
    "required": ["dataset", "tables", "role", "session"],
    "additionalProperties": False,
    "properties": {
        "dataset": _ACCOUNT,
        "tables": {
            "type": "object",
            "description": "by name, tables that have an account of their own",
            "additionalProperties": _ACCOUNT,
        },
        "role": _ACCOUNT,
        "session": _ACCOUNT,
    },
}
_ANSWER = {
    "type": "object",
    "required": ["columns", "rows", "intervals", "cost", "remaining", "recalled"],
    "properties": {
        "columns": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "type"],
                "properties": {"name": {"type": "string"}, "type": {"type": "string"}},
            },
        },
        "rows": {"type": "array", "items": {"type": "array", "items": _VALUE}},
        "intervals": {"type": "object", "additionalProperties": {"type": "array"}},
        "cost": _COST,
        "remaining": _REMAINING,
        "recalled": {"type": "boolean"},
        "notes": {"type": "array", "items": {"type": "string"}},
    },
}
_EXPLANATION = {
    "type": "object",
    "required": ["plan", "cost"],
    "properties": {"plan": {"type": "array", "items": {"type": "string"}}, "cost": _COST},
}
_READY: dict[str, Any] = {
    "type": "object",
    "required": ["ready", "failing"],
    "properties": {
        "ready": {"type": "boolean"},
        "failing": {
            "type": "array",
            "items": {"enum": ["ledger", "engine", "catalog", "lanes"]},
        },
    },
}
QUESTION: dict[str, Any] = {
    "type": "object",
    "required": ["sql"],
    "additionalProperties": False,
    "properties": {
        "sql": {"type": "string", "description": "one statement"},
        "parameters": {
            "type": "array",
            "items": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]},
            "description": "for $1, $2 and so on; lists are for = ANY($1) and <> ALL($1)",
        },
        "session": {"type": "string", "description": "the session account that is charged"},
        "settings": {
            "type": "object",
            "description": "dpsql's settings for this statement",
            "properties": {
                s.name: {"type": ["string", "number", "boolean"], "description": s.about}
                for s in SETTINGS.values()
            },
            "additionalProperties": False,
        },
    },
}
_DATABASE: dict[str, Any] = {
    "name": DATABASE,
    "in": "header",
    "schema": {"type": "string"},
    "description": "where several policies are served and know the token, the name of one's database",
}
_WRONG = {
    "400": "the request does not have the form that is described here",
    "401": "the token is missing or unknown",
    "404": "there is no database of this name",
    "403": "an account has too little left, or this is for owners",
    "413": "the request is too large",
    "422": "the statement is refused",
    "429": "too many statements of this log-in wait, or many tokens from this address were wrong",
    "500": "it could not be finished; this says nothing about rows",
    "503": "the server is shutting down; what was not begun is not charged",
    "504": "it took longer than its role may; what it was charged stays charged",
}


def _json(schema: object) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _said(about: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": about} if content is None else {"description": about, "content": content}


def _wrong(*codes: str) -> dict[str, Any]:
    reference = {"$ref": "#/components/schemas/Error"}
    return {code: _said(_WRONG[code], _json(reference)) for code in codes}


def _asking(about: str, content: dict[str, Any]) -> dict[str, Any]:
    return {
        "summary": about,
        "parameters": [_DATABASE],
        "requestBody": {"required": True, "content": _json(QUESTION)},
        "responses": {"200": _said("the answer", content), **_wrong(*_WRONG)},
    }


def description() -> dict[str, Any]:
    """The whole OpenAPI description."""
    text = {"text/plain": {"schema": {"type": "string"}}}
    arrow = {ARROW: {"schema": {"type": "string", "format": "binary"}}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "dpsql", "version": "1", "description": "SQL with differential privacy"},
        "security": [{"token": []}],
        "paths": {
            "/v1/query": {"post": _asking("answer one statement", {**_json(_ANSWER), **arrow})},
            "/v1/explain": {"post": _asking("plan and cost; spends nothing", _json(_EXPLANATION))},
            "/v1/budget": {
                "get": {
                    "summary": "what is left",
                    "parameters": [_DATABASE],
                    "responses": {
                        "200": _said("by account", _json(_REMAINING)),
                        **_wrong("401", "404", "429", "500", "503"),
                    },
                }
            },
            "/metrics": {
                "get": {
                    "summary": "for Prometheus",
                    "parameters": [_DATABASE],
                    "responses": {
                        "200": _said("metrics", text),
                        **_wrong("401", "403", "404", "429", "500", "503"),
                    },
                }
            },
            "/healthz": {
                "get": {
                    "summary": "whether it is up",
                    "security": [],
                    "responses": {"200": _said("it is", text)},
                }
            },
            "/readyz": {
                "get": {
                    "summary": "whether it can answer, checked once a second and within 2 seconds",
                    "security": [],
                    "responses": {
                        "200": _said("it can", _json(_READY)),
                        "503": _said(
                            "it cannot answer; the parts that do not work are named", _json(_READY)
                        ),
                    },
                }
            },
            "/openapi.json": {
                "get": {
                    "summary": "this description",
                    "security": [],
                    "responses": {"200": _said("this", _json({"type": "object"}))},
                }
            },
        },
        "components": {
            "schemas": {"Error": _ERROR},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
