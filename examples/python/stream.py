"""Text as it is generated, in a loop and in an async program. Usage: stream.py [MODEL]"""
import asyncio
import sys

import prismrt as prism

llm = prism.LLM(sys.argv[1] if len(sys.argv) > 1 else None, slots=2)
stream = llm.stream("Once upon a time", max_tokens=40, temperature=0)
for piece in stream:
    print(piece, end="", flush=True)
print(f"\n{stream.result.statistics['generation_rate']:.0f} tokens/s")


async def write(prompt):
    return "".join([piece async for piece in llm.stream_async(prompt, max_tokens=20, temperature=0)])


async def main():
    for text in await asyncio.gather(write("The cat"), write("The dog")):
        print(text)


asyncio.run(main())
