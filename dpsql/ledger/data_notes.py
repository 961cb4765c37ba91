"""Notices that the data changed while the owner's ``data_version`` did not.

The ledger notes what the data was when it was first served under a data version. Stored answers
under that version are about that data. When the data at hand is other data, the owner must know.

Claim: under ``stale: warn``, nothing that an analyst sees depends on these notes. A record of the
    ledger does not let a reader without the ledger's secret find out anything about the data, but
    whether it is the same as that of another record.
Assumes: notes are read by the owner's commands, the operator's log and the metrics for owners only;
    HMAC-SHA256 is a pseudorandom function.
Argument: a note has the digest of the data (``engines.facts_file``), under a key that is derived
    from the ledger's secret. Without the secret nobody can try out guesses of the data. Under
    ``stale: refuse`` nobody is answered, which is one bit about the data, as SECURITY.md says.
"""

from __future__ import annotations

import hmac
from enum import Enum

from dpsql.diagnostics.refusal import DataChanged
from dpsql.ledger.store import DataNote, Ledger
from dpsql.policy.model import Policy

_PURPOSE = b"dpsql: a note of the data\n"


class DataState(Enum):
    """The data at hand, compared with the data that was noted under the policy's data version."""

    NEW = "nothing was noted under this data version yet"
    SAME = "it is the data that was noted"
    CHANGED = "other data was noted under this data version"


def note_of(ledger: Ledger, version: str, content: str) -> DataNote:
    """A note of the data with the digest ``content``, as the ledger stores it."""
    keyed = hmac.digest(ledger.secret(), _PURPOSE + content.encode(), "sha256")
    return DataNote(version, keyed.hex())


def compare_with_note(ledger: Ledger, version: str, content: str) -> DataState:
    """The state of the data with the digest ``content``. Nothing is written."""
    noted = ledger.data_note(version)
    if noted is None:
        return DataState.NEW
    same = note_of(ledger, version, content).content == noted.content
    return DataState.SAME if same else DataState.CHANGED


def find_change(policy: Policy, ledger: Ledger, content: str) -> str | None:
    """What the owner is told if the data changed while its version did not. Nothing is written.

    Raises ``DataChanged`` if it changed and the policy refuses that.
    """
    version = policy.data_version
    if compare_with_note(ledger, version, content) is not DataState.CHANGED:
        return None
    if policy.stale == "refuse":
        raise DataChanged(policy.path.name, version)
    return (
        f'the data changed while data_version stayed "{version}": the database file is not the one that was'
        " first served under it, and stored answers are about the older data; run"
        f" `dpsql refresh {policy.path.name}`"
    )


def new_note(policy: Policy, ledger: Ledger, content: str) -> DataNote | None:
    """The note that is to be made of data that is served under its version for the first time."""
    if ledger.data_note(policy.data_version) is not None:
        return None
    return note_of(ledger, policy.data_version, content)
