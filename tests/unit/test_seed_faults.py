"""Faults that are seeded into the sources: one change each, in a line that both checkouts have once."""

from __future__ import annotations

from pathlib import Path

import seed_faults


def write(root: Path, text: str) -> Path:
    file = root / "src" / "elbowroom" / "module.py"
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    return root


def test_a_comparison_a_sign_a_bound_a_connective_and_a_number_are_changed() -> None:
    text = "a = min(b, 3)\nif a < b and b:\n    c = a + b\n"
    assert {fault.becomes for fault in seed_faults.faults(text)} == {
        "a = max(b, 3)",
        "a = min(b, 7)",
        "if a <= b and b:",
        "if a < b or b:",
        "c = a - b",
    }


def test_text_is_not_changed() -> None:
    assert list(seed_faults.faults('"""1 < 2 and 3"""\na = "1 + 1"\n')) == []


def test_only_lines_that_both_checkouts_have_once_are_drawn(tmp_path: Path) -> None:
    old = write(tmp_path / "old", "a = b < c\nd = b + 1\nd = b + 1\n")
    new = write(tmp_path / "new", "e = b < c\nd = b + 1\nf = b > c\n")
    assert seed_faults.draw(old, new, 40, 1) == []
    (old / "src" / "elbowroom" / "other.py").write_text("f = b > c\n", encoding="utf-8")
    assert seed_faults.draw(old, new, 40, 1) == [seed_faults.Fault("f = b > c", "f = b >= c")]
