#!/usr/bin/env python3
"""Compiles the examples in the comments of the public headers.

usage: header_examples.py SOURCE_FOLDER COMPILER

An example is a run of comment lines indented by three spaces or more, if one of them ends as C++ does. Each becomes a
function of one translation unit, which sees include/ only and is checked with -fsyntax-only."""
import pathlib
import re
import subprocess
import sys
import tempfile

# Names that an example may use without saying where they come from, and their types.
GIVEN = {
    "logits": "std::vector<float>",
    "template_text": "std::string",
    "vocabulary": "std::shared_ptr<const prism::llm::VocabularyTrie>",
    "sampler": "prism::llm::Sampler",
}
COMMENT = re.compile(r"^\s*//( {3,}.*|\s*)$")
CODE_END = re.compile(r"[;{}]\s*(//.*)?$")


def examples(path):
    """The examples of a header: the number of the first line, and the lines."""
    block, first = [], 0
    for number, line in enumerate(path.read_text().splitlines() + [""], 1):
        match = COMMENT.match(line)
        if match and (match.group(1).strip() or block):
            if not block:
                first = number
            block.append(match.group(1))
            continue
        if any(CODE_END.search(each) for each in block):
            yield first, block
        block = []


def function(name, path, first, lines, root):
    """One example as a function. Given names that it does not declare itself are parameters."""
    text = "\n".join(lines)
    given = [f"{type_} {each}" for each, type_ in GIVEN.items()
             if re.search(rf"\b{each}\b", text) and not re.search(rf"\w[&>]* {each}(\(| =)", text)]
    spaces = ["prism", "prism::llm"] + (["prism::dsl"] if path.name == "kernel.h" else [])
    using = " ".join(f"using namespace {space};" for space in spaces)
    shown = path.relative_to(root).as_posix()
    return f'void {name}({", ".join(given)}) {{ {using}\n#line {first} "{shown}"\n{text}\n}}\n'


def main():
    root, compiler = pathlib.Path(sys.argv[1]), sys.argv[2]
    parts, count = ["#include <prism/prism.h>\n#include <iostream>\n"], 0
    for path in sorted((root / "include").rglob("*.h")):
        for first, lines in examples(path):
            count += 1
            parts.append(function(f"example_{count}", path, first, lines, root))
    with tempfile.TemporaryDirectory() as folder:
        unit = pathlib.Path(folder) / "examples.cpp"
        unit.write_text("".join(parts))
        done = subprocess.run([compiler, "-std=c++20", "-fsyntax-only", f"-I{root / 'include'}", str(unit)])
    if done.returncode != 0:
        sys.exit("an example in a header does not compile")
    if count < 8:
        sys.exit(f"only {count} examples found in the headers; is the search broken?")
    print(f"{count} examples of the headers compile")


if __name__ == "__main__":
    main()
