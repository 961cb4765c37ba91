"""Prepared copies in a file beside the database. The owner writes them, and queries read them.

The file holds private rows, so it has the permissions of the database. It is read only while the
database is the same file that it was made from, under the data version that it was made for.
"""

from __future__ import annotations

import fcntl
import glob
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import duckdb

from dpsql.bound.copies import companion, copy_of
from dpsql.diagnostics.refusal import SourceMismatch
from dpsql.engines.duckdb.constants import quote_name
from dpsql.engines.duckdb.engine import IDENTITY, check_owner
from dpsql.engines.duckdb.write import write_rows
from dpsql.engines.facts_file import State, digest_of
from dpsql.policy.model import Policy, Table
from dpsql.policy.prepared_copies import RANK, PreparedCopies, declared_key, facts

FORMAT = 4
DOCUMENT = quote_name("dpsql prepared")


@dataclass(frozen=True, slots=True)
class CopyReport:
    """A report on a copy for its owner; ``beyond`` is the number of units above the row limit."""

    table: str
    rows: int
    units: int | None
    beyond: int | None


def place(policy: Policy) -> Path:
    """The file of the copies."""
    path = policy.source.path
    return path.with_name(f"{path.name}.prepared")


def read(policy: Policy, document: str | None) -> tuple[PreparedCopies, tuple[str, ...]]:
    """The copies that may be read under this policy, and the reasons why others may not.

    Claim: a copy is read only if it was made from this database file, which is unchanged since,
        under this data version and by the same declarations.
    Assumes: nobody but the owner's side can write the document of the copies. The system changes a
        time of a file that is written.
    Argument: the document says what each copy was made from and by which declarations. A copy for
        which any of this differs is not read. Another database may have the same size and time, as
        files that are built anew or copied often have. So where the file is not the very one that
        was read, its bytes are compared by their digest. What is verified of the database
        (``engines.verify``) then holds for the copies too.
    """
    if document is None:
        return PreparedCopies(), ()
    found = json.loads(document)
    if found.get("format") != FORMAT:
        return PreparedCopies(), (
            "another version of dpsql prepared the tables, and they are not read: `dpsql prepare`",
        )
    if found["data_version"] != policy.data_version:
        return PreparedCopies(), (
            "tables were prepared for another data_version, and are not read: `dpsql prepare`",
        )
    path = policy.source.path
    if found["source"] != _fingerprint(path) or (
        found["state"] != State.of(path).text and found["digest"] != digest_of(path)
    ):
        return PreparedCopies(), (
            "the database has changed since its tables were prepared, and they are not read: `dpsql prepare`",
        )
    private = {t.name: t for t in policy.tables.values() if not t.public}
    known = {n: t for n, t in private.items() if found["tables"].get(n) == facts(policy, t)}
    changed = [n for n in found["tables"] if n not in known]
    keyed = frozenset(n for n, t in private.items() if found["keyed"].get(n) == [*declared_key(t)])
    said = tuple(
        f"table {n} was prepared for other declarations, and is not read: `dpsql prepare`"
        for n in changed
    )
    return PreparedCopies({n: companion(t) for n, t in known.items()}, keyed), said


def prepared_tables(policy: Policy, document: str | None) -> tuple[str, ...]:
    """The private tables of the policy of which a document lists copies, valid or not."""
    named = {} if document is None else json.loads(document).get("tables", {})
    return tuple(t.name for t in policy.tables.values() if not t.public and t.name in named)


def prepare(policy: Policy, tables: Sequence[str]) -> list[CopyReport]:
    """Write copies of these tables, and keep those that are still valid; all of them or none.

    Raises if rows share a declared key, because rows must not decide whether a copy may be read
    once analysts ask.
    """
    path = place(policy)
    with _alone(policy):
        _sweep(path)
        folder = Path(tempfile.mkdtemp(prefix=f".{path.name}.", dir=path.parent))
        partial = folder / "partial"
        try:
            with _Maker(policy, partial, folder) as maker:
                written = maker.make(tables)
            _as_private_as(policy.source.path, partial)
            partial.replace(path)
        except duckdb.Error as error:
            raise SourceMismatch(f"{path}: the tables could not be prepared: {error}") from None
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return written


def remove(policy: Policy) -> bool:
    """Delete the copies, and the remains of unfinished ones. Returns whether there were copies."""
    path = place(policy)
    with _alone(policy):
        _sweep(path)
        found = os.path.lexists(path)
        path.unlink(missing_ok=True)
    return found


@contextmanager
def _alone(policy: Policy) -> Iterator[None]:
    """Lock the database against other runs that prepare tables, whose files would be lost."""
    with policy.source.path.open("rb") as database:
        try:
            fcntl.flock(database, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SourceMismatch(
                f"{policy.source.path}: its tables are being prepared already; wait for that"
            ) from None
        yield


def _sweep(path: Path) -> None:
    """Remove the files of a run that was killed. They hold private rows."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*"):
        shutil.rmtree(left, ignore_errors=True)


def _as_private_as(database: Path, file: Path) -> None:
    """Give the file the database's owner, group and mode, so that nobody else can read it."""
    state = database.stat()
    with suppress(PermissionError):
        os.chown(file, -1, state.st_gid)
    with suppress(PermissionError):
        os.chown(file, state.st_uid, -1)
    same = file.stat().st_gid == state.st_gid
    file.chmod(state.st_mode & (0o777 if same else 0o707))


def _fingerprint(path: Path) -> str:
    """A text that changes when the database is written to: sizes and times of it and its log."""
    states = [p.stat() for p in (path, path.with_name(f"{path.name}.wal")) if p.exists()]
    return "-".join(f"{state.st_size}-{state.st_mtime_ns}" for state in states)


class _Maker:
    """A connection that reads the database and older copies, and writes a new file."""

    def __init__(self, policy: Policy, partial: Path, folder: Path) -> None:
        self._policy, self._path = policy, place(policy)
        limits = policy.limits
        config: dict[str, str | bool | int | float | list[str]] = {
            "memory_limit": limits.memory,
            "temp_directory": str(folder / "spill"),
        }
        if limits.threads:
            config["threads"] = limits.threads
        path = policy.source.path
        self._fingerprint, self._state = _fingerprint(path), State.of(path).text
        self._connection = duckdb.connect(":memory:", config=config)
        for setting, value in IDENTITY.items():
            self._connection.execute(f"SET GLOBAL {setting} = {value}")
        self._attach(policy.source.path, "source", " (READ_ONLY)")
        self._attach(partial, "made", "")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def make(self, tables: Sequence[str]) -> list[CopyReport]:
        """Write the copies and their document."""
        policy = self._policy
        self._connection.execute("USE source")
        keyed = self._keys()
        kept, salt = self._older()
        written = [self._table(policy.tables[name], salt) for name in tables]
        made = dict.fromkeys([*tables, *(n for n in kept if n not in tables)])
        for name in made:
            if name not in tables:
                self._connection.execute(
                    f"CREATE TABLE made.main.{quote_name(name)} AS FROM older.main.{quote_name(name)}"
                )
        document = {
            "format": FORMAT,
            "data_version": policy.data_version,
            "source": self._fingerprint,
            "state": self._state,
            "digest": digest_of(policy.source.path),
            "salt": salt,
            "tables": {name: facts(policy, policy.tables[name]) for name in made},
            "keyed": keyed,
        }
        self._connection.execute(f"CREATE TABLE made.main.{DOCUMENT} (document VARCHAR)")
        self._connection.execute(
            f"INSERT INTO made.main.{DOCUMENT} VALUES ($1)", [json.dumps(document)]
        )
        return written

    def _attach(self, path: Path, name: str, mode: str) -> None:
        text = str(path).replace("'", "''")
        self._connection.execute(f"ATTACH '{text}' AS {name}{mode}")

    def _older(self) -> tuple[list[str], int]:
        """The copies that are still valid, and their salt, which new copies use again."""
        if not self._path.exists():
            return [], secrets.randbits(62)
        check_owner(self._path, self._policy.source.path)
        self._attach(self._path, "older", " (READ_ONLY)")
        (document,) = self._one(f"SELECT document FROM older.main.{DOCUMENT}")
        shelf, _ = read(self._policy, document)
        salt = json.loads(document)["salt"] if shelf.copies else secrets.randbits(62)
        return list(shelf.copies), salt

    def _table(self, table: Table, salt: int) -> CopyReport:
        name = f"made.main.{quote_name(table.name)}"
        self._connection.execute(f"CREATE TABLE {name} AS {write_rows(copy_of(table, salt))}")
        for steps in companion(table).steps.values():
            held = quote_name(steps.name)
            (beyond,) = self._one(
                f"SELECT count(*) FROM {name} WHERE {held} NOT BETWEEN {steps.low} AND {steps.high}"
            )
            assert beyond == 0, "clamped values are between the bounds"
        (rows,) = self._one(f"SELECT count(*) FROM {name}")
        if not table.unit_columns:
            return CopyReport(table.name, rows, None, None)
        most, rank = table.max_rows_per_unit, quote_name(RANK)
        units, over = self._one(
            f"SELECT count(*) FILTER (WHERE {rank} = 1),"
            f" count(*) FILTER (WHERE {rank} = {most + 1}) FROM {name}"
        )
        return CopyReport(table.name, rows, units, over)

    def _keys(self) -> Mapping[str, list[str]]:
        """The declared keys of private tables. Raises if two rows share one that has no NULL."""
        keyed, shared, policy = {}, [], self._policy
        for table in policy.tables.values():
            key = declared_key(table)
            if table.public or not key:
                continue
            names = [quote_name(name) for name in key]
            whole = " AND ".join(f"{name} IS NOT NULL" for name in names)
            twice = (
                f"SELECT 1 FROM source.main.{quote_name(table.name)} WHERE {whole}"
                f" GROUP BY {', '.join(names)} HAVING count(*) > 1 LIMIT 1"
            )
            if self._connection.execute(twice).fetchone() is None:
                keyed[table.name] = list(key)
            else:
                place = policy.places.get((table.name,), str(policy.path))
                shared.append(
                    f"{place}: several rows of {table.name} have the same ({', '.join(key)}), which"
                    " is declared its key; mend the data or the declaration"
                )
        if shared:
            raise SourceMismatch(*shared)
        return keyed

    def _one(self, sql: str) -> tuple[Any, ...]:
        found: tuple[Any, ...] | None = self._connection.execute(sql).fetchone()
        assert found is not None
        return found
