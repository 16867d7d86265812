// A site over our endpoint, with the real SDK of Azure Service Bus, and with plain AMQP as over RabbitMQ; the built-in scheduler is off.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Baton } from "./baton.mjs";
import { lateAndLeaver, waves } from "./site.mjs";
import { AzureBus, batonAddresses, PlainBus } from "./site_buses.mjs";

let baton;
before(async () => { baton = await Baton.start("--scheduler", "off"); });
after(() => baton.stop());

describe("a site with the SDK of Azure and a connection string of baton", () => {
  it("does its waves, with retries that it schedules on the bus", () => waves(baton, new AzureBus(baton.client())));

  it("takes in who comes late, and lets go who leaves", () => lateAndLeaver(baton, new AzureBus(baton.client())));

  it("shares a pool between workers of HTTP and of AMQP", async () => {
    const client = baton.client();
    await baton.http("POST", "/workflows", "workflow_id: w\nnodes:\n  start: {type: start, next: [t]}\n" +
      "  t: {type: task, handler: H, queue: shared, next: [end]}\n  end: {type: end}\n", "application/yaml");
    const jobs = [];
    for (let i = 0; i < 40; i++) jobs.push(await baton.http("POST", "/jobs", { workflow_id: "w", input_data: {} }));
    const done = { amqp: 0, http: 0 };
    const sender = client.createSender("worker-results");
    const receiver = client.createReceiver("shared");
    const amqp = (async () => {
      for (let i = 0; i < 20; i++)
        for (const message of await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 })) {
          await receiver.completeMessage(message);
          await sender.sendMessages({ body: { task_id: message.body.task_id, status: "completed" } });
          done.amqp++;
        }
    })();
    const http = (async () => {
      while (done.http < 20)
        for (const job of (await baton.http("POST", "/workers/shared/jobs:poll", { max: 1, wait_ms: 5000, worker: "h" })).jobs) {
          await baton.http("POST", "/callbacks/task-result", { task_id: job.task_id, status: "completed", lease: job.lease });
          done.http++;
        }
    })();
    await Promise.all([amqp, http]);
    assert.deepEqual(done, { amqp: 20, http: 20 });
    for (const job of jobs) assert.equal((await baton.http("GET", `/jobs/${job.job_id}?wait_ms=5000`)).status, "COMPLETED");
  });
});

describe("a site with rhea", () => {
  it("does its waves, the program that broker.test.mjs runs over RabbitMQ, with another URL and another table of addresses", async () => {
    const other = await Baton.start("--scheduler", "off");
    const bus = new PlainBus(`amqp://site:secret@${other.amqp}`, batonAddresses);
    try {
      await waves(other, bus);
      await lateAndLeaver(other, bus);
    } finally {
      bus.close();
      await other.stop();
    }
  });
});
