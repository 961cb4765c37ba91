"""What the server keeps for a client: answers, statements, cursors, settings, what is not yet taken."""

from __future__ import annotations

import time

from benchmarks.attacks.client import SYNC, Client, bind, execute, parse, query
from benchmarks.attacks.hostile import Hostile
from benchmarks.attacks.registry import attack

LARGE = "SELECT {n}, x, repeat('x', 100000) AS t FROM generate_series(1, 1000) AS s(x)"
"""An answer of 100 MB."""
PUBLIC = "SELECT a.page, b.page, a.body FROM pages a, pages b WHERE b.page < 50 AND a.page <> {n}"
"""100 MB of rows of a public table."""


@attack()
def large_answers(hostile: Hostile) -> None:
    """Answers of 100 MB, each another one, all of them read."""
    hostile.loop(4, [LARGE, PUBLIC, "SELECT repeat('x', 100000000) || '{n}'"])


@attack()
def unread_answers(hostile: Hostile) -> None:
    """Thirty clients ask for 100 MB and take nothing of it."""

    def work(index: int) -> None:
        with hostile.client() as client:
            sql = (LARGE, PUBLIC)[index % 2]
            client.send(query(sql.replace("{n}", str(hostile.number()))))
            hostile.count("asked")
            hostile.wait()

    hostile.together(30, work)


@attack()
def slowly_read(hostile: Hostile) -> None:
    """Forty clients take some bytes a second of a large answer, so that they are never too slow."""

    def work(_: int) -> None:
        with hostile.client() as client:
            client.send(query(LARGE.replace("{n}", str(hostile.number()))))
            while hostile.goes_on and client.socket.recv(100):
                time.sleep(0.1)
            hostile.count("left")

    hostile.together(40, work)


@attack()
def many_at_once(hostile: Hostile) -> None:
    """Ten thousand statements at a time, whose answers nobody reads."""

    def work(_: int) -> None:
        with hostile.client() as client:
            client.socket.settimeout(0.5)
            piece = query("SELECT repeat('x', 10000), generate_series FROM generate_series(1, 10)")
            try:
                while hostile.goes_on:
                    client.send(piece * 1000)
                    hostile.count("sent")
            except TimeoutError:
                hostile.wait()

    hostile.together(40, work)


@attack(processes=2)
def prepared_texts(hostile: Hostile) -> None:
    """Thousands of prepared statements, with texts of 400 kB, with many columns, and small ones."""

    def work(index: int) -> None:
        with hostile.client() as client:
            for turn in range(100_000):
                if not hostile.goes_on:
                    return
                number = hostile.number()
                sql = (
                    f"SELECT '{'x' * 400_000}' || $1, {number}",
                    "SELECT " + ", ".join(f"{number + i} AS c{i}" for i in range(1500)),
                    f"SELECT {number}",
                    f"SELECT {number} " + "--".ljust(400_000, "x"),
                )[index % 4]
                client.send(parse(f"s{turn}", sql) + SYNC)
                hostile.count(client.ready() or "prepared")

    hostile.together(8, work)


@attack()
def portals(hostile: Hostile) -> None:
    """Portals with parameters of 1 MB, and with answers of which one row is taken."""

    def work(index: int) -> None:
        with hostile.client() as client:
            client.send(query("BEGIN"))
            client.ready()
            client.send(
                parse("s", "SELECT $1::text, x FROM generate_series(1, 20000) AS s(x)") + SYNC
            )
            client.ready()
            for turn in range(100_000):
                if not hostile.goes_on:
                    return
                value = (b"x" * 1_000_000, b"%d" % hostile.number())[index % 2]
                name = f"p{turn}"
                taken = execute(name, 1) if index % 3 else b""
                client.send(bind(name, "s", value) + taken + SYNC)
                outcome = client.ready()
                hostile.count(outcome or "held")
                if outcome:
                    return

    hostile.together(8, work)


@attack()
def cursors(hostile: Hostile) -> None:
    """Cursors WITH HOLD of large answers, of which one row is fetched."""

    def work(_: int) -> None:
        with hostile.client() as client:
            for turn in range(1000):
                if not hostile.goes_on:
                    return
                sql = LARGE.replace("{n}", str(hostile.number())).replace("1000)", "200)")
                hostile.ask(client, f"DECLARE c{turn} CURSOR WITH HOLD FOR {sql}")
                if hostile.ask(client, f"FETCH 1 FROM c{turn}"):
                    hostile.ask(client, "CLOSE ALL")

    hostile.together(8, work)


@attack(processes=2)
def settings(hostile: Hostile) -> None:
    """A hundred sessions, each with a thousand settings of 9,000 characters."""

    def work(_: int) -> None:
        with hostile.client() as client:
            for turn in range(950):
                if not hostile.goes_on:
                    return
                text = str(hostile.number()).ljust(9_000, "x")
                hostile.count(client.ask(f"SET my.v{turn} = '{text}'") or "set")
            hostile.wait()

    hostile.together(50, work)


@attack()
def savepoints(hostile: Hostile) -> None:
    """Savepoints without end, in sessions with many settings."""

    def work(_: int) -> None:
        with hostile.client() as client:
            for turn in range(500):
                client.ask(f"SET my.v{turn} = 'x'")
            client.ask("BEGIN")
            while hostile.goes_on:
                names = "".join(f"SAVEPOINT s{hostile.number()};" for _ in range(500))
                outcome = client.ask(names)
                hostile.count(outcome or "saved")
                if outcome:
                    return

    hostile.together(8, work)


@attack()
def copied_out(hostile: Hostile) -> None:
    """COPY of large answers, read and not read."""

    def work(index: int) -> None:
        with hostile.client() as client:
            sql = f"COPY ({LARGE}) TO STDOUT".replace("{n}", str(hostile.number()))
            if index % 2:
                client.send(query(sql))
                hostile.count("asked")
                hostile.wait()
            else:
                hostile.ask(client, sql)

    hostile.together(12, work)


@attack()
def wide_answers(hostile: Hostile) -> None:
    """Answers of 1,600 columns, and errors of statements that are as long as they may be."""
    columns = ", ".join(f"x + {i} AS c{i}" for i in range(1_600))
    hostile.loop(
        6,
        [
            f"SELECT {columns} FROM generate_series({{n}}, {{n}} + 5000) AS s(x)",
            "SELECT " + ", ".join(f"'{'x' * 500}' AS \"{'n' * 50}{i}\"" for i in range(1_000)),
            f"SELECT nowhere_{'x' * 800_000}",
        ],
    )


@attack()
def stopped_in_the_answer(hostile: Hostile) -> None:
    """Clients take the first bytes of a large answer, and are gone."""

    def work(_: int) -> None:
        client = Client(hostile.place)
        client.send(query(LARGE.replace("{n}", str(hostile.number()))))
        client.socket.recv(1000)
        client.close()
        hostile.count("left")

    hostile.together(12, work)


@attack()
def unread_over_tls(hostile: Hostile) -> None:
    """Thirty clients ask over TLS for 100 MB and take nothing of it."""

    def work(_: int) -> None:
        with hostile.client(tls=True) as client:
            client.send(query(LARGE.replace("{n}", str(hostile.number()))))
            hostile.count("asked")
            hostile.wait()

    hostile.together(30, work)


@attack()
def many_parameters(hostile: Hostile) -> None:
    """Statements of 30,000 parameters, bound again and again."""
    count = 30_000
    sql = "SELECT " + " + ".join(f"${i}::int8" for i in range(1, count + 1))
    listed = "SELECT 1 WHERE 1 IN (" + ", ".join(f"${i}" for i in range(1, count + 1)) + ")"

    def work(index: int) -> None:
        with hostile.client() as client:
            text = (sql, listed)[index % 2]
            values = [b"%d" % (hostile.number() % 1000)] * count
            whole = parse("", text, *([20] * count)) + bind("", "", *values) + execute("") + SYNC

            def ask() -> str:
                client.send(whole)
                return client.ready()

            while hostile.goes_on:
                hostile.time_statement(f"{count} parameters", ask)

    hostile.together(6, work)
