#!/usr/bin/env python3
"""Fails when the code reads an environment variable that docs/environment.md does not list."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Names passed to getenv, and every PRISM_ name in a string, which may be passed to a wrapper of getenv.
READ = re.compile(r'getenv\(\s*"([A-Z][A-Z0-9_]*)"|"(PRISM_[A-Z0-9_]*[A-Z0-9])"')


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    listed = set(re.findall(r"[A-Z][A-Z0-9_]{3,}", (root / "docs" / "environment.md").read_text(encoding="utf-8")))
    complaints = []
    names = set()
    for folder in ("src", "tests", "bench", "examples"):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".h", ".cpp"):
                continue
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for match in READ.finditer(line):
                    name = match.group(1) or match.group(2)
                    names.add(name)
                    if name not in listed:
                        where = path.relative_to(root).as_posix()
                        complaints.append(f"{where}:{number}: {name} is not in docs/environment.md")
    print("\n".join(complaints + [f"environment: {len(names)} variables read, {len(complaints)} uses not documented"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
