"""What one reading of the policy gives all connections: its service, who may log in, catalogs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from dpsql.memory.cache import Cache
from dpsql.memory.pool import Use
from dpsql.memory.sizes import size_of
from dpsql.serve.pgwire.asking import MOST_ENCODED, Answer, Description
from dpsql.serve.pgwire.commands import Query
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.parameters import Value
from dpsql.serve.remaining import Balances
from dpsql.serve.routes import Route
from dpsql.serve.salts import looks
from dpsql.serve.users import User, hash_token
from dpsql.service import Service
from dpsql.service.views import ViewShape


class Who(NamedTuple):
    """Where a client has connected to, and as whom: its own words."""

    database: str
    login: str


class Catalog(Protocol):
    """What stands for PostgreSQL's own tables."""

    def has(self, name: str) -> bool:
        """Whether a catalog relation is called this."""
        ...

    def columns(
        self, query: Query, who: Who, values: Sequence[Value] | None,
        views: Sequence[ViewShape] = (),
    ) -> Description:  # fmt: skip
        """What a catalog query takes and returns."""
        ...

    def answer(
        self, query: Query, who: Who, values: Sequence[Value], place: Place | None = None,
        views: Sequence[ViewShape] = (),
    ) -> Answer:  # fmt: skip
        """The rows of a catalog query; without a place it is only described, and stops nobody."""
        ...

    def interrupt(self, thread: int) -> None:
        """Stop what another thread asks."""
        ...

    def shape(self, query: Query, who: Who, values: Sequence[Value]) -> Answer:
        """The columns of a query over the policy's tables, as if all were empty."""
        ...


def answer_size(key: Hashable, answer: Answer) -> int:
    """The bytes of an answer that is remembered, with its rows as messages once they are made."""
    answer.counted()
    return size_of(key, answer) + MOST_ENCODED * answer.most_encoded


@dataclass(slots=True)
class Shared:
    """What the sessions of one role share."""

    catalog: Catalog
    balances: Balances
    answers: Cache[Hashable, Answer] = field(
        default_factory=lambda: Cache(Use.CACHED_ANSWERS, 2_000, size=answer_size)
    )
    catalog_answers: Cache[Hashable, Answer] = field(
        default_factory=lambda: Cache(Use.CACHED_CATALOG, 2_000, size=answer_size)
    )
    described: Cache[Hashable, Description] = field(
        default_factory=lambda: Cache(Use.CACHED_DESCRIPTIONS, 2_000)
    )
    routes: Cache[str, Route] = field(default_factory=lambda: Cache(Use.CACHED_ROUTES, 4_000))


class PolicySnapshot:
    """One reading of the policy and of its users. A reload makes another one."""

    def __init__(
        self,
        service: Service,
        users: Mapping[str, User],
        catalog: Callable[[Service, str], Catalog],
        before: PolicySnapshot | None = None,
    ) -> None:
        """``catalog`` makes the catalog that a role sees; catalogs from ``before`` that say the same stay."""
        self.service, self.users, self._catalog = service, users, catalog
        self._catalogs = {} if before is None else before.catalogs_for(service)
        self._balances, self._lock = Balances(), threading.Lock()
        self._shared: dict[str, Shared] = {}
        self.looks = looks(u.verifier for u in users.values() if u.verifier is not None)
        """What a client sees of verifiers before it has proved anything."""
        self._tokens = {user.token: user for user in users.values() if user.token}

    def bearer(self, token: str) -> User | None:
        """Whose token this is. It is looked up by its hash, whose time tells nothing of tokens."""
        return self._tokens.get(hash_token(token))

    def shared(self, role: str) -> Shared:
        """What the sessions of a role share, made when the first one comes."""
        with self._lock:
            found = self._shared.get(role)
            if found is None:
                catalog = self._catalogs.get(role) or self._catalog(self.service, role)
                found = self._shared[role] = Shared(catalog, self._balances)
            return found

    def catalogs_for(self, service: Service) -> Mapping[str, Catalog]:
        """The catalogs of roles, if another service would have the same: they are made from these alone."""
        mine = self.service
        if (mine.policy, mine.views) != (service.policy, service.views):
            return {}
        with self._lock:
            return {**self._catalogs, **{role: s.catalog for role, s in self._shared.items()}}
