// Stop, from the press until it got through. It may be asked for as often as one likes, so it is
// sent again by itself until an answer says that it has arrived; a further press sends it at once.

import { announce, renew, tell } from "./page.js";

const PATIENCE = 3000; // ms without an answer, after which it is sent once more
const PAUSE = 1000; // ms after an answer that says only that something behind it is away
const AT_ONCE = 3; // attempts under way; beyond that the oldest makes room

let pressed = null; // until it got through: words on and below the button, attempts, the next one

document.addEventListener("submit", (event) => {
  if (!event.target.matches("form[data-stop]")) return;
  event.preventDefault();
  const words = pressed ? "sendingAgain" : "sending";
  pressed ??= { attempts: new Set(), next: 0 };
  pressed.words = event.target.dataset[words];
  show();
  announce(pressed.words);
  send();
});
window.addEventListener("online", () => pressed && send());
for (const drawn of ["page:drawn", "run:drawn"]) document.addEventListener(drawn, redrawn);

const form = () => document.querySelector("form[data-stop]");

function show() {
  const button = form().querySelector("button");
  button.setAttribute("aria-busy", "true");
  button.lastElementChild.textContent = pressed.words;
  if (!pressed.trouble) return;
  const line = document.createElement("span");
  line.className = "is-unconfirmed";
  line.textContent = pressed.trouble;
  document.getElementById("foresight").replaceChildren(line);
}

/** A drawing has put the button's own words back; or it shows that the run is stopping. One that
 *  was begun before the Stop may come after it.
 */
function redrawn() {
  if (!pressed) return;
  if (document.getElementById("run").dataset.phase === "live") show();
  else over();
}

async function send() {
  const mine = pressed;
  const attempt = new AbortController();
  clearTimeout(mine.next);
  mine.next = setTimeout(unanswered, PATIENCE);
  mine.attempts.add(attempt);
  if (mine.attempts.size > AT_ONCE) [...mine.attempts][0].abort();
  try {
    const answer = await fetch(form().action, {
      method: "POST",
      headers: { "HX-Request": "true", "X-CSRFToken": token() },
      signal: attempt.signal,
      keepalive: true, // also if the reader goes to another page now
    });
    if (pressed === mine) await hear(answer);
  } catch {
    if (pressed === mine && !attempt.signal.aborted) later();
  } finally {
    mine.attempts.delete(attempt);
  }
}

/** As it is now: another tab may have signed in since this page was loaded. */
function token() {
  const [, cookie] = document.cookie.match(/(?:^|; )csrftoken=([^;]*)/) ?? [];
  return cookie ?? form().elements.csrfmiddlewaretoken.value;
}

async function hear(answer) {
  if (answer.status === 204) {
    pressed.words = form().dataset.arrived;
    pressed.trouble = "";
    clearTimeout(pressed.next);
    show();
    look();
  } else if (answer.ok) {
    location.reload(); // signed out meanwhile: the address knows
  } else if (answer.status >= 500 || answer.status === 429) {
    later();
  } else {
    await refused(answer);
  }
}

function unanswered() {
  sayUnconfirmed();
  send();
}

function later() {
  sayUnconfirmed();
  clearTimeout(pressed.next);
  pressed.next = setTimeout(send, PAUSE);
}

function sayUnconfirmed() {
  const { unconfirmed, offline } = form().dataset;
  pressed.trouble = navigator.onLine ? unconfirmed : offline;
  show();
  announce(pressed.trouble);
}

async function refused(answer) {
  const mine = pressed;
  const problem = await parsed(answer);
  if (pressed !== mine) return;
  clearTimeout(mine.next);
  await look();
  tell(problem.querySelector(".problem")?.textContent.trim() ?? "");
}

function over() {
  clearTimeout(pressed.next);
  pressed = null;
  form().querySelector("button").removeAttribute("aria-busy");
}

/** Show what came of it, also if no live connection would. Until that is known, the words stay. */
async function look() {
  const mine = pressed;
  const run = document.getElementById("run");
  while (pressed === mine) {
    const answer = await fetch(location.pathname, { headers: { "HX-Request": "true" } }).catch(() => null);
    const page = answer?.ok && (await parsed(answer)).getElementById("run");
    if (pressed !== mine) return;
    if (page) {
      over();
      renew(run, page);
      window.htmx?.process(run);
      run.dispatchEvent(new CustomEvent("page:drawn", { bubbles: true }));
    } else if (answer?.ok) {
      location.reload(); // signed out meanwhile: the address knows
      return;
    } else {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
    }
  }
}

async function parsed(answer) {
  return new DOMParser().parseFromString(await answer.text(), "text/html");
}
