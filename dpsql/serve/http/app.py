"""The HTTP application. It runs each request as a statement of a session, and sends its reply."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Mapping
from dataclasses import replace
from typing import Any

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dpsql.diagnostics.operation.defects import defect
from dpsql.diagnostics.operation.events import LedgerUnusable, StatementRefused, record
from dpsql.diagnostics.refusal import (
    Ended,
    EngineFailed,
    LedgerFailed,
    OutOfBudget,
    Refusal,
    Refused,
)
from dpsql.memory.pool import Full
from dpsql.serve.departure import LOOK_SECONDS
from dpsql.serve.health import Health
from dpsql.serve.http.bodies import make_response, received
from dpsql.serve.http.logged import Logged
from dpsql.serve.http.openapi import ARROW, DATABASE, description
from dpsql.serve.http.question import Question, Unreadable, question
from dpsql.serve.lanes import Closed, Job, Lane, TooBusy
from dpsql.serve.policy_snapshot import PolicySnapshot
from dpsql.serve.throttle import TooMany
from dpsql.serve.traffic import Reason, Traffic
from dpsql.serve.users import User
from dpsql.service import Session, plain

Worlds = Mapping[str, PolicySnapshot]
Work = Callable[[Session, Question], Response]
_CHARGED = (
    "What it was charged stays charged; if its answer was stored, asking again returns it for free."
)
_UNKNOWN = {"WWW-Authenticate": "Bearer"}


class Face:
    """The handlers of all paths, over the newest snapshots of the policies."""

    def __init__(self, now: Callable[[], Worlds], traffic: Traffic | None = None) -> None:
        """``now`` gives the newest snapshots, by the names of their databases."""
        self._now, self._traffic = now, traffic or Traffic()
        self._health = Health(now, self._traffic)
        self._stops: set[asyncio.Future[Reason]] = set()
        """For each request that is carried out, a future that is set when it should stop."""

    def app(self) -> Logged:
        """The application, as a server runs it."""
        routes = [
            Route("/v1/query", self._asked(_query), methods=["POST"]),
            Route("/v1/explain", self._asked(_explain), methods=["POST"]),
            Route("/v1/budget", self._told(_budget)),
            Route("/metrics", self._told(_metrics)),
            Route("/healthz", _healthy),
            Route("/readyz", self._ready),
            Route("/openapi.json", _described),
        ]
        return Logged(Starlette(routes=routes), [route.path for route in routes])

    def _asked(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            known = await self._known(request)
            if isinstance(known, Response):
                return known
            try:
                body, hold = await received(request, _login(*known))
                asked = question(body, arrow=ARROW in request.headers.get("accept", ""))
                asked = replace(asked, owner=_login(*known), hold=hold)
            except ClientDisconnect:
                return _wrong(408, "the request did not come to its end", "It took too long.", "")
            except Unreadable as error:
                return _wrong(
                    error.status, error.headline, "The request was not read.", error.instead
                )
            # A body may take long to arrive, so the user and the policy are looked up again.
            known = await self._known(request)
            if isinstance(known, Response):
                return known
            snapshot, user = known
            call = _Call(snapshot, user, asked, work)
            job = Job(_login(snapshot, user), call.run, call.interrupt)
            seconds = snapshot.service.policy.roles[user.role].access.statement_seconds
            return await self._carried_out(request, self._traffic.data, job, seconds)

        return handle

    def _told(
        self, work: Callable[[PolicySnapshot, User], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            known = await self._known(request)
            if isinstance(known, Response):
                return known
            snapshot, user = known
            job = Job(_login(snapshot, user), lambda: _guarded(user, lambda: work(snapshot, user)))
            return await self._carried_out(request, self._traffic.catalog, job, None)

        return handle

    async def _ready(self, _: Request) -> Response:
        """Answer a readiness probe. It names the parts that do not work, and tells nothing more."""
        failing = await self._health.failing()
        told = {"ready": not failing, "failing": list(failing)}
        return JSONResponse(told, 503 if failing else 200)

    async def _known(self, request: Request) -> tuple[PolicySnapshot, User] | Response:
        """The policy and the user of a request, or the response that refuses it.

        The refusal of a wrong token is delayed by the earlier failures of the address.
        """
        bearer = _bearer(request)
        known = _known(self._now(), request, bearer)
        if not isinstance(known, Response):
            request.state.login = known[1].name
        if bearer and isinstance(known, Response) and known.status_code == 401:
            attempt = self._traffic.throttle.attempt(request.client, "")
            attempt.fail()
            try:
                await asyncio.sleep(attempt.queue())
            except TooMany:
                why, instead = (
                    "Several wrong tokens came from this address.",
                    "Ask again in a second.",
                )
                return _wrong(429, "too many wrong tokens", why, instead)
        return known

    async def _carried_out(
        self, request: Request, lane: Lane, job: Job, seconds: float | None
    ) -> Response:
        """Run a job in a lane, and return its response.

        The job is stopped when its time is up or its client has left.
        """
        connection = getattr(request.state, "connection", None)
        if connection is not None and connection.gone():
            return _stopped("disconnect")
        try:
            lane.submit(job)
        except TooBusy:
            return _busy(lane)
        except Closed:
            return _stopped("shutdown")
        loop = asyncio.get_running_loop()
        if connection is not None:
            connection.enter()
        ended, stop = job.as_future(loop), loop.create_future()
        left = loop.create_task(_left(request, connection))
        left.add_done_callback(lambda _: _say(stop, "disconnect"))
        timer = None if not seconds else loop.call_later(seconds, _say, stop, "timeout")
        self._stops.add(stop)
        try:
            await asyncio.wait({ended, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._stops.discard(stop)
            left.cancel()
            if timer is not None:
                timer.cancel()
            if not ended.done():
                self._traffic.stop(job, stop.result() if stop.done() else "shutdown")
        if ended.done() and not ended.cancelled():
            return _response(ended.result())
        return _stopped(stop.result() if stop.done() else "shutdown")

    def interrupt(self) -> None:
        """Stop all requests that are carried out, since the process ends."""
        for stop in list(self._stops):
            _say(stop, "shutdown")


def _say(stop: asyncio.Future[Reason], reason: Reason) -> None:
    if not stop.done():
        stop.set_result(reason)


async def _left(request: Request, connection: Any) -> None:
    """Wait until the client has left, also if it has sent more than the server reads now."""
    told = asyncio.get_running_loop().create_task(_disconnected(request))
    try:
        while not (await asyncio.wait({told}, timeout=LOOK_SECONDS))[0]:
            if connection is not None and connection.gone():
                return
    finally:
        told.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _login(snapshot: PolicySnapshot, user: User) -> Hashable:
    """The login by which lanes give turns: the same as over PostgreSQL's protocol."""
    return str(snapshot.service.policy.path), user.name


def _response(found: object) -> Response:
    assert isinstance(found, Response)
    return found


def _bearer(request: Request) -> str:
    """The token of a request; empty if it has none."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _known(
    snapshots: Worlds, request: Request, bearer: str
) -> tuple[PolicySnapshot, User] | Response:
    """The policy that the request names, or else the first that knows the token, and the user.

    Only a client with a token of some policy is told that a database does not exist.
    """
    fitting = {n: (w, user) for n, w in snapshots.items() if (user := w.bearer(bearer)) is not None}
    named = request.headers.get(DATABASE, "")
    if not fitting or (named in snapshots and named not in fitting):
        return _unknown()
    if not named or len(snapshots) == 1:
        return next(iter(fitting.values()))
    if named not in snapshots:
        said = "there is no database of this name"
        return _wrong(404, said, f"{DATABASE} names it.", "Leave it out, or ask the owner.")
    return fitting[named]


class _Call:
    """A statement that is carried out in a thread, where it can be stopped."""

    def __init__(self, snapshot: PolicySnapshot, user: User, asked: Question, work: Work) -> None:
        self._snapshot, self._user, self._asked, self._work = snapshot, user, asked, work
        self._session: Session | None = None

    def run(self) -> Response:
        return _guarded(self._user, self._run)

    def _run(self) -> Response:
        session = self._snapshot.service.session(self._user.role, self._asked.session)
        for statement in self._asked.settings:
            session.execute(statement)
        self._session = session
        return self._work(session, self._asked)

    def interrupt(self, thread: int) -> None:
        if self._session is not None:
            self._session.interrupt(thread)


def _guarded(user: User, work: Callable[[], Response]) -> Response:
    """Turn any error into a response with the words of all faces. It tells nothing of any row."""
    try:
        return work()
    except Refused as refused:
        record(StatementRefused(refused.code, user.name, "http", position=refused.position or 0))
        out = isinstance(refused, OutOfBudget) or refused.sqlstate == "53400"
        return _refused(refused, 403 if out else 422)
    except Full as full:
        why = "What clients hold at one time shares a part of `endpoint.memory`."
        return _wrong(503, f"out of memory: {full}", why, f"Try again later. {_CHARGED}")
    except LedgerFailed as failed:
        record(LedgerUnusable(failed.headline, failed.instead))
        return _wrong(500, failed.client_headline, "", failed.client_instead, failed.code)
    except Ended as ended:
        return _wrong(503, ended.headline, ended.why, ended.instead, ended.code)
    except EngineFailed as failed:
        return _wrong(500, str(failed), "", "", "DP901")
    except Exception as error:  # noqa: BLE001 (whatever it is, the client is told one thing)
        return _wrong(500, f"a defect in dpsql (incident {defect(error)})", "", "", "DP903")


def _query(session: Session, asked: Question) -> Response:
    reply = session.execute(asked.sql, asked.parameters, intervals=True)
    return make_response(reply, asked.owner, arrow=asked.arrow)


def _explain(session: Session, asked: Question) -> Response:
    cost = session.prepare(asked.sql, asked.parameters).price
    lines = session.explain(asked.sql, asked.parameters).splitlines()
    return JSONResponse({"plan": lines, "cost": plain.cost(cost)})


def _budget(snapshot: PolicySnapshot, user: User) -> Response:
    return JSONResponse(plain.describe_remaining(snapshot.service.session(user.role).budget()))


def _metrics(snapshot: PolicySnapshot, user: User) -> Response:
    """The metrics, for roles of owners only, since they tell how much each role has spent."""
    if not snapshot.service.policy.roles[user.role].owner:
        why, instead = "They tell what every role has spent.", "Take the token of an owner's role."
        return _wrong(403, "metrics are for owners", why, instead)
    return PlainTextResponse(
        snapshot.service.metrics_text(), media_type="text/plain; version=0.0.4"
    )


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _described(_: Request) -> Response:
    return JSONResponse(description())


def _unknown() -> Response:
    told = _error(
        "", "a token is needed", "Budgets belong to roles.", "Authorization: Bearer <token>"
    )
    return JSONResponse(told, 401, _UNKNOWN)


def _busy(lane: Lane) -> Response:
    return _wrong(
        429, "too many statements of this log-in wait for their turn",
        f"At most {lane.most_waiting} may wait, so that memory is left for others.",
        "Send it again when some have been answered. It was not charged.",
    )  # fmt: skip


def _stopped(reason: Reason) -> Response:
    """The response to a statement that was stopped.

    A statement that had not begun was not charged, but it is not known here whether it had begun.
    """
    if reason == "timeout":
        why, instead = "The policy says how long a statement may take.", "Ask for less at once."
        return _wrong(504, "the statement took too long", f"{why} {_CHARGED}", instead)
    why, instead = "The server is shutting down.", "Send it again when the server is back."
    return _wrong(503, "the statement was stopped", f"{why} {_CHARGED}", instead)


def _refused(refused: Refused, status: int) -> Response:
    others = [one for one in refused.refusals if one is not refused.first]
    also = {"also": [_one(other) for other in others]} if others else {}
    return JSONResponse({**_one(refused.first), **also}, status)


def _one(refusal: Refusal) -> dict[str, Any]:
    told = _error(refusal.code, refusal.headline, refusal.why, refusal.instead)
    return {**told, "position": refusal.span.start + 1 if refusal.span else None}


def _wrong(status: int, headline: str, why: str, instead: str, code: str = "") -> Response:
    return JSONResponse(_error(code, headline, why, instead), status)


def _error(code: str, headline: str, why: str, instead: str) -> dict[str, Any]:
    return {"code": code, "headline": headline, "why": why, "instead": instead, "position": None}
