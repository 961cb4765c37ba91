"""What one reading of the policy gives all connections: its service, who may log in, catalogs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from dpsql.serve.memory import Memory
from dpsql.serve.pgwire.asking import Answer, Description
from dpsql.serve.pgwire.commands import Query
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.parameters import Value
from dpsql.serve.remaining import Balances
from dpsql.serve.users import User, hashed
from dpsql.service import Service


class Who(NamedTuple):
    """Where a client has connected to, and as whom: its own words."""

    database: str
    login: str


class Catalog(Protocol):
    """What stands for PostgreSQL's own tables."""

    def has(self, name: str) -> bool:
        """Whether a catalog relation is called this."""
        ...

    def columns(self, query: Query, who: Who, values: Sequence[Value] | None) -> Description:
        """What a catalog query takes and returns."""
        ...

    def answer(
        self, query: Query, who: Who, values: Sequence[Value], place: Place | None = None
    ) -> Answer:
        """The rows of a catalog query; without a place it is only described, and stops nobody."""
        ...

    def interrupt(self, thread: int) -> None:
        """Stop what another thread asks."""
        ...

    def shape(self, query: Query, who: Who, values: Sequence[Value]) -> Answer:
        """The columns of a query over the policy's tables, as if all were empty."""
        ...


@dataclass(slots=True)
class Shared:
    """What the sessions of one role share."""

    catalog: Catalog
    balances: Balances
    answers: Memory[Answer] = field(default_factory=lambda: Memory(2_000))
    catalog_answers: Memory[Answer] = field(default_factory=lambda: Memory(2_000))
    described: Memory[Description] = field(default_factory=lambda: Memory(2_000))
    routes: Memory[str] = field(default_factory=lambda: Memory(4_000))


class World:
    """One reading of the policy and of its users. A reload makes another one."""

    def __init__(
        self,
        service: Service,
        users: Mapping[str, User],
        catalog: Callable[[Service, str], Catalog],
    ) -> None:
        """``catalog`` makes the catalog that a role sees."""
        self.service, self.users, self._catalog = service, users, catalog
        self._balances, self._lock = Balances(), threading.Lock()
        self._shared: dict[str, Shared] = {}
        self._tokens = {user.token: user for user in users.values() if user.token}

    def bearer(self, token: str) -> User | None:
        """Whose token this is. It is looked up by its hash, whose time tells nothing of tokens."""
        return self._tokens.get(hashed(token))

    def shared(self, role: str) -> Shared:
        """What the sessions of a role share, made when the first one comes."""
        with self._lock:
            found = self._shared.get(role)
            if found is None:
                catalog = self._catalog(self.service, role)
                found = self._shared[role] = Shared(catalog, self._balances)
            return found
