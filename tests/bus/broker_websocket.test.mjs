// Baton as a client of a broker over websockets, with and without TLS.
import assert from "node:assert/strict";
import { Baton, until } from "./baton.mjs";
import { Certificate, ServiceBus, WebsocketFront } from "./service_bus.mjs";
import { after, afterEach, before, describe, it } from "./testing.mjs";

const workflow = "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n" +
  "  t: {type: task, handler: H, queue: tasks, next: [end]}\n  end: {type: end}\n";
const results = "worker-results/Subscriptions/orchestrator";
const metric = async (baton, name) => Number((await (await fetch(`${baton.url}/metrics`)).text()).match(new RegExp(`^${name} (\\d+)`, "m"))?.[1]);

describe("a Service Bus over websockets", () => {
  let certificate, azure, front, baton;
  before(async () => {
    certificate = new Certificate();
    azure = await new ServiceBus().listen();
  });
  after(() => { azure.close(); certificate.remove(); });
  afterEach(async () => { await baton?.stop(); front?.close(); });

  const start = async (options, ...more) => {
    front = await new WebsocketFront(options).listen(azure.port);
    const plain = options?.certificate ? "" : ";UseDevelopmentEmulator=true";
    baton = await Baton.start("--bus", azure.connectionString("the key", front.port) + plain, "--bus-transport", "websocket", "--bus-queues", "tasks", ...more);
  };

  const runJobs = async (count, size) => {
    azure.sent.clear();
    await baton.http("POST", "/workflows", workflow, "application/yaml");
    const jobs = [];
    for (let i = 0; i < count; i++)
      jobs.push((await baton.http("POST", "/jobs", { workflow_id: "w", input_data: { text: "x".repeat(size) } })).job_id);
    await until("the tasks", () => azure.sent.get("tasks")?.length === count);
    await until("the subscription", () => azure.receivers.get(results)?.sendable());
    for (const { body } of azure.sent.get("tasks"))
      azure.say(results, { task_id: JSON.parse(body.content).task_id, status: "completed", output: { text: "y".repeat(size) } });
    for (const id of jobs) assert.equal((await baton.http("GET", `/jobs/${id}?wait_ms=10000`)).status, "COMPLETED");
  };

  it("gets jobs and gives results back, small and large, and hears the end", async () => {
    await start();
    await runJobs(50, 10);
    await runJobs(10, 200_000);
    assert.deepEqual(front.seen, [{ url: "/$servicebus/websocket", protocol: "AMQPWSB10" }]);
    const began = Date.now();
    await baton.stop();
    assert.ok(Date.now() - began < 2000, `a stop took ${Date.now() - began} ms`);
    assert.ok(front.saidEnd);
  });

  it("is trusted by the certificates of a file", async () => {
    await start({ certificate }, "--bus-ca", certificate.file);
    await runJobs(5, 1000);
  });

  it("is told nothing by who does not trust its certificate", async () => {
    await start({ certificate });
    await until("the reason", () => /no connection to the broker wss:\/\/localhost:\d+\/\$servicebus\/websocket: self-signed certificate/.test(baton.log));
    assert.equal(front.seen.length, 0);
    assert.equal(await metric(baton, "baton_broker_connected"), 0);
  });

  it("is left alone if its websocket speaks something else", async () => {
    await start({ protocol: "chat" });
    await until("the reason", () => /its websocket does not speak AMQPWSB10/.test(baton.log));
    assert.equal(await metric(baton, "baton_broker_connected"), 0);
  });

  it("is connected to again when the connection breaks", async () => {
    await start();
    await runJobs(1, 10);
    front.server.closeAllConnections();
    azure.connection.socket.destroy();
    await until("the second one", () => front.seen.length === 2);
    await runJobs(1, 10);
  });
});
