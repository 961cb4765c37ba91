"""Serves several policies at one endpoint. The name of the database chooses the policy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from dpsql.diagnostics.refusal import PolicyError
from dpsql.serve.endpoint import ServiceEndpoint
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.errors import NO_DATABASE, Fatal
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.pgwire.startup import Admission, Endpoint
from dpsql.serve.policy_snapshot import PolicySnapshot


class Unknown:
    """The endpoint of a database that does not exist. Every log-in to it fails.

    It looks like one of the endpoints that exist: it offers the same ways to log in, and verifiers
    with the same numbers of iterations. Its salts differ from those of other databases, as those of
    each policy do. So a client cannot tell which names of databases exist.
    """

    def __init__(self, like: ServiceEndpoint, database: str) -> None:
        """``like`` is the endpoint that it looks like."""
        self._like, self._database = like, database
        self.encrypts, self.requires_tls = like.encrypts, like.requires_tls
        self.binding = like.binding

    def at(self, database: str) -> Endpoint:  # noqa: ARG002 (it has been asked for)
        """This endpoint itself."""
        return self

    @property
    def cleartext(self) -> bool:
        """As at the endpoint that it looks like."""
        return self._like.cleartext

    def verifier(self, role: str) -> tuple[Verifier, bool]:
        """A verifier that no password fits."""
        return self._like.decoy(f"{role}\0{self._database}"), False

    def admission(self, user: str) -> Admission:
        """As at the endpoint that it looks like."""
        return self._like.admission(user)

    def enter(self, role: str, database: str, session: str, place: Place) -> NoReturn:  # noqa: ARG002
        """Refuse: there is no such database. It is never called, as no log-in succeeds."""
        raise Fatal(NO_DATABASE, f'database "{database}" does not exist')

    def process(self) -> int:
        """A random number for a connection."""
        return self._like.process()

    def random(self, count: int) -> bytes:
        """Random bytes from the operating system."""
        return self._like.random(count)


class Databases(Unknown):
    """The machine's ``Endpoint`` before a client has named a database.

    A client that names an unknown database goes through a log-in that fails, as it would with a
    wrong password.
    """

    def __init__(self, endpoints: Sequence[ServiceEndpoint]) -> None:
        """Databases keep the names that their policies had when they were opened."""
        super().__init__(endpoints[0], "")
        self._endpoints = dict[str, ServiceEndpoint]()
        for endpoint in endpoints:
            policy = endpoint.snapshot.service.policy
            if policy.front.database in self._endpoints:
                raise PolicyError(
                    f'{policy.path}: two policies have the database "{policy.front.database}"; '
                    "give one of them another name, with `database: name` in it"
                )
            self._endpoints[policy.front.database] = endpoint

    @property
    def snapshots(self) -> Mapping[str, PolicySnapshot]:
        """The newest snapshots, by the names of their databases."""
        return {name: endpoint.snapshot for name, endpoint in self._endpoints.items()}

    def at(self, database: str) -> Endpoint:
        """The endpoint of a database; for an unknown name, one at which every log-in fails."""
        found = self._endpoints.get(database)
        if found is not None:
            return found
        chosen = self._like.luck(f"database {database}") % len(self._endpoints)
        return Unknown(list(self._endpoints.values())[chosen], database)
