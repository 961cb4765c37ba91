"""The session of one connection. It routes statements, and caches their answers.

Statements that name catalog relations, or no table at all, are answered from the role's catalog,
which is made from the policy and holds no data. Everything else goes to the service.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from dpsql.diagnostics.refusal import Refused
from dpsql.serve import remaining
from dpsql.serve.answers import empty_table, exact_values, from_reply, planned_columns, with_notice
from dpsql.serve.lists import with_lists
from dpsql.serve.pgwire import oids as types
from dpsql.serve.pgwire.asking import Answer, Description, Run
from dpsql.serve.pgwire.commands import Query
from dpsql.serve.pgwire.crowd import Place
from dpsql.serve.pgwire.errors import AUTHORIZATION, PRIVILEGE, Fatal, WireError
from dpsql.serve.pgwire.execute import parameter_count
from dpsql.serve.pgwire.parameters import Value, value
from dpsql.serve.pgwire.probing import ABOUT_TYPES, infer_parameters, sample
from dpsql.serve.pgwire.replies import WireColumn
from dpsql.serve.policy_snapshot import PolicySnapshot, Shared, Who
from dpsql.serve.routes import Route, route
from dpsql.serve.uses import (
    in_byte_order,
    in_database,
    is_constant,
    reads_no_rows,
    wants_no_rows,
    with_limits,
)
from dpsql.service import Reply, Session
from dpsql.service.settings import apply_hints
from dpsql.sql.dialects.tables import DIALECTS
from dpsql.sql.parse import LONGEST_TEXT

T = TypeVar("T")
LONGEST_REMEMBERED = 50_000
LONGEST_LIGHT = 10_000
"""Longer statements wait in the lane of those that read the data, whatever they read."""
LONGEST_AT_ONCE = 500
"""Longer statements are not routed in the event loop, since that takes tens of milliseconds."""
_ABOUT_ROWS = {"DP101", "DP108", "DP305"}
_NO_PREVIEW = "preview: rows of private tables are not shown; these are their columns"
MOST_ROWS_REMEMBERED = 5_000


class RoleSession:
    """The ``Backend`` of the protocol's machine: a session of one role."""

    def __init__(
        self, now: Callable[[], PolicySnapshot], who: Who, name: str, place: Place
    ) -> None:
        """``now`` gives the newest snapshot; ``name`` chooses the session's account."""
        self._now, self._who, self._name, self._place = now, who, name, place
        self._taken: str | None = None
        self._snapshot, self._shared, self._session = self._opened()
        self._start = self._session.settings

    def _opened(self) -> tuple[PolicySnapshot, Shared, Session]:
        snapshot = self._now()
        user = snapshot.users.get(self._who.login)
        if user is None:
            raise Fatal(AUTHORIZATION, f'role "{self._who.login}" is not permitted to log in')
        granted = snapshot.service.policy.roles[user.role].access.may_become
        if self._taken is not None and self._taken not in {*granted, user.role}:
            raise WireError(
                PRIVILEGE, f'permission denied to set role "{self._taken}"',
                "A role is charged for what is asked as it, so the policy must grant it.",
                "Its owner writes it into may_become of this role.",
            )  # fmt: skip
        role = self._taken or user.role
        behind = None if role == user.role else user.role
        session = snapshot.service.session(role, self._name, behind=behind)
        return snapshot, snapshot.shared(role), session

    def _is_stale(self) -> bool:
        """Whether there is a newer snapshot, or the open session is not one of the role taken."""
        return self._now() is not self._snapshot or self._taken not in (None, self._session.role)

    def _renewed(self) -> None:
        if self._is_stale():
            settings = self._session.settings
            self._snapshot, self._shared, self._session = self._opened()
            self._session.settings = settings

    def become(self, role: str | None) -> None:
        """Take another role, or for None the one that logged in; refused unless it is granted."""
        before, settings = self._taken, self._session.settings
        self._taken = role
        try:
            self._snapshot, self._shared, self._session = self._opened()
        except WireError:
            self._taken = before
            raise
        self._session.settings = settings

    def describe(self, query: Query, oids: Sequence[int]) -> Description:
        """The columns and parameter types of a query, before its values are known."""
        self._renewed()
        query = self._here(query)
        key = self._key(query, tuple(oids))
        found = self._shared.described.get(key)
        if found is None:
            found = self._describe(query, oids)
            if len(query.text) <= LONGEST_REMEMBERED:
                self._shared.described.put(key, found)
        return found

    def _here(self, query: Query) -> Query:
        """The query without words that change nothing: this database's name, and byte order."""
        if len(query.text) > LONGEST_TEXT:
            return query  # it will be refused, so its text is not searched
        text, lower = query.text, query.text.lower()
        if self._who.database.lower() in lower:
            text = in_database(text, query.tokens, self._who.database)
        if "collate" in lower:
            text = in_byte_order(text, query.tokens)
        return query if text == query.text else Query(text, query.highest)

    def _describe(self, query: Query, oids: Sequence[int]) -> Description:
        count = parameter_count(query, oids)
        known = (*oids, *([0] * count))[:count]
        if self._route(query) == "catalog":
            found = self._shared.catalog.columns(query, self._who, None, self._session.views())
            merged = tuple(
                oid or other for oid, other in zip(known, found.oids[:count], strict=False)
            )
            return Description(found.columns, (*merged, *known[len(merged) :]))
        whole, values = known, [sample(oid) for oid in known]
        if 0 in known:
            whole, values = infer_parameters(query.tokens, known, lambda v: self._accepts(query, v))
        try:
            columns = self._columns(query, values)
        except Refused:
            if not values:
                raise
            try:
                columns = self._columns(query, [None] * count)
            except Refused as refused:
                raise refused from None
        return Description(columns, whole)

    def _sent(self, query: Query, values: Sequence[Value]) -> tuple[str, list[Value]]:
        """The text and values that the service gets for a query and its values."""
        if len(query.text) > LONGEST_TEXT:
            # it will be refused, so its text is not searched
            return query.text, exact_values(values)
        escapes = DIALECTS[self._session.settings.dialect].escapes
        text, read, listed = with_lists(query.text, query.tokens, values, escapes=escapes)
        text, left = with_limits(text, read, listed)
        return text, exact_values(left)

    def _accepts(self, query: Query, values: Sequence[Value]) -> bool:
        self._session.prepare(*self._sent(query, values), suggest=False)
        return True

    def columns(
        self, query: Query, values: Sequence[Value], oids: Sequence[int]
    ) -> tuple[WireColumn, ...]:
        """The columns of a query with its values; no data is read."""
        self._renewed()
        query = self._here(query)
        if not values:
            return self.describe(query, ()).columns
        if self._route(query) == "catalog":
            return self._made_up(Run(query, tuple(values), tuple(oids)), None).columns
        return self._with(query, values, oids, lambda v: self._columns(query, v))

    def _columns(self, query: Query, values: Sequence[Value]) -> tuple[WireColumn, ...]:
        own = self._session.own_columns(query.text)
        if own is not None:
            return tuple(types.column(name, types.KINDS[kind]) for name, kind in own)
        try:
            priced = self._session.prepare(*self._sent(query, values))
        except Refused as refused:
            if self._rows_only(refused, query):
                return self._shared.catalog.shape(query, self._who, values).columns
            raise
        return planned_columns(priced, intervals=self._session.settings.intervals)

    def _with(
        self, query: Query, values: Sequence[Value], oids: Sequence[int],
        do: Callable[[Sequence[Value]], T],
    ) -> T:  # fmt: skip
        """Call ``do`` with the values as they came; if that is refused, with inferred types."""
        try:
            return do(values)
        except (Refused, WireError) as error:
            if isinstance(error, WireError) and error.sqlstate not in ABOUT_TYPES:
                raise
            again = self._reread(query, values, oids)
            if again is None:
                raise
            try:
                return do(again)
            except (Refused, WireError):
                raise error from None

    def _reread(
        self, query: Query, values: Sequence[Value], oids: Sequence[int]
    ) -> list[Value] | None:
        """Read texts of unknown type as the types of their places; None if there are none."""
        loose = [isinstance(v, str) and not oid for v, oid in zip(values, oids, strict=False)]
        if not any(loose):
            return None
        found = self.describe(query, oids).oids
        return [
            value(v.encode(), 0, oid) if is_loose else v
            for v, oid, is_loose in zip(values, found, loose, strict=True)
        ]

    def known(self, ask: Run) -> Answer | None:
        """The cached answer, if it is still valid and its notice needs no look at the ledger."""
        if self._is_stale():
            return None
        found = self._at_hand(ask)
        if found is None or not found.notice or not ask.notices:
            return found
        left = self._shared.balances.find(self._accounts())
        return None if left is None else with_notice(found, remaining.describe_recall(left))

    def _at_hand(self, ask: Run) -> Answer | None:
        if (made_up := self._shared.catalog_answers.get(self._catalog_key(ask))) is not None:
            return made_up
        if self._snapshot.service.data_changed:  # cached answers are refused too
            return None
        return self._shared.answers.get(self._answer_key(ask.query, ask.values))

    def run(self, ask: Run) -> Answer:
        """Answer a query. This is the step in which it is charged."""
        self._renewed()
        ask = replace(ask, query=self._here(ask.query))
        if (known := self._at_hand(ask)) is not None:
            notice = remaining.describe_recall(self._left()) if known.notice and ask.notices else ""
            return with_notice(known, notice)
        query = ask.query
        if self._route(query) == "catalog":
            return self._made_up(ask, self._place)
        if len(query.text) <= LONGEST_TEXT and wants_no_rows(query.tokens):
            columns = self.columns(query, ask.values, ask.oids)
            return Answer(columns, empty_table(columns))
        try:
            return self._asked(ask)
        except Refused as refused:
            if not self._rows_only(refused, query):
                raise
            columns = self._shared.catalog.shape(query, self._who, ask.values).columns
            notice = _NO_PREVIEW if ask.notices else ""
            return Answer(columns, empty_table(columns), notice=notice)

    def _made_up(self, ask: Run, place: Place | None) -> Answer:
        """Answer a catalog query, from the cache if it was described or answered before."""
        query = ask.query
        if (known := self._shared.catalog_answers.get(self._catalog_key(ask))) is not None:
            return known
        values, views = list(ask.values), self._session.views()
        if self._shared.described.get(self._key(query, ask.oids)) is not None:
            values = self._reread(query, values, ask.oids) or values
        answer = self._with(
            query, values, ask.oids,
            lambda values: self._shared.catalog.answer(query, self._who, values, place, views),
        )  # fmt: skip
        if self._wise(query, answer):
            self._shared.catalog_answers.put(self._catalog_key(ask), answer)
        return answer

    def _rows_only(self, refused: Refused, query: Query) -> bool:
        """Whether a query is refused only since it reads private rows, and may get none instead."""
        if not {r.code for r in refused.refusals} <= _ABOUT_ROWS:
            return False
        none = wants_no_rows(query.tokens) or reads_no_rows(query.tokens)
        return none or self._snapshot.service.policy.front.preview == "empty"

    def _asked(self, ask: Run) -> Answer:
        query = ask.query
        return self._with(
            query, ask.values, ask.oids,
            lambda values: self._answered(query, values, notices=ask.notices),
        )  # fmt: skip

    def _answered(self, query: Query, values: Sequence[Value], *, notices: bool) -> Answer:
        reply = self._session.execute(*self._sent(query, values))
        if reply.cost.epsilon or reply.cost.delta:
            self._shared.balances.note_spending()
        answer = from_reply(reply)
        if self._session.settings.fresh:
            self._shared.answers.clear()
        elif not reply.timely and self._wise(query, answer):
            stored = bool(reply.recalled or reply.cost.epsilon)
            kept = with_notice(answer, "recalled" if stored else "")
            self._shared.answers.put(self._answer_key(query, values), kept)
        answer.notice = self._notice(reply) if notices else ""
        return answer

    def _notice(self, reply: Reply) -> str:
        if reply.recalled:
            return remaining.describe_recall(self._left())
        cost, in_rho = reply.cost, self._session.priced_in_rho
        spent = cost.epsilon or cost.delta
        return remaining.describe_charge(cost, self._left(), in_rho=in_rho) if spent else ""

    def _accounts(self) -> tuple[str, ...]:
        chosen = self._session.settings.session
        name = self._name if chosen is None else chosen
        return self._session.role, self._who.login if self._taken else "", name

    def _left(self) -> str:
        return self._shared.balances.look(self._accounts(), self._session.budget)

    def _wise(self, query: Query, answer: Answer) -> bool:
        small = len(query.text) <= LONGEST_REMEMBERED
        return small and answer.count <= MOST_ROWS_REMEMBERED and is_constant(query.tokens)

    def light(self, query: Query, *, at_once: bool) -> bool | None:
        """Whether the catalog answers a query, or it is refused; None if not known ``at_once``."""
        if len(query.text) > LONGEST_LIGHT:
            return False
        if (known := self._shared.routes.get(query.text)) is not None:
            return known == "catalog"
        if at_once and len(query.text) > LONGEST_AT_ONCE:
            return None
        try:
            return self._route(self._here(query)) == "catalog"
        except (WireError, Refused):
            return True

    def interrupt(self, thread: int) -> None:
        """Stop the statement that another thread carries out, in the service and in the catalog."""
        self._session.interrupt(thread)
        self._shared.catalog.interrupt(thread)

    def own(self, text: str) -> Answer:
        """Run a SET, RESET, SHOW or EXPLAIN that dpsql's service reads itself."""
        self._renewed()
        answer = from_reply(self._session.execute(text))
        if text.lstrip()[:5].lower() == "reset":
            answer.tag = "RESET"
        return answer

    @property
    def taken(self) -> str | None:
        """The role that was taken in place of the one that logged in."""
        return self._taken

    def settings(self) -> object:
        """The current role and dpsql's current settings."""
        return self._taken, self._session.settings

    def take_back(self, own: Mapping[str, Any]) -> None:
        """Set each of the named settings of dpsql back to its value in the earlier settings."""
        had = {name: getattr(earlier, name) for name, (_, earlier) in own.items()}
        self._session.settings = replace(self._session.settings, **had)

    def restore(self, settings: object | None) -> None:
        """Go back to an earlier role and settings; for None, to the defaults under this role."""
        if not isinstance(settings, tuple):
            views = self._session.settings.views  # a reset keeps the views; only DISCARD drops them
            self._session.settings = replace(self._start, views=views)
            return
        role, earlier = settings
        if role != self._taken:
            try:
                self.become(role)
            except WireError:  # revoked since: every statement fails until another role is taken
                self._taken = role
        self._session.settings = earlier

    def begin(self) -> None:
        """Make the current settings the ones to which RESET ALL goes back."""
        self._start = self._session.settings

    def _key(self, query: Query, values: Sequence[Value]) -> Hashable:
        """The key of an answer: text, values, settings, login and database."""
        return query.text, _named(values), self._session.settings, self._who

    def _answer_key(self, query: Query, values: Sequence[Value]) -> Hashable:
        """The key of a release. A charge changes it, since a better release may be stored then."""
        return self._shared.balances.generation, self._key(query, values)

    def _catalog_key(self, ask: Run) -> Hashable:
        views = self._session.settings.views
        return ask.query.text, _named(ask.values), ask.oids, self._who, views

    def _route(self, query: Query) -> Route:
        apply_hints(self._session.settings, query.text)  # a wrong hint is refused on both routes
        found = self._shared.routes.get(query.text)
        if found is None:
            found = route(query, self._shared.catalog.has)
            self._shared.routes.put(query.text, found)
        return found


def _named(values: Sequence[Value]) -> tuple[tuple[str, str], ...]:
    return tuple((type(v).__name__, repr(v)) for v in values)
