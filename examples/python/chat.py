"""A conversation with a model. Usage: chat.py [MODEL]; an empty line ends it."""
import sys

import prismrt as prism

llm = prism.LLM(sys.argv[1] if len(sys.argv) > 1 else None, chat_template=sys.argv[2] if len(sys.argv) > 2 else None)
messages = [{"role": "system", "content": "You are a helpful assistant."}]
for question in iter(input, ""):
    messages.append({"role": "user", "content": question})
    answer = ""
    for piece in llm.chat_stream(messages, max_tokens=100, temperature=0.7, seed=1):
        print(piece, end="", flush=True)
        answer += piece
    print()
    messages.append({"role": "assistant", "content": answer})
