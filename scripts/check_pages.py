#!/usr/bin/env python3
"""Fails if a Markdown page links to a missing file, names one in backticks, or has long lines of prose.

usage: scripts/check_pages.py [FOLDER]
A line of prose has at most 120 characters, or is one sentence. Code and tables may be longer.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("src", "include", "tests", "examples", "bench", "docs", "scripts", "cmake", "fuzz")
LINK = re.compile(r"\]\(([^)#:\s]+)(#[^)\s]*)?\)")
# A path of the tree in backticks: it begins with one of the folders and contains no pattern or placeholder.
NAMED = re.compile(r"`((?:%s)/[\w./-]*)`" % "|".join(FOLDERS))
SENTENCE = re.compile(r"[.!?:;]\)? +[A-Z`(*]")


def prose(text):
    """Returns (number, line) of the lines outside of code blocks."""
    is_code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code:
            yield number, line


def complaints_of(page, root):
    found = []
    for number, line in prose(page.read_text(encoding="utf-8")):
        place = f"{page.relative_to(root)}:{number}"
        is_indented_code = line.startswith("    ") and not re.match(r" +([-*]|\d+\.) ", line)
        if not is_indented_code:
            found += [f"{place}: links to {target}, which does not exist" for target, _ in LINK.findall(line)
                      if not (page.parent / target).exists()]
        found += [f"{place}: names {name}, which does not exist" for name in NAMED.findall(line)
                  if not (root / name).exists()]
        is_table = line.startswith("|") or line.lstrip().startswith("|")
        if len(line) > 120 and not is_table and not is_indented_code and SENTENCE.search(line):
            found.append(f"{place}: {len(line)} characters; at most 120, or one sentence on a line")
    return found


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    pages = [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]
    pages = [page for page in pages if page.exists()]
    complaints = [line for page in pages for line in complaints_of(page, root)]
    print("\n".join(complaints + [f"pages: {len(pages)} pages, {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
