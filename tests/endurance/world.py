"""A policy in a folder of its own, `dpsql serve` over it, and what its ledger says of clients' answers."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from postgres_server import shared_server
from support.datasets import database, policy_text

from dpsql.ledger.accounts import Account, accounts_for
from dpsql.ledger.charge import NANO
from dpsql.ledger.open import open_ledger
from dpsql.ledger.states import State
from dpsql.ledger.tables import TableLedger
from dpsql.policy.load import load
from dpsql.policy.model import Policy
from dpsql.serve import users

PASSWORD = "correct horse battery"
ROBOTS = {"robot": "analyst", "machine": "pure"}
"""Users over HTTP, and their roles."""
START_SECONDS = 60
_SERVE = "import sys\nfrom dpsql.cli import main\nif __name__ == '__main__':\n    sys.exit(main())"


@dataclass(frozen=True)
class Caller:
    """As whom a client asks: the role that logs in, the one that it takes, and its session."""

    role: str
    taken: str = ""
    session: str = "default"

    def accounts(self, policy: Policy) -> tuple[Account, ...]:
        """What a question of this client debits."""
        now = datetime.now(UTC)
        found = accounts_for(policy, self.taken or self.role, self.session, now=now)
        behind = accounts_for(policy, self.role, self.session, now=now) if self.taken else ()
        return (*found, *(a for a in behind if a.holder in ("role", "session")))


@dataclass(frozen=True)
class Received:
    """An answer of which a client has at least the beginning."""

    question: str
    price: str
    """Epsilon, as it was asked."""
    caller: Caller
    face: str
    whole: bool = True


def ledger_on(store: str, schema: str) -> str:
    """What a policy says of a ledger in this store; on PostgreSQL in a schema of its own."""
    if store == "sqlite":
        return ""
    server = shared_server()
    os.environ["PGPASSFILE"] = str(server.passfile)
    return (
        f"ledger: {{store: postgres, schema: {schema}, "
        f'dsn: "host=127.0.0.1 port={server.port} user=dpsql dbname=postgres"}}\n'
    )


class World:
    """A folder with data, policy, users and (beside it or on a server) a ledger."""

    def __init__(self, folder: Path, budgets: str, ledger: str = "") -> None:
        """Made unless it is there already: an interrupted run goes on. ``budgets`` are accounts and roles."""
        self.folder, self.policy = folder.absolute(), folder.absolute() / "policy.yaml"
        self.tokens_file = self.folder / "tokens.json"
        if not self.policy.exists():
            self._make(budgets, ledger)
        self.tokens: dict[str, str] = json.loads(self.tokens_file.read_text())
        self._text, self.planted = self.policy.read_text(), ""
        self._edits = 0

    def _make(self, budgets: str, ledger: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(database("shop"), self.folder / "shop.duckdb")
        made = {name: users.with_token(name, role) for name, role in ROBOTS.items()}
        users.write(self.folder / "policy.users", [user for user, _ in made.values()])
        self.tokens_file.write_text(json.dumps({name: token for name, (_, token) in made.items()}))
        text = policy_text("shop")
        text = text[: text.index("accounts:")] + budgets
        self.policy.write_text(ledger + text)

    def edit(self) -> None:
        """Another text of the policy with the same accounts: what a query costs at most, and a comment."""
        self._edits += 1
        changed = self._text.replace(
            "query: {epsilon: 0.03}", f"query: {{epsilon: 0.0{3 + self._edits % 2}}}"
        )
        beside = self.folder / "policy.new"
        beside.write_text(f"{changed}# edit {self._edits}\n")
        beside.replace(self.policy)

    def ledger(self) -> TableLedger:
        """To look at; nothing is settled by that."""
        return open_ledger(load(self.policy), lambda: datetime.now(UTC), settle=False)

    def charges(self) -> list[Charged]:
        """Every hold of the ledger, with the state that it is in now."""
        with self.ledger() as ledger:
            assert ledger.verify().sound, ledger.verify().problems
            found: dict[int, Charged] = {}
            for record in ledger.events():
                content = record.content
                if "charge" in content:
                    found[record.hold] = Charged(
                        content["statement"], content["charge"][0], tuple(content["accounts"])
                    )
                if record.hold in found:
                    found[record.hold].state = State(content["state"])
            return list(found.values())

    def spent(self) -> dict[str, int]:
        """Nano-epsilon by account, of what stays spent."""
        totals: Counter[str] = Counter()
        for charged in self.charges():
            if charged.state.spent:
                totals.update(dict.fromkeys(charged.accounts, charged.nano))
        return dict(totals)

    def expected(self, received: Iterable[Received]) -> dict[str, int]:
        """Nano-epsilon by account, of what clients received."""
        policy = load(self.policy)
        totals: Counter[str] = Counter()
        for answer in received:
            nano = int(Fraction(answer.price) * NANO)
            totals.update(dict.fromkeys((a.id for a in answer.caller.accounts(policy)), nano))
        return dict(totals)


@dataclass
class Charged:
    """A hold."""

    statement: str
    nano: int
    accounts: tuple[str, ...]
    state: State = State.RESERVED


class Serving:
    """`dpsql serve` in a process of its own, which may be killed at any moment."""

    def __init__(self, world: World) -> None:
        """Started, and perhaps not listening yet. Code in ``world.planted`` runs first."""
        self._said = world.folder / "served.log"
        self._log = self._said.open("wb")
        self.process = subprocess.Popen(
            [sys.executable, "-c", f"{world.planted}\n{_SERVE}", "serve", "--policy", str(world.policy),
             "--port", "0", "--http-port", "0"],
            stderr=self._log, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip

    def ports(self) -> tuple[int, int]:
        """Of both faces, once it listens."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            said = self._said.read_text(errors="replace")
            found = re.findall(r"port (\d+)", said)
            if "listening" in said and said.endswith("\n"):
                return int(found[0]), int(found[1])
            assert self.process.poll() is None, said
            time.sleep(0.02)
        raise AssertionError("it does not listen")

    @property
    def said(self) -> str:
        """Everything on its standard error."""
        return self._said.read_text(errors="replace")

    def hang_up(self) -> None:
        """Have it read its policy again."""
        self.process.send_signal(signal.SIGHUP)

    def kill(self) -> None:
        """End it at once; it can do nothing any more. What it started must end by itself."""
        self.process.kill()
        self.process.wait()
        self._log.close()

    def stop(self) -> None:
        """Let it end as an operator does."""
        self.process.terminate()
        self.process.wait(30)
        self._log.close()

    def left(self) -> list[int]:
        """Processes of its session that are still there a moment later."""
        end = time.monotonic() + 5
        while (there := _of_session(self.process.pid)) and time.monotonic() < end:
            time.sleep(0.05)
        return there


def _of_session(session: int) -> list[int]:
    """Living processes of a session (Linux; elsewhere none is seen)."""
    found = []
    for place in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = place.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(place.parent.name))
    return [pid for pid in found if pid != os.getpid()]
