"use strict";
// A digit presses the button of that label; u goes back one item.  Keys held with a modifier belong to the browser.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const button = document.querySelector(`button[data-key="${CSS.escape(event.key)}"]`);
  const link = document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`);
  if (button || link) {
    event.preventDefault();
    (button || link).click();
  }
});
for (const form of document.querySelectorAll("form")) {
  form.addEventListener("submit", () => {
    // one press is one label: a second click while the page loads is not sent
    setTimeout(() => form.querySelectorAll("button").forEach((b) => (b.disabled = true)), 0);
  });
}
