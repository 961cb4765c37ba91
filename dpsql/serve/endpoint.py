"""The parts that all connections of one endpoint share: service, log-ins, limits, catalogs."""

from __future__ import annotations

import hashlib
import secrets
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives.hashes import HashAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding

from dpsql.policy.model import Access
from dpsql.serve import users
from dpsql.serve.backend import RoleSession
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.handshake import PROTOCOL_NAME
from dpsql.serve.pgwire.scram import Verifier
from dpsql.serve.pgwire.startup import Admission, Endpoint
from dpsql.serve.policy_snapshot import Catalog, PolicySnapshot, Who
from dpsql.serve.salts import Salts
from dpsql.service import Service


@dataclass(frozen=True, slots=True)
class Certificate:
    """The files of the certificate and the key with which the endpoint proves its identity."""

    chain: str
    key: str

    def context(self) -> ssl.SSLContext:
        """A TLS context for servers that takes TLS 1.2 or newer."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.chain, self.key)
        context.set_alpn_protocols([PROTOCOL_NAME])
        return context

    def binding(self) -> bytes:
        """The hash of the certificate that SCRAM-SHA-256-PLUS binds to (RFC 5929)."""
        with open(self.chain, "rb") as file:  # noqa: PTH123
            certificate = x509.load_pem_x509_certificate(file.read())
        return hashlib.new(
            _strong(certificate.signature_hash_algorithm), certificate.public_bytes(Encoding.DER)
        ).digest()


def _strong(algorithm: HashAlgorithm | None) -> str:
    name = "sha256" if algorithm is None else algorithm.name
    return "sha256" if name in ("md5", "sha1") else name


class ServiceEndpoint:
    """The machine's ``Endpoint`` over one open service, under any name of a database."""

    def __init__(
        self,
        service: Service,
        catalog: Callable[[Service, str], Catalog],
        *,
        certificate: Certificate | None = None,
        requires_tls: bool = False,
    ) -> None:
        """``catalog`` makes the catalog that a role sees."""
        self._catalog = catalog
        self._salts = Salts(service.ledger.secret(), service.policy.front.database)
        self.encrypts, self.requires_tls = certificate is not None, requires_tls
        self.binding = None if certificate is None else certificate.binding()
        self.snapshot = self._read(service, None)

    def _read(self, service: Service, before: PolicySnapshot | None) -> PolicySnapshot:
        verifiers = {
            name: verifier
            for name, role in service.policy.roles.items()
            if (verifier := self._of(name, role.password)) is not None
        }
        return PolicySnapshot(service, users.of(service.policy, verifiers), self._catalog, before)

    def reload(self) -> None:
        """Read policy and users again. If something is wrong with them, raise and change nothing.

        Sessions go on under the new snapshot with their next statement.
        """
        snapshot = self._read(self.snapshot.service.reloaded(), self.snapshot)
        snapshot.service.take_over()  # last, so that the ledger notes only what comes into force
        self.snapshot = snapshot

    @property
    def snapshots(self) -> Mapping[str, PolicySnapshot]:
        """The newest snapshot, by the name of its database."""
        return {self.snapshot.service.policy.front.database: self.snapshot}

    def at(self, database: str) -> Endpoint:  # noqa: ARG002 (one policy has every name)
        """This endpoint, which serves every database."""
        return self

    @property
    def cleartext(self) -> bool:
        """Whether clients may send passwords in clear text over TLS."""
        return self.snapshot.service.policy.front.cleartext

    @property
    def locked_out(self) -> list[str]:
        """The roles as which nobody can log in, since they have no usable password and no user."""
        entered = {user.role for user in self.snapshot.users.values()}
        return [name for name in self.snapshot.service.policy.roles if name not in entered]

    def _of(self, role: str, password: str | None) -> Verifier | None:
        if not password:
            return None
        if password.startswith("SCRAM-SHA-256$"):
            return Verifier.parse(password)
        return Verifier.of(password, self._salts.salt(role))

    def verifier(self, role: str) -> tuple[Verifier, bool]:
        """A user's verifier, and whether there is such a user.

        An unknown name gets a verifier that no password fits, and that looks the same. The same is
        computed for known and unknown names, so time does not tell them apart either.
        """
        found, decoy = self.snapshot.users.get(role), self.decoy(role)
        known = None if found is None else found.verifier
        return known or decoy, known is not None

    def decoy(self, name: str) -> Verifier:
        """A verifier that no password fits. A client sees the same one each time for a name."""
        iterations, length = self._salts.look(name, self.snapshot.looks)
        return Verifier(
            iterations, self._salts.salt(name, length), self.random(32), self.random(32)
        )

    def luck(self, name: str) -> int:
        """A number that no client can predict. A name keeps it as long as the ledger exists."""
        return self._salts.number(name)

    def enter(self, role: str, database: str, session: str, place: Place) -> RoleSession:
        """A session of a user, under the name that the client gave to the database."""
        return RoleSession(lambda: self.snapshot, Who(database, role), session, place)

    def admission(self, user: str) -> Admission:
        """The limits that the policy sets on a user's connections."""
        found, policy = self.snapshot.users.get(user), self.snapshot.service.policy
        role = policy.roles.get(found.role) if found is not None else None
        if role is None:
            return Admission("", Access(), str(policy.path))
        return Admission(role.name, role.access, str(policy.path))

    def process(self) -> int:
        """A random number for a connection, so that it does not tell how many there are."""
        return secrets.randbelow(2**31 - 1) + 1

    def random(self, count: int) -> bytes:
        """Random bytes from the operating system."""
        return secrets.token_bytes(count)
