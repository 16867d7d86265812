// A worker of baton on the same node as the peer's: long polls for batches of tasks, and reports each batch in one request, as the worker of
// `baton bench` does. `bench/versus --worker node` uses it, so that neither side gains by the language of its worker.
//
//   node baton_worker.mjs URL
import http from "node:http";

const base = `${process.argv[2]}/api/v1`;
const polls = 4;
const tasksMax = 500;
const name = "versus";
const agent = new http.Agent({ keepAlive: true });

function post(path, body) {
  return new Promise((resolve, reject) => {
    const text = JSON.stringify(body);
    const headers = { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) };
    const request = http.request(base + path, { agent, method: "POST", headers }, (answer) => {
      const parts = [];
      answer.on("data", (part) => parts.push(part));
      answer.on("error", reject);
      answer.on("end", () => {
        const answered = Buffer.concat(parts).toString();
        if (answer.statusCode === 200) resolve(JSON.parse(answered));
        else reject(new Error(`${path} answered ${answer.statusCode}: ${answered}`));
      });
    });
    request.on("error", reject);
    request.end(text);
  });
}

async function poll() {
  for (;;) {
    const { jobs } = await post("/workers/bench/jobs:poll", { max: tasksMax, wait_ms: 30000, worker: name });
    const results = jobs.map(({ task_id, lease, params }) => ({ task_id, lease, status: "completed", output: params, worker_id: name }));
    if (results.length > 0) await post("/callbacks/task-results", { results });
  }
}

// It ends when the server does, or by a signal of whoever started it.
await Promise.all(Array.from({ length: polls }, poll));
