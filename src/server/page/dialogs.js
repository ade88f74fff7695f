// The dialogs: settings, the API key, and the question before something is deleted.
import { byId } from "./dom.js";
import { resettable, saveSettings, settings } from "./settings.js";

// Resolves to whether it may be deleted.
export function confirmDelete(question) {
  const dialog = byId("confirm");
  byId("confirm-text").textContent = question;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => resolve(dialog.returnValue === "yes"), { once: true });
  });
}

// Asks for the key and keeps it. Resolves to whether one was given.
export function askForKey(reason) {
  const dialog = byId("key");
  byId("key-reason").textContent = reason;
  byId("key-input").value = "";
  if (!dialog.open) dialog.showModal();
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      const key = byId("key-input").value.trim();
      if (key) saveSettings({ key });
      resolve(key !== "");
    }, { once: true });
  });
}

const fields = () => byId("settings").querySelectorAll("[data-setting]");

function showSettings() {
  for (const field of fields()) field.value = settings[field.dataset.setting];
}

export function openSettings() {
  showSettings();
  byId("settings").showModal();
}

// The server's own values appear where none is set. -1 stands for what the page has a word for: random, no limit.
export function showDefaults(values) {
  for (const field of fields()) {
    field.dataset.word ??= field.placeholder;
    const value = values[field.dataset.setting];
    if (value !== undefined) field.placeholder = value === -1 ? field.dataset.word : value;
  }
}

export function startDialogs() {
  byId("open-settings").addEventListener("click", openSettings);
  byId("reset-settings").addEventListener("click", () => { saveSettings(resettable()); showSettings(); });
  for (const field of fields())
    field.addEventListener("change", () => {
      if (field.checkValidity()) saveSettings({ [field.dataset.setting]: field.value.trim() });
      else field.reportValidity();
    });
  for (const dialog of document.querySelectorAll("dialog")) {
    // A click beside a dialog closes it.
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    // Chromium gives a text field its focus back without a caret: nothing could be typed.
    dialog.addEventListener("close", () => {
      const field = document.activeElement;
      field.blur();
      field.focus();
    });
  }
}
