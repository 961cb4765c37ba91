"""The application: a request becomes a statement of one session, its reply a response."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pyarrow as pa
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from dpsql.diagnostics.refusal import EngineFailed, Error, LedgerFailed, OutOfBudget, Refused
from dpsql.engines.deadlines import Deadlines
from dpsql.serve.http.openapi import ARROW, DATABASE, LARGEST_BODY, description
from dpsql.serve.http.question import Question, Unreadable, question
from dpsql.serve.users import User
from dpsql.serve.world import World
from dpsql.service import Reply, Session, plain

log = logging.getLogger("dpsql.operator")
Worlds = Mapping[str, World]
Work = Callable[[Session, Question], Response]
_DEADLINES = Deadlines()
_UNKNOWN = {"WWW-Authenticate": "Bearer"}


class Face:
    """Handlers over the newest readings of the policies."""

    def __init__(self, now: Callable[[], Worlds]) -> None:
        """``now`` gives the newest readings, by the names of their databases."""
        self._now = now

    def app(self) -> Starlette:
        """The application, as a server runs it."""
        return Starlette(
            routes=[
                Route("/v1/query", self._asked(_query), methods=["POST"]),
                Route("/v1/explain", self._asked(_explain), methods=["POST"]),
                Route("/v1/budget", self._told(_budget)),
                Route("/metrics", self._told(_metrics)),
                Route("/healthz", _healthy),
                Route("/openapi.json", _described),
            ]
        )

    def _asked(self, work: Work) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            known = _known(self._now(), request)
            if isinstance(known, Response):
                return known
            try:
                asked = question(
                    await _body(request), arrow=ARROW in request.headers.get("accept", "")
                )
            except ClientDisconnect:
                return _wrong(408, "the request did not come to its end", "It took too long.", "")
            except Unreadable as error:
                return _wrong(
                    error.status, error.headline, "The request was not read.", error.instead
                )
            # a body may take long: the policy that is asked is today's
            known = _known(self._now(), request)
            if isinstance(known, Response):
                return known
            return await run_in_threadpool(_carried_out, *known, asked, work)

        return handle

    def _told(
        self, work: Callable[[World, User], Response]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            known = _known(self._now(), request)
            if isinstance(known, Response):
                return known
            world, user = known
            return await run_in_threadpool(_guarded, lambda: work(world, user))

        return handle


def _known(worlds: Worlds, request: Request) -> tuple[World, User] | Response:
    """Who asks, under which policy: the one that is named, or the first that knows the token.

    Only who has a token of some policy is told that a database does not exist.
    """
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    bearer = token.strip() if scheme.lower() == "bearer" else ""
    fitting = {n: (w, user) for n, w in worlds.items() if (user := w.bearer(bearer)) is not None}
    named = request.headers.get(DATABASE, "")
    if not fitting or (named in worlds and named not in fitting):
        return _unknown()
    if not named or len(worlds) == 1:
        return next(iter(fitting.values()))
    if named not in worlds:
        said = "there is no database of this name"
        return _wrong(404, said, f"{DATABASE} names it.", "Leave it out, or ask the owner.")
    return fitting[named]


async def _body(request: Request) -> bytes:
    """The body, as long as it is short enough."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > LARGEST_BODY:
            raise Unreadable(413, "the request is too large", f"Send at most {LARGEST_BODY} bytes.")
    return body


def _carried_out(world: World, user: User, asked: Question, work: Work) -> Response:
    """In a worker thread, for no longer than the role may."""

    def run() -> Response:
        session = world.service.session(user.role, asked.session)
        for statement in asked.settings:
            session.execute(statement)
        seconds = world.service.policy.roles[user.role].access.statement_seconds
        if not seconds:
            return work(session, asked)
        thread = threading.get_ident()
        with _DEADLINES.within(seconds, lambda: session.interrupt(thread)):
            return work(session, asked)

    return _guarded(run)


def _guarded(work: Callable[[], Response]) -> Response:
    """Whatever goes wrong is told in the same words as everywhere, and nothing of a row is."""
    try:
        return work()
    except OutOfBudget as refused:
        return _refused(refused, 403)
    except Refused as refused:
        return _refused(refused, 403 if refused.sqlstate == "53400" else 422)
    except LedgerFailed as failed:
        return _wrong(500, failed.headline, "", failed.instead, failed.code)
    except EngineFailed as failed:
        return _wrong(500, str(failed), "", "", "DP901")
    except Error as error:
        return _wrong(500, str(error), "", "")
    except Exception:
        log.exception("a defect in the HTTP face")
        return _wrong(500, "a defect in dpsql", "", "")


def _query(session: Session, asked: Question) -> Response:
    reply = session.execute(asked.sql, asked.parameters, intervals=True)
    if asked.arrow:
        return Response(_arrow(reply), media_type=ARROW)
    return Response(plain.to_json(reply), media_type="application/json")


def _arrow(reply: Reply) -> bytes:
    """One IPC stream; what it cost is in the schema's metadata."""
    told = {"cost": plain.cost(reply), "recalled": reply.recalled, "notes": list(reply.notes)}
    table = plain.named(reply).replace_schema_metadata({"dpsql": json.dumps(told)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _explain(session: Session, asked: Question) -> Response:
    cost = session.prepare(asked.sql, asked.parameters).price
    lines = session.explain(asked.sql, asked.parameters).splitlines()
    told = {"epsilon": float(cost.epsilon), "delta": float(cost.delta)}
    return JSONResponse({"plan": lines, "cost": told})


def _budget(world: World, user: User) -> Response:
    return JSONResponse(plain.remaining(world.service.session(user.role).budget()))


def _metrics(world: World, user: User) -> Response:
    """For operators: they tell what every role has spent."""
    if not world.service.policy.roles[user.role].owner:
        why, instead = "They tell what every role has spent.", "Take the token of an owner's role."
        return _wrong(403, "metrics are for owners", why, instead)
    return PlainTextResponse(world.service.metrics_text(), media_type="text/plain; version=0.0.4")


async def _healthy(_: Request) -> Response:
    return PlainTextResponse("ok\n")


async def _described(_: Request) -> Response:
    return JSONResponse(description())


def _unknown() -> Response:
    told = _error(
        "", "a token is needed", "Budgets belong to roles.", "Authorization: Bearer <token>"
    )
    return JSONResponse(told, 401, _UNKNOWN)


def _refused(refused: Refused, status: int) -> Response:
    told = _error(refused.code, refused.headline, refused.why, refused.instead)
    return JSONResponse({**told, "position": refused.position}, status)


def _wrong(status: int, headline: str, why: str, instead: str, code: str = "") -> Response:
    return JSONResponse(_error(code, headline, why, instead), status)


def _error(code: str, headline: str, why: str, instead: str) -> dict[str, Any]:
    return {"code": code, "headline": headline, "why": why, "instead": instead, "position": None}
