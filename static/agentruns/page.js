// What every page does beyond plain HTML. Without it everything still works, by full reloads.

import { keepingFocus, morph } from "./morph.js";

// The reader's time zone, so that the server writes times as the clock on the wall shows them.
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
if (zone) document.cookie = `timezone=${zone}; path=/; max-age=31536000; samesite=lax`;

/** Put words into the page's region for problems, which is read out. */
export function tell(words) {
  const line = document.createElement("div");
  line.className = "problem";
  line.textContent = words;
  document.getElementById("problem").replaceChildren(...(words ? [line] : []));
}

/** Have a screen reader say `words`, unless it has just said them. */
export function announce(words) {
  const line = document.getElementById("announce");
  if (words && line.textContent !== words) line.textContent = words;
}

// What was sent by a form that leads to another page stays in this tab until that page is there: it
// may not come, and nobody writes a goal twice. With the form's key: sent again, it is the same run.
const form = document.querySelector("form[data-typed-by]");
const typed = JSON.parse(sessionStorage.getItem("typed") ?? "null");
if (form || document.getElementById("run")) sessionStorage.removeItem("typed");
if (form && typed?.by === form.dataset.typedBy && !form.elements.goal.value) {
  for (const [name, value] of Object.entries(typed.fields)) form.elements[name].value = value;
  document.getElementById("typed").hidden = false;
}
form?.addEventListener("submit", () => {
  const { csrfmiddlewaretoken, ...fields } = Object.fromEntries(new FormData(form));
  if (!fields.goal.trim()) return;
  sessionStorage.setItem("typed", JSON.stringify({ by: form.dataset.typedBy, fields }));
});

document.querySelector("form[data-sign-out]")?.addEventListener("submit", () => {
  sessionStorage.removeItem("typed");
});

if (window.htmx) {
  htmx.defineExtension("keep", {
    isInlineSwap: (style) => style === "keep",
    handleSwap(style, target, fragment) {
      if (style !== "keep") return false;
      const wanted = fragment.firstElementChild;
      // Nothing of ours came back: signed out meanwhile, most likely. The address knows.
      if (!wanted) location.reload();
      else renew(target, wanted);
      return wanted ? [target] : true;
    },
  });
}

/** Make `shown` like `answer`, unless that was overtaken on its way: the page may be newer by now. */
export function renew(shown, answer) {
  if (Number(answer.dataset.seq) < Number(shown.dataset.seq)) return;
  keepingFocus(() => morph(shown, answer));
}

document.addEventListener("htmx:beforeRequest", () => tell(""));
document.addEventListener("htmx:afterSwap", ({ target }) => {
  target.dispatchEvent(new CustomEvent("page:drawn", { bubbles: true }));
});

// No answer at all, or one that says only that somebody behind it is away.
document.addEventListener("htmx:sendError", ({ target }) => unanswered(target));
document.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (![502, 503, 504].includes(detail.xhr.status)) return;
  detail.shouldSwap = false;
  unanswered(detail.requestConfig.elt);
});

function unanswered(target) {
  if (target.hasAttribute("hx-trigger")) return; // only looked up again: nobody asked
  tell(document.getElementById("problem").dataset.noAnswer);
}

// What a preview says would be undone is what was ticked then.
document.addEventListener("change", ({ target }) => {
  if (target.form?.id === "undo") document.getElementById("undo-preview").replaceChildren();
});

document.addEventListener("click", (event) => {
  const place = event.target.closest("[data-close]");
  const open = place && document.getElementById("run") && document.querySelector(place.dataset.close);
  if (!open) return;
  event.preventDefault();
  open.replaceChildren();
  document.querySelector("#undo button")?.focus();
});
