"""Settings, models, the panel, light and dark."""
from selenium.webdriver.common.keys import Keys

from page_case import PageTest


class Settings(PageTest):
    def set(self, name, value):
        field = self.page.visible(f"[data-setting={name}]")
        field.clear()
        field.send_keys(value)

    def test_system_prompt_and_sampling(self):
        self.page.press(Keys.ALT, "s")
        for name, default in [("temperature", "0.8"), ("seed", "random"), ("max_tokens", "no limit")]:
            self.assertEqual(self.page.visible(f"[data-setting={name}]").get_attribute("placeholder"), default)
        self.set("system", "You are a lighthouse.")
        self.set("temperature", "0.25")
        self.set("top_k", "7")
        self.set("max_tokens", "33")
        self.page.close("#settings")
        for _ in range(2):
            prompt = self.page.ask("say:prompt")
            self.assertIn("temperature=0.25 top_k=7 max_tokens=33", prompt)
            self.assertIn("[system] You are a lighthouse.", prompt)
            self.page.reload()
        self.page.press(Keys.ALT, "s")
        self.page.click("#reset-settings")
        self.page.close("#settings")
        prompt = self.page.ask("say:prompt")
        self.assertIn("top_k=40 max_tokens=-1", prompt)
        self.assertNotIn("lighthouse", prompt.replace("say:prompt", "", 1).rsplit("[user]", 1)[-1])

    def test_models_and_what_prism_knows(self):
        self.assertEqual(self.page.script("return [...document.querySelectorAll('#model option')].map(e => e.value)"),
                         ["scripted", "other"])
        self.page.ask("say:hello")
        self.page.click("#toggle-panel")
        self.page.until(lambda: "All devices" in self.page.one("#facts").text, "the devices")
        facts = self.page.one("#facts").text
        for each in ["Time to first token\n0.25 s", "Prompt speed", "From the cache\n2 tokens", "Answer speed",
                     "Scripted processor of scripted", "It is the only device of this test.", "Layers\n24 of 24",
                     "Weights\n98 MB", "KV cache\n47 MB", "Memory\n150 MB", "Context\n4,096 tokens", "tokens/s"]:
            self.assertIn(each, facts)
        self.assertIn("first after 0.25 s", self.page.text(".figures"))
        self.page.one("#model").send_keys("other")
        self.page.until(lambda: "Not loaded yet" in self.page.one("#facts").text, "the other model")
        self.page.ask("say:hello")
        self.page.until(lambda: "Scripted processor of other" in self.page.one("#facts").text, "the facts of the model")
        self.page.reload()
        self.assertEqual(self.page.one("#model").get_attribute("value"), "other")

    def test_light_and_dark(self):
        def ground():
            return self.page.script("return getComputedStyle(document.body).backgroundColor")
        self.page.emulate(scheme="light")
        self.assertEqual(ground(), "rgb(255, 255, 255)")
        self.page.emulate(scheme="dark")
        self.assertEqual(ground(), "rgb(23, 23, 26)")
        self.page.click("#theme")
        self.assertEqual(ground(), "rgb(255, 255, 255)")
        self.page.reload()
        self.assertEqual(ground(), "rgb(255, 255, 255)")
        self.page.press(Keys.ALT, "l")
        self.assertEqual(ground(), "rgb(23, 23, 26)")
