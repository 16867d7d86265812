#!/usr/bin/env node
// baton's queues against those of RabbitMQ 3.10, in turns, on the same cores in the same minutes, through the same programs of rhea.
import { Baton } from "../../tests/bus/baton.mjs";
import { Rabbit } from "../../tests/bus/rabbit.mjs";
import { receiveAll, sendAll } from "./load.mjs";
import { batonSide, cpuSeconds, cpuSecondsOfGroup, median, ownCpuSeconds, rabbitSide, readOptions, runProgram, sleep } from "./machine.mjs";

const usage = `bench/bus/versus.mjs [--messages N] [--size BYTES] [--rounds N] [--connections N] [--sides baton,rabbitmq]

Each work is done by one and then by the other, in turns, --rounds times (3): --messages (20,000) durable messages of --size (200) bytes are sent to a durable
queue, with at most 500 that are not answered yet, until all are accepted; then they are received with a credit of 500 and accepted, until all
are settled and the broker has read it. With one connection, and with --connections (8) at once that share both bounds. RabbitMQ confirms, and has
all cores. "complete" is the plain consumer of AMQP on both sides, which settles at once; "complete, answered" is what the SDKs of Service Bus do:
baton answers each completion after its commit, which RabbitMQ 3.10 does not do, so that its plain consumer stands beside it.
Medians of messages/s are printed, the ratio of each round with their median, and the CPU in microseconds for a message.
BATON_BINARY names the program (build/release/baton), TMPDIR has to be on a disk. The bar is 1.5 in each row.`;

const options = readOptions({ messages: 20_000, size: 200, rounds: 3, connections: 8, sides: "baton,rabbitmq" }, usage);
const bar = 1.5, warmUp = Math.min(2_000, options.messages);

async function startBaton(later) {
  const baton = await Baton.start();
  later(() => baton.stop());
  const cpu = () => cpuSeconds(baton.process.pid);
  return { ...batonSide(baton), cpu, settles: ["first", "second"], makeQueue: async (name) => { baton.bus("create", "queue", name); } };
}

async function startRabbit(later, queues) {
  const rabbit = await Rabbit.start({ queues, erlang: "" });
  later(() => rabbit.stop());
  const cpu = () => cpuSecondsOfGroup(rabbit.process.pid);
  return { ...rabbitSide(rabbit), cpu, settles: ["first"], makeQueue: async () => {} };
}

// Messages/s, and the microseconds of CPU that a message costs broker and client.
async function timed(side, work) {
  const [broker, client] = [side.cpu(), ownCpuSeconds()];
  const seconds = await work();
  const each = (used) => used / options.messages * 1e6;
  return { rate: options.messages / seconds, broker: each(side.cpu() - broker), client: each(ownCpuSeconds() - client) };
}

async function round(side, queue, connections) {
  await side.makeQueue(queue);
  await sendAll(side, queue, warmUp, { connections, size: options.size });
  await receiveAll(side, queue, warmUp, { connections });
  const found = {};
  const send = () => sendAll(side, queue, options.messages, { connections, size: options.size });
  for (const settle of side.settles) {
    const sends = await timed(side, send);
    found.send ??= sends;
    found[settle] = await timed(side, () => receiveAll(side, queue, options.messages, { connections, settle }));
  }
  return found;
}

const rows = [["send, accepted", "send", "send"], ["receive + complete", "first", "first"], ["receive + complete, answered", "second", "first"]];

function printRow(title, ours, theirs) {
  const figures = (runs) => runs.length ? [median(runs.map((run) => run.rate)).toFixed(0), median(runs.map((run) => run.broker)).toFixed(0), median(runs.map((run) => run.client)).toFixed(0)] : ["", "", ""];
  const ratios = ours.map((run, i) => run.rate / theirs[i]?.rate).filter(Number.isFinite);
  const [our, ourCpu, ourClient] = figures(ours), [their, theirCpu, theirClient] = figures(theirs);
  const verdict = ratios.length ? `${median(ratios).toFixed(2).padStart(7)}  ${median(ratios) >= bar ? "met    " : "not met"}  ${ratios.map((ratio) => ratio.toFixed(2)).join(" ")}` : "";
  console.log(`${title.padEnd(46)}${our.padStart(8)}${their.padStart(10)}${`${ourCpu} + ${ourClient}`.padStart(12)}${`${theirCpu} + ${theirClient}`.padStart(12)}${verdict}`);

}

await runProgram(async (later) => {
  const levels = [1, options.connections], names = options.sides.split(",");
  const queue = (i, connections) => `versus-${i}-${connections}`;
  const queues = levels.flatMap((connections) => Array.from({ length: options.rounds }, (_, i) => queue(i, connections)));
  queues.push("versus-first");
  const sides = {};
  if (names.includes("rabbitmq")) sides.rabbitmq = await startRabbit(later, queues);
  if (names.includes("baton")) sides.baton = await startBaton(later);
  const found = {};
  // Who comes first would pay for the client's compiler.
  for (const name of names) await round(sides[name], "versus-first", 1);
  for (const connections of levels)
    for (let i = 0; i < options.rounds; i++)
      for (const name of i % 2 ? [...names].reverse() : names) {
        await sleep(1000);  // what the other one still does in the background
        (found[`${name} ${connections}`] ??= []).push(await round(sides[name], queue(i, connections), connections));
      }
  console.log(`node bench/bus/versus.mjs --messages ${options.messages} --size ${options.size} --rounds ${options.rounds} --connections ${options.connections}`);
  console.log(`${"messages/s, medians".padEnd(46)}${"baton".padStart(8)}${"RabbitMQ".padStart(10)}${"µs CPU*".padStart(12)}${"RabbitMQ's*".padStart(12)}${"ratio".padStart(7)}  bar ${bar}  rounds`);
  for (const connections of levels)
    for (const [title, our, their] of rows) {
      const runs = (name, figure) => (found[`${name} ${connections}`] ?? []).map((run) => run[figure]).filter(Boolean);
      printRow(`${title}, ${connections === 1 ? "1 connection" : `${connections} connections`}`, runs("baton", our), runs("rabbitmq", their));
    }
  console.log("* broker + client, for one message");
});
