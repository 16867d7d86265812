#!/usr/bin/env node
// kill -9 while messages flow both ways, then an audit of what was sent, accepted, received and completed.
import { burst, judgeByKills, killOften, LockTraffic, QueueTraffic } from "../../tests/bus/audit.mjs";
import { Baton } from "../../tests/bus/baton.mjs";
import { JobTraffic } from "../../tests/bus/job_traffic.mjs";
import { printVerdict } from "../../tests/bus/ledger.mjs";
import { Rabbit } from "../../tests/bus/rabbit.mjs";
import { PlainBus, rabbitAddresses } from "../../tests/bus/site_buses.mjs";
import { PatientAzureBus } from "../../tests/bus/traffic.mjs";
import { median, readOptions, runProgram, sleep } from "./machine.mjs";

const usage = `bench/bus/kills.mjs [--kills N] [--rabbit-kills N] [--messages N] [--lock SECONDS] [--only endpoint|broker]

endpoint: baton is killed --kills (50) times while all of this goes on over its own endpoint:
  * a plain queue of --messages (20,000), a fifth of them in another queue that detects duplicates: senders and receivers of rhea and of the SDK of Azure
  * messages that are received before each kill and completed after it, while another receiver waits for them
  * an external scheduler that writes rows and sends events, workers that take jobs of runbooks and tasks of workflows and send results
broker: baton with RabbitMQ as the broker between it, scheduler and workers; RabbitMQ is killed --rabbit-kills (10) times, and every second time baton is too. The
  plain queue stays at baton's own endpoint.
Before each kill a part of the messages is released, 0 to 150 ms before it; how many were under way then is printed.
Then the audit: every accepted message was received and completed; a message came again only if its completion was not answered and its lock had ended, each
counted by reason; a completion in time was never refused; every job, task and step was done and counted once. Exit code 1 if anything else was seen.
BATON_BINARY names the program. About 2 seconds for a kill of baton and 15 for one of RabbitMQ.`;

const options = readOptions({ kills: 50, "rabbit-kills": 10, messages: 20_000, lock: 10, only: "" }, usage);
const patience = 180;  // seconds, for all that is left when the kills are over

const lockOptions = ["--scheduler", "off", "--bus-lock-seconds", String(options.lock), "--lease-seconds", String(options.lock)];

function queues(baton, messages, later) {
  const once = Math.ceil(messages / 5), settings = { lockSeconds: options.lock };
  const traffics = [new QueueTraffic(baton, "plain", { ...settings, messages: messages - once }), new QueueTraffic(baton, "once", { ...settings, messages: once, detectsDuplicates: true })];
  for (const traffic of traffics) later(() => traffic.close());
  return traffics;
}

const underWay = (counts) => `messages of the queues under way at a kill: at least ${Math.min(...counts)}, median ${median(counts)}, at most ${Math.max(...counts)}`;

// Whether there was nothing against it.
async function audit(title, traffics, jobs, judgeJobs = (found) => found) {
  let violations = 0;
  const print = (name, found) => {
    printVerdict(`${title}, ${name}`, found);
    violations += found.violations.length;
  };
  for (const traffic of traffics) print(`queue ${traffic.queue}`, await traffic.finish(patience));
  print("jobs", judgeJobs(await jobs.finish()));
  return violations === 0;
}

async function killBaton(later) {
  const baton = await Baton.start(...lockOptions);
  later(() => baton.stop());
  const traffics = queues(baton, options.messages, later);
  const jobs = await new JobTraffic(baton, new PatientAzureBus(baton), 20 * options.kills).start();
  later(() => jobs.close());
  const locks = new LockTraffic(baton, "locks", { lockSeconds: options.lock });
  const inFlight = await killOften(baton, options.kills, traffics, locks);
  console.log(`baton was killed ${options.kills} times; ${underWay(inFlight)}`);
  return audit("endpoint", [...traffics, locks], jobs);
}

async function killRabbit(later) {
  const rabbit = await Rabbit.start();
  later(() => rabbit.stop());
  const baton = await Baton.start(...lockOptions, "--bus", rabbit.url(), "--bus-queues", "tasks", "--bus-pools", "pool");
  later(() => baton.stop());
  const traffics = queues(baton, options.messages, later);
  // With a pause, so that some are under way at each kill.
  const jobs = await new JobTraffic(baton, new PlainBus(rabbit.url(), rabbitAddresses), 50 * options["rabbit-kills"], { hasLocks: false, pause: 100 }).start();
  later(() => jobs.close());
  const kills = [], inFlight = { RabbitMQ: [], baton: [] }, ofBaton = Math.floor(options["rabbit-kills"] / 2), all = options["rabbit-kills"] + ofBaton;
  const beforeKill = async (what) => {
    inFlight[what].push(await burst(traffics, (kills.length + 1) / (all + 1)));
    kills.push({ what, at: Date.now() });
  };
  for (let i = 0; i < options["rabbit-kills"]; i++) {
    await sleep(1000 + Math.random() * 1000);
    if (i % 2 === 1) {
      await beforeKill("baton");
      await baton.kill();
      await baton.start(...baton.options);
      await sleep(Math.random() * 500);
    }
    await beforeKill("RabbitMQ");
    await rabbit.kill();
    await rabbit.start();
  }
  console.log(`RabbitMQ was killed ${options["rabbit-kills"]} times; ${underWay(inFlight.RabbitMQ)}`);
  if (ofBaton) console.log(`baton was killed ${ofBaton} times; ${underWay(inFlight.baton)}`);
  return audit("broker", traffics, jobs, (found) => judgeByKills(jobs.ledger, kills, found));
}

await runProgram(async (later) => {
  let isGood = true;
  if (options.only !== "broker") isGood = await killBaton(later);
  if (options.only !== "endpoint") isGood = await killRabbit(later) && isGood;
  console.log(isGood ? "nothing unexplained" : "FAILED");
  return isGood ? 0 : 1;
});
