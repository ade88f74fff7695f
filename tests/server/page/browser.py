"""A browser with the chat page, and the actions of a person who uses it. Used by page_case.py."""
import json
import subprocess
import tempfile
from pathlib import Path

from selenium.common.exceptions import ElementClickInterceptedException, StaleElementReferenceException, TimeoutException
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 20  # far beyond what anything takes, also on a busy machine


def start_server(program, model, script):
    """Starts a server with scripted answers; returns the process and its address."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(script, file)
    server = subprocess.Popen([program, model, file.name], stdout=subprocess.PIPE, text=True)
    address = server.stdout.readline().strip()
    Path(file.name).unlink()
    return server, address


def start_browser(downloads):
    """Chromium without a window; as root it needs --no-sandbox."""
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for each in ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=1280,860",
                 "--force-color-profile=srgb", "--hide-scrollbars", "--no-first-run", "--disable-background-networking"]:
        options.add_argument(each)
    options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


class Page:
    def __init__(self, driver, address):
        self.driver = driver
        self.address = address

    # --- the page as a whole
    def open(self, path="/"):
        """Opens the page as a browser that was never here."""
        self.driver.get("about:blank")
        self.driver.execute_cdp_cmd("Storage.clearDataForOrigin", {"origin": self.address, "storageTypes": "all"})
        self.driver.get(self.address + path)
        self.until(lambda: self.all("#model option") or self.one("#key").is_displayed(), "the models")

    def reload(self):
        self.driver.refresh()
        self.until(lambda: self.all("#model option"), "the models")

    def until(self, condition, what):
        try:
            return WebDriverWait(self.driver, SECONDS, poll_frequency=0.02).until(lambda _: condition())
        except TimeoutException:
            raise AssertionError(f"waited for {what}; the page shows:\n{self.one('body').text}") from None

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def emulate(self, width=0, height=0, scheme=""):
        """A screen of this size (0: the window's) and a system that is light or dark."""
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        if width:
            self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                "width": width, "height": height, "deviceScaleFactor": 0, "mobile": True})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {
            "features": [{"name": "prefers-color-scheme", "value": scheme}] if scheme else []})

    def console(self):
        """What the browser complained about since the last call: errors, warnings, violations of the security policy."""
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requested(self):
        """The addresses that were asked for since the last call."""
        urls = []
        for entry in self.driver.get_log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                urls.append(message["params"]["request"]["url"])
        return urls

    # --- elements
    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def visible(self, selector):
        return self.until(lambda: next((each for each in self.all(selector) if each.is_displayed()), None), selector)

    def click(self, selector):
        """Clicks when nothing covers the element; a growing answer moves it."""
        def clicked():
            try:
                self.visible(selector).click()
                return True
            except (ElementClickInterceptedException, StaleElementReferenceException):
                return False
        self.until(clicked, f"a click on {selector}")

    def text(self, selector):
        return self.script("return document.querySelector(arguments[0])?.textContent ?? null", selector)

    def press(self, *keys):
        """Presses keys together, wherever the focus is."""
        chain = webdriver.ActionChains(self.driver)
        for key in keys[:-1]:
            chain.key_down(key)
        chain.send_keys(keys[-1])
        for key in keys[:-1]:
            chain.key_up(key)
        chain.perform()

    def focused(self):
        return self.driver.switch_to.active_element

    # --- conversations
    def write(self, text):
        """Sends a message, without waiting for its answer."""
        self.until(lambda: self.one("#send").is_displayed(), "the send button")
        self.one("#input").send_keys(text, Keys.ENTER)

    def ask(self, text):
        """Sends a message and returns the whole answer."""
        number = len(self.all(".message.assistant"))
        self.write(text)
        self.until(lambda: len(self.all(".message.assistant")) > number, "an answer")
        return self.answer()

    def answer(self):
        """The text of the last answer, when it has ended."""
        self.until(lambda: self.one("#send").is_displayed() and
                   not self.all(".message.assistant[data-state=writing]"), "the end of the answer")
        return self.messages()[-1]

    def partial(self, length=30):
        """Waits until an answer that is being written has some text."""
        return self.until(lambda: (text := self.text(".message.assistant:last-child .content")) and len(text) > length and
                          text, "a part of an answer")

    def messages(self):
        return self.script("return [...document.querySelectorAll('.message .content, .message .bubble')]"
                           ".map(each => each.textContent.trim())")

    def kept(self):
        """The role, state and length of each message in the browser's database."""
        return self.driver.execute_async_script(
            "const done = arguments[0]; const open = indexedDB.open('prism'); open.onsuccess = () => {"
            " const all = open.result.transaction('messages').objectStore('messages').getAll();"
            " all.onsuccess = () => { open.result.close();"
            "   done(all.result.map(each => [each.role, each.state, each.content.length])); }; }")

    def titles(self):
        return self.script("return [...document.querySelectorAll('.row-title')].map(each => each.textContent)")

    def close(self, dialog, button=".main-button"):
        """Closes a dialog by its button, and waits until the page is usable again."""
        self.click(f"{dialog} {button}")
        self.until(lambda: not self.one(dialog).is_displayed(), f"the end of {dialog}")

    def confirm(self):
        self.close("#confirm")
