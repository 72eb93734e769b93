// The server's public HTTP API. A token is asked for when the server wants one, and kept in this tab.

const TOKEN = "colmem.token";
let asking = null;
let askToken = async () => null;

/** Say how a token is asked for: a function of whether one was refused, giving a token or null. */
export function onTokenNeeded(ask) {
  askToken = ask;
}

/** An error as the server words it. */
export class ApiError extends Error {
  constructor(status, body, text) {
    super(body.message || text);
    this.status = status;
    this.body = body;
  }
}

async function request(path, { body, signal, accept } = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = {};
    if (token) headers.authorization = `Bearer ${token}`;
    if (accept) headers.accept = accept;
    const options = { headers, signal, cache: "no-store", credentials: "omit" };
    if (body !== undefined) {
      options.method = "POST";
      options.body = JSON.stringify(body);
      headers["content-type"] = "application/json";
    }
    let response;
    try {
      response = await fetch(path, options);
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new ApiError(0, {}, "The server cannot be reached. Is it still running?");
    }
    if (response.ok) return response;
    const failure = await response.json().catch(() => ({}));
    const error = new ApiError(response.status, failure, `The server answered ${response.status}.`);
    if (response.status !== 401) throw error;
    // Requests that fail together share one question; a token given meanwhile is simply used.
    if (sessionStorage.getItem(TOKEN) === token) {
      asking ??= askToken(token !== null).finally(() => { asking = null; });
      const given = await asking;
      if (!given) throw error;
      sessionStorage.setItem(TOKEN, given);
    }
    signal?.throwIfAborted();
  }
}

/** Ask for JSON: with a body as POST, else as GET. */
export async function call(path, body, signal) {
  return (await request(path, { body, signal })).json();
}

/** Start long work; each line of progress goes to `report`, the one that is no progress is the result. */
export async function run(path, body, report) {
  const response = await request(path, { body, accept: "application/x-ndjson" });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let result = null;
  const take = (line) => {
    if (!line.trim()) return;
    const fields = JSON.parse(line);
    if (RESULT_FIELDS.some((name) => name in fields)) result = fields;
    else report(fields);
  };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    lines.forEach(take);
  }
  take(rest);
  if (!result) throw new ApiError(0, {}, "The answer broke off; whether the work was done is not known.");
  if (result.error) throw new ApiError(response.status, result, "The work failed.");
  return result;
}

const RESULT_FIELDS = ["path", "valid", "error"];
