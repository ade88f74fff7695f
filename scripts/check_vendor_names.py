#!/usr/bin/env python3
"""Fails if code outside a backend or a printer names a vendor or its interface. Comments may name them."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = ["cuda", "nvidia", "nvrtc", "cublas", "hip", "hiprtc", "rocm", "amd", "metal", "vulkan", "moltenvk",
         "sycl", "oneapi", "intel", "opencl", "pocl", "webgpu", "wgpu", "wgsl", "dawn", "mesa", "llvmpipe"]
# Whole words and parts of names: cudaMalloc, make_cuda, WebGpu, VULKAN_ICD; but not "ship".
NAMES = re.compile("|".join(
    rf"(?<![A-Za-z]){word}(?![a-z])|{word.capitalize()}(?![a-z])|(?<![A-Za-z]){word.upper()}(?![A-Z])"
    for word in WORDS) + r"|WebGpu|OpenCL|OneApi|\b(?:vk|cl|cu)[A-Z][a-z]\w+\(|\b(?:VK|CL|CU)_[A-Z]")
# Backends and printers own the names; the program shows them to users.
OWNERS = ("src/backends/", "src/print/", "src/cli/")
# Each of these files contains one list of names.
LISTS = {
    "src/lower/languages.cpp",    # features that the printers' languages lack on every device
    "include/prism/device.h",    # BackendPreference
    "src/runtime/discovery/selection.cpp",  # the spellings of a device and their aliases
}
# Dialect-specific text in a kernel, next to a portable version.
RAW = re.compile(r'\braw\(\s*"[a-z]+"')


def without_comments(text):
    """The text with comments blanked; line numbers stay the same."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)

    def blank(match):
        token = match.group(0)
        return re.sub(r"[^\n]", " ", token) if token.startswith("/") else token
    return pattern.sub(blank, text)


def main():
    root = pathlib.Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    complaints = []
    for path in sorted(p for top in ("src", "include") for pattern in ("*.h", "*.cpp") for p in (root / top).rglob(pattern)):
        relative = path.relative_to(root).as_posix()
        if relative.startswith(OWNERS) or relative in LISTS or relative.endswith("_test.cpp"):
            continue
        text = without_comments(path.read_text(encoding="utf-8"))
        text = RAW.sub(lambda raw: "raw(" + "\n" * raw.group(0).count("\n"), text)
        for number, line in enumerate(text.splitlines(), 1):
            found = NAMES.search(line)
            if found:
                complaints.append(f"{relative}:{number}: \"{found.group(0)}\" belongs in a backend or a printer")
    print("\n".join(complaints + [f"vendor names: {len(complaints)} outside their backend or printer"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
