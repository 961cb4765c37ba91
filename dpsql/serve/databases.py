"""Several policies behind one endpoint: the name of the database chooses which."""

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
    """Who takes in those who ask for a database that does not exist: nobody enters.

    It looks like one of the endpoints there are: an offer and iterations as that one has, and salts
    that are this name's own, as each policy's are. So nobody is told which names exist.
    """

    def __init__(self, like: ServiceEndpoint, database: str) -> None:
        """``like`` is the endpoint that it looks like."""
        self._like, self._database = like, database
        self.encrypts, self.requires_tls = like.encrypts, like.requires_tls
        self.binding = like.binding

    def at(self, database: str) -> Endpoint:  # noqa: ARG002 (it has been asked for)
        """Nobody else."""
        return self

    @property
    def cleartext(self) -> bool:
        """As the endpoint that it looks like."""
        return self._like.cleartext

    def verifier(self, role: str) -> tuple[Verifier, bool]:
        """One that nothing fits."""
        return self._like.decoy(f"{role}\0{self._database}"), False

    def admission(self, user: str) -> Admission:
        """As the endpoint that it looks like."""
        return self._like.admission(user)

    def enter(self, role: str, database: str, session: str, place: Place) -> NoReturn:  # noqa: ARG002
        """There is no such database; nobody comes so far."""
        raise Fatal(NO_DATABASE, f'database "{database}" does not exist')

    def process(self) -> int:
        """A number for a connection."""
        return self._like.process()

    def random(self, count: int) -> bytes:
        """From the operating system."""
        return self._like.random(count)


class Databases(Unknown):
    """The machine's ``Endpoint`` before a client has said which database it wants.

    A wrong name is led through a log-in that fails, as a wrong password does.
    """

    def __init__(self, endpoints: Sequence[ServiceEndpoint]) -> None:
        """Names are what the policies said when they were opened."""
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
        """The newest readings, by the name of their database."""
        return {name: endpoint.snapshot for name, endpoint in self._endpoints.items()}

    def at(self, database: str) -> Endpoint:
        """Who takes in those who ask for this database."""
        found = self._endpoints.get(database)
        if found is not None:
            return found
        chosen = self._like.luck(f"database {database}") % len(self._endpoints)
        return Unknown(list(self._endpoints.values())[chosen], database)
