"""The server that is attacked: made-up rows, a policy, a certificate, and the process."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from benchmarks.attacks.processes import kill, tree
from tests.support.certificates import write_certificate

PASSWORD = "correct horse"
ATTACKER, OTHER, OPERATOR = "attacker", "other", "operator"
DATABASE = "policy"
DEADLINE = 3.0
"""Seconds after which each statement of a role is cancelled."""
POLICY = """
source: {{engine: duckdb, path: attacked.duckdb}}
data_version: "1"
{ledger}
units: {{person: {{table: people, key: id}}}}
tables:
  people:
    unit: person
    columns:
      id: {{type: bigint}}
      region: {{type: integer, range: [0, 9]}}
      city: {{type: text}}
  events:
    unit: person
    foreign_keys: [{{columns: [id], references: people}}]
    max_rows_per_unit: 10
    columns:
      id: {{type: bigint}}
      slot: {{type: integer, range: [0, 9999]}}
      day: {{type: integer, range: [0, 364]}}
      word: {{type: text, values: [w0, w1, w2, w3, w4, w5, w6, w7, w8, w9]}}
      note: {{type: text, max_length: 1000}}
      tag: {{type: text}}
      amount: {{type: double, range: [0, 500]}}
  pages: {{public: true, key: page}}
accounts: {{dataset: {{epsilon: 1e9, delta: 0.5, composition: basic}}}}
roles:
  attacker:
    password: "{password}"
    query: {{epsilon: 0.1, delta: 1e-9}}
    statement_seconds: {deadline}
    may_become: [second]
  second: {{query: {{epsilon: 0.1, delta: 1e-9}}, statement_seconds: {deadline}}}
  other: {{password: "{password}", query: {{epsilon: 0.1, delta: 1e-9}}}}
  operator: {{password: "{password}", owner: true}}
limits: {{memory: {engine}, timeout_seconds: {deadline}}}
endpoint: {{memory: {memory}}}
"""
ROWS = """
CREATE TABLE people AS SELECT i AS id, (hash(i, {number}) % 10)::INTEGER AS region,
  'city ' || (hash(i, {number}, 1) % 300) AS city FROM range(20000) AS r(i);
CREATE TABLE events AS SELECT (i % 20000)::BIGINT AS id, (hash(i, {number}, 2) % 10000)::INTEGER AS slot,
  (hash(i, {number}, 3) % 365)::INTEGER AS day, 'w' || (hash(i, {number}, 4) % 10) AS word,
  repeat('note ', (hash(i, {number}, 5) % 20)::BIGINT) AS note, (hash(i, {number}, 6) % 50000) / 100.0 AS amount,
  'tag ' || i || ' ' || md5('{number} ' || i) AS tag
  FROM range(100000) AS r(i);
CREATE TABLE pages AS SELECT i::BIGINT AS page, repeat(md5('{number} ' || i), 30) AS body FROM range(2000) AS r(i);
"""


@dataclass(frozen=True)
class Place:
    """Where the server is, and with what its clients come in. Read by other processes."""

    host: str
    port: int
    http: int
    process: int
    tokens: dict[str, str]
    deadline: float = DEADLINE
    password: str = PASSWORD
    source: str = ""
    """The address from which its clients come; nothing leaves it to the system."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, path: Path) -> Place:
        return cls(**json.loads(path.read_text()))


def make(folder: Path, seed: int, engine: str, memory: str, ledger: str = "") -> Path:
    """The policy, its data, a certificate and tokens, all in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "attacked.duckdb"
    if not path.exists():
        with duckdb.connect(str(path)) as connection:
            connection.execute(ROWS.format(number=seed))
    policy = folder / "policy.yaml"
    policy.write_text(
        POLICY.format(
            password=PASSWORD, deadline=int(DEADLINE), engine=engine, memory=memory, ledger=ledger
        )
    )
    write_certificate(folder)
    return policy


class ServerProcess:
    """`dpsql serve` over both faces, in a process of its own."""

    def __init__(self, policy: Path, log: Path) -> None:
        """Start it, and wait until it listens; what it says is added to ``log``."""
        self._policy, folder = policy, policy.parent
        tokens = {role: self._token(role) for role in (ATTACKER, OTHER, OPERATOR)}
        self._log = log.open("a")
        self.process = subprocess.Popen(
            [sys.executable, "-u", "-m", "dpsql", "serve", "--policy", str(policy), "--port", "0",
             "--http-port", "0", "--tls-cert", str(folder / "server.crt"),
             "--tls-key", str(folder / "server.key")],
            stderr=subprocess.PIPE, stdout=self._log, text=True,
        )  # fmt: skip
        ports = self._ports()
        self.place = Place("127.0.0.1", ports[0], ports[-1], self.process.pid, tokens)
        self.place.write(folder / "place.json")
        self.path = folder / "place.json"
        threading.Thread(target=self._copy, daemon=True).start()

    def _token(self, role: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "dpsql", "user", "add", f"{role}-http", "--policy", str(self._policy),
             "--role", role, "--token"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        return done.stdout.strip()

    def _ports(self) -> Sequence[int]:
        said = ""
        assert self.process.stderr is not None
        while "listening" not in said:
            line = self.process.stderr.readline()
            if not line:
                raise RuntimeError(f"the server did not start: {said}")
            said += line
        return [int(p) for p in re.findall(r"port (\d+)", said)]

    def _copy(self) -> None:
        """What it says goes to a file, so that it never waits for a reader."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._log.write(line)
            self._log.flush()

    @property
    def ended(self) -> str:
        """Why it is gone, or nothing."""
        status = self.process.poll()
        return "" if status is None else f"exit status {status}"

    def end(self, patience: float) -> tuple[float, int | None]:
        """Seconds from SIGTERM to its end, and its status; None if it had to be killed."""
        start = time.monotonic()
        self.process.terminate()
        try:
            status: int | None = self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()
            status = None
        return time.monotonic() - start, status

    def kill(self) -> None:
        """At once."""
        for process in tree(self.process.pid):
            kill(process)
        self.process.wait()
