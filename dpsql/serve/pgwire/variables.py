"""Session variables, which clients set and read back.

dpsql.notices turns notices off, and statement_timeout limits the time of statements. No
other variable changes how dpsql answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from dpsql.serve.pgwire.errors import BAD_VALUE, NO_SETTING, WireError

SERVER_VERSION = "15.0"

DEFAULTS: Mapping[str, str] = MappingProxyType({
    "application_name": "",
    "bytea_output": "hex",
    "client_encoding": "UTF8",
    "client_min_messages": "notice",
    "datestyle": "ISO, MDY",
    "default_tablespace": "",
    "default_table_access_method": "heap",
    "default_transaction_isolation": "read committed",
    "default_transaction_read_only": "on",
    "default_transaction_deferrable": "off",
    "dpsql.notices": "on",
    "extra_float_digits": "1",
    "idle_in_transaction_session_timeout": "0",
    "in_hot_standby": "off",
    "integer_datetimes": "on",
    "intervalstyle": "postgres",
    "is_superuser": "off",
    "jit": "off",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "lc_numeric": "C",
    "lc_time": "C",
    "lock_timeout": "0",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "row_security": "on",
    "search_path": '"$user", public',
    "server_encoding": "UTF8",
    "server_version": SERVER_VERSION,
    "server_version_num": "150000",
    "session_authorization": "",
    "standard_conforming_strings": "on",
    "statement_timeout": "0",
    "synchronize_seqscans": "on",
    "timezone": "UTC",
    "transaction_deferrable": "off",
    "transaction_isolation": "read committed",
    "transaction_read_only": "on",
    "wal_level": "replica",
    "xmloption": "content",
})  # fmt: skip

REPORTED: Mapping[str, str] = MappingProxyType({
    "application_name": "application_name",
    "client_encoding": "client_encoding",
    "datestyle": "DateStyle",
    "default_transaction_read_only": "default_transaction_read_only",
    "in_hot_standby": "in_hot_standby",
    "integer_datetimes": "integer_datetimes",
    "intervalstyle": "IntervalStyle",
    "is_superuser": "is_superuser",
    "server_encoding": "server_encoding",
    "server_version": "server_version",
    "session_authorization": "session_authorization",
    "standard_conforming_strings": "standard_conforming_strings",
    "timezone": "TimeZone",
})  # fmt: skip
"""The variables whose changes clients are told, with PostgreSQL's spelling."""

_FIXED = frozenset({
    "in_hot_standby", "integer_datetimes", "is_superuser", "lc_collate", "lc_ctype",
    "max_identifier_length", "max_index_keys", "role", "server_encoding", "server_version",
    "server_version_num", "session_authorization", "wal_level",
})  # fmt: skip
_ONLY: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "client_encoding": ("utf8", "utf-8", "unicode"),
    "standard_conforming_strings": ("on", "true", "1", "yes"),
    "datestyle": ("iso", "iso, mdy", "iso, dmy", "iso, ymd", "mdy", "ymd", "dmy"),
    "intervalstyle": ("postgres",),
    "timezone": ("utc", "gmt", "etc/utc", "z", "0", "+00:00", "+00"),
})  # fmt: skip
"""The allowed values of variables that would otherwise change the form of answers.

Any other time zone is replaced by UTC.
"""
_SWITCHES = {"on": "on", "true": "on", "1": "on", "yes": "on"}


LONGEST_ONE, LONGEST = 10_000, 20_000
"""The most characters of one setting, and of all values that differ from their defaults."""


class Variables:
    """The values of one session.

    A change makes a new mapping, and saved states refer to the old one. So saving the values at
    each BEGIN and SAVEPOINT copies nothing.
    """

    def __init__(self, role: str) -> None:
        """All variables have their defaults at first."""
        self._start: Mapping[str, str] = {**DEFAULTS, "session_authorization": role, "role": "none"}
        self._values: Mapping[str, str] = self._start

    def set(self, name: str, value: str | None) -> None:
        """Change one variable. Unknown names are kept too, so that clients can read them back."""
        if value is None:
            self.reset(name)
            return
        name = name.lower()
        if name in _FIXED:
            raise WireError("55P02", f'parameter "{name}" cannot be changed')
        if name not in DEFAULTS and "." not in name and not name.isidentifier():
            raise WireError(NO_SETTING, f'unrecognized configuration parameter "{name}"')
        own = sum(len(v) for n, v in self._values.items() if n != name and v != DEFAULTS.get(n))
        one = len(name) + len(value)
        if len(self._values) > 1000 or one > LONGEST_ONE or own + one > LONGEST:
            raise WireError(BAD_VALUE, "too many or too long settings")
        checked = self._checked(name, value)
        changed = {name: checked}
        if name.startswith("default_transaction_"):
            changed[name.removeprefix("default_")] = checked
        self._values = {**self._values, **changed}

    def _checked(self, name: str, value: str) -> str:
        if name == "dpsql.notices":
            return _SWITCHES.get(value.lower(), "off")
        allowed = _ONLY.get(name)
        if allowed is None:
            return value
        if name == "timezone":
            return value if value.lower() in allowed else "UTC"
        if value.lower().replace("'", "") not in allowed:
            raise WireError(BAD_VALUE, f'invalid value for parameter "{name}": "{value[:60]}"')
        return self._values[name] if name != "application_name" else value

    def become(self, role: str | None) -> None:
        """Note the role that was taken; None for the one that logged in."""
        self._values = {**self._values, "role": role or "none"}

    def get(self, name: str) -> str:
        """The value of one variable."""
        found = self._values.get(name.lower())
        if found is None:
            raise WireError(NO_SETTING, f'unrecognized configuration parameter "{name}"')
        return found

    def reset(self, name: str | None) -> None:
        """Set one variable, or all for None, back to the value at the beginning of the session."""
        if name is None:
            self._values = {**self._start, "role": self._values["role"]}
        elif name.lower() in self._start:
            self._values = {**self._values, name.lower(): self._start[name.lower()]}
        else:
            self._values = {n: v for n, v in self._values.items() if n != name.lower()}

    def begin(self, name: str, value: str) -> None:
        """Set a variable that the client chose when it connected. RESET goes back to this value."""
        self.set(name, value)
        self._start = {**self._start, name.lower(): self._values[name.lower()]}

    def all(self) -> Mapping[str, str]:
        """All names with their values. The mapping never changes."""
        return self._values

    def restore(self, values: Mapping[str, str]) -> None:
        """Go back to saved values."""
        self._values = values

    def reported(self) -> dict[str, str]:
        """The values that clients follow, under PostgreSQL's spelling of their names."""
        return {spelled: self._values[name] for name, spelled in REPORTED.items()}

    @property
    def notices(self) -> bool:
        """Whether answers come with a notice."""
        return self._values["dpsql.notices"] == "on"

    @property
    def timeout(self) -> float:
        """The statement timeout in seconds; 0 for none."""
        text = self._values["statement_timeout"].strip().lower()
        number = text.rstrip("msindhu ")
        factor = {"": 0.001, "ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0}
        unit = text[len(number) :].strip()
        if not number.isdecimal() or unit not in factor or len(number) > 12:
            return 0.0
        return int(number) * factor[unit]
