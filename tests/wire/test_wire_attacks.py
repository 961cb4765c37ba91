"""The script that attacks an endpoint (`make attacks`): what it measures, and what it calls too much."""

from __future__ import annotations

import json
import math
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from endpoint import PASSWORD, ROLE, Endpoint, endpoint, generous

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.attacks import bystander, processes, scenarios, trial  # noqa: E402
from benchmarks.attacks.__main__ import Run, options  # noqa: E402
from benchmarks.attacks.bounds import MB, Bounds, Ending, Measurement, Samples  # noqa: E402
from benchmarks.attacks.client import Client, ConnectionLost  # noqa: E402
from benchmarks.attacks.endings import MIXES  # noqa: E402
from benchmarks.attacks.hostile import Hostile  # noqa: E402
from benchmarks.attacks.processes import Snapshot, Watch  # noqa: E402
from benchmarks.attacks.registry import ATTACKS  # noqa: E402
from benchmarks.attacks.world import Place  # noqa: E402

BOUNDS = Bounds(memory=1_500 * MB)
HOLDS = Measurement(
    "an attack", base=200 * MB, before=200 * MB, peak=1_400 * MB, after=230 * MB, waited=3,
    select=Samples([0.001] * 990 + [0.3] * 10), fresh=Samples([1.9]), query=Samples([1.9]),
    health=Samples([0.1]), http=Samples([1.9]), overrun=0.9, busy=0.9,
)  # fmt: skip


def test_what_holds_is_called_so() -> None:
    assert HOLDS.breaches(BOUNDS) == []
    assert HOLDS.line(BOUNDS).endswith("  holds")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"peak": 1_501 * MB}, "memory 1501 MB of 1500 MB"),
        ({"after": 241 * MB}, "memory 241 MB 3 s later"),
        ({"select": Samples([0.001] * 98 + [0.3] * 2)}, "SELECT 1 p99 300 ms"),
        ({"select": Samples()}, "SELECT 1 p99 nan"),
        ({"select": Samples([0.001] * 100, ["53200"])}, "SELECT 1: 53200"),
        ({"fresh": Samples([0.1, 2.1])}, "a log-in 2.1 s"),
        ({"query": Samples([2.1])}, "a small query 2.1 s"),
        ({"query": Samples([0.1], ["57014", "57014"])}, "a small query: 57014"),
        ({"health": Samples([2.1])}, "a health check 2.1 s"),
        ({"http": Samples([2.1])}, "a small query over HTTP 2.1 s"),
        ({"http": Samples()}, "a small query over HTTP nan s"),
        ({"overrun": 1.1, "slowest": "SELECT 7"}, "1.1 s after its deadline ended: SELECT 7"),
        ({"busy": 1.1}, "the server worked for 1.1 s after the last deadline"),
        ({"ended": "exit status -9"}, "the server is gone: exit status -9"),
    ],
)
def test_each_breach_is_noticed(change: dict[str, object], said: str) -> None:
    (found,) = replace(HOLDS, **change).breaches(BOUNDS)  # type: ignore[arg-type]
    assert found.startswith(said)


def test_what_waits_for_a_ledger_that_hangs_has_longer() -> None:
    slow = replace(HOLDS, query=Samples([12.0]), http=Samples([14.9]), ledger=13.0)
    assert slow.breaches(BOUNDS) == []
    assert replace(slow, http=Samples([15.1])).breaches(BOUNDS) == [
        "a small query over HTTP 15.1 s"
    ]
    assert replace(slow, fresh=Samples([2.1])).breaches(BOUNDS) == ["a log-in 2.1 s"]


def test_a_late_end_is_noticed() -> None:
    assert Ending("idle", 1.9, 2.0, 0).breaches() == []
    assert Ending("idle", 2.1, 2.0, 0).breaches() == ["2.1 s of 2 s"]
    assert Ending("idle", 1.0, 2.0, None).breaches() == ["it had to be killed"]
    assert Ending("idle", 1.0, 2.0, 1).breaches() == ["exit status 1"]


def test_a_share_of_samples() -> None:
    samples = Samples([i / 100 for i in range(1, 101)])
    assert (samples.part(0.5), samples.part(0.99), samples.most) == (0.5, 0.99, 1.0)
    assert math.isnan(Samples().part(0.99))


def test_every_attack_is_registered_and_says_what_it_does() -> None:
    modules = {p.stem for p in Path(scenarios.__file__).parent.glob("[a-z]*.py")}
    assert modules == set(scenarios.__all__)
    assert modules == {a.run.__module__.rpartition(".")[2] for a in ATTACKS.values()}
    assert len(ATTACKS) >= 50
    assert all(a.about.endswith(".") and a.name == name for name, a in ATTACKS.items())
    assert {name for mix in MIXES.values() for name in mix} <= set(ATTACKS)


def test_it_is_where_the_others_are() -> None:
    assert "-m benchmarks.attacks" in (ROOT / "Makefile").read_text()
    assert "`make attacks`" in (ROOT / "benchmarks" / "README.md").read_text()


_HOLDER = """
import subprocess, sys
held = bytearray(b"x") * 50_000_000
if len(sys.argv) > 1:
    child = subprocess.Popen([sys.executable, *sys.argv[1:]], stdin=subprocess.PIPE)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Callable[[], subprocess.Popen[str]]:
    """A process with a process below it; each holds 50 MB."""
    script = tmp_path / "holder.py"
    script.write_text(_HOLDER)

    def start() -> subprocess.Popen[str]:
        found = subprocess.Popen(
            [sys.executable, script, script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )  # fmt: skip
        assert found.stdout is not None
        assert [found.stdout.readline() for _ in range(2)] == ["held\n"] * 2
        return found

    return start


def test_memory_of_a_whole_tree_is_counted(holder: Callable[[], subprocess.Popen[str]]) -> None:
    with holder() as process:
        taken = processes.look(process.pid)
        assert len(taken.parts) == 2
        assert 100 * MB < taken.memory < 150 * MB
        assert 50 * MB < processes.pss(process.pid) < 75 * MB
        assert processes.seconds_of_work(processes.tree(process.pid)) > 0
        process.communicate()
    assert processes.look(process.pid).memory == 0


def test_a_tree_that_takes_too_much_is_ended(holder: Callable[[], subprocess.Popen[str]]) -> None:
    with holder() as process, Watch(process.pid, ceiling=90 * MB, every=0.02) as watch:
        assert process.wait(10) == -9
        while not watch.exceeded:
            time.sleep(0.01)
        assert watch.peak.memory > 90 * MB


def test_since_when_nothing_runs() -> None:
    def watch(*works: float) -> Watch:
        found, cpu = Watch(0, 0), 0.0
        for i, work in enumerate(works):
            cpu += work
            found.taken.append(Snapshot(float(i), (0,), cpu))
        return found

    assert watch(0, 1, 1, 0, 0, 0).idle_since() == 2.0
    assert watch(0, 1, 1, 0).idle_since() == 2.0
    assert watch(0, 1, 0, 1).idle_since() is None
    assert watch(0, 0.1, 0.1).idle_since() == 0.0


@pytest.fixture
def place(shop: Endpoint) -> Place:
    return Place("127.0.0.1", shop.port, 0, os.getpid(), {ROLE: ""}, password=PASSWORD)


def test_the_client_logs_in_and_reads_answers(place: Place) -> None:
    client = Client(place, ROLE, database="shop")
    assert client.ask("SELECT 1") == ""
    assert client.ask("SELECT x, repeat('x', 1000) FROM generate_series(1, 5000) AS s(x)") == ""
    assert client.ask("SELECT nowhere") == "42703"
    client.close()
    with pytest.raises(ConnectionLost, match="28P01"):
        Client(place, ROLE, database="shop", password="wrong")
    Client(place, ROLE, database="shop").close()  # others would wait after the failure


def test_statements_are_timed_and_counted(place: Place) -> None:
    hostile = Hostile(place, time.monotonic() + 0.3, 7)

    def work(_: int) -> None:
        with hostile.client(user=ROLE, database="shop") as client:
            hostile.ask(client, "SELECT 1")
            hostile.time_statement("a slow one", lambda: time.sleep(2.5) or "57014")  # type: ignore[func-returns-value]
            raise ConnectionLost("gone")

    hostile.together(2, work)
    assert hostile.outcomes["answered"] >= 2
    assert hostile.outcomes["57014"] >= 2
    assert hostile.outcomes["ConnectionLost gone"] >= 2
    assert 0.2 <= hostile.longest < 30
    assert hostile.slowest == "a slow one"
    assert hostile.number() != hostile.number()


def test_the_other_client_writes_down_each_request(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bystander, "OTHER", ROLE)
    monkeypatch.setattr(bystander, "DATABASE", "shop")
    monkeypatch.setattr(bystander, "PATIENCE", 0.3)
    Client(place, ROLE, database="shop").close()  # the first log-in makes the catalog
    other = bystander.Bystander(place, time.monotonic() + 0.6, 3)
    blocked = threading.Event()
    monkeypatch.setattr(other, "_post", lambda: blocked.wait(30))
    monkeypatch.setattr(other, "_health", lambda: "503")
    monkeypatch.setattr(other, "_small", lambda: "SELECT 2")
    other.run()
    blocked.set()
    assert other.found["select"].seconds
    assert {*other.found["select"].errors, *other.found["query"].errors} <= {"no answer"}
    assert set(other.found["fresh"].errors) <= {"no answer"}
    assert set(other.found["health"].errors) == {"503"}
    assert other.found["http"].errors == ["no answer"]
    assert other.found["http"].most >= 0.3, "it was waited for until the end, and for the patience"


@dataclass
class ServerProcess:
    """An endpoint of this process, as the trial wants it."""

    place: Place
    path: Path
    ended: str = ""


def _with_attacker(text: str) -> str:
    text = generous(text).replace("  analyst:\n", "  other:\n")
    return text.replace("  pure:\n", f'  attacker: {{password: "{PASSWORD}"}}\n  pure:\n')


def test_an_attack_is_tried(tmp_path: Path) -> None:
    with endpoint(_with_attacker) as found:
        tokens = {"attacker": "", "other": ""}
        served = ServerProcess(
            Place("127.0.0.1", found.port, 1, os.getpid(), tokens), tmp_path / "place"
        )
        served.place.write(served.path)
        base = processes.look(os.getpid()).memory
        chosen = trial.Chosen(seconds=1, patience=0, seed=4, ceiling=100_000 * MB)
        measured = trial.run_attack(ATTACKS["large-messages-outside"], served, base, BOUNDS, chosen)
    assert measured.statements >= 1
    assert measured.select.seconds
    assert {*measured.select.errors, *measured.fresh.errors} <= {"no answer"}
    assert measured.fresh.seconds
    assert all("refused" in error for error in measured.http.errors + measured.health.errors)
    assert measured.http.errors
    assert measured.peak >= measured.base > 0
    assert measured.after > 0
    assert measured.ended == ""


def test_an_interrupted_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = ["--out", str(tmp_path), "--resume"]
    run = Run(options().parse_args(given), tmp_path)
    run.measure(replace(HOLDS, peak=9_000 * MB))
    run.add(Ending("idle", 1.0, 2.0, 0))
    again = Run(options().parse_args(given), tmp_path)
    assert (again.measured, again.ended) == (run.measured, run.ended)
    assert again.breaches() == {"an attack": ["memory 9000 MB of 1812 MB"]}
    assert Run(options().parse_args([*given, "--seconds", "9"]), tmp_path).measured == []
    assert "is of another run" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_whole_script_runs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.attacks", "--only", "failed-log-ins", "endings", "hung-ledger",
         "--seconds", "1", "--patience", "1", "--out", tmp_path],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr
    made = json.loads((tmp_path / "attacks.json").read_text())
    assert (
        {"failed-log-ins"}
        <= {a["name"] for a in made["attacks"]}
        <= {"failed-log-ins", "hung-ledger"}
    )
    assert {*MIXES, "idle TLS clients"} <= {e["name"] for e in made["endings"]}
    assert done.returncode == bool(made["breaches"])


def test_it_lists_its_attacks() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.attacks", "--list"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert re.findall(r"^[\w-]+", done.stdout, re.MULTILINE) == list(ATTACKS)
