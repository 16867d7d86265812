// A closed loop of so many clients on a server, each with a connection of its own that it keeps: it sends its next request when the answer to
// the last one is there. Both sides of the comparison are driven by this one program, so its cost is the same for both.
//
//   node load.mjs PLAN      a JSON object with
//     port, path, body                the request
//     status, contains                what the answer to a completed job has; `contains` is a list
//     clients, warm_up, seconds       the first seconds are not counted
//     pids                            processes by name whose CPU counts
//
// It prints one JSON object. Like the client of `baton bench` it reads answers with a minimal parser over plain sockets, because what it uses
// is missing to the server.
import fs from "node:fs";
import net from "node:net";

const plan = JSON.parse(process.argv[2]);
const drainSeconds = 20;
const ticksPerSecond = 100; // USER_HZ, the same on every Linux
const request = Buffer.from(
  `POST ${plan.path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n` +
    `Content-Length: ${Buffer.byteLength(plan.body)}\r\n\r\n${plan.body}`);

const latencies = [];
let measuring = false, over = false;
let inFlight = 0, answered = 0, jobs = 0, failed = 0;
let firstFailure = null;

function fail(why) {
  failed += 1;
  firstFailure ??= why;
}

// User and system time are the 12th and 13th field behind the name, which is in parentheses and may hold blanks.
function cpuSeconds(pid) {
  const text = fs.readFileSync(`/proc/${pid}/stat`, "latin1");
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond;
}

function usage() {
  const own = process.cpuUsage();
  const seconds = { client: (own.user + own.system) / 1e6 };
  for (const [name, pid] of Object.entries(plan.pids)) seconds[name] = cpuSeconds(pid);
  return seconds;
}

// The whole answer at the start of the text, or null while a part of it is missing.
function parse(text) {
  const end = text.indexOf("\r\n\r\n");
  if (end < 0) return null;
  const length = /\r\ncontent-length: *(\d+)/i.exec(text.slice(0, end));
  if (!length) throw new Error(`an answer without Content-Length:\n${text.slice(0, 500)}`);
  if (text.length < end + 4 + Number(length[1])) return null;
  return { status: Number(text.slice(9, 12)), body: text.slice(end + 4, end + 4 + Number(length[1])) };
}

function client() {
  const socket = net.connect({ port: plan.port, host: "127.0.0.1", noDelay: true });
  let text = "", sent = 0n, counts = false;
  const send = () => {
    inFlight += 1;
    counts = measuring;
    sent = process.hrtime.bigint();
    socket.write(request);
  };
  socket.on("connect", send);
  socket.on("data", (chunk) => {
    text = text === "" ? chunk.latin1Slice() : text + chunk.latin1Slice();
    const answer = parse(text);
    if (!answer) return;
    const took = process.hrtime.bigint() - sent;
    text = "";
    inFlight -= 1;
    if (answer.status === plan.status && plan.contains.every((part) => answer.body.includes(part))) {
      answered += 1;
      if (measuring) jobs += 1;
      if (counts) latencies.push(Number(took) / 1e6);
    } else {
      fail(`${answer.status} ${answer.body}`);
    }
    if (!over) send();
  });
  socket.on("error", (error) => fail(error.message));
  socket.on("close", () => { if (!over) fail("the server closed a connection"); });
  return socket;
}

function quantile(sorted, q) {
  return sorted.length ? sorted[Math.max(Math.ceil(q * sorted.length), 1) - 1] : null;
}

const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

const sockets = Array.from({ length: plan.clients }, client);
await sleep(plan.warm_up);
const before = usage();
const begun = process.hrtime.bigint();
measuring = true;
await sleep(plan.seconds);
measuring = false;
over = true;
const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
const after = usage();
for (let i = 0; i < drainSeconds * 100 && inFlight > 0; ++i) await sleep(0.01);
if (inFlight > 0) fail(`${inFlight} jobs without an answer`);
for (const socket of sockets) socket.destroy();

latencies.sort((a, b) => a - b);
const cpu = {};
for (const name of Object.keys(after)) cpu[name] = after[name] - before[name];
console.log(JSON.stringify({
  jobs, answered, failed, first_failure: firstFailure, seconds, jobs_per_second: jobs / seconds, p50_ms: quantile(latencies, 0.5),
  p99_ms: quantile(latencies, 0.99), cpu_seconds: cpu,
}));
