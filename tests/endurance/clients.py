"""Clients that ask distinct questions over both faces, and note each answer with its first byte."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Protocol

import httpx
import psycopg

from tests.endurance.world import PASSWORD, Caller, Received

Note = Callable[[Received], None]


class Refused(Exception):
    """A budget has too little left."""


class Gone(Exception):
    """The endpoint is not there any more; whether it was charged is not known."""


class Client(Protocol):
    """One connection."""

    caller: Caller

    def ask(self, question: str, price: str, note: Note, *, whole: bool = True) -> None:
        """Ask for so much epsilon; ``note`` is called with the first byte of the answer, and its last.

        Unless it wants the ``whole`` answer, it turns away after the first.
        """
        ...

    def close(self) -> None:
        """Leave."""
        ...


class Wire:
    """Over the PostgreSQL protocol, row by row."""

    def __init__(self, port: int, caller: Caller) -> None:
        """Logged in, in its session, with the role that it takes."""
        self.caller = caller
        try:
            self._connection = psycopg.connect(
                host="127.0.0.1", port=port, user=caller.role, password=PASSWORD, dbname="shop",
                options=f"-c dpsql.session={caller.session}", autocommit=True, connect_timeout=60,
            )  # fmt: skip
            if caller.taken:
                self._connection.execute(f"SET ROLE {caller.taken}")
        except psycopg.OperationalError as error:
            raise Gone from error

    def ask(self, question: str, price: str, note: Note, *, whole: bool = True) -> None:
        """As ``Client`` says."""
        try:
            self._connection.execute(f"SET dpsql.epsilon = {price}")
            with (
                self._connection.cursor() as cursor,
                contextlib.closing(cursor.stream(question)) as rows,
            ):
                next(rows)
                note(Received(question, price, self.caller, "wire", whole=False))
                if not whole:
                    return
                for _ in rows:
                    pass
            note(Received(question, price, self.caller, "wire"))
        except psycopg.errors.ConfigurationLimitExceeded as error:
            raise Refused from error
        except psycopg.OperationalError as error:
            raise Gone from error

    def close(self) -> None:
        """As ``Client`` says."""
        self._connection.close()


class Http:
    """Over HTTP."""

    def __init__(self, port: int, token: str, caller: Caller) -> None:
        """Nothing is asked yet."""
        self.caller = caller
        self._client = httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=60,
            headers={"Authorization": f"Bearer {token}"},
        )  # fmt: skip

    def ask(self, question: str, price: str, note: Note, *, whole: bool = True) -> None:
        """As ``Client`` says."""
        body = {
            "sql": question, "session": self.caller.session, "settings": {"epsilon": float(price)},
        }  # fmt: skip
        try:
            with self._client.stream("POST", "/v1/query", json=body) as answer:
                if answer.status_code == 200:
                    note(Received(question, price, self.caller, "http", whole=False))
                    if not whole:
                        return
                said = answer.read()
        except httpx.TransportError as error:
            raise Gone from error
        if answer.status_code == 403:
            raise Refused
        assert answer.status_code == 200, said
        note(Received(question, price, self.caller, "http"))

    def close(self) -> None:
        """As ``Client`` says."""
        self._client.close()
