// What the page asks of the server, and what is said when that fails.

export class Trouble extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let key = "";

export function useKey(given) {
  key = given;
}

export async function ask(path, options = {}) {
  const headers = {...options.headers, ...(key ? {Authorization: `Bearer ${key}`} : {})};
  let answer;
  try {
    answer = await fetch(path, {...options, headers});
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The server cannot be reached. Is it still running?", 0);
  }
  if (!answer.ok) throw new Trouble(await sentenceOf(answer), answer.status);
  return answer;
}

async function sentenceOf(answer) {
  try {
    const {error} = await answer.json();
    return error.message;
  } catch {
    return `The server answered with ${answer.status} ${answer.statusText}.`.replace(" .", ".");
  }
}

// The events of a decoding, each as [name, data], until it is done or ``signal`` aborts it.
export async function* decode(body, signal) {
  const headers = {"Content-Type": "application/json"};
  const answer = await ask("v1/canvas", {method: "POST", headers, body: JSON.stringify(body), signal});
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "", finished = false;
  while (true) {
    const {value, done} = await pieceOfStream(reader);
    if (done) break;
    text += value;
    const parts = text.split("\n\n");
    text = parts.pop();
    for (const part of parts) {
      const event = eventOf(part);
      if (!event) continue;
      if (event[0] === "error") throw new Trouble(event[1].error.message, answer.status);
      finished = event[0] === "result";
      yield event;
    }
  }
  if (!finished) throw new Trouble("The server ended the stream before the text was finished.", answer.status);
}

async function pieceOfStream(reader) {
  try {
    return await reader.read();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Trouble("The connection to the server was lost.", 0);
  }
}

// A server-sent event; null for a comment that only keeps the connection alive.
function eventOf(part) {
  const lines = part.split("\n");
  const name = lines.find(line => line.startsWith("event: ")), data = lines.find(line => line.startsWith("data: "));
  return name && data ? [name.slice(7), JSON.parse(data.slice(6))] : null;
}
