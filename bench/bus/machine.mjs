// What the programs of this folder share: options, figures of processes, medians, and connections of rhea to either broker.
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";

export const rhea = createRequire(new URL("../../tests/bus/package.json", import.meta.url))("rhea");

// Numbers and words by name; `usage` is printed for what is not known.
export function readOptions(defaults, usage) {
  const options = { help: { type: "boolean" } };
  for (const [name, value] of Object.entries(defaults)) options[name] = { type: typeof value === "boolean" ? "boolean" : "string" };
  let given;
  try {
    given = parseArgs({ options }).values;
    for (const [name, value] of Object.entries(defaults))
      if (typeof value === "number" && given[name] !== undefined && !(Number(given[name]) > 0)) throw new Error(`--${name} must be a number above 0`);
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
  if (given.help) {
    console.log(usage);
    process.exit(0);
  }
  return Object.fromEntries(Object.entries(defaults).map(([name, value]) =>
    [name, given[name] === undefined ? value : typeof value === "number" ? Number(given[name]) : given[name]]));
}

// Runs a program of this folder: whatever it started has ended when it ends, also when it is interrupted.
export async function runProgram(main) {
  const cleanUps = [];
  const cleanUp = async () => { while (cleanUps.length) await cleanUps.pop()().catch((error) => console.error(error.message)); };
  for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => cleanUp().then(() => process.exit(130)));
  let code = 0;
  try {
    code = await main((work) => cleanUps.push(work)) ?? 0;
  } catch (error) {
    console.error(error);
    code = 1;
  }
  await cleanUp();
  process.exit(code);
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

export function quantile(values, part) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))];
}
export const median = (values) => quantile(values, 0.5);

// Memory of a process in MiB: all of it that is resident, and the part that is no file.
export function memory(pid) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mib = (name) => Number(status.match(new RegExp(`^${name}:\\s+(\\d+) kB`, "m"))[1]) / 1024;
  return { rss: mib("VmRSS"), anonymous: mib("RssAnon") };
}

const ticksPerSecond = 100;  // of /proc on Linux, whatever the kernel's own rate is
function statOf(pid) {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").pop().split(" ");
  return { group: Number(fields[2]), cpu: (Number(fields[11]) + Number(fields[12])) / ticksPerSecond };
}

export const cpuSeconds = (pid) => statOf(pid).cpu;

// Of all processes of a group: RabbitMQ is a shell script, its virtual machine and some helpers.
export function cpuSecondsOfGroup(group) {
  let sum = 0;
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const found = statOf(entry);
      if (found.group === group) sum += found.cpu;
    } catch { /* it has ended meanwhile */ }
  }
  return sum;
}

export function ownCpuSeconds() {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1e6;
}

// What goes wrong on a connection ends the program's wait, see `failure`; a lost connection is not opened again.
export function connectTo(side, more = {}) {
  const connection = rhea.create_container().connect({ host: "127.0.0.1", reconnect: false, ...side, ...more });
  connection.failure = new Promise((_, reject) => {
    const fail = (what) => (context) => reject(new Error(`${what}: ${context.error?.message ?? context.receiver?.error ?? context.sender?.error ?? context.connection?.error ?? ""}`));
    for (const event of ["connection_error", "session_error", "sender_error", "receiver_error", "error"]) connection.on(event, fail(event));
    connection.on("disconnected", (context) => { if (!connection.closing) fail("disconnected")(context); });
  });
  connection.failure.catch(() => {});
  return connection;
}

export async function opened(connection) {
  await Promise.race([new Promise((resolve) => connection.once("connection_open", resolve)), connection.failure]);
  return connection;
}

// accepted, rejected, released or modified.
export const outcomeOf = (delivery) => delivery.remote_state?.constructor?.composite_type;

// Ends when the broker has answered the close, so that it has read all that was written before.
export async function closed(connection) {
  connection.closing = true;
  const gone = new Promise((resolve) => { for (const event of ["connection_close", "disconnected"]) connection.once(event, resolve); });
  connection.close();
  await Promise.race([gone, sleep(10_000)]);
}

export async function within(seconds, what, promise) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`not within ${seconds} s: ${what()}`)), seconds * 1000); });
  try {
    return await Promise.race([promise, late]);
  } finally { clearTimeout(timer); }
}

export const batonSide = (baton) => ({ port: Number(baton.amqp.split(":").pop()), username: "any", address: (queue) => queue });
export const rabbitSide = (rabbit) => ({ port: rabbit.port, username: "site", password: "secret", address: (queue) => `/amq/queue/${queue}` });
