"""Forecasts of questions: under the policy as it is, and under each variant of one of its keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dpsql.diagnostics.refusal import Refused
from dpsql.engines.verify import Progress
from dpsql.exact import number
from dpsql.forecast.look import ExactFigures, Look
from dpsql.forecast.planner import Planner
from dpsql.forecast.predict import Prediction, predict
from dpsql.forecast.questions import Question
from dpsql.forecast.settings import Knob, Wanted, list_knobs
from dpsql.ledger.accounts import accounts_for
from dpsql.ledger.balance import Balance
from dpsql.ledger.charge import Charge
from dpsql.ledger.query_cap import cap_of
from dpsql.ledger.shortage import more
from dpsql.policy.model import Policy, QueryShare
from dpsql.privacy.cost import Cost
from dpsql.service import Session
from dpsql.service.own_tables import tables_read
from dpsql.service.remaining import affordable

SIZE = 1_000
"""The rows of a group for which an error is stated that depends on them."""
WITHIN = 0.05
"""The error that is wanted where nobody says another one, as a share."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What one answer is worth under one policy. A question that would be refused has no prediction.

    ``in_session`` is how many such questions an empty session admits; None if they cost nothing.
    """

    prediction: Prediction | None
    refused: str = ""
    in_session: int | None = None
    figures: ExactFigures | None = None
    tables: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Comparison:
    """The forecasts of some questions under the variants of one key.

    ``forecasts`` has a row for each question that depends on the key, by its position, with one
    forecast for each variant.
    """

    knob: Knob
    forecasts: dict[int, tuple[Forecast, ...]]


@dataclass(frozen=True, slots=True)
class Report:
    """The forecasts of questions as the policy is, and what other values of its keys would change."""

    role: str
    price: str
    """What one question costs, in words."""
    questions: tuple[Question, ...]
    forecasts: tuple[Forecast, ...]
    comparisons: tuple[Comparison, ...] = ()
    looked: bool = False


class Forecaster:
    """Forecasts what a role's answers are worth, with exact figures if it may look at the data."""

    def __init__(
        self, planner: Planner, role: str, dialect: str = "postgres", look: Look | None = None,
        progress: Progress = lambda *_: None,
    ) -> None:  # fmt: skip
        """Without ``look``, no private row is read."""
        self._planner, self._role = planner, role
        self._dialect, self._look, self._progress = dialect, look, progress

    def report(self, questions: Sequence[Question], wanted: Wanted | None = None) -> Report:
        """The report about questions; without ``wanted``, about the policy as it is alone."""
        policy = self._planner.policy
        own = tuple(self.forecast(policy, question) for question in questions)
        knobs = () if wanted is None else tuple(list_knobs(policy, self._role, wanted))
        found = []
        for done, knob in enumerate(knobs):
            self._progress(done, len(knobs), knob.key)
            found.append(self._compare(knob, questions, own))
        some = tuple(comparison for comparison in found if comparison.forecasts)
        price = describe_price(policy, self._role)
        return Report(self._role, price, tuple(questions), own, some, self._look is not None)

    def forecast(self, policy: Policy, question: Question) -> Forecast:
        """The forecast of one question under a variant of the policy."""
        service = self._planner.service(policy)
        session = service.session(self._role)
        session.settings = replace(session.settings, dialect=self._dialect, show="always")
        try:
            priced = session.prepare(question.text, suggest=False)
        except Refused as refused:
            return Forecast(None, refused.first.code)
        with session.execution():
            prediction = predict(priced, service.tools.finishing)
        return Forecast(
            prediction,
            in_session=self._in_session(policy, prediction.cost),
            figures=self._figures(session, policy, question, prediction),
            tables=tables_read(priced.plan),
        )

    def _figures(
        self, session: Session, policy: Policy, question: Question, prediction: Prediction
    ) -> ExactFigures | None:
        if self._look is None or not prediction.columns:
            return None
        return self._look.figures(session, policy, question.text, prediction)

    def _in_session(self, policy: Policy, cost: Cost) -> int | None:
        if cost == Cost.zero():
            return None
        service = self._planner.service(policy)
        accounts = accounts_for(policy, self._role, now=service.clock())
        price = Charge.of(cost)
        return min(affordable(Balance(account, Charge()), price) for account in accounts)

    def _compare(
        self, knob: Knob, questions: Sequence[Question], own: Sequence[Forecast]
    ) -> Comparison:
        rows: dict[int, tuple[Forecast, ...]] = {}
        for place, (question, mine) in enumerate(zip(questions, own, strict=True)):
            if mine.prediction is None or not knob.touches(mine.tables, question.text):
                continue
            found = tuple(
                mine if variant.own else self.forecast(variant.policy, question)
                for variant in knob.variants
            )
            if any(_differ(each, mine) for each in found):
                rows[place] = found
        return Comparison(knob, rows)


def describe_price(policy: Policy, role: str) -> str:
    """What a question of a role costs, in words."""
    known = policy.roles[role]
    cost, delta = f"epsilon {more(cap_of(known).label)}", known.query.delta
    cost += f" and delta {more(delta)}" if delta else ""
    if isinstance(known.query, QueryShare):
        share = number(known.query.share * 100)
        return f'a question of role "{role}" costs {share}% of a session (at most {cost})'
    return f'a question of role "{role}" costs at most {cost}'


def _differ(one: Forecast, other: Forecast) -> bool:
    """Whether a key changes what is forecast, other than the price alone."""
    if one.prediction is None or other.prediction is None:
        return one.prediction is not other.prediction
    return (
        one.prediction.columns != other.prediction.columns
        or one.prediction.threshold != other.prediction.threshold
    )
