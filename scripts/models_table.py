#!/usr/bin/env python3
"""Writes the lists of architectures and pre-tokenizers in docs/models.md and README.md from the sources.

usage: scripts/models_table.py [--check]
--check changes nothing and fails if a list is stale.
Both fail if a test does not compare what the list says it compares.
"""
import pathlib
import re
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
LIST = ROOT / "src" / "llm" / "architectures" / "architecture_list.inc"
PRE_TYPES = ROOT / "src" / "llm" / "tokenizer" / "pre_tokenizer_types.cpp"
VOCABULARIES = ROOT / "tests" / "llm" / "tokenizer_files_test.cpp"
PAGE = ROOT / "docs" / "models.md"
README = ROOT / "README.md"
TESTS = ROOT / "tests"
ARCHIVE = ROOT.parent / "shared" / "expected" / "architectures.tar.xz"
ENTRY = re.compile(r'PRISM_ARCHITECTURE\(\s*"([^"]+)",\s*\w+,\s*"([^"]+)"\)')
NAMES = re.compile(r'\{\{((?:"[^"]+",?\s*)+)\},')


# What an architecture's logits or vectors are compared with, and the test that names it. All others are in the archive of
# tiny models with llama.cpp's logits, which EXPECTED reads but for those that it names.
EXPECTED = TESTS / "llm/expected_architectures_device_test.cpp"
FLOAT64, SAME_LAYERS = "float64", "architectures with the same layers"
OTHERS = {
    FLOAT64: {
        "llm/architectures_device_test.cpp": ["bert", "chameleon"],
        "llm/convert_variants_test.cpp": ["plm"],
        "llm/encoders_device_test.cpp": ["eurobert", "gemma-embedding", "jina-bert-v2", "jina-bert-v3", "llama-embed",
                                         "modern-bert", "neo-bert", "nomic-bert", "nomic-bert-moe"],
        "llm/rwkv_device_test.cpp": ["rwkv7"],
        "llm/rwkv_qwen_device_test.cpp": ["arwkv7", "rwkv6qwen2"],
        "support/models/tiny_deepseek4.cpp": ["deepseek4"],
        "support/models/tiny_granite_switch.cpp": ["graniteswitch"],
        "support/models/tiny_t5.cpp": ["t5encoder"],
    },
    SAME_LAYERS: {
        "llm/file_variants_test.cpp": ["cogvlm", "deepseek2-ocr", "hunyuan_vl", "paddleocr", "pockettts", "qwen3tts"],
    },
}


def compared_with():
    """What each architecture outside the archive is compared with."""
    found = {}
    for reference, tests in OTHERS.items():
        for test, names in tests.items():
            text = (TESTS / test).read_text(encoding="utf-8")
            for name in names:
                if not re.search(f'"{name}(-dense|-moe)?"', text):
                    sys.exit(f"tests/{test} does not name {name}: correct OTHERS in scripts/models_table.py")
                found[name] = reference
    return found


def check_archive(known, others):
    if not ARCHIVE.exists():
        return
    listed = subprocess.run(["tar", "-tf", ARCHIVE], check=True, capture_output=True, text=True).stdout
    stems = {pathlib.PurePath(line).stem for line in listed.splitlines() if line.endswith(".gguf")}
    stems -= set(re.findall(r'each\.name == "([^"]+)"', EXPECTED.read_text(encoding="utf-8")))
    compared = {name for name in known if stems & {name, f"{name}-moe", f"{name}-dense"}}
    if wrong := sorted((set(known) - compared) ^ set(others)):
        sys.exit(f"{', '.join(wrong)}: either in the archive of tiny models or in OTHERS of scripts/models_table.py, "
                 "not in both or neither")


def architectures():
    entries = sorted(ENTRY.findall(LIST.read_text(encoding="utf-8")))
    others = compared_with()
    check_archive([name for name, _ in entries], others)
    return "| in files | models | compared with |\n|---|---|---|\n" + "".join(
        f"| `{name}` | {models} | {others.get(name, 'llama.cpp')} |\n" for name, models in entries)


def models():
    """The models of the table in one sentence, each once."""
    entries = ENTRY.findall(LIST.read_text(encoding="utf-8"))
    names = "; ".join(sorted((models for _, models in entries), key=str.lower))
    summary = f"<details><summary>Models of {len(entries)} architectures run</summary>\n\n"
    return summary + textwrap.fill(names + ".", 120, break_on_hyphens=False) + "\n</details>\n"


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


def replaced(text, lists):
    for name, make in lists:
        begin, end = f"<!-- begin {name}: scripts/models_table.py -->\n", f"<!-- end {name} -->"
        before, rest = text.split(begin)
        text = before + begin + make() + end + rest.split(end)[1]
    return text


def main():
    pages = {PAGE: [("architectures", architectures), ("pre-tokenizers", pre_tokenizers)], README: [("models", models)]}
    for page, lists in pages.items():
        text = page.read_text(encoding="utf-8")
        new = replaced(text, lists)
        if "--check" not in sys.argv[1:]:
            page.write_text(new, encoding="utf-8")
        elif new != text:
            sys.exit(f"{page.relative_to(ROOT)}: a list is stale; run scripts/models_table.py")
    if "--check" in sys.argv[1:]:
        print(f"docs/models.md lists {architectures().count(chr(10)) - 2} architectures")


if __name__ == "__main__":
    main()
