"""The shapes of what a key of a policy holds: text, a number, a list, a record of further keys."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Text:
    """Any scalar, read as text; it must match ``pattern``, if given, as ``such_as`` does."""

    pattern: str = ""
    such_as: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of a few words."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ColumnType:
    """A type as a policy names it."""


@dataclass(frozen=True, slots=True)
class Flag:
    """``true`` or ``false``."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole number from ``low`` to ``high``."""

    low: int
    high: int = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Number:
    """A number between bounds; each bound itself is allowed (closed) or not (open)."""

    low: Fraction
    high: Fraction
    open_low: bool = False
    open_high: bool = False


@dataclass(frozen=True, slots=True)
class Name:
    """A name."""


@dataclass(frozen=True, slots=True)
class Names:
    """A name, or a list of different names; ``single``: one name may stand without a list."""

    single: bool = True
    words: tuple[str, ...] = ()
    """If given, only these names are allowed."""
    bare: str = ""
    """If given, this word alone stands for no names."""


@dataclass(frozen=True, slots=True)
class Values:
    """A list of scalars whose type is the column's; ``length`` of them, or at least one."""

    length: int | None = None


@dataclass(frozen=True, slots=True)
class Record:
    """A mapping with fixed keys. ``label`` is its name in messages, a format for outer names."""

    label: str
    keys: tuple[Key, ...]

    def key(self, name: str) -> Key | None:
        """The key of that name."""
        return next((key for key in self.keys if key.name == name), None)


@dataclass(frozen=True, slots=True)
class Listed:
    """A list of records."""

    item: Record


@dataclass(frozen=True, slots=True)
class Named:
    """A mapping from names of the owner's choice to records, or to text."""

    item: Record | Text
    word: str


Shape = (
    Text
    | Choice
    | ColumnType
    | Flag
    | Whole
    | Number
    | Name
    | Names
    | Values
    | Record
    | Listed
    | Named
)


@dataclass(frozen=True, slots=True)
class Key:
    """One key: its shape, its meaning, and its default."""

    name: str
    shape: Shape
    about: str
    default: str = ""
    required: bool = False
