"""Several policies behind one endpoint: the name of the database chooses which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from dpsql.diagnostics.refusal import PolicyError
from dpsql.serve.house import ServiceHouse
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.errors import NO_DATABASE, Fatal
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.pgwire.startup import Admission, House
from dpsql.serve.world import World


class Databases:
    """The machine's ``House`` over houses by name; for unknown names it is the house itself.

    Whoever asks for an unknown name is led through the log-in of the first policy, and told that
    there is no such database once that has succeeded: a wrong name tells no more of who may log in
    than a right one.
    """

    def __init__(self, houses: Sequence[ServiceHouse]) -> None:
        """Names are what the policies said when they were opened."""
        self._first, self._houses = houses[0], dict[str, ServiceHouse]()
        for house in houses:
            policy = house.world.service.policy
            if policy.front.database in self._houses:
                raise PolicyError(
                    f'{policy.path}: two policies have the database "{policy.front.database}"; '
                    "give one of them another name, with `database: name` in it"
                )
            self._houses[policy.front.database] = house
        self.encrypts, self.requires_tls = self._first.encrypts, self._first.requires_tls
        self.binding = self._first.binding

    @property
    def worlds(self) -> Mapping[str, World]:
        """The newest readings, by the name of their database."""
        return {name: house.world for name, house in self._houses.items()}

    def at(self, database: str) -> House:
        """Who takes in those who ask for this database."""
        return self._houses.get(database, self)

    @property
    def cleartext(self) -> bool:
        """As the first policy says."""
        return self._first.cleartext

    def verifier(self, role: str) -> tuple[Verifier, bool]:
        """As the first policy says."""
        return self._first.verifier(role)

    def admission(self, user: str) -> Admission:
        """As the first policy says."""
        return self._first.admission(user)

    def enter(self, role: str, database: str, session: str, place: Place) -> NoReturn:  # noqa: ARG002
        """There is no such database."""
        raise Fatal(NO_DATABASE, f'database "{database}" does not exist')

    def process(self) -> int:
        """A number for a connection, whatever it connects to."""
        return self._first.process()

    def random(self, count: int) -> bytes:
        """From the operating system."""
        return self._first.random(count)
