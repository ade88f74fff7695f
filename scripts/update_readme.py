#!/usr/bin/env python3
"""Fills the generated parts of README.md and docs/support.md.

usage: scripts/update_readme.py examples|summary|table|ops [--check] [--build FOLDER]
  examples   README.md: the sources of examples/, and what they print on the CPU
  table      docs/support.md: the support table, from the results of `make test-devices`
  ops        docs/support.md: the table of ops, from the runs kept in docs/measured
  summary    README.md: the short table, from the two tables of docs/support.md; table and ops refresh it too
--check changes nothing. It fails if a part is stale, if the support table claims more than the results show, or if an op
was never measured.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

import ops_table
import support_table

ROOT = pathlib.Path(__file__).resolve().parent.parent
README, SUPPORT = ROOT / "README.md", ROOT / "docs" / "support.md"
PAGES = {"examples": README, "summary": README, "table": SUPPORT, "ops": SUPPORT}
TABLE = ("<!-- begin support table -->", "<!-- end support table -->")
OPS = ("<!-- begin ops table -->", "<!-- end ops table -->")
SUMMARY = ("<!-- begin summary -->", "<!-- end summary -->")
EXAMPLES = {"vector_add": True, "tensors": True, "generate": False}  # whether the README shows its output


def between(page, text, markers, content):
    """Returns the text with everything between the two markers replaced."""
    begin, end = markers
    pattern = re.compile(rf"({re.escape(begin)}\n).*?({re.escape(end)})", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"{page.name} has no marker {begin}")
    return pattern.sub(lambda match: match.group(1) + content + match.group(2), text)


def inside(text, markers):
    """Returns the text between the two markers."""
    return text.split(markers[0] + "\n")[1].split(markers[1])[0]


def example(name, build):
    """Returns an example's source without its opening comment, and its output on the CPU if the README shows it."""
    source = (ROOT / "examples" / f"{name}.cpp").read_text(encoding="utf-8")
    block = "```cpp\n" + re.sub(r"\A(//[^\n]*\n)+", "", source).strip() + "\n```\n"
    if not EXAMPLES[name]:
        return block
    output = subprocess.run([build / f"example_{name}"], check=True, capture_output=True, text=True,
                            env={**os.environ, "PRISM_DEVICE": "cpu"}).stdout.strip()
    return f"{block}prints\n```text\n{output}\n```\n"


def rows(table):
    """Returns the cells of a Markdown table without its two heading lines."""
    return [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in table.strip().splitlines()[2:]]


def ops_total(table, label):
    """Returns the sum of a backend's column in the table of ops, such as "GPU 88/89"; a dash if it was not run."""
    header = [cell.strip() for cell in table.strip().splitlines()[0].strip().strip("|").split("|")]
    if label not in header:
        return "-"
    cells = [row[header.index(label)].split() for row in rows(table)]
    counts = [cell[1].split("/") for cell in cells if len(cell) == 2]
    rung = next((cell[0] for cell in cells if len(cell) == 2), "-")
    total = sum(int(re.search(r"/(\d+)", row[1])[1]) for row in rows(table))
    return f"{rung} {sum(int(right) for right, _ in counts)}/{total}" if counts else "-"


def summary():
    """Returns the README's table, one row for each backend, made from the tables of docs/support.md."""
    text = SUPPORT.read_text(encoding="utf-8")
    lines = ["| backend | kernels right on hardware | on software devices and driver doubles | tensor ops right |",
             "|---|---|---|---|"]
    for backend, _, _, _, double, software, processors in rows(inside(text, TABLE)):
        stand_ins = [cell for cell in (software, "double of the driver" if double != "-" else "-") if cell != "-"]
        total = ops_total(inside(text, OPS), backend)
        lines.append(f"| {backend} | {processors} | {', '.join(stand_ins) or '-'} | {total} |")
    return "\n".join(lines) + "\n"


def fill(part, text, build):
    """Returns the page's text with this part regenerated."""
    page = PAGES[part]
    if part == "examples":
        for name in EXAMPLES:
            markers = (f"<!-- begin example: examples/{name}.cpp -->", f"<!-- end example: {name} -->")
            text = between(page, text, markers, example(name, build))
        return text
    if part == "table":
        return between(page, text, TABLE, support_table.make_table(ROOT, build))
    if part == "ops":
        return between(page, text, OPS, ops_table.make_table())
    return between(page, text, SUMMARY, summary())


def stale(part, old, new):
    """Returns complaints about a part that is out of date; none if the difference is allowed."""
    if part == "table":
        complaints = support_table.overclaims(inside(old, TABLE), inside(new, TABLE))
        print(f"support table: {len(complaints)} cells say more than this run shows")
        return complaints
    page = PAGES[part].relative_to(ROOT)
    return [f"{page}: {part} is stale; run scripts/update_readme.py {part}. It would be:", new]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=sorted(PAGES))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    arguments = parser.parse_args()
    part, page, build = arguments.part, PAGES[arguments.part], arguments.build.resolve()
    complaints = ops_table.missing_ops(build) if part == "ops" and arguments.check else []
    old = page.read_text(encoding="utf-8")
    new = fill(part, old, build)
    if arguments.check:
        complaints += stale(part, old, new) if old != new else []
        print("\n".join(complaints))
        return 1 if complaints else 0
    page.write_text(new, encoding="utf-8")
    if page == SUPPORT:
        README.write_text(fill("summary", README.read_text(encoding="utf-8"), build), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
