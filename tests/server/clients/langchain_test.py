"""LangChain's client for OpenAI: chats, streams, tools, structured answers, texts and embeddings."""
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from server_tools import COLOUR, KEY, ONCE, Clients, main, run_text

COLOUR_TOOL = {"title": "paint", "description": "Paints.", **COLOUR}


class LangChain(Clients):
    def chat(self, **fields):
        return ChatOpenAI(base_url=self.address + "/v1", api_key=KEY, model=self.model, temperature=0, max_retries=0,
                          **{"max_tokens": 30, **fields})

    def test_text_equals_run(self):
        for by_responses in [False, True]:
            chat = self.chat(use_responses_api=by_responses)
            self.assertEqual(chat.invoke(ONCE).text, self.chat_text(ONCE, 30))
            self.assertEqual("".join(chunk.text for chunk in chat.stream(ONCE)), self.chat_text(ONCE, 30))

    def test_usage(self):
        usage = self.chat().invoke(ONCE).usage_metadata
        self.assertEqual(usage["output_tokens"], 30)
        self.assertEqual(usage["total_tokens"], usage["input_tokens"] + 30)

    def test_tools(self):
        for by_responses in [False, True]:
            chat = self.chat(max_tokens=200, use_responses_api=by_responses)
            answer = chat.bind_tools([COLOUR_TOOL], tool_choice="any").invoke(ONCE)
            call = answer.tool_calls[0]
            self.assertEqual(call["name"], "paint")
            self.assertIn(call["args"]["colour"], ["red", "blue"])
            history = [HumanMessage(ONCE), AIMessage("", tool_calls=[call]), ToolMessage("done", tool_call_id=call["id"])]
            self.assertTrue(self.chat(use_responses_api=by_responses).bind_tools([COLOUR_TOOL]).invoke(history).text)

    def test_structured_answers(self):
        for method in ["json_schema", "function_calling"]:
            answer = self.chat(max_tokens=200).with_structured_output(COLOUR_TOOL, method=method).invoke(ONCE)
            self.assertIn(answer["colour"], ["red", "blue"])

    def test_texts(self):
        model = OpenAI(base_url=self.address + "/v1", api_key=KEY, model=self.model, temperature=0, max_tokens=30,
                       max_retries=0)
        self.assertEqual(model.invoke(ONCE), run_text(ONCE, 30, "--raw"))
        self.assertEqual("".join(model.stream(ONCE)), run_text(ONCE, 30, "--raw"))

    def test_embeddings(self):
        # The length check would fetch a tokenizer of OpenAI's.
        model = OpenAIEmbeddings(base_url=self.address + "/v1", api_key=KEY, model=self.model, max_retries=0,
                                 check_embedding_ctx_length=False)
        vectors = model.embed_documents(["a cat", "a dog"])
        self.assertEqual(len(vectors), 2)
        for one, other in zip(vectors[0], model.embed_query("a cat")):
            self.assertAlmostEqual(one, other, places=5)


if __name__ == "__main__":
    main()
