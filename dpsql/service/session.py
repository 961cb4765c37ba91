"""A session answers statements under its settings.

Each connection has a session of its own. The accounts that it charges are durable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime

from dpsql.diagnostics.refusal import Refusal, Refused
from dpsql.effort import limit_effort
from dpsql.engines.duckdb.statements import list_statements
from dpsql.execution import interrupt
from dpsql.ledger.accounts import Account, accounts_for
from dpsql.ledger.balance import Balance
from dpsql.ledger.query_cap import cap_of
from dpsql.ledger.store import Note
from dpsql.memory.pool import POOL, Use
from dpsql.memory.sizes import size_of
from dpsql.pipeline import (
    Act,
    Payer,
    admit,
    admit_sources,
    answer,
    make_plan,
    match,
    price_plan,
    with_suggestion,
)
from dpsql.policy.model import Role
from dpsql.policy.types import Kind, Scalar
from dpsql.price.notes import cuts, notes
from dpsql.price.priced import PricedPlan
from dpsql.price.request import Request
from dpsql.price.show import show
from dpsql.privacy.cost import Cost
from dpsql.release.finish import Finishing, finish
from dpsql.release.nonnegative import nonnegative
from dpsql.reuse.match import AnswerSources
from dpsql.reuse.rehearsal import Rehearsal, StatementPrice
from dpsql.reuse.show import explain_sources
from dpsql.service import own_tables, searching, temporary
from dpsql.service import settings as s
from dpsql.service.accuracy import cheapest, error_unknown, widest_error
from dpsql.service.execution import one_execution
from dpsql.service.overview import overview_of, overview_rows
from dpsql.service.own_tables import BUDGET, budget_row, tables_read
from dpsql.service.parts import ServiceParts
from dpsql.service.remaining import estimates
from dpsql.service.reply import Remaining, Reply, made, with_interval_columns
from dpsql.service.views import ViewShape
from dpsql.sql.bind.context import Catalog
from dpsql.sql.parameters import builtins
from dpsql.sql.parse import Source

Parameters = Sequence[Scalar | float | None]


class Session:
    """Answers the statements of one role under one session account."""

    def __init__(
        self, service: ServiceParts, role: str, name: str, behind: str | None = None
    ) -> None:
        """Called by ``Service.session``."""
        self._service, self._name, self._behind = service, name, behind
        self._role: Role = service.policy.roles[role]
        self._cap = cap_of(self._role)
        if behind is not None:
            self._cap = self._cap.lower(cap_of(service.policy.roles[behind]))
        self._settings, self._hold = (
            s.Settings(),
            POOL.hold(Use.SESSIONS, 0, (service.policy.path, behind or role)),
        )
        self._timely = False
        self._accounts()

    @property
    def settings(self) -> s.Settings:
        """The current settings."""
        return self._settings

    @settings.setter
    def settings(self, settings: s.Settings) -> None:
        """Replace the settings, and count the memory of the temporary views among them."""
        if settings.views != self._settings.views:
            self._hold.resize(sum(size_of(v.name, v.sql) for v in settings.views))
        self._settings = settings

    def views(self) -> tuple[ViewShape, ...]:
        """The shapes of those temporary views of this session that can be read."""
        views = self.settings.views
        return temporary.shapes(views, self._service.catalog(self.role)) if views else ()

    @property
    def role(self) -> str:
        """The role whose budget is charged."""
        return self._role.name

    @property
    def priced_in_rho(self) -> bool:
        """Whether a question costs a share of rho."""
        return self._cap.rho is not None

    def execution(self) -> AbstractContextManager[None]:
        """Enter the execution of one statement. The thread has one deadline for all of it."""
        return self._service.execution(self._behind or self.role)

    @one_execution
    def execute(self, text: str, parameters: Parameters = (), *, intervals: bool = False) -> Reply:
        """Answer one statement: a query, SET, RESET, SHOW dpsql..., or EXPLAIN."""
        reply = self._reply(text, parameters, intervals=intervals)
        return replace(reply, budget=self.budget)

    def _reply(self, text: str, parameters: Parameters, *, intervals: bool) -> Reply:
        changed = s.apply_set(self.settings, text)
        if changed is not None:
            self.settings = changed
            return made("SET", (), ())
        name = s.match_show(text)
        if name is not None:
            return self._show(name)
        views = temporary.with_views(self.settings, text, self._service.catalog(self.role))
        if views is not None:
            tag, self.settings = views
            return made(tag, (), ())
        wanted = overview_of(text)
        if wanted is not None:
            relations = own_tables.relations(self._service, self.role, self.views())
            return made("SHOW", *overview_rows(wanted, relations, text))
        inner = s.match_explain(text)
        if inner is not None:
            lines = self.explain(inner, parameters).splitlines()
            return made("EXPLAIN", (("plan", Kind.TEXT),), [[line] for line in lines])
        return self._query(text, parameters, intervals=intervals)

    def own_columns(self, text: str) -> tuple[tuple[str, Kind], ...] | None:
        """The columns of a statement over dpsql's own tables; None for any other statement."""
        if not own_tables.asked_for(Source(text, self.settings.dialect)):
            return None
        return tuple((c.name, c.shape.kind) for c in self.prepare(text).plan.columns)

    def interrupt(self, thread: int, *, at_once: bool = False) -> None:
        """Stop the statement that another thread carries out, at whatever step it is.

        The statement fails, and its charge stays. Under ``latency`` it is stopped at the next
        multiple, unless ``at_once`` is set. A client must not stop a statement at once, because the
        outcome would tell it how long the statement ran.
        """
        interrupt(thread, at_once=at_once)

    @one_execution
    def prepare(
        self, text: str, parameters: Parameters = (), *, suggest: bool = True
    ) -> PricedPlan:
        """The priced plan of a query. No data is read, and nothing is spent.

        The plan has the bounds that searches found, if they are stored. Without ``suggest``, a
        refusal does not look for a similar statement that would be answered.
        """
        who = self.role, self._behind
        mine = s.apply_hints(self.settings, text)
        values = builtins(parameters)
        about = (who, replace(mine, session=None), text, values)
        self._timely = False

        def make(now: datetime) -> PricedPlan:
            found = self._planned(text, values, now, mine, suggest=suggest)
            self._timely = getattr(now, "asked", True)
            return found

        with limit_effort():
            base = self._service.plans.plan(about, self._service.clock(), make)
            return searching.with_stored_bounds(base, self._service)

    def _planned(
        self, text: str, parameters: Parameters, now: datetime, mine: s.Settings, *, suggest: bool
    ) -> PricedPlan:
        source = Source(text, mine.dialect, parameters)
        views = temporary.by_name(mine.views)
        catalog = replace(self._service.catalog(self.role, now), temporary=views)
        if not suggest:
            return self._asked(source, catalog, mine)
        return with_suggestion(lambda asked: self._asked(asked, catalog, mine), source, catalog)

    def _asked(self, source: Source, catalog: Catalog, mine: s.Settings) -> PricedPlan:
        """The priced plan of a statement, or of another that a refusal may suggest in its place."""
        if own_tables.asked_for(source):
            catalog = own_tables.catalog(catalog, source)
        wanted, request = widest_error(mine), self._request(mine)
        if wanted is not None and request.search == "auto":
            request = replace(request, search="off")  # the error must be known beforehand
        enumerator = self._service.tools.enumerator
        plan = make_plan(source, catalog, enumerator, mine.empty_groups, mine.show)

        def at(asked: Request) -> PricedPlan:
            return price_plan(plan, source, asked)

        if wanted is not None and request.search == "on":
            raise Refused(error_unknown())
        found = at(request)
        if wanted is not None and found.parts:
            found = cheapest(at, found, request, wanted)
        if not own_tables.asked_for(source):  # no engine reads dpsql's own tables
            admit(found, self._service.tools)
        return found

    @one_execution
    def explain(self, text: str, parameters: Parameters = ()) -> str:
        """The text of EXPLAIN: plan, generated SQL, sensitivity, mechanism, scale, error, cost.

        It ends with the remaining budget of each account. No data is read, and nothing is spent.
        """
        with limit_effort():
            priced = self.prepare(text, parameters)
            lines = [show(priced, list_statements)]
            sources = self.sources(priced)
            if sources is not None:
                lines += explain_sources(priced, sources)
        return "\n".join([*lines, *(f"left in {r.account}: {r.left}" for r in self.budget())])

    @one_execution
    def sources(self, priced: PricedPlan) -> AnswerSources | None:
        """The parts of a plan that the store has, and the cost of the rest; None if it is free."""
        if not priced.parts:
            return None
        tools, key = self._service.tools, self._service.policy.answers_key
        found = match(priced, key, tools, fresh=self.settings.fresh)
        return admit_sources(priced, found, tools)[0]

    @one_execution
    def price(self, statements: Iterable[str]) -> tuple[StatementPrice, ...]:
        """The prices of statements that are asked one after the other. Spends nothing.

        A statement that would be refused has its refusal instead.
        """
        service, before = self._service, self.settings
        rehearsal = Rehearsal(
            service.ledger, service.policy.answers_key, service.tools.postprocessor
        )
        found = []
        try:
            for text in statements:
                changed = s.apply_set(self.settings, text)
                if changed is not None:
                    self.settings = changed
                    continue
                try:
                    found.append(rehearsal.price(text, self.prepare(text)))
                except Refused as refused:
                    found.append(StatementPrice(text, Cost.zero(), Cost.zero(), refused))
        finally:
            self.settings = before
        return tuple(found)

    def budget(self) -> tuple[Remaining, ...]:
        """The balance of each account of this session, and of each table that the role sees."""
        seen = self._service.catalog(self.role).visible & self._service.policy.tables.keys()
        accounts = self._accounts(seen)
        return tuple(self._left_in(b) for b in self._service.ledger.balances(accounts))

    def _left_in(self, balance: Balance) -> Remaining:
        total, spent, left = balance.total, balance.guarantee, balance.left
        spent_rho, rho = balance.rho or (None, None)
        account = balance.account
        return Remaining(
            account.title, account.holder, account.table, account.role not in ("", self.role),
            *total, *spent, *left, account.renews, spent_rho, rho, balance.left_rho,
            self.priced_in_rho,
        )  # fmt: skip

    def _query(self, text: str, parameters: Parameters, *, intervals: bool) -> Reply:
        service = self._service
        with service.pace.kept() as wait, service.counters.timed() as outcome:
            reply = self._answered(text, parameters, wait, intervals=intervals)
            outcome.recalled = reply.recalled
            return reply

    def _answered(self, text: str, parameters: Parameters, wait: Act, *, intervals: bool) -> Reply:
        priced = self.prepare(text, parameters)
        timely = self._timely
        if own_tables.asked_for(Source(text, self.settings.dialect)):
            return self._own(priced)
        self._service.check_data()
        policy = self._service.policy
        note = Note(policy.version, self.role, self._account_name(), text)
        tables = tables_read(priced.plan)
        accounts = self._accounts(tables)
        payer = Payer(accounts, note, policy.answers_key, self.settings.fresh, self._cap, wait)
        wanted = intervals or self.settings.intervals
        with searching.with_found_bounds(priced, payer, self._service) as (priced, before):
            given = answer(priced, payer, self._service.tools, intervals=wanted)
        release = given.release
        if self.settings.nonnegative:
            release = nonnegative(release, priced)
        reply = Reply(
            "SELECT", release.columns, release.table, release.intervals,
            before + given.cost, given.recalled and before == Cost.zero(), notes=(*notes(priced), *release.notes), timely=timely,
            noise_alone=bool(cuts(priced)), tables=tables,
        )  # fmt: skip
        return with_interval_columns(reply) if self.settings.intervals else reply

    def _own(self, priced: PricedPlan) -> Reply:
        """Answer a statement over dpsql's own tables."""
        service, post = self._service, self._service.tools.postprocessor
        reader = own_tables.OwnTables(service, self.role, self._all_budgets, post, self._remaining)
        tools = Finishing(reader, post)
        release = finish(priced, (), tools, intervals=False)
        notes = own_tables.notes(priced.plan, service)
        return Reply("SELECT", release.columns, release.table, notes=notes)

    def _remaining(self) -> Iterator[Sequence[object]]:
        """The rows of ``dpsql.remaining``: an estimate for each table that the role sees."""
        service = self._service
        tables = service.catalog(self.role).visible & service.policy.tables.keys()

        def balances(table: str) -> tuple[Balance, ...]:
            scan = service.policy.tables[table]
            read = {table, *(key.references for key in scan.path)}
            return service.ledger.balances(self._accounts(read))

        return estimates(service.policy, self.role, tables, self._cap.dearest, balances)

    def _all_budgets(self) -> tuple[Remaining, ...]:
        """The accounts of this session; for an owner, those of all roles too, each of them once."""
        mine = self.budget()
        if not self._role.owner:
            return mine
        others = (self._service.session(role).budget() for role in self._service.policy.roles)
        every = (*mine, *(r for budget in others for r in budget))
        return tuple(dict.fromkeys(replace(r, service=False) for r in every))

    def _request(self, mine: s.Settings) -> Request:
        role = self._role
        return Request(
            epsilon=self._cap.epsilon if mine.epsilon is None else mine.epsilon,
            delta=self._cap.delta if mine.delta is None else mine.delta,
            rho=self._cap.rho,
            mechanism=mine.mechanism,
            allowed=role.mechanisms,
            groups=role.max_groups_per_unit,
            sizes={u.name: u.group_size for u in self._service.policy.units.values()},
            shelf=self._service.shelf,
            bounding=mine.bounding,
            search=mine.search or role.search,
            consistent=mine.consistent,
        )

    def _account_name(self) -> str:
        return self._name if self.settings.session is None else self.settings.session

    def _accounts(self, tables: Iterable[str] = ()) -> tuple[Account, ...]:
        now, name = self._service.clock(), self._account_name()
        policy = self._service.policy
        found = accounts_for(policy, self.role, name, tables, now=now)
        if self._behind is None:
            return found
        service = accounts_for(policy, self._behind, name, now=now)
        return (*found, *(a for a in service if a.holder in ("role", "session")))

    def _show(self, name: str) -> Reply:
        if name == "budget":
            return made("SHOW", BUDGET, [budget_row(r) for r in self.budget()])
        if name in s.SETTINGS:
            value = self._account_name() if name == "session" else getattr(self.settings, name)
            text = "default" if value is None else str(value)
            return made("SHOW", ((f"dpsql.{name}", Kind.TEXT),), [[text]])
        raise Refused(
            Refusal(
                "DP401",
                f'there is no setting "dpsql.{name}"',
                "Only listed settings exist.",
                "Known: dpsql.budget, " + ", ".join(f"dpsql.{known}" for known in s.SETTINGS),
            )
        )
