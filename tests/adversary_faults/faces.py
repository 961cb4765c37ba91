"""Faults of the faces: who comes in, what they are told, and when."""

from __future__ import annotations

from tests.adversary_faults.fault import Edit, Fault

FAULTS = (
    Fault(
        "any password is right",
        "faces",
        (
            Edit(
                "serve/pgwire/scram.py",
                "        if len(raw) != len(mask) or not right:",
                "        if len(raw) != len(mask) or not key:",
            ),
        ),
        "Whoever knows a name logs in.",
    ),
    Fault(
        "a proof may be longer",
        "faces",
        (
            Edit(
                "serve/pgwire/scram.py",
                "        if len(raw) != len(mask) or not right:",
                "        if not right:",
            ),
        ),
        "A proof of another length than a proof has is accepted.",
        "issue 15: length of the proof",
    ),
    Fault(
        "channel binding may be talked down",
        "faces",
        (
            Edit(
                "serve/pgwire/scram.py",
                '        if flag == "y" and self._binding is not None:',
                '        if flag == "y" and self._binding is None and not flag:',
            ),
        ),
        "Somebody in the middle of a TLS connection strikes out the offer of channel binding unnoticed.",
        "issue 12: the check against a downgrade of channel binding",
    ),
    Fault(
        "guesses are not slowed down",
        "faces",
        (
            Edit(
                "serve/throttle.py",
                "        return max(table.delay(key, now) for table, key in self._counted)",
                "        return 0.0 * max(table.delay(key, now) for table, key in self._counted)",
            ),
        ),
        "Passwords are guessed as fast as the machine computes.",
        "issue 13: log-ins without a throttle",
    ),
    Fault(
        "names that do not exist have other salts",
        "faces",
        (
            Edit(
                "serve/salts.py",
                '        return hashlib.shake_256(self._digest(f"salt {name}")).digest(length)',
                "        return hashlib.shake_256(os.urandom(8)).digest(length)",
            ),
            Edit("serve/salts.py", "import math\n", "import math\nimport os\n"),
        ),
        "Asking twice tells whether a name exists.",
        "stop 24: salts told which names exist",
    ),
    Fault(
        "incidents quote the engine",
        "faces",
        (
            Edit(
                "engines/incident.py",
                "    return error_type(incident)",
                '    return error_type(f"{incident}: {error}")',
            ),
        ),
        "An engine's message quotes the value that it failed for.",
        "errors with engine words",
    ),
    Fault(
        "everybody's questions are in the ledger",
        "faces",
        (
            Edit(
                "service/own_tables.py",
                '        elif "role" in content and (everything or content["role"] == role):',
                '        elif "role" in content:',
            ),
        ),
        "dpsql.ledger shows a role what others asked.",
    ),
    Fault(
        "a role may ask all tables",
        "faces",
        (
            Edit(
                "service/service.py",
                "        visible = visible if tables is None else tables\n",
                "        visible = visible if tables is None else visible | tables\n",
            ),
        ),
        "Tables that the policy keeps from a role are answered to it.",
    ),
    Fault(
        "any role may be taken",
        "faces",
        (
            Edit(
                "serve/backend.py",
                "        if self._taken is not None and self._taken not in {*granted, user.role}:",
                "        if self._taken is not None and self._taken not in {*granted, *world.service.policy.roles}:",
            ),
        ),
        "SET ROLE gives the budget and the tables of every other role.",
    ),
    Fault(
        "a role that is taken pays alone",
        "faces",
        (
            Edit(
                "service/session.py",
                '        return (*found, *(a for a in service if a.holder in ("role", "session")))',
                '        return (*found, *(a for a in service if a.holder in ("role ", "session ")))',
            ),
        ),
        "Whoever logs in and takes another role spends nothing of the own one's budget.",
    ),
    Fault(
        "answers do not wait",
        "faces",
        (
            Edit(
                "service/pace.py",
                "                self._sleep(max(0.0, math.ceil(took / step) * step - took))",
                "                self._sleep(max(0.0, math.floor(took / step) * step - took))",
            ),
        ),
        "Under fixed latency the time of an answer tells how long the engine worked.",
        "time (SECURITY.md)",
    ),
    Fault(
        "the ledger tells when the engine ended",
        "faces",
        (
            Edit(
                "pipeline.py",
                "    if payer.later is None:\n        payer.wait()\n        act()",
                "    if payer.later is None:\n        act()\n        payer.wait()",
            ),
        ),
        "Under latency another session sees in dpsql.ledger when the engine was done.",
        "stop 25: under latency, dpsql.ledger told another session",
    ),
    Fault(
        "a wrong token is right",
        "faces",
        (
            Edit(
                "serve/policy_snapshot.py",
                "        return self._tokens.get(hash_token(token))",
                "        return self._tokens.get(hash_token(token)) or next((u for t, u in self._tokens.items() if token and t.startswith(hash_token(token)[:1])), None)",
            ),
        ),
        "One token of sixteen opens HTTP to whoever makes one up.",
    ),
)
