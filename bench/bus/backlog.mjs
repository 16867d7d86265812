#!/usr/bin/env node
// What messages that wait cost in memory: a server with a thousand of them beside one with a million.
import { Baton } from "../../tests/bus/baton.mjs";
import { receiveAll, sendAll } from "./load.mjs";
import { batonSide, memory, readOptions, runProgram, sleep } from "./machine.mjs";

const usage = `bench/bus/backlog.mjs [--few N] [--many N] [--size BYTES] [--take N] [--through]

A server gets --few (1,000) messages of --size (200) bytes in a queue, another one --many (1,000,000). Of either, in MiB of VmRSS and of the part that is no
file (RssAnon), each after 3 seconds without work:
  filled     all messages were accepted
  restarted  the server was stopped and started again; with the time until it listens, and until a receiver has its first message
  taking     the most while a consumer takes --take (10,000) messages, or all of the few; sampled every 20 ms
  taken      and after it
What was sent by the one and not by the other stays in the caches of allocator and database, whether messages wait or not. With --through the first server
gets the many too, and all but the few are taken again, so that "filled" differs by the waiting messages alone.
BATON_BINARY names the program. The bar is less than 10 MiB between the two, at each of the four moments.`;

const options = readOptions({ few: 1_000, many: 1_000_000, size: 200, take: 10_000, through: false }, usage);
const bar = 10, connections = 4;

async function atRest(baton) {
  await sleep(3000);
  return memory(baton.process.pid);
}

// Samples until the work is done; the greatest of each.
async function most(baton, work) {
  const found = memory(baton.process.pid);
  const timer = setInterval(() => {
    const now = memory(baton.process.pid);
    for (const name of Object.keys(found)) found[name] = Math.max(found[name], now[name]);
  }, 20);
  try {
    await work();
  } finally { clearInterval(timer); }
  return found;
}

async function restart(baton) {
  await baton.kill("SIGTERM");
  const began = performance.now();
  await baton.start(...baton.options);
  return (performance.now() - began) / 1000;
}

async function depth(baton, queue) {
  const { counts } = await baton.http("GET", `/bus/entities/${queue}`);
  return counts.active;
}

async function measure(later, count, through) {
  const baton = await Baton.start();
  later(() => baton.stop());
  baton.bus("create", "queue", "backlog");
  const side = batonSide(baton);
  const filling = await sendAll(side, "backlog", through, { connections, size: options.size });
  if (through > count) await receiveAll(side, "backlog", through - count, { connections, exact: true });
  const found = { waiting: await depth(baton, "backlog"), filling, filled: await atRest(baton) };
  if (found.waiting !== count) throw new Error(`${found.waiting} messages wait, and not ${count}`);
  found.listening = await restart(baton);
  found.restarted = await atRest(baton);
  found.first = await receiveAll(batonSide(baton), "backlog", 1, { credit: 1, exact: true });
  const take = Math.min(options.take, count - 1);
  found.taking = await most(baton, () => receiveAll(batonSide(baton), "backlog", take, { settle: "second", exact: true }));
  found.taken = await atRest(baton);
  await baton.stop();
  return found;
}

await runProgram(async (later) => {
  console.log(`node bench/bus/backlog.mjs --few ${options.few} --many ${options.many} --size ${options.size} --take ${options.take}${options.through ? " --through" : ""}`);
  const few = await measure(later, options.few, options.through ? options.many : options.few);
  const many = await measure(later, options.many, options.many);
  console.log(`${"MiB".padEnd(14)}${`RSS ${options.few}`.padStart(14)}${`RSS ${options.many}`.padStart(14)}${"more".padStart(9)}${"RssAnon".padStart(12)}${"RssAnon".padStart(10)}${"more".padStart(9)}`);
  for (const moment of ["filled", "restarted", "taking", "taken"]) {
    const [a, b] = [few[moment], many[moment]];
    const more = b.rss - a.rss;
    console.log(`${moment.padEnd(14)}${a.rss.toFixed(1).padStart(14)}${b.rss.toFixed(1).padStart(14)}${more.toFixed(1).padStart(9)}` +
      `${a.anonymous.toFixed(1).padStart(12)}${b.anonymous.toFixed(1).padStart(10)}${(b.anonymous - a.anonymous).toFixed(1).padStart(9)}` +
      `  bar ${bar}, ${more < bar ? "met" : "not met"}`);
  }
  for (const [title, found] of [[options.few, few], [options.many, many]])
    console.log(`${title} messages: sent in ${found.filling.toFixed(1)} s, listens ${found.listening.toFixed(2)} s after the start, the first message ${(found.first * 1000).toFixed(1)} ms after the connection`);
});
