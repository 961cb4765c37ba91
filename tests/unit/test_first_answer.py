"""From a CSV file of one's own to a first private answer: five commands, as a person types them."""

from __future__ import annotations

import re
from pathlib import Path

import first_answer


def test_five_commands_lead_from_a_file_to_an_answer(tmp_path: Path) -> None:
    csv = tmp_path / "rides.csv"
    first_answer.make_rides(csv)
    typed = list(first_answer.type_all(csv))
    assert [t.code for t in typed] == [0] * 5, "\n".join(t.printed for t in typed)
    assert sum(t.seconds for t in typed) < 300
    drafted, checked, explained, asked, left = (t.printed for t in typed)
    assert "1. a rider: all rows with the same rider_id" in drafted
    assert drafted.count("noise, 19 times in 20 within") == 2
    assert "protects   rider (rides.rider_id)" in checked
    assert "How one rider is bounded" in explained
    assert "epsilon 0.5" in asked
    rows = re.findall(r"^(harbour|market|museum|station) +([\d,]+) ", asked, re.MULTILINE)
    counted = {station: int(number.replace(",", "")) for station, number in rows}
    exact = [sum(ride % 7 % 4 == i for ride in range(first_answer.RIDES)) for i in range(4)]
    assert [*counted] == ["harbour", "market", "museum", "station"]
    for number, true in zip(counted.values(), exact, strict=True):
        assert abs(number - true) < 0.2 * first_answer.RIDES
    assert "4.5" in left


def test_a_file_of_somebody_needs_no_answers(tmp_path: Path) -> None:
    csv = tmp_path / "logins.csv"
    csv.write_text("user,page\n" + "".join(f"{i % 90},p{i % 3}\n" for i in range(900)))
    typed = list(first_answer.type_all(csv, own=True))
    assert [t.code for t in typed] == [0] * 5, "\n".join(t.printed for t in typed)
    assert "protects   user (logins.user)" in typed[1].printed
