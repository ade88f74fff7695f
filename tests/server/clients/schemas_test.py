"""Answers that are held to JSON schemas: all that end by themselves must be valid."""
import json
from concurrent.futures import ThreadPoolExecutor

import jsonschema
from server_tools import ONCE, Clients, main

NEEDED = 200  # answers that ended by themselves
SCHEMAS = [
    {"type": "object", "properties": {"name": {"enum": ["Tim", "Lily"]}, "age": {"type": "integer", "minimum": 1,
     "maximum": 99}}, "required": ["name", "age"], "additionalProperties": False},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 5},
    {"type": "array", "items": {"type": "string", "maxLength": 8}, "minItems": 1, "maxItems": 3},
    {"type": "object", "properties": {"a": {"type": "boolean"}, "b": {"type": ["null", "number"]},
     "c": {"const": [1, "x"]}}, "required": ["a", "c"], "additionalProperties": False},
    {"anyOf": [{"type": "object", "properties": {"cat": {"type": "string", "pattern": "^[a-z]{2,6}$"}},
                "required": ["cat"], "additionalProperties": False}, {"type": "boolean"}]},
    {"$defs": {"tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/leaf"}, "right":
     {"$ref": "#/$defs/leaf"}}, "required": ["left", "right"], "additionalProperties": False},
     "leaf": {"enum": [0, 1, "end"]}}, "$ref": "#/$defs/tree"},
    {"type": "object", "properties": {"day": {"type": "string", "format": "date"}, "list": {"type": "array", "items":
     {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": False},
     "maxItems": 2}}, "required": ["day", "list"], "additionalProperties": False},
    {"type": "string", "minLength": 2, "maxLength": 12},
]


class Schemas(Clients):
    arguments = ("--api-key", "secret", "--parallel", "8")

    def answers(self, schema, seed):
        reply = self.openai.chat.completions.create(
            model=self.model, messages=[{"role": "user", "content": ONCE}], max_tokens=120, seed=seed, temperature=1,
            n=4, response_format={"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}})
        return [choice.message.content for choice in reply.choices if choice.finish_reason == "stop"]

    def test_answers_are_valid(self):
        checks = [jsonschema.Draft202012Validator(schema) for schema in SCHEMAS]
        done = [0] * len(SCHEMAS)
        for round_ in range(20):
            with ThreadPoolExecutor(2) as pool:
                texts = list(pool.map(lambda schema: self.answers(schema, 1000 * round_), SCHEMAS))
            for i, of_schema in enumerate(texts):
                for text in of_schema:
                    checks[i].validate(json.loads(text))
                    done[i] += 1
            if sum(done) >= NEEDED:
                break
        print(f"schemas: {sum(done)} answers that ended by themselves are valid, by schema {done}")
        self.assertGreaterEqual(sum(done), NEEDED)
        self.assertTrue(all(done), done)


if __name__ == "__main__":
    main()
