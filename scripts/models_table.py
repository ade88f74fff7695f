#!/usr/bin/env python3
"""Writes the table of architectures in docs/models.md from the list in the sources.

usage: scripts/models_table.py [--check]
--check changes nothing and fails if the table is stale.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "src" / "llm" / "architectures" / "architecture_list.inc"
PAGE = ROOT / "docs" / "models.md"
BEGIN, END = "<!-- begin architectures: scripts/models_table.py -->\n", "<!-- end architectures -->"
ENTRY = re.compile(r'PRISM_ARCHITECTURE\(\s*"([^"]+)",\s*\w+,\s*"([^"]+)"\)')


def main():
    entries = sorted(ENTRY.findall(LIST.read_text(encoding="utf-8")))
    table = "| in files | models |\n|---|---|\n" + "".join(f"| `{name}` | {models} |\n" for name, models in entries)
    page = PAGE.read_text(encoding="utf-8")
    before, rest = page.split(BEGIN)
    new = before + BEGIN + table + END + rest.split(END)[1]
    if "--check" in sys.argv[1:]:
        if new != page:
            sys.exit("docs/models.md: the table of architectures is stale; run scripts/models_table.py")
        print(f"docs/models.md lists {len(entries)} architectures")
        return
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
