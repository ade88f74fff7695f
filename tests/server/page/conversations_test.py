"""Sending, branches, and what the browser keeps."""
import json

from selenium.webdriver.common.keys import Keys

from page_case import ADDRESS, FOLDER, PageTest, get, stop


class Conversations(PageTest):
    def test_an_answer_streams_and_stops(self):
        self.page.write("say:endless")
        first = self.page.partial()
        self.page.until(lambda: len(self.page.partial()) > len(first) + 50, "more of the answer")
        self.page.click("#stop")
        self.assertTrue(self.page.answer().startswith("words without an end, words"))
        self.assertIn("Stopped.", self.page.text(".message.assistant .note"))
        self.page.until(lambda: not any(slot["is_processing"] for slot in json.loads(get(ADDRESS + "/slots")[2])),
                        "the end of the text on the server")
        self.page.write("say:endless")
        self.page.partial()
        self.page.press(Keys.ESCAPE)
        self.page.answer()

    def test_the_whole_conversation_is_sent(self):
        self.page.ask("say:hello")
        prompt = self.page.ask("And then?\nsay:prompt".replace("\n", Keys.SHIFT + Keys.ENTER + Keys.NULL))
        self.assertRegex(prompt, r"\[user\] say:hello\s+\[assistant\] Hello, this is answer \d+. Nice to meet you.\s+"
                                 r"\[user\] And then\?\s+say:prompt\s+\[assistant\]")

    def test_branches(self):
        first = self.page.ask("say:hello")
        self.assertFalse(self.page.all(".branches"))
        self.page.click("[aria-label='Answer again']")
        self.page.until(lambda: self.page.text(".branch") == "2/2", "the second answer")
        second = self.page.answer()
        self.assertNotEqual(first, second)
        self.page.ask("say:hello once more")
        self.assertEqual(len(self.page.messages()), 4)
        self.page.click("[aria-label='Previous version']")
        self.page.until(lambda: self.page.messages() == ["say:hello", first], "the first answer")
        self.page.reload()
        self.page.until(lambda: self.page.messages() == ["say:hello", first], "the first answer after a reload")
        self.page.click("[aria-label='Next version']")
        self.page.until(lambda: len(self.page.messages()) == 4 and self.page.messages()[1] == second, "the second answer")

        # An edited question begins a branch of its own.
        self.page.press(Keys.ALT, "u")
        field = self.page.visible(".edit")
        self.assertEqual(field.get_attribute("value"), "say:hello once more")
        field.clear()
        field.send_keys("say:prompt", Keys.ENTER)
        self.page.until(lambda: len(self.page.all(".branches")) == 2, "a branch of the question")
        self.assertIn(second, " ".join(self.page.answer().split()))
        self.page.script("document.querySelectorAll('[aria-label=\"Previous version\"]')[1].click()")
        self.page.until(lambda: self.page.messages()[2] == "say:hello once more", "the question before it was edited")

    def test_a_question_is_edited_while_its_answer_is_written(self):
        self.page.write("say:endless")
        self.page.partial()
        self.page.press(Keys.ALT, "u")
        self.page.visible(".edit").send_keys(" again", Keys.ENTER)
        self.page.until(lambda: self.page.text(".branch") == "2/2" and self.page.partial(), "the second answer")
        self.page.click("#stop")
        self.page.answer()
        self.assertIn("Stopped.", self.page.text(".message.assistant .note"))
        self.assertEqual(sorted(state for _, state, _ in self.page.kept()), ["done", "done", "stopped", "stopped"])
        # The same for an earlier answer that is asked for again.
        self.page.write("say:endless")
        self.page.until(lambda: len(self.page.messages()) == 4 and self.page.partial(), "the next answer")
        self.page.script("document.querySelector('.message.assistant [aria-label=\"Answer again\"]').click()")
        self.page.until(lambda: len(self.page.messages()) == 2 and self.page.partial(), "another first answer")
        self.page.click("#stop")
        self.page.answer()

    def test_a_running_answer_is_deleted(self):
        self.page.write("say:endless")
        self.page.partial()
        self.page.script("document.querySelector('.user [aria-label^=Delete]').click()")
        self.page.confirm()
        self.page.until(lambda: not self.page.messages() and self.page.one("#send").is_displayed(), "no message")
        self.assertIn("Hello", self.page.ask("say:hello"))
        self.assertEqual(sorted(role for role, _, _ in self.page.kept()), ["assistant", "user"])

    def test_a_message_is_deleted_with_what_follows(self):
        self.page.ask("say:hello")
        self.page.ask("say:hello again")
        self.page.script("[...document.querySelectorAll('.user [aria-label^=Delete]')].at(-1).click()")
        self.page.confirm()
        self.page.until(lambda: len(self.page.messages()) == 2, "two messages")
        self.page.reload()
        self.page.until(lambda: len(self.page.messages()) == 2, "two messages after a reload")

    def test_a_reload_keeps_everything(self):
        self.page.ask("say:hello")
        before = self.page.messages()
        self.page.reload()
        self.page.until(lambda: self.page.messages() == before, "the messages")
        self.page.write("say:endless")
        self.page.partial(200)
        self.page.until(lambda: max(length for _, _, length in self.page.kept()) > 200, "a part that is kept while the answer is written")
        self.page.reload()
        self.page.until(lambda: len(self.page.messages()) == 4, "the messages")
        self.assertGreater(len(self.page.answer()), 200, "what had arrived is kept")
        self.assertIn("Stopped.", self.page.text(".message.assistant:last-child .note"))

    def test_answers_go_on_beside_each_other(self):
        self.page.write("say:endless")
        self.page.partial()
        self.page.press(Keys.ALT, "n")
        self.page.until(lambda: not self.page.messages(), "a new conversation")
        self.assertIn("Hello", self.page.ask("say:hello"))
        self.page.script("[...document.querySelectorAll('.row-open')].find(e => e.textContent == 'say:endless').click()")
        self.page.until(lambda: self.page.one("#stop").is_displayed(), "the running answer")
        length = len(self.page.partial())
        self.page.until(lambda: len(self.page.partial()) > length, "more of the answer")
        self.page.click("#stop")
        self.page.answer()

    def test_two_pages_do_not_overwrite_each_other(self):
        self.page.ask("say:hello")
        address = self.page.driver.current_url
        first = self.page.driver.current_window_handle
        self.page.driver.switch_to.new_window("tab")
        second = self.page.driver.current_window_handle
        self.page.driver.get(address)
        self.page.until(lambda: len(self.page.messages()) == 2, "the conversation in the second page")
        self.page.driver.switch_to.window(first)
        self.page.ask("say:hello from the first page")
        self.page.driver.switch_to.window(second)
        self.page.ask("say:hello from the second page")
        self.page.driver.close()
        self.page.driver.switch_to.window(first)
        self.page.reload()
        self.page.until(lambda: self.page.text(".branch") == "2/2", "both questions")
        self.assertEqual(len(self.page.kept()), 6)

    def test_the_title_of_a_long_question_ends_with_a_word(self):
        self.page.ask("say:hello to all the penguins of the southern hemisphere and of every zoo")
        self.assertEqual(self.page.titles(), ["say:hello to all the penguins of the southern hemisphere\u2026"])

    def test_rename_search_delete(self):
        self.page.ask("say:hello to <b>penguins</b>")
        self.page.press(Keys.ALT, "n")
        self.page.ask("say:think")
        self.assertEqual(self.page.titles(), ["say:think", "say:hello to <b>penguins</b>"])

        self.page.press(Keys.ALT, "k")
        self.page.focused().send_keys("nice TO meet")
        self.page.until(lambda: self.page.titles() == ["say:hello to <b>penguins</b>"], "what was found")
        self.assertIn("Nice to meet you", self.page.text(".row-found"))
        self.page.one("#search").clear()
        self.page.one("#search").send_keys("nowhere", Keys.BACKSPACE, "ever")
        self.page.until(lambda: self.page.text(".nothing") == "Nothing found.", "no result")
        self.page.script("const s = document.getElementById('search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        self.page.until(lambda: len(self.page.titles()) == 2, "both conversations")

        self.page.script("document.querySelector('[aria-label^=\"Rename say:think\"]').click()")
        self.page.focused().send_keys("A sum", Keys.ENTER)
        self.page.until(lambda: self.page.titles()[0] == "A sum", "the new title")
        self.page.script("document.querySelector('[aria-label=\"Delete A sum\"]').click()")
        self.page.close("#confirm", ".quiet-button")
        self.assertEqual(len(self.page.titles()), 2)
        self.page.script("document.querySelector('[aria-label=\"Delete A sum\"]').click()")
        self.page.confirm()
        self.page.until(lambda: self.page.titles() == ["say:hello to <b>penguins</b>"] and not self.page.messages(),
                        "one conversation, and a new one")
        self.page.reload()
        self.page.until(lambda: len(self.page.titles()) == 1, "one conversation after a reload")

    def test_export_and_import(self):
        self.page.ask("say:think")
        self.page.click("[aria-label='Answer again']")
        self.page.until(lambda: self.page.text(".branch") == "2/2", "the second answer")
        self.page.answer()
        before = self.page.messages()
        self.page.click("#export")
        self.page.until(lambda: list(FOLDER.glob("prism-*.json")), "the exported file")
        file = next(FOLDER.glob("prism-*.json"))
        exported = json.loads(file.read_text())
        self.assertEqual(exported["format"], "prism-conversations")
        self.assertEqual(len(exported["conversations"][0]["messages"]), 3)

        self.page.open()
        self.assertEqual(self.page.titles(), [])
        for _ in range(2):  # the second time adds nothing
            self.page.one("#import-file").send_keys(str(file))
            self.page.until(lambda: "1 conversation imported" in (self.page.text("#banner") or ""), "the import")
            self.page.until(lambda: self.page.titles() == ["say:think"], "the conversation")
            self.page.click("#banner [aria-label^=Close]")
        self.page.click(".row-open")
        self.page.until(lambda: self.page.messages() == before and self.page.text(".branch") == "2/2", "the messages")
        file.unlink()

    def test_import_without_all_timings(self):
        times = {"created": 1, "updated": 1}
        answer = {"id": "m", "role": "assistant", "parent": None, "content": "an answer", **times,
                  "timings": {"predicted_n": 2, "first_token_ms": 3}}
        file = FOLDER / "timings.json"
        file.write_text(json.dumps({"format": "prism-conversations", "version": 1, "conversations": [
            {"id": "a", "title": "t", "messages": [answer], **times}]}))
        self.page.one("#import-file").send_keys(str(file))
        self.page.until(lambda: self.page.titles() == ["t"], "the conversation")
        self.page.click(".row-open")
        self.page.until(lambda: self.page.messages() == ["an answer"], "the message")
        self.page.click("#toggle-panel")
        self.page.until(lambda: "Speeds appear with the first answer." in (self.page.text("#facts") or ""), "the panel")

    def test_wrong_imports_change_nothing(self):
        conversation = {"id": "a", "title": "t", "created": 1, "updated": 1, "messages": [{"id": "m", "role": "system"}]}
        for number, (content, reason) in enumerate([
                ("{", "not JSON"), ("[1]", "no export"),
                ('{"format": "prism-conversations", "version": 9, "conversations": []}', "version is 9"),
                (json.dumps({"format": "prism-conversations", "version": 1, "conversations": [conversation]}),
                 "neither a question nor an answer")]):
            file = FOLDER / f"wrong-{number}.json"
            file.write_text(content)
            self.page.one("#import-file").send_keys(str(file))
            self.page.until(lambda: reason in (self.page.text("#banner") or ""), reason)
        self.assertEqual(self.page.titles(), [])
