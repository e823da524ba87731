// Make one piece of the page like another, touching only what differs: focus, typed text, ticks,
// open details and scroll positions stay. Elements are matched by id, else by place and tag.

const TYPED = new Set(["INPUT", "TEXTAREA", "SELECT"]);
// What the reader has changed since is the reader's, and not overwritten.
const OWN = { DETAILS: ["open"], INPUT: ["value", "checked"], OPTION: ["selected"] };

/** Morph `from` (in the page) into `to`; `keep` leaves elements with data-keep as they are. */
export function morph(from, to, keep = false) {
  if (keep && from.hasAttribute("data-keep")) return;
  attributes(from, to);
  if (from.tagName === "TEXTAREA" && from.value !== from.defaultValue) return;
  children(from, to, keep);
}

function attributes(from, to) {
  const own = OWN[from.tagName] ?? [];
  const isTyped = TYPED.has(from.tagName) && from.type !== "hidden";
  for (const { name, value } of [...to.attributes]) {
    if (own.includes(name) && (isTyped || from.tagName === "DETAILS")) continue;
    if (from.getAttribute(name) !== value) from.setAttribute(name, value);
  }
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && !own.includes(name)) from.removeAttribute(name);
  }
}

function children(from, to, keep) {
  const named = new Map();
  for (const child of from.children) if (child.id) named.set(child.id, child);
  const staying = new Set([...to.children].map((child) => child.id));
  let next = from.firstChild;
  for (const wanted of [...to.childNodes]) {
    // What goes makes room first: moving what stays would cost it its focus.
    while (next?.id && !staying.has(next.id)) next = dropped(next);
    const match = (wanted.id && named.get(wanted.id)) || (alike(next, wanted) ? next : null);
    if (!match) {
      from.insertBefore(wanted, next);
      continue;
    }
    if (match === next) next = next.nextSibling;
    else from.insertBefore(match, next);
    if (match.nodeType === Node.ELEMENT_NODE) morph(match, wanted, keep);
    else if (match.data !== wanted.data) match.data = wanted.data;
  }
  while (next) next = dropped(next);
}

/** Remove `node`; returns the one after it. */
function dropped(node) {
  const after = node.nextSibling;
  node.remove();
  return after;
}

/** Whether `node`, which has no name of its own, can become `wanted`. */
function alike(node, wanted) {
  return Boolean(node) && node.nodeType === wanted.nodeType && node.nodeName === wanted.nodeName
    && !node.id && !wanted.id;
}

/** Do `work`; if what had the focus is gone then, the place that it stood in gets it, or else
 *  the place where the page tells what came of it. */
export function keepingFocus(work) {
  const active = document.activeElement;
  const place = active?.closest("[tabindex='-1'][id]:not(main)")?.id;
  work();
  if (!active || active === document.body || active.isConnected) return;
  const heir = document.getElementById(place) ?? document.querySelector("[data-landing]")
    ?? document.getElementById("run-head");
  heir?.focus({ preventScroll: Boolean(place) });
}
