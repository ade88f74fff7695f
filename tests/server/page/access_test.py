"""Keyboard, names, contrast and small screens."""
from selenium.webdriver.common.keys import Keys

from page_case import PageTest


# The elements whose contrast to what is behind them is below 4.5 to 1, which WCAG asks for.
CONTRAST = """
  const numbers = text => text.match(/[\\d.]+/g).map(Number);
  const light = text => { const [r, g, b] = numbers(text).map(c => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                          return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const ground = e => { const c = getComputedStyle(e).backgroundColor;
                        return numbers(c)[3] === 0 && e.parentElement ? ground(e.parentElement) : c; };
  return [...document.querySelectorAll(arguments[0])].filter(e => e.getClientRects().length).map(e => {
    const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
    return [e.className || e.tagName, (a + 0.05) / (b + 0.05)]; }).filter(([, ratio]) => ratio < 4.5);"""


class Access(PageTest):
    def test_keyboard_only(self):
        self.page.until(lambda: self.page.focused().get_attribute("id") == "input", "the message field has the focus")
        self.page.press(Keys.ALT, "/")
        self.page.until(lambda: self.page.one("#shortcuts").is_displayed(), "the list of shortcuts")
        listed = self.page.one("#shortcut-list").text
        for keys in ["Enter", "Esc", "Alt"]:
            self.assertIn(keys, listed)
        self.page.press(Keys.ESCAPE)
        self.page.until(lambda: not self.page.one("#shortcuts").is_displayed(), "the end of the list")
        self.page.ask("say:hello")
        # Every control is reached by Tab, with a visible frame, and Tab comes around again.
        self.page.one("body").click()
        self.page.script("document.activeElement.blur()")
        reached = set()
        for _ in range(80):
            self.page.press(Keys.TAB)
            name, outline = self.page.script(
                "const e = document.activeElement; return [e.id || e.getAttribute('aria-label') || e.className,"
                "getComputedStyle(e).outlineStyle + getComputedStyle(e.closest('.composer') ?? e).borderColor]")
            if name == "skip" and "skip" in reached:
                break
            if name not in ("", "input"):
                self.assertTrue(outline.startswith(("solid", "auto")), f"{name} shows no focus: {outline}")
            reached.add(name)
        for each in ["hide-sidebar", "new", "search", "export", "import", "open-shortcuts", "model", "theme", "open-settings",
                     "toggle-panel", "Copy", "Answer again", "Edit and ask again", "attach", "input", "send",
                     "Rename say:hello", "Delete say:hello"]:
            self.assertIn(each, reached)
        self.page.press(Keys.ALT, "r")
        self.page.until(lambda: self.page.text(".branch") == "2/2", "another answer")
        self.page.answer()
        self.page.press(Keys.ALT, "b")
        self.page.until(lambda: not self.page.one("#sidebar").is_displayed(), "no list of conversations")
        self.page.press(Keys.ALT, "b")
        self.page.press(Keys.ALT, "i")
        self.page.until(lambda: self.page.one("#panel").is_displayed(), "the panel")

    def test_the_list_keeps_the_focus(self):
        def focus():
            return self.page.script("const e = document.activeElement;"
                                    "return [e.className, e.closest('[data-id]')?.querySelector('.row-title')?.textContent]")
        for text in ["say:hello", "say:think"]:
            self.page.click("#new")
            self.page.ask(text)
        self.page.until(lambda: self.page.titles() == ["say:think", "say:hello"], "two conversations")
        self.page.script("document.querySelectorAll('.row-open')[1].focus()")
        self.page.press(Keys.ENTER)
        self.page.until(lambda: self.page.text("#title") == "say:hello" and focus() == ["row-open", "say:hello"],
                        "the focus on the conversation that was opened")
        self.page.press(Keys.TAB)
        self.page.press(Keys.ENTER)
        self.page.focused().send_keys("greeting", Keys.ENTER)
        self.page.until(lambda: focus() == ["row-open", "greeting"], "the focus on the conversation with another name")

    def test_every_control_has_a_name(self):
        self.page.ask("say:markdown")
        self.page.press(Keys.ALT, "i")
        tree = self.page.driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        unnamed = [node for node in tree if node.get("role", {}).get("value") in
                   ("button", "textbox", "searchbox", "combobox", "link", "spinbutton", "image") and
                   not node.get("ignored") and not node.get("name", {}).get("value")]
        self.assertEqual(unnamed, [])

    def test_texts_stand_out_from_their_ground(self):
        self.page.ask("say:markdown")
        self.page.press(Keys.ALT, "i")
        self.page.until(lambda: self.page.one("#facts").text, "the facts")
        for scheme in ["light", "dark"]:
            self.page.emulate(scheme=scheme)
            # Some colours change slowly.
            self.page.until(lambda: not self.page.script(
                CONTRAST, ".bubble, .content p, .content a, .content code, .content th, .code-top span, .figures, .muted, h3,"
                ".row-title, .group, .bar-title, .facts-list dt, .wide-button, .quiet-button, #model"), f"contrast, {scheme}")

    def test_a_phone(self):
        self.page.emulate(390, 844)
        self.page.reload()
        self.assertFalse(self.page.one("#sidebar").is_displayed())
        self.page.ask("say:markdown")
        self.assertEqual(self.page.script("return document.documentElement.scrollWidth"), 390)
        self.assertLessEqual(self.page.script("return document.getElementById('thread').scrollWidth"), 390)
        self.page.click("#show-sidebar")
        self.page.until(lambda: self.page.one("#sidebar").is_displayed(), "the conversations")
        self.assertLess(self.page.one("#sidebar").rect["width"], 390)
        self.assertEqual(self.page.one(".main").rect["width"], 390, "the conversations lie above the messages")
        self.page.click(".row-open")
        self.page.until(lambda: not self.page.one("#sidebar").is_displayed(), "the messages")
        self.page.click("#toggle-panel")
        self.page.until(lambda: self.page.one("#panel").rect["width"] <= 390 and self.page.one("#facts").text, "the panel")
        self.page.click("#close-panel")
        self.page.click("#show-sidebar")
        self.page.emulate()
        self.page.until(lambda: not self.page.one("#veil").is_displayed() and self.page.one("#sidebar").is_displayed(),
                        "a wide page")
