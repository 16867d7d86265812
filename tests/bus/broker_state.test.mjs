// What baton tells of an external broker: whether it is connected, the links, the last trouble, what was rejected, and why a job waits meanwhile.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import net from "node:net";
import { after, before, describe, it } from "node:test";
import rhea from "rhea";
import { Baton, until } from "./baton.mjs";
import { Certificate, ServiceBus } from "./service_bus.mjs";

const workflow = "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n" +
  "  t: {type: task, handler: H, queue: tasks, next: [end]}\n  end: {type: end}\n";
const runbook = `
name: lone
data_source: {type: csv, connection: NOWHERE_CSV, interval: 5m, primary_key: Upn, batch_time_column: Day}
init:
  - {name: group, worker_id: pool-1, function: New-Group, params: {Name: "g-{{_batch_id}}"}}
phases:
  - name: go
    offset: T-0
    steps:
      - {name: move, worker_id: pool-1, function: Move, params: {Upn: "{{Upn}}"}}
`;

async function freePort() {
  const server = net.createServer().listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

it("a broker that is away is told of where people look for a job that waits", async () => {
  const baton = await Baton.start("--scheduler", "off", "--bus", `amqp://127.0.0.1:${await freePort()}`, "--bus-queues", "tasks", "--bus-pools", "pool-1");
  try {
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    await until("the trouble", async () => (await baton.http("GET", "/bus/broker")).trouble);
    const { reason, summary, waiting } = await baton.http("GET", `/jobs/${job_id}/why`);
    assert.equal(reason, "broker_away");
    assert.match(summary, /queue 'tasks' is published through a broker: the broker has been away since 20.*Z: .*refused/i);
    assert.equal(waiting.find(({ node_id }) => node_id === "t").reason, "broker_away");

    await baton.http("POST", "/runbooks", runbook, "application/yaml");
    await baton.http("POST", "/runbooks/lone/batches", "Upn\nada\n", "text/csv");
    const step = await until("the job of the init step", async () => {
      const found = await baton.http("GET", "/inits/1");
      return found.job_state === "queued" && found;
    });
    assert.match(step.trouble, /^the broker has been away since 20.*Z: .*refused/i);

    const broker = await baton.http("GET", "/bus/broker");
    assert.equal(broker.connected, false);
    assert.deepEqual(broker.links, []);
    assert.match(baton.bus("broker"), /state +away since 20.*\ntrouble +.*refused/i);
  } finally { await baton.stop(); }
});

it("without an external broker there is nothing to tell", async () => {
  const baton = await Baton.start();
  try {
    const said = spawnSync(process.env.BATON_BINARY ?? new URL("../../build/release/baton", import.meta.url).pathname, ["bus", "broker", "--server", baton.url], { encoding: "utf8" });
    assert.notEqual(said.status, 0);
    assert.match(said.stderr, /no external broker/);
  } finally { await baton.stop(); }
});

describe("a broker that is there", () => {
  const results = "worker-results/Subscriptions/orchestrator";
  let certificate, azure, baton;
  const broker = () => baton.http("GET", "/bus/broker");
  before(async () => {
    certificate = new Certificate();
    azure = await new ServiceBus({ certificate }).listen();
    baton = await Baton.start("--bus", azure.connectionString(), "--bus-ca", certificate.file, "--bus-queues", "tasks", "--body-max", "64k");
    await until("the links", async () => (await broker()).links.filter(({ open }) => open).length === 3);
  });
  after(async () => { await baton.stop(); azure.close(); certificate.remove(); });

  it("is connected, over links that are open", async () => {
    const { address, connected, since, trouble, links } = await broker();
    assert.ok(connected && new Date(since) <= new Date());
    assert.equal(trouble, null);
    assert.ok(!JSON.stringify(address).includes("SharedAccessKey="), address);
    assert.deepEqual(links.map(({ address, direction, queue, open, trouble }) => ({ address, direction, queue, open, trouble })), [
      { address: "tasks", direction: "out", queue: "tasks", open: true, trouble: null },
      { address: results, direction: "in", queue: null, open: true, trouble: null },
      { address: "orchestrator-events/Subscriptions/orchestrator", direction: "in", queue: null, open: true, trouble: null },
    ]);
    assert.match(baton.bus("broker"), /state +connected since 20[^]*tasks +out +tasks +open since/);
  });

  it("shows the messages that were rejected last", async () => {
    await until("the subscription", () => azure.receivers.get(results)?.sendable());
    azure.receivers.get(results).send({ message_id: "poison-1", body: rhea.message.data_section(Buffer.from('{"no":"result"}')) });
    await until("the first", async () => (await broker()).rejected.length === 1);
    azure.say(results, { task_id: "x", status: "completed", output: "y".repeat(100_000) });
    const rejected = await until("both", async () => { const { rejected: found } = await broker(); return found.length === 2 && found; });
    assert.equal(rejected[1].rejected_by, "baton");
    assert.equal(rejected[1].message_id, "poison-1");
    assert.equal(rejected[1].source, results);
    assert.equal(rejected[1].reason, "amqp:decode-error");
    assert.ok(rejected[1].description.length > 10);
    assert.equal(rejected[0].reason, "amqp:link:message-size-exceeded");
    assert.match(baton.bus("broker"), /amqp:link:message-size-exceeded[^]*amqp:decode-error/);
  });

  it("shows a job that it rejects, by its id", async () => {
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    Object.assign(azure, { refuses: "reject", refusal: { condition: "amqp:invalid-field", description: "a reason" }, refused: 0 });
    const { job_id } = await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} });
    const found = await until("the refusal", async () => (await broker()).rejected.find(({ rejected_by }) => rejected_by === "broker"));
    Object.assign(azure, { refuses: undefined, refusal: undefined });
    assert.equal(found.message_id, `${job_id}_t_0`);
    assert.equal(found.source, "tasks");
    assert.equal(found.reason, "amqp:invalid-field");
    assert.match(found.description, /a reason/);
  });

  it("says of a link that it was ended, and why", async () => {
    azure.receivers.get(results).close({ condition: "amqp:not-found", description: "gone" });
    const link = await until("the end", async () => (await broker()).links.find(({ address, trouble }) => address === results && trouble));
    assert.match(link.trouble, /amqp:not-found: gone/);
    await until("the next one", async () => (await broker()).links.find(({ address }) => address === results).open);
  });
});
