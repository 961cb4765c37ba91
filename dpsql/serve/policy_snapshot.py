"""A snapshot of the policy, as all connections use it: its service, its users, its catalogs."""

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
    """The database to which a client has connected, and its login, in the client's own words."""

    database: str
    login: str


class Catalog(Protocol):
    """Answers queries over PostgreSQL's own tables."""

    def has(self, name: str) -> bool:
        """Whether there is a catalog relation of this name."""
        ...

    def columns(
        self, query: Query, who: Who, values: Sequence[Value] | None,
        views: Sequence[ViewShape] = (),
    ) -> Description:  # fmt: skip
        """The columns and the parameter types of a catalog query."""
        ...

    def answer(
        self, query: Query, who: Who, values: Sequence[Value], place: Place | None = None,
        views: Sequence[ViewShape] = (),
    ) -> Answer:  # fmt: skip
        """The rows of a catalog query.

        Without a ``place`` the query is only described, and its functions stop no statement.
        """
        ...

    def interrupt(self, thread: int) -> None:
        """Stop the query that another thread runs."""
        ...

    def shape(self, query: Query, who: Who, values: Sequence[Value]) -> Answer:
        """The columns of a query over the policy's tables, as if all were empty."""
        ...


def answer_size(key: Hashable, answer: Answer) -> int:
    """The bytes of a cached answer, including the encoded messages that it may hold later."""
    answer.counted()
    return size_of(key, answer) + MOST_ENCODED * answer.most_encoded


@dataclass(slots=True)
class Shared:
    """The catalog and the caches that the sessions of one role share."""

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
    """The policy and its users as they were read at one time. A reload makes another snapshot."""

    def __init__(
        self,
        service: Service,
        users: Mapping[str, User],
        catalog: Callable[[Service, str], Catalog],
        before: PolicySnapshot | None = None,
    ) -> None:
        """``catalog`` makes the catalog that a role sees.

        Catalogs of the snapshot ``before`` are kept if nothing that they show has changed.
        """
        self.service, self.users, self._catalog = service, users, catalog
        self._catalogs = {} if before is None else before.catalogs_for(service)
        self._balances, self._lock = Balances(), threading.Lock()
        self._shared: dict[str, Shared] = {}
        self.looks = looks(u.verifier for u in users.values() if u.verifier is not None)
        """The forms of the verifiers, which a client sees before it has proved anything."""
        self._tokens = {user.token: user for user in users.values() if user.token}

    def bearer(self, token: str) -> User | None:
        """The user who has this token; None if nobody has.

        The token is looked up by its hash, so the time of the look-up tells nothing of tokens.
        """
        return self._tokens.get(hash_token(token))

    def shared(self, role: str) -> Shared:
        """The parts that the sessions of a role share. They are made for the first session."""
        with self._lock:
            found = self._shared.get(role)
            if found is None:
                catalog = self._catalogs.get(role) or self._catalog(self.service, role)
                found = self._shared[role] = Shared(catalog, self._balances)
            return found

    def catalogs_for(self, service: Service) -> Mapping[str, Catalog]:
        """The catalogs of roles, if another service has the same policy and views; else none.

        Catalogs are made from policy and views alone.
        """
        mine = self.service
        if (mine.policy, mine.views) != (service.policy, service.views):
            return {}
        with self._lock:
            return {**self._catalogs, **{role: s.catalog for role, s in self._shared.items()}}
