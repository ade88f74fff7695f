"""An answer as an object of a dataclass. Usage: json_answer.py [MODEL]"""
import dataclasses
import sys
from typing import Literal

import prismrt as prism


@dataclasses.dataclass
class Weather:
    sky: Literal["clear", "cloudy", "rainy"]
    degrees: Literal[-10, 0, 10, 20, 30]
    windy: bool


llm = prism.LLM(sys.argv[1] if len(sys.argv) > 1 else None)
print(llm.generate("The weather in spring: ", json_schema=Weather, max_tokens=200, seed=1).parsed)
