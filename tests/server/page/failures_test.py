"""Keys, refusals, lost connections and missing parts."""
from selenium.webdriver.common.keys import Keys

from browser import Page
from page_case import DRIVER, PageTest, serve, stop
from scripted_texts import MARKDOWN


class Failures(PageTest):
    complains = True  # the browser reports failed requests

    def test_an_api_key(self):
        server, address = serve(api_keys=["open sesame"])
        self.page = Page(DRIVER, address)
        self.page.open()
        for key, reason in [("wrong", "This server needs an API key."), ("open sesame", "does not know the key")]:
            self.page.until(lambda: reason in self.page.text("#key-reason"), reason)
            self.page.visible("#key-input").send_keys(key, Keys.ENTER)
        self.page.until(lambda: self.page.all("#model option"), "the models")
        self.assertIn("Hello", self.page.ask("say:hello"))
        self.page.reload()
        self.assertIn("Hello", self.page.ask("say:hello"))
        stop(server)

    def test_a_failure_in_the_middle(self):
        self.assertIn("The first half of it", self.page.ask("say:fail"))
        self.assertIn("The server could not finish: ", self.page.text(".failure"))
        self.assertIn("the device is gone", self.page.text(".failure"))
        self.page.click(".failure .quiet-button")
        self.page.until(lambda: self.page.text(".branch") == "2/2", "the second try")
        self.page.answer()

    def test_a_refused_request(self):
        self.page.script("const s = JSON.parse(localStorage.getItem('prism-settings'));"
                         "localStorage.setItem('prism-settings', JSON.stringify({...s, temperature: '-3'}))")
        self.page.reload()
        self.page.ask("say:hello")
        self.assertRegex(self.page.text(".failure"), r"The server refused: .*temperature")

    def test_a_busy_server(self):
        server, address = serve(parallel=1, max_queue=0)
        self.page = Page(DRIVER, address)
        self.page.open()
        self.page.write("say:endless")
        self.page.partial()
        self.page.press(Keys.ALT, "n")
        self.page.until(lambda: not self.page.messages(), "a new conversation")
        self.page.ask("say:hello")
        self.assertRegex(self.page.text(".failure"), r"^The server is busy: .*\. Try again in \d+ s\.")
        stop(server)

    def test_a_server_that_is_away_for_a_while(self):
        self.page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/v1/models"]})
        self.page.driver.refresh()
        self.page.until(lambda: "The server cannot be reached" in (self.page.text("#banner") or ""), "the failure")
        self.page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})
        self.page.click("#banner .quiet-button")
        self.page.until(lambda: self.page.all("#model option") and not self.page.one("#banner").is_displayed(), "the models")

    def test_without_the_libraries_texts_are_plain(self):
        self.page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": ["*/page/lib/*"]})
        self.page.reload()
        self.assertEqual(self.page.ask("say:markdown"), MARKDOWN.strip())
        self.assertIn("<script>", self.page.ask("say:hostile"))
        self.assertIsNone(self.page.script("return window.hacked ?? null"))
        self.page.driver.execute_cdp_cmd("Network.setBlockedURLs", {"urls": []})

    def test_a_browser_that_keeps_nothing(self):
        script = self.page.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {
            "source": "Object.defineProperty(window, 'indexedDB', {value: undefined})"})
        self.page.reload()
        self.assertIn("Hello", self.page.ask("say:hello"))
        self.assertIn("This browser could not keep the conversation", self.page.text("#banner"))
        self.page.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)

    def test_a_lost_connection_loses_nothing(self):
        server, address = serve()
        self.page = Page(DRIVER, address)
        self.page.open()
        self.page.write("say:endless")
        self.page.partial(200)
        stop(server)
        self.page.until(lambda: self.page.all(".failure"), "the failure")
        text = self.page.answer()
        self.assertGreater(len(text), 200)
        self.assertIn("The connection to the server was lost", self.page.text(".failure"))
        self.page.ask("say:hello")
        self.assertIn("The server cannot be reached", self.page.one(".message:last-child .failure").text)
        # Both are kept.
        kept = self.page.kept()
        self.assertEqual(sorted((role, state) for role, state, _ in kept),
                         [("assistant", "failed")] * 2 + [("user", "done")] * 2)
        self.assertLess(min(abs(len(text) - length) for _, _, length in kept), 3)
