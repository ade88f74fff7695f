#!/usr/bin/env python3
"""Makes a program of the C++ blocks of a page, and compares what it prints with the text blocks that follow them.

usage: scripts/docs_snippets.py program PAGE            prints the program: all ```cpp blocks in order, in one main()
       scripts/docs_snippets.py check PAGE PROGRAM      fails where the program prints something else than the page says
       scripts/docs_snippets.py update PAGE PROGRAM     writes what it prints into the page
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# A block of C++ and, after at most one line such as "prints", the block of text with its output.
BLOCK = re.compile(r"^```cpp\n(?P<code>.*?)^```\n(?:(?P<between>(?:[^\n`]*\n)?)^```text\n(?P<text>.*?)^```\n)?",
                   re.DOTALL | re.MULTILINE)
MARK = "\x1e"  # printed after each block


def program(page):
    """Returns the page's program. Compile errors name lines of the page."""
    source = page.read_text(encoding="utf-8")
    includes, body = ["#include <iostream>"], []
    for block in BLOCK.finditer(source):
        line = source.count("\n", 0, block.start("code")) + 1
        lines = block["code"].splitlines()
        includes += [text for text in lines if text.startswith("#include")]
        body.append(f'#line {line} "{page.name}"')
        body += ["" if text.startswith("#include") else text for text in lines]
        body.append('std::cout << "\\x1e";')
    main = "\n".join(body)
    return "\n".join(includes) + f"\nint main() {{\n{main}\n}}\n"


def outputs(binary):
    """Returns the program's output on the CPU, block by block."""
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run([binary.resolve()], capture_output=True, text=True, cwd=folder,
                             env={**os.environ, "PRISM_DEVICE": "cpu"}, check=False)
    if run.returncode != 0:
        sys.exit(f"{binary.name} ended with status {run.returncode}: {run.stdout}{run.stderr}")
    return run.stdout.split(MARK)[:-1]


def trimmed(text):
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("program", "check", "update"):
        sys.exit(__doc__)
    page = pathlib.Path(sys.argv[2])
    if sys.argv[1] == "program":
        print(program(page))
        return 0
    printed = iter(outputs(pathlib.Path(sys.argv[3])))
    source = page.read_text(encoding="utf-8")
    complaints = []

    def replaced(block):
        output = trimmed(next(printed))
        if block["text"] is None:
            if output:
                complaints.append(f"{page.name}: a block prints \"{output}\" and no text block follows it")
            return block[0]
        if output != trimmed(block["text"]):
            complaints.append(f"{page.name}: a block prints\n{output}\nand the page says\n{block['text']}")
        return f"```cpp\n{block['code']}```\n{block['between']}```text\n{output}\n```\n"
    new = BLOCK.sub(replaced, source)
    if sys.argv[1] == "update":
        page.write_text(new, encoding="utf-8")
        return 0
    print("\n".join(complaints + [f"{page.name}: {len(complaints)} outputs differ"]))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
