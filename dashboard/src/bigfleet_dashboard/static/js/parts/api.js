// Asking the server. A refusal is an Error with what the server said.

export async function get(path, signal) {
  return read(await fetch(`/api/v1${path}`, { signal, headers: { Accept: "application/json" } }));
}

export async function post(path, body) {
  return read(await fetch(`/api/v1${path}`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

async function read(answer) {
  let document_;
  try { document_ = await answer.json(); } catch { throw new Error(`the server answered ${answer.status}`); }
  if (!answer.ok) throw new Error(document_.error || `the server answered ${answer.status}`);
  return document_;
}
