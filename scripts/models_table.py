#!/usr/bin/env python3
"""Writes the lists of architectures and pre-tokenizers in docs/models.md from the sources.

usage: scripts/models_table.py [--check]
--check changes nothing and fails if a list is stale.
"""
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "src" / "llm" / "architectures" / "architecture_list.inc"
PRE_TYPES = ROOT / "src" / "llm" / "tokenizer" / "pre_tokenizer_types.cpp"
VOCABULARIES = ROOT / "tests" / "llm" / "tokenizer_files_test.cpp"
PAGE = ROOT / "docs" / "models.md"
ENTRY = re.compile(r'PRISM_ARCHITECTURE\(\s*"([^"]+)",\s*\w+,\s*"([^"]+)"\)')
NAMES = re.compile(r'\{\{((?:"[^"]+",?\s*)+)\},')


def architectures():
    entries = sorted(ENTRY.findall(LIST.read_text(encoding="utf-8")))
    return "| in files | models |\n|---|---|\n" + "".join(f"| `{name}` | {models} |\n" for name, models in entries)


def pre_tokenizers():
    groups = [re.findall(r'"([^"]+)"', each) for each in NAMES.findall(PRE_TYPES.read_text(encoding="utf-8"))]
    real = re.search(r"testing::Values\(([^)]*)\)", VOCABULARIES.read_text(encoding="utf-8")).group(1)
    compared = set(re.findall(r'"([^"]+)"', real))
    names = sorted(name for group in groups for name in group)
    listed = lambda wanted: ", ".join(f"`{name}`" for name in names if (name in compared) == wanted)
    lines = [f"- compared with the ids of a real vocabulary: {listed(True)}",
             f"- not compared with one, because there was none at hand: {listed(False)}"]
    return "".join(textwrap.fill(line, 120, subsequent_indent="  ", break_on_hyphens=False,
                                 break_long_words=False) + "\n" for line in lines)


def main():
    page = new = PAGE.read_text(encoding="utf-8")
    for name, make in (("architectures", architectures), ("pre-tokenizers", pre_tokenizers)):
        begin, end = f"<!-- begin {name}: scripts/models_table.py -->\n", f"<!-- end {name} -->"
        before, rest = new.split(begin)
        new = before + begin + make() + end + rest.split(end)[1]
    if "--check" in sys.argv[1:]:
        if new != page:
            sys.exit("docs/models.md: a list is stale; run scripts/models_table.py")
        print(f"docs/models.md lists {architectures().count(chr(10)) - 2} architectures")
        return
    PAGE.write_text(new, encoding="utf-8")


if __name__ == "__main__":
    main()
