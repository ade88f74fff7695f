#!/usr/bin/env python3
"""Writes src/llm/tokenizer/unicode_tables.inc from Python's Unicode tables; run by hand to update to a newer Unicode version."""
import pathlib
import sys
import unicodedata

TARGET = pathlib.Path(__file__).resolve().parent.parent / "src/llm/tokenizer/unicode_tables.inc"
ALL = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]


def ranges(wanted):
    """First and last code of each run of characters for which wanted(character) holds."""
    runs = []
    for character in ALL:
        if not wanted(character):
            continue
        code = ord(character)
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return runs


def lower_runs():
    """Runs of characters with the same distance to their lower case: first, last, step, distance."""
    pairs = []
    for character in ALL:
        lower = character.lower()
        # The one character whose lower case is two characters loses its mark; accents are stripped anyway.
        if lower != character:
            pairs.append((ord(character), ord(lower[0]) - ord(character)))
    runs = []
    for code, distance in pairs:
        if runs and runs[-1][3] == distance:
            first, last, step, _ = runs[-1]
            if code - last == step or (first == last and code - last <= 2):
                runs[-1] = [first, code, code - last, distance]
                continue
        runs.append([code, code, 1, distance])
    return runs


def bases():
    """Characters that decompose, and their decomposition without non-spacing marks; Hangul is computed instead."""
    found = []
    for character in ALL:
        if 0xAC00 <= ord(character) <= 0xD7A3:
            continue
        parts = unicodedata.normalize("NFD", character)
        if parts == character:
            continue
        rest = [ord(part) for part in parts if unicodedata.category(part) != "Mn"]
        found.append([ord(character)] + (rest + [0, 0, 0])[:3])
        assert len(rest) <= 3
    return found


def table(kind, name, rows):
    """One array as C++ text, filled to 120 columns."""
    lines, line = [], " "
    for row in rows:
        text = " {" + ",".join(str(value) if value < 0 else f"{value:#x}" for value in row) + "},"
        if len(line) + len(text) > 120:
            lines.append(line)
            line = " "
        line += text
    lines.append(line)
    return f"constexpr {kind} {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


def main():
    category = unicodedata.category
    TARGET.write_text(
        f"// Made by scripts/make_unicode_tables.py from Unicode {unicodedata.unidata_version}.\n"
        + table("CodeRange", "kPunctuation", ranges(lambda c: category(c)[0] == "P"))
        + table("CodeRange", "kNonSpacingMarks", ranges(lambda c: category(c) == "Mn"))
        + table("CodeRange", "kControls", ranges(lambda c: category(c) in ("Cc", "Cf", "Co")))
        + table("LowerRun", "kLowerRuns", lower_runs())
        + table("Base", "kBases", bases()),
        encoding="utf-8")


if __name__ == "__main__":
    main()
