"use strict";
// A key presses the button, link or field that names it in data-key; Escape leaves a field. Text of a page is never read
// as anything but text here: keys are compared, nothing is looked up by what a page says.
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const at = document.activeElement;
  if (at && ["INPUT", "TEXTAREA", "SELECT"].includes(at.tagName)) {
    if (event.key === "Escape") at.blur();
    return;
  }
  for (const target of document.querySelectorAll("[data-key]")) {
    if (target.dataset.key !== event.key) continue;
    event.preventDefault();
    if (["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName)) target.focus();
    else target.click();
    return;
  }
});
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", () => {
    // one press is one decision: a second one while the page loads is not sent
    setTimeout(() => form.querySelectorAll("button").forEach((b) => (b.disabled = true)), 0);
  });
}
