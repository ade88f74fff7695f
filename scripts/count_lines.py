#!/usr/bin/env python3
"""Counts the lines of code of every backend and printer, fails if one exceeds its limit, and updates the table in docs/layout.md.

usage: scripts/count_lines.py [--check] [FOLDER]
A line of code is neither blank nor a comment; tests are not counted. --check changes nothing and fails if the table is stale.
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- begin lines: scripts/count_lines.py -->", "<!-- end lines -->"

BACKEND, PRINTER, SPIRV = 600, 300, 2000
# Older code above the limits has its present size as the limit, so that it does not grow.
BACKENDS = {"cpu": BACKEND, "cuda": 1402, "gpu_runtime": 777, "hip": BACKEND, "metal": BACKEND, "null": BACKEND, "opencl": 1398,
            "sycl": BACKEND, "vulkan": 2320, "webgpu": BACKEND}
PRINTERS = {"cuda": PRINTER, "cuda_fragments": PRINTER, "cuda_prelude": PRINTER, "hip": PRINTER, "hip_fragments": PRINTER,
            "metal": PRINTER, "metal_fragments": PRINTER, "opencl": PRINTER, "opencl_subgroups": PRINTER, "spirv": SPIRV, "sycl": PRINTER, "wgsl": PRINTER}
NOTES = {"gpu_runtime": "shared by cuda and hip", "cuda_fragments": "matrix instructions", "hip_fragments": "matrix instructions",
         "metal_fragments": "matrix instructions", "opencl_subgroups": "operations of subgroups",
         "cuda_prelude": "functions that kernels call"}


def code_lines(path):
    lines = (line.strip() for line in path.read_text(encoding="utf-8").splitlines())
    return sum(1 for line in lines if line and not line.startswith("//"))


def sources(folder):
    return [path for path in sorted(folder.rglob("*"))
            if path.suffix in (".h", ".cpp", ".mm") and not path.stem.endswith("_test")]


def printer_of(path):
    """The printer with the longest name that prefixes the file's name; None for shared files."""
    fitting = [name for name in PRINTERS if path.stem == name or path.stem.startswith(name + "_")]
    return max(fitting, key=len, default=None)


def count(root):
    """Rows (kind, name, lines, declarations, limit)."""
    rows = []
    for name, limit in BACKENDS.items():
        folder = root / "src" / "backends" / name
        if not folder.is_dir():
            continue
        files = sources(folder)
        declared = sum(code_lines(path) for path in files if path.stem.endswith("_abi"))
        rows.append(("backend", name, sum(map(code_lines, files)) - declared, declared, limit))
    lines = {name: 0 for name in PRINTERS}
    for path in sources(root / "src" / "print"):
        if printer := printer_of(path):
            lines[printer] += code_lines(path)
    return rows + [("printer", name, lines[name], 0, limit) for name, limit in PRINTERS.items()]


def table(rows):
    text = "| | lines of code | limit | |\n|---|--:|--:|---|\n"
    for kind, name, lines, declared, limit in rows:
        notes = [NOTES[name]] if name in NOTES else []
        if declared:
            notes.append(f"and {declared} of declarations of the driver's C interface (`{name}_abi.h`)")
        text += f"| {kind} `{name}` | {lines:,} | {limit:,} | {'; '.join(notes)} |\n"
    return text


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--check"]
    check = "--check" in sys.argv[1:]
    root = pathlib.Path(arguments[0]).resolve() if arguments else ROOT
    rows = count(root)
    complaints = [f"{kind} {name}: {lines} lines of code, its limit is {limit}; move shared code to src/runtime"
                  for kind, name, lines, _, limit in rows if lines > limit]
    folders = {path.name for path in (root / "src" / "backends").iterdir() if path.is_dir()}
    complaints += [f"backend {name}: no limit in scripts/count_lines.py" for name in sorted(folders - BACKENDS.keys())]
    page = root / "docs" / "layout.md"
    old = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"({re.escape(BEGIN)}\n).*?({re.escape(END)})", re.DOTALL)
    if not pattern.search(old):
        sys.exit(f"docs/layout.md has no marker {BEGIN}")
    new = pattern.sub(lambda match: match.group(1) + table(rows) + match.group(2), old)
    if check and new != old:
        complaints.append("docs/layout.md: the table of lines is stale; run scripts/count_lines.py")
    elif new != old:
        page.write_text(new, encoding="utf-8")
    print("\n".join(complaints + [f"lines: {len(rows)} backends and printers, {len(complaints)} complaints"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
