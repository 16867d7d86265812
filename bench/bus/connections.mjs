#!/usr/bin/env node
// A thousand connections with a receiver each: what they cost a server that is idle, and whether each message reaches one of them.
import { execFileSync } from "node:child_process";
import { Baton } from "../../tests/bus/baton.mjs";
import { batonSide, closed, connectTo, cpuSeconds, memory, opened, outcomeOf, readOptions, runProgram, sleep, within } from "./machine.mjs";
import { sendAll } from "./load.mjs";

const usage = `bench/bus/connections.mjs [--connections N] [--messages N] [--seconds S]

Opens --connections (1,000) connections, each with one receiver (credit 5) on the same queue, and prints the server's memory before and after, and its CPU in
per cent of a core over --seconds (10) in which nothing happens. Then --messages (10,000) are sent, which the receivers complete; each has to be received
once, each completion answered, and the queue empty at the end. Exit code 1 if not. BATON_BINARY names the program.`;

const options = readOptions({ connections: 1_000, messages: 10_000, seconds: 10 }, usage);

// Whoever opens them all at once only measures the backlog of listen().
async function openReceivers(side, onMessage, onSettled) {
  const open = [];
  while (open.length < options.connections) {
    const some = Array.from({ length: Math.min(50, options.connections - open.length) }, () => connectTo(side));
    open.push(...await Promise.all(some.map(opened)));
    await Promise.all(some.map((connection) => {
      const receiver = connection.open_receiver({ source: "many", credit_window: 5, rcv_settle_mode: 1 });
      receiver.on("message", ({ message }) => onMessage(connection, message));
      receiver.on("settled", ({ delivery }) => {
        onSettled(outcomeOf(delivery));
        delivery.update(true);
      });
      return new Promise((resolve) => receiver.once("receiver_open", resolve));
    }));
  }
  return open;
}

await runProgram(async (later) => {
  const limit = Number(execFileSync("sh", ["-c", "ulimit -n"], { encoding: "utf8" }));
  if (limit < options.connections + 100) throw new Error(`a process may open ${limit} files here; ulimit -n ${options.connections + 200} allows more`);
  const baton = await Baton.start();
  later(() => baton.stop());
  const { pid } = baton.process;
  baton.bus("create", "queue", "many");
  const side = batonSide(baton);
  await sleep(2000);
  const before = memory(pid);

  const received = new Map(), busy = new Set(), outcomes = {};
  let settled = 0, finish;
  const done = new Promise((resolve) => { finish = resolve; });
  const opening = performance.now();
  const open = await within(120, () => "the connections", openReceivers(side, (connection, message) => {
    received.set(message.message_id, (received.get(message.message_id) ?? 0) + 1);
    busy.add(connection);
  }, (outcome) => {
    outcomes[outcome] = (outcomes[outcome] ?? 0) + 1;
    if (++settled === options.messages) finish();
  }));
  const openingSeconds = (performance.now() - opening) / 1000;
  await sleep(3000);
  const idle = memory(pid), cpuBefore = cpuSeconds(pid);
  await sleep(options.seconds * 1000);
  const cpu = (cpuSeconds(pid) - cpuBefore) / options.seconds * 100;

  const began = performance.now();
  await sendAll(side, "many", options.messages);
  await within(120, () => `${settled} of ${options.messages} completions`, Promise.race([done, ...open.map((each) => each.failure)]));
  const seconds = (performance.now() - began) / 1000;
  const loaded = memory(pid);
  await sleep(500);  // whatever comes twice
  await Promise.all(open.map(closed));
  await sleep(3000);
  const after = memory(pid);
  const { counts } = await baton.http("GET", "/bus/entities/many");

  console.log(`node bench/bus/connections.mjs --connections ${options.connections} --messages ${options.messages} --seconds ${options.seconds}`);
  console.log(`${options.connections} connections opened in ${openingSeconds.toFixed(1)} s`);
  console.log(`RSS MiB: ${before.rss.toFixed(1)} before, ${idle.rss.toFixed(1)} with them, idle (${((idle.rss - before.rss) * 1024 / options.connections).toFixed(1)} KiB each), ` +
    `${loaded.rss.toFixed(1)} after the messages, ${after.rss.toFixed(1)} after they were closed`);
  console.log(`CPU, idle: ${cpu.toFixed(1)} % of a core`);
  console.log(`${options.messages} messages through in ${seconds.toFixed(2)} s (${(options.messages / seconds).toFixed(0)}/s), to ${busy.size} receivers`);
  const twice = [...received.values()].filter((count) => count > 1).length;
  console.log(`received ${received.size}, more than once ${twice}, completions ${JSON.stringify(outcomes)}, left in the queue ${counts.active}, dead ${counts.dead}`);
  return received.size === options.messages && twice === 0 && outcomes.accepted === options.messages && counts.active === 0 && counts.dead === 0 ? 0 : 1;
});
