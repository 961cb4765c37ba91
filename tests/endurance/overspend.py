"""Many clients spend accounts to the last: over the wire, HTTP, sessions and SET ROLE, during reloads.

Claim: what is charged is exactly what was answered, in each account; none goes beyond its limit; and each
client was refused exactly where its next question would not have fitted.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from dpsql.ledger.charge import NANO
from dpsql.policy.load import load
from tests.endurance.clients import Client, Http, Refused, Wire
from tests.endurance.world import PASSWORD, ROBOTS, Caller, Received, Serving, World

PRICES = ("0.02", "0.01")
"""Dear questions first: each client ends with one of the cheapest that is refused."""
QUESTION = "SELECT count(*) AS n FROM orders WHERE amount > {}.5 AND amount < {}.25"
SECONDS = 0.3
"""Between two reloads."""


def budgets(dataset: str, share: str, composition: str) -> str:
    """Accounts and roles. ``share`` is what a role has; sessions have a quarter of it."""
    delta = "0" if composition == "basic" else "1e-5"
    session = Fraction(share) / 4
    role = (
        f"    password: {PASSWORD}\n    epsilon: {share}\n    delta: {delta}\n"
        f"    session: {{epsilon: {float(session)}}}\n    query: {{epsilon: 0.03}}\n"
    )
    taking = {"analyst": "may_become: [pure]", "pure": "", "viewer": "may_become: [analyst, pure]"}
    return (
        f"accounts:\n  dataset: {{epsilon: {dataset}, delta: {delta}, composition: {composition}}}\nroles:\n"
        + "".join(f"  {name}:\n{role}    {may}\n" for name, may in taking.items())
    )


def callers() -> list[tuple[str, Caller]]:
    """Faces and callers: every role in four sessions over both faces, and roles that take others."""
    sessions = [f"s{i}" for i in range(4)]
    wire = [("wire", Caller(role, "", s)) for role in ("analyst", "viewer") for s in sessions]
    taking = [("analyst", "pure"), ("viewer", "analyst"), ("viewer", "pure")]
    wire += [("wire", Caller(a, b, s)) for a, b in taking for s in sessions[:2]]
    return wire + [(name, Caller(role, "", s)) for name, role in ROBOTS.items() for s in sessions]


@dataclass
class Outcome:
    """What all clients together saw."""

    received: list[Received] = field(default_factory=list)
    refused: list[tuple[Caller, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    reloads: int = 0


def _spend(
    client: Client, numbers: itertools.count[int], outcome: Outcome, all_here: threading.Barrier
) -> None:
    """Ask until the cheapest question is refused."""

    def note(received: Received) -> None:
        if received.whole:
            outcome.received.append(received)

    try:
        all_here.wait(60)
        for price in PRICES:
            try:
                while True:
                    number = next(numbers)
                    client.ask(QUESTION.format(number % 200, 250 + number // 200), price, note)
            except Refused:
                outcome.refused.append((client.caller, price))
    except Exception as error:  # noqa: BLE001 (whatever it is, it is a finding)
        outcome.problems.append(f"{client.caller}: {error!r}")
    finally:
        client.close()


def _reload(world: World, served: Serving, ended: threading.Event, outcome: Outcome) -> None:
    """Again and again: the policy is edited when the edit before has been taken up, and not before."""
    while not ended.wait(SECONDS):
        world.edit()
        served.hang_up()
        outcome.reloads += 1
        while served.said.count("reloaded: ") < outcome.reloads and not ended.wait(0.02):
            pass


def run(world: World) -> Outcome:
    """Serve, and let everybody spend what there is."""
    served, outcome, ended = Serving(world), Outcome(), threading.Event()
    try:
        port, http = served.ports()
        numbers = itertools.count()
        clients = [
            Wire(port, caller) if face == "wire" else Http(http, world.tokens[face], caller)
            for face, caller in callers()
        ]
        all_here = threading.Barrier(len(clients))
        threads = [
            threading.Thread(target=_spend, args=(client, numbers, outcome, all_here))
            for client in clients
        ]
        reloading = threading.Thread(target=_reload, args=(world, served, ended, outcome))
        for thread in (*threads, reloading):
            thread.start()
        for thread in threads:
            thread.join()
        ended.set()
        reloading.join()
    finally:
        served.stop()
    if "not reloaded" in served.said or "Traceback" in served.said:
        outcome.problems.append(served.said[-2000:])
    return outcome


def problems(world: World, outcome: Outcome) -> list[str]:
    """All that is not as the claim says."""
    found, policy = list(outcome.problems), load(world.policy)
    spent, expected = world.spent(), world.expected(outcome.received)
    found += [
        f"{account}: {spent.get(account, 0)} were charged and {expected.get(account, 0)} answered"
        for account in sorted(spent | expected)
        if spent.get(account) != expected.get(account)
    ]
    ended = {caller for caller, price in outcome.refused if price == PRICES[-1]}
    found += [f"{caller} was never refused" for _, caller in callers() if caller not in ended]
    with world.ledger() as ledger:
        for caller in ended:
            accounts = caller.accounts(policy)
            if ledger.affordable(accounts) >= Fraction(PRICES[-1]):
                found.append(f"{caller} was refused what its accounts afford")
            for balance in ledger.balances(accounts):
                if any(a > b for a, b in zip(balance.guarantee, balance.total, strict=True)):
                    found.append(f"{balance.account.id} is beyond its limit")
    return found


def main(folder: Path, budget: str, share: str, composition: str, ledger: str) -> int:
    """Print what happened; 1 where it is not as claimed."""
    world = World(folder, budgets(budget, share, composition), ledger)
    begun = time.monotonic()
    outcome = run(world)
    found = problems(world, outcome)
    total = sum(Fraction(r.price) for r in outcome.received)
    charged = world.spent().get("policy/dataset", 0) / NANO
    print(
        f"{len(outcome.received)} answers for {float(total)} in all, {charged} charged by adding up, of {budget} ({composition}), "
        f"{outcome.reloads} reloads, {time.monotonic() - begun:.0f} s"
    )
    for problem in found:
        print(problem)
    return bool(found)
