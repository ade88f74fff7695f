#!/usr/bin/env python3
"""Writes expected.json: what Python's jinja2, set up as for chat templates, makes of every case and template here.

Run by hand (needs the package jinja2) after a change of cases.json or of a template. The templates are those published
with the models they are named after, but for smollm3-tools. null stands for a template that refuses the case.
"""
import datetime
import json
import pathlib

import jinja2
import jinja2.ext
from jinja2.sandbox import ImmutableSandboxedEnvironment

HERE = pathlib.Path(__file__).resolve().parent
NOW = datetime.datetime(2026, 11, 15, 12, 0, 0)


class Generation(jinja2.ext.Extension):
    """{% generation %} marks what a model is trained on; the text is the same without."""
    tags = {"generation"}

    def parse(self, parser):
        next(parser.stream)
        return parser.parse_statements(["name:endgeneration"], drop_needle=True)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def main():
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = NOW.strftime
    cases = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
    expected = {}
    for path in sorted(HERE.glob("*.jinja")):
        template = environment.from_string(path.read_text(encoding="utf-8"))
        expected[path.stem] = {}
        for name, case in cases.items():
            try:
                expected[path.stem][name] = template.render(**case)
            except Exception:
                expected[path.stem][name] = None
    (HERE / "expected.json").write_text(json.dumps(expected, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
