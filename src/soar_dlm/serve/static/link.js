// The settings and the prompt as the fragment of an address, which no server ever sees, and back.

const SIDES = ["a", "b"];

// A setup is {text, sides: [{strategy, settings}, ...], options}; values are strings, and absent where they are defaults.
export function linkOf({text, sides, options}) {
  const parts = new URLSearchParams({text, ...options});
  sides.forEach(({strategy, settings}, number) => {
    parts.set(SIDES[number], strategy);
    for (const [name, value] of Object.entries(settings)) parts.set(`${SIDES[number]}.${name}`, value);
  });
  return `#${parts}`;
}

// The setup that a fragment has, and whether it should run at once; null if it has none.
export function setupOf(fragment) {
  const parts = new URLSearchParams(fragment.slice(1));
  if (!parts.has("text")) return null;
  const sides = SIDES.filter(side => parts.has(side)).map(side => ({strategy: parts.get(side), settings: {}}));
  const options = {};
  for (const [name, value] of parts) {
    const [side, setting] = name.split(".");
    const place = SIDES.indexOf(side);
    if (place >= 0 && setting !== undefined && sides[place]) sides[place].settings[setting] = value;
    else if (place < 0 && !["text", "run"].includes(name)) options[name] = value;
  }
  return {setup: {text: parts.get("text"), sides, options}, run: parts.has("run")};
}
