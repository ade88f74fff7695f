#!/usr/bin/env python3
"""Fills the generated parts of README.md: the example with its output, the support table, the table of ops.

usage: scripts/update_readme.py example|generate|table|ops [--check] [--build FOLDER]
--check changes nothing and fails where the example or the table of ops is stale, where the support table says more than the
results bear out, or where an op was never measured. `table` needs the results of `make test-devices`, `ops` the kept runs
of docs/measured.
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
MARKERS = {"example": ("<!-- begin example: examples/vector_add.cpp -->", "<!-- end example -->"),
           "generate": ("<!-- begin example: examples/generate.cpp -->", "<!-- end example: generate -->"),
           "ops": ("<!-- begin ops table -->", "<!-- end ops table -->"),
           "table": ("<!-- begin support table -->", "<!-- end support table -->")}


def between(text, begin, end, content):
    """Text with what stands between the two markers replaced."""
    pattern = re.compile(rf"({re.escape(begin)}\n).*?({re.escape(end)})", re.DOTALL)
    if not pattern.search(text):
        sys.exit(f"README.md has no marker {begin}")
    return pattern.sub(lambda match: match.group(1) + content + match.group(2), text)


def code_of(name):
    """An example's source below its opening comment."""
    source = (ROOT / "examples" / name).read_text(encoding="utf-8")
    return re.sub(r"\A(//[^\n]*\n)+", "", source).strip()


def example(build):
    """The example's source below its opening comment, and what it prints on the CPU."""
    code = code_of("vector_add.cpp")
    environment = {**os.environ, "PRISM_DEVICE": "cpu"}
    output = subprocess.run([build / "example_vector_add"], check=True, capture_output=True, text=True,
                            env=environment).stdout.strip()
    return f"```cpp\n{code}\n```\nprints\n```\n{output}\n```\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("part", choices=sorted(MARKERS))
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    makers = {"example": lambda: example(build), "generate": lambda: f"```cpp\n{code_of('generate.cpp')}\n```\n",
              "table": lambda: support_table.make_table(ROOT, build),
              "ops": ops_table.make_table}
    content = makers[arguments.part]()
    missing = ops_table.missing_ops(build) if arguments.part == "ops" and arguments.check else []
    if missing:
        print("\n".join(missing))
        return 1
    readme = ROOT / "README.md"
    old = readme.read_text(encoding="utf-8")
    new = between(old, *MARKERS[arguments.part], content)
    if old == new:
        return 0
    if arguments.check and arguments.part == "table":
        begin, end = MARKERS["table"]
        written = old.split(begin + "\n")[1].split(end)[0]
        complaints = support_table.overclaims(written, content)
        print("\n".join(complaints + [f"support table: {len(complaints)} cells say more than this run shows"]))
        return 1 if complaints else 0
    if arguments.check:
        print(f"README.md: the {arguments.part} is stale; run scripts/update_readme.py {arguments.part}. It would be:")
        print(content)
        return 1
    readme.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
