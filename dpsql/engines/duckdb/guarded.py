"""An engine that only runs statements that passed the second check."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from dpsql.diagnostics.refusal import Ended, EngineFailed, NotAdmitted, Refused
from dpsql.effort import is_planning, pause_counting
from dpsql.engines.duckdb.guard import Guard, Unsafe
from dpsql.engines.duckdb.parameters import parameters
from dpsql.engines.duckdb.statements import statement_text
from dpsql.engines.engine import Engine, Value
from dpsql.engines.exact_rows import ExactRows
from dpsql.engines.facts import Facts
from dpsql.engines.incident import record_incident
from dpsql.engines.statement_chooser import StatementChooser
from dpsql.ir.alternatives import Statement
from dpsql.ir.statements import Query
from dpsql.policy.model import Policy
from dpsql.policy.prepared_copies import PreparedCopies
from dpsql.policy.source import SourceDescription


@dataclass(frozen=True, slots=True)
class Admitted:
    """A statement that passed the second check. Only a ``Guarded`` engine makes one."""

    relation: Query

    @property
    def sql(self) -> str:
        """The text of the statement."""
        return statement_text(self.relation).sql

    @property
    def parameters(self) -> frozenset[str]:
        """The names of its parameters: the salt, and values that were looked up or released."""
        return parameters(self.sql)


class Guarded:
    """An engine that only runs statements that pass. Any other is an incident, like a failure."""

    def __init__(
        self,
        engine: Engine,
        policy: Policy,
        shelf: PreparedCopies | None = None,
        facts: Facts | None = None,
    ) -> None:
        """Wrap an open engine; ``shelf`` are the prepared copies that may be read.

        ``facts`` has the outcomes of the look-ups when the policy was opened.
        """
        facts = facts or Facts()
        self._engine, self._guard = engine, Guard(policy, shelf, facts.hold)
        self._chooser = StatementChooser(policy, facts)
        for name, table in facts.kept.items():
            self._guard.list_kept(name, table)

    @property
    def prepared(self) -> str | None:
        """The document of the prepared copies."""
        return self._engine.prepared

    def describe(self) -> SourceDescription:
        """Tables, columns, types and constraints."""
        return self._engine.describe()

    def admit(self, statement: Statement) -> Admitted:
        """The relation that will run: the alternative that the data allows, if it passes too.

        Claim: whether this raises depends on ``statement`` and the policy alone, never on data.
        Assumes: the outcome that the guard remembers of a statement is what it would find again.
        Argument: the statement's own relation is checked by its text alone. An alternative that
            does not pass is an incident for the operator, and the statement's own relation runs
            instead.
        """
        own = self._admit(statement.relation, by_text=True)
        alternative = self._chooser.choose(statement)
        if alternative is None:
            return own
        try:
            with pause_counting():  # the data decides which alternative there is
                return self._admit(alternative.relation)
        except NotAdmitted:
            return own

    def _admit(self, query: Query, *, by_text: bool = False) -> Admitted:
        text = statement_text(query)
        self._check(text.sql, NotAdmitted, form=text.form, by_text=by_text)
        return Admitted(query)

    def admit_public(self, sql: str) -> None:
        """Raise unless this is a statement that reads public tables only."""
        self._check(sql, NotAdmitted, over_public=True)

    def measure(self, statement: Admitted, values: Mapping[str, Value]) -> ExactRows:
        """Run the statement of a measurement. It was admitted before, and is checked again here."""
        text = statement_text(statement.relation)
        self._check(text.sql, EngineFailed, form=text.form)
        return self._engine.measure(text.sql, values)

    def read_public(self, sql: str) -> pa.Table:
        """Run a statement that reads public tables only."""
        self._check(sql, EngineFailed, over_public=True)
        return self._engine.read_public(sql)

    def probe(self) -> None:
        """Raise unless the engine answers, whatever data it holds."""
        self.read_public("SELECT 1 AS one")

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()

    def _check(
        self, sql: str, error_type: type[EngineFailed], *, form: bytes | None = None,
        over_public: bool = False, by_text: bool = False,
    ) -> None:  # fmt: skip
        failure: EngineFailed
        try:
            self._guard.check(sql, form=form, over_public=over_public, by_text=by_text)
        except (Refused, Ended):
            raise
        except Exception as error:
            if isinstance(error, RecursionError) and is_planning():
                raise
            said = f" ({error})" if isinstance(error, Unsafe) else ""
            failure = record_incident(f"pass a second check{said}", error, sql, error_type)
        else:
            return
        raise failure
