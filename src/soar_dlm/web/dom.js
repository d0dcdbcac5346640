// Elements, and what is done with them everywhere.

export const byId = id => document.getElementById(id);

export function element(name, kind, text) {
  const made = document.createElement(name);
  if (kind) made.className = kind;
  if (text !== undefined) made.textContent = text;
  return made;
}

// A box that the keyboard can reach and scroll.
export function reached(kind, role, label) {
  const made = element("div", kind);
  made.tabIndex = 0;
  made.setAttribute("role", role);
  made.setAttribute("aria-label", label);
  return made;
}

// Gives a select these [value, text] pairs to choose from.
export function choices(select, pairs, chosen) {
  select.replaceChildren(...pairs.map(([value, text]) => {
    const made = element("option", "", text);
    made.value = value;
    return made;
  }));
  select.value = chosen;
}

// Scrolls a box, and never the page.
export function showWithin(box, inside) {
  const outer = box.getBoundingClientRect(), inner = inside.getBoundingClientRect();
  if (inner.top < outer.top) box.scrollTop -= outer.top - inner.top;
  else if (inner.bottom > outer.bottom) box.scrollTop += inner.bottom - outer.bottom;
}
