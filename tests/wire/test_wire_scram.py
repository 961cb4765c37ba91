"""Log-ins, one step at a time: each check of the exchange is made, and no check can be left out."""

from __future__ import annotations

import ast
import base64
import copy
import difflib
import hashlib
import hmac
import secrets
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from dpsql.serve.pgwire import replies, scram, startup
from dpsql.serve.pgwire.errors import Fatal

CERTIFICATE = hashlib.sha256(b"certificate").digest()
KNOWN = scram.Verifier.of("correct horse", b"salt of 16 bytes", 1)
PLAIN, BOUND = "SCRAM-SHA-256", "SCRAM-SHA-256-PLUS"
END_POINT = "p=tls-server-end-point,,"


@dataclass(frozen=True)
class House:
    """Who takes in: a known or unknown role, with or without a certificate."""

    binding: bytes | None = None
    cleartext: bool = False
    exists: bool = True

    def verifier(self, _: str) -> tuple[scram.Verifier, bool]:
        return KNOWN, self.exists

    def random(self, count: int) -> bytes:
        return bytes(range(count))


@dataclass(frozen=True)
class Attempt:
    """What a client does that knows the password; each field may be something else than it should."""

    house: House = House()
    encrypted: bool = False
    password: str = "correct horse"
    mechanism: str = PLAIN
    header: str = "n,,"
    bare: str = "n=,r=abc"
    first: bytes | None = None
    length: int | None = None
    told: str | None = None
    """The header that the client says again in the end, if it is not the one it began with."""
    binding: bytes = b""
    nonce: str | None = None
    between: str = ""
    after: bytes = b""
    """Bytes behind the proof."""
    final: bytes | None = None

    def outcome(self, code: types.SimpleNamespace) -> str:
        """``in`` with a server's proof that is right, or what is refused."""
        wanted = types.SimpleNamespace(role="ann")
        login = code.Login(self.house, wanted, encrypted=self.encrypted)
        try:
            login.offer()
            first = self.header.encode() + self.bare.encode() if self.first is None else self.first
            length = len(first) if self.length is None else self.length
            body = self.mechanism.encode() + b"\0" + length.to_bytes(4, "big", signed=True)
            reply, entered = _stepped(login, body + first)
            assert not entered
            final, proof = self._final(reply[9:].decode())
            reply, entered = _stepped(login, final)
            assert entered
        except Fatal as error:
            return error.sqlstate
        except Exception as error:  # noqa: BLE001 (a check that is left out may fail anywhere)
            return type(error).__name__
        return "in" if b"v=" + base64.b64encode(proof) in reply else "in, without a proof"

    def _final(self, challenge: str) -> tuple[bytes, bytes]:
        """The client's final message, and the proof that it expects of the server."""
        if self.final is not None:
            return self.final, b""
        told = dict(part.split("=", 1) for part in challenge.split(","))
        salt, rounds = base64.b64decode(told["s"]), int(told["i"])
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, rounds)
        client = hmac.digest(salted, b"Client Key", "sha256")
        header = (self.header if self.told is None else self.told).encode() + self.binding
        nonce = told["r"] if self.nonce is None else self.nonce
        without = f"c={base64.b64encode(header).decode()},r={nonce}{self.between}"
        signed = f"{self.bare},{challenge},{without}".encode()
        mask = hmac.digest(hashlib.sha256(client).digest(), signed, "sha256")
        proof = bytes(a ^ b for a, b in zip(client, mask, strict=True)) + self.after
        server = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), signed, "sha256")
        return f"{without},p={base64.b64encode(proof).decode()}".encode(), server


def _stepped(login: Any, body: bytes) -> tuple[bytes, bool]:
    """Carry one message through, and whatever it asks for."""
    steps = login.step(body)
    try:
        asked = next(steps)
        while True:
            asked = steps.send(asked.perform(None))
    except StopIteration as end:
        return end.value


TLS = House(CERTIFICATE)
ATTEMPTS: list[tuple[Attempt, str]] = [
    (Attempt(), "in"),
    (Attempt(House(cleartext=True)), "in"),
    (Attempt(bare="n=ann,r=abc,x=more", between=",x=more"), "in"),
    (Attempt(header="y,,"), "in"),
    (Attempt(TLS, encrypted=True), "in"),
    (Attempt(TLS, encrypted=False, header="y,,"), "in"),
    (Attempt(TLS, True, mechanism=BOUND, header=END_POINT, binding=CERTIFICATE), "in"),
    # who it is
    (Attempt(password="wrong"), "28P01"),
    (Attempt(House(exists=False)), "28P01"),
    (Attempt(after=b"x"), "28P01"),
    (Attempt(final=b"c=biws,r=abc" + bytes(range(18)).hex().encode() + b",p=AAAA"), "28P01"),
    # the mechanism
    (Attempt(mechanism="SCRAM-SHA-1"), "08P01"),
    (Attempt(mechanism=BOUND, header=END_POINT), "08P01"),
    (Attempt(TLS, False, mechanism=BOUND, header=END_POINT, binding=CERTIFICATE), "08P01"),
    # the channel
    (Attempt(TLS, True, header="y,,"), "28000"),
    (Attempt(TLS, True, mechanism=BOUND, header="n,,"), "08P01"),
    (Attempt(TLS, True, mechanism=BOUND, header="y,,"), "08P01"),
    (Attempt(TLS, True, header=END_POINT), "08P01"),
    (Attempt(TLS, True, header=END_POINT, binding=CERTIFICATE), "08P01"),
    (Attempt(TLS, True, mechanism=BOUND, header="p=tls-unique,,", binding=CERTIFICATE), "08P01"),
    (Attempt(TLS, True, mechanism=BOUND, header=END_POINT, binding=bytes(32)), "28P01"),
    (Attempt(TLS, True, mechanism=BOUND, header=END_POINT), "28P01"),
    (Attempt(TLS, True, binding=CERTIFICATE), "28P01"),
    (Attempt(header="y,,", told="n,,"), "28P01"),
    (Attempt(TLS, True, header="n,,", told="y,,"), "28P01"),
    (Attempt(header="n,a=bob,"), "0A000"),
    # the nonce
    (Attempt(nonce=""), "28P01"),
    (Attempt(nonce="abc"), "28P01"),
    (Attempt(nonce="abd" + bytes(range(18)).hex()), "28P01"),
    (Attempt(nonce="abc" + bytes(18).hex()), "28P01"),
    (Attempt(bare="n=,r="), "08P01"),
    (Attempt(bare="n=,r=a b"), "08P01"),
    # the form of the first message
    (Attempt(first=b""), "08P01"),
    (Attempt(first=b"n,,n=,r=abc\xff"), "08P01"),
    (Attempt(header="n=x,,"), "08P01"),
    (Attempt(header="x,,"), "08P01"),
    (Attempt(bare="m=x,n=,r=abc"), "08P01"),
    (Attempt(bare="r=abc"), "08P01"),
    (Attempt(length=10), "08P01"),
    (Attempt(length=12), "08P01"),
    (Attempt(length=-1), "08P01"),
    (Attempt(first=b"", length=-1), "08P01"),
    # the form of the final message
    (Attempt(final=b""), "08P01"),
    (Attempt(final=b"\xff\xff"), "08P01"),
    (Attempt(final=b"c=biws,r=x"), "08P01"),
    (Attempt(final=b"c=biws,r=x,p="), "08P01"),
    (Attempt(final=b"r=x,c=biws,p=AAAA"), "08P01"),
    (Attempt(final=b"c=!!,r=x,p=AAAA"), "08P01"),
    (Attempt(final=b"c=biws!,r=x,p=AAAA"), "08P01"),
    (Attempt(between=",more"), "08P01"),
    (Attempt(final=b"c=biws,r=abc" + bytes(range(18)).hex().encode() + b",p=A"), "08P01"),
    (Attempt(final=b"c=biws,r=abc" + bytes(range(18)).hex().encode() + b",p=AA!AA"), "08P01"),
]  # fmt: skip


def _cleartext(code: types.SimpleNamespace, body: bytes, house: House) -> str:
    login = code.Login(house, types.SimpleNamespace(role="ann"), encrypted=True)
    if login.offer() != replies.CLEARTEXT:
        return "not asked for"
    try:
        _, entered = _stepped(login, body)
    except Fatal as error:
        return error.sqlstate
    except Exception as error:  # noqa: BLE001 (as above)
        return type(error).__name__
    return "in" if entered else "out"


CLEAR = House(CERTIFICATE, cleartext=True)
PASSWORDS = [
    (b"correct horse\0", CLEAR, "in"),
    (b"correct horse", CLEAR, "08P01"),
    (b"wrong\0", CLEAR, "28P01"),
    (b"correct horse\0", House(CERTIFICATE, cleartext=True, exists=False), "28P01"),
]
_LONG, _SHORT = base64.b64encode(bytes(32)).decode(), base64.b64encode(bytes(31)).decode()
VERIFIERS = [
    (f"SCRAM-SHA-256$1:c2FsdA==${_LONG}:{_LONG}", True),
    (f"SCRAM-SHA-256$0:c2FsdA==${_LONG}:{_LONG}", False),
    (f"SCRAM-SHA-256$1:c2FsdA==${_SHORT}:{_LONG}", False),
    (f"SCRAM-SHA-256$1:c2FsdA==${_LONG}:{_SHORT}", False),
    (f"SCRAM-SHA-256$1:c2FsdA==${_SHORT}:{_SHORT}", False),
    (f"SCRAM-SHA-256$1:c2FsdA=${_LONG}:{_LONG}", False),
    (f"SCRAM-SHA-256$1:c2F sdA==${_LONG}:{_LONG}", False),
    (f"SCRAM-SHA-1$1:c2FsdA==${_LONG}:{_LONG}", False),
    ("correct horse", False),
]


def _wrong(code: types.SimpleNamespace) -> list[str]:
    """The attempts that do not end as they should."""
    found = [
        f"{attempt}: {ends}, not {expected}"
        for attempt, expected in ATTEMPTS
        if (ends := attempt.outcome(code)) != expected
    ]
    found += [
        f"{body!r}: {ends}, not {expected}"
        for body, house, expected in PASSWORDS
        if (ends := _cleartext(code, body, house)) != expected
    ]
    found += [text for text, sound in VERIFIERS if _parses(code, text) is not sound]
    kept = code.Verifier.parse(str(KNOWN))
    fits = {"correct horse": True, "wrong": False}
    return found + [text for text, right in fits.items() if kept.fits(text) is not right]


def _parses(code: types.SimpleNamespace, text: str) -> bool | None:
    try:
        return code.Verifier.parse(text) is not None
    except Exception:  # noqa: BLE001 (as above)
        return None


def test_a_log_in_ends_as_it_should() -> None:
    code = types.SimpleNamespace(Login=startup.Login, Verifier=scram.Verifier)
    assert _wrong(code) == []


Removal = tuple[ast.AST, str, int | None, ast.AST]
"""A node, its field, the place in a list, and what stands there when a check is left out."""


def _removals(tree: ast.AST) -> Iterator[Removal]:
    """Every check of a module left out, one at a time: whatever may refuse, and each of its parts."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test=test, body=[*_, ast.Raise() | ast.Return()]):
                yield node, "test", None, ast.Constant(False)
                if isinstance(test, ast.BoolOp):
                    yield from _parts(test)
            case ast.BoolOp(op=ast.And()):
                yield from _parts(node)
            case ast.Compare(comparators=[_, _]):
                yield node, "comparators", 0, node.comparators[1]
                yield node, "left", None, node.comparators[0]
            case ast.Call(func=ast.Attribute(attr="compare_digest")):
                yield node, "func", None, _ALWAYS
            case ast.Call(keywords=[ast.keyword(arg="validate") as given]):
                yield given, "value", None, ast.Constant(False)
            case ast.ExceptHandler():
                yield node, "body", 0, ast.Pass()


_ALWAYS = ast.parse("lambda *_: True", mode="eval").body


def _parts(test: ast.BoolOp) -> Iterator[Removal]:
    """Each operand as if it had not been written."""
    kept = ast.Constant(isinstance(test.op, ast.And))
    for place in range(len(test.values)):
        yield test, "values", place, kept


def _without(tree: ast.Module, removal: Removal) -> str:
    """The module's text without one check."""
    node, name, place, stead = removal
    before = getattr(node, name)
    if place is None:
        setattr(node, name, stead)
    else:
        setattr(node, name, [*before[:place], stead, *before[place + 1 :]])
    text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(tree)))
    setattr(node, name, before)
    return text


def _loaded(exchange: str, login: str) -> types.SimpleNamespace:
    """The exchange and the log-in as these texts have them."""
    first: dict[str, Any] = {"__name__": scram.__name__}
    exec(compile(exchange, "scram", "exec"), first)
    second: dict[str, Any] = {"__name__": startup.__name__}
    exec(compile(login, "startup", "exec"), second)
    second["Exchange"] = first["Exchange"]
    return types.SimpleNamespace(Login=second["Login"], Verifier=first["Verifier"])


def _source(module: types.ModuleType) -> ast.Module:
    assert module.__file__ is not None
    return ast.parse(Path(module.__file__).read_text(encoding="utf-8"))


def test_every_check_of_a_log_in_is_needed() -> None:
    """Without any one of them somebody gets in, or is told something else."""
    exchange, login = _source(scram), _source(startup)
    (part,) = (n for n in login.body if isinstance(n, ast.ClassDef) and n.name == "Login")
    whole = ast.unparse(exchange), ast.unparse(login)
    assert _wrong(_loaded(*whole)) == []
    texts = [(_without(exchange, removal), whole[1]) for removal in _removals(exchange)]
    texts += [(whole[0], _without(login, removal)) for removal in _removals(part)]
    assert len(texts) > 40
    missed = [texts_of for texts_of in texts if not _wrong(_loaded(*texts_of))]
    told = "\n".join(str(_difference(whole, pair)) for pair in missed)
    assert not missed, told


def _difference(whole: tuple[str, str], pair: tuple[str, str]) -> list[str]:
    """The lines that were changed, for whoever reads the failure."""
    lines = [text.splitlines() for text in ("\n".join(whole), "\n".join(pair))]
    return [line for line in difflib.ndiff(*lines) if line[:1] in "+-"]


class Open(House):
    """Its nonces are random, as those of an endpoint are."""

    def random(self, count: int) -> bytes:
        return secrets.token_bytes(count)


@pytest.mark.parametrize("binding", [None, CERTIFICATE])
def test_two_log_ins_have_different_nonces(binding: bytes | None) -> None:
    """What was heard of one log-in is of no use in another."""
    said = set()
    for _ in range(20):
        wanted: Any = types.SimpleNamespace(role="ann")
        login = startup.Login(Open(binding), wanted, encrypted=binding is not None)  # type: ignore[arg-type]
        said.add(
            _stepped(login, PLAIN.encode() + b"\0" + (11).to_bytes(4, "big") + b"n,,n=,r=abc")[0]
        )
    assert len(said) == 20
