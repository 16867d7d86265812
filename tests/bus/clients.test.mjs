// Clients with the real SDK that vanish, and those that are slow: nobody else waits for them longer than their locks last, and nothing is lost.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, it } from "node:test";
import { Baton, until } from "./baton.mjs";

const lockSeconds = 5;  // the least that a queue may have
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const range = (count) => Array.from({ length: count }, (_, i) => i);

let baton;
before(async () => { baton = await Baton.start("--bus-lock-seconds", "3"); });
after(() => baton.stop());

// What a program took with it when it was killed goes to another receiver, when its locks have ended. `id` is of a body.
async function vanishWith(count, queue, id) {
  const holder = spawn(process.execPath, [join(import.meta.dirname, "holder.mjs"), baton.connectionString(), String(count), queue], { stdio: ["ignore", "pipe", "inherit"] });
  const { value } = await createInterface({ input: holder.stdout })[Symbol.asyncIterator]().next();
  const gone = new Promise((resolve) => holder.once("exit", resolve));
  holder.kill("SIGKILL");
  await gone;
  const held = JSON.parse(value), again = [];
  const subscription = baton.client().createReceiver(queue).subscribe({
    processMessage: async (message) => { again.push({ message, at: Date.now() }); },
    processError: async () => {},
  });
  await until("all of them", () => again.length >= count);
  await subscription.close();
  assert.deepEqual(again.map(({ message }) => id(message.body)).sort(), held.map(({ body }) => id(body)).sort());
  for (const { message, at } of again) {
    const before = held.find(({ body }) => id(body) === id(message.body));
    assert.equal(before.deliveryCount, 0);
    assert.equal(message.deliveryCount, 1);
    assert.ok(at >= before.lockedUntil, `${before.lockedUntil - at} ms before the end of its lock`);
    assert.ok(at < before.lockedUntil + 5000, `${at - before.lockedUntil} ms after the end of its lock`);
  }
}

describe("a client of the SDK of Azure", { concurrency: true }, () => {
  describe("a receiver that vanishes", { concurrency: true }, () => {
    it("leaves the messages of a queue to others, when its locks end", async () => {
      await baton.make("queue", "left", { lock_seconds: lockSeconds });
      await baton.client().createSender("left").sendMessages(range(3).map((body) => ({ body })));
      await vanishWith(3, "left", (body) => body);
      await until("an empty queue", async () => (await baton.http("GET", "/bus/entities/left")).counts.active === 0);
    });

    it("leaves the tasks of a workflow to others, when its locks end", async () => {
      await baton.http("POST", "/workflows", "workflow_id: left\nnodes:\n  start: {type: start, next: [t]}\n  t: {type: task, handler: H, queue: left-tasks, next: [end]}\n" +
        "  end: {type: end}\n", "application/yaml");
      const jobs = await Promise.all(range(3).map(() => baton.http("POST", "/jobs", { workflow_id: "left", input_data: {} })));
      await vanishWith(3, "left-tasks", ({ task_id }) => task_id);
      const results = baton.client().createSender("worker-results");
      for (const { job_id } of jobs) await results.sendMessages({ body: { task_id: `${job_id}_t_0`, status: "completed" } });
      for (const { job_id } of jobs) assert.equal((await baton.http("GET", `/jobs/${job_id}?wait_ms=5000`)).status, "COMPLETED");
    });
  });

  describe("a subscriber with a slow handler", { concurrency: true }, () => {
    // What a handler had, and what it finished.
    const subscribe = (receiver, milliseconds, calls) => {
      const seen = { began: [], ended: [], errors: [] };
      receiver.subscribe({
        processMessage: async ({ body }) => {
          seen.began.push(body);
          await sleep(milliseconds);
          seen.ended.push(body);
        },
        processError: async ({ error }) => { seen.errors.push(error); },
      }, { maxConcurrentCalls: calls });
      return seen;
    };
    const total = 100, slowCalls = 5, slowTime = 1000 * lockSeconds + 1500;

    it("keeps what it works on over the time of the lock, while others get the rest", async () => {
      await baton.make("queue", "slow", { lock_seconds: lockSeconds });
      const client = baton.client();
      const slow = subscribe(client.createReceiver("slow"), slowTime, slowCalls);
      const sender = client.createSender("slow");
      await sender.sendMessages(range(slowCalls).map((body) => ({ body })));
      await until("the work of the slow one", () => slow.began.length === slowCalls);
      // One over the same connection, one over another.
      const others = [client, baton.client()].map((each) => subscribe(each.createReceiver("slow"), 1, 2));
      await sender.sendMessages(range(total).slice(slowCalls).map((body) => ({ body })));
      await until("the rest", () => others[0].ended.length + others[1].ended.length === total - slowCalls, 5);
      assert.equal(slow.ended.length, 0);
      await until("the end of the slow one", () => slow.ended.length === slowCalls);
      await until("an empty queue", async () => (await baton.http("GET", "/bus/entities/slow")).counts.active === 0, 3);
      const all = [slow, ...others];
      assert.deepEqual(all.flatMap(({ began }) => began).sort((a, b) => a - b), range(total));
      assert.deepEqual(all.flatMap(({ errors }) => errors), []);
    });

    it("of one subscription does not hold up another one, and gets everything", async () => {
      await baton.make("topic", "news");
      for (const name of ["slow", "fast"]) await baton.make("subscription", `news/Subscriptions/${name}`);
      const client = baton.client();
      const slow = subscribe(client.createReceiver("news", "slow"), 200, 1), fast = subscribe(client.createReceiver("news", "fast"), 0, 1);
      await client.createSender("news").sendMessages(range(20).map((body) => ({ body })));
      await until("the fast one", () => fast.ended.length === 20);
      assert.ok(slow.ended.length < 20);
      await until("the slow one", () => slow.ended.length === 20);
      assert.deepEqual(slow.began, range(20));
      assert.deepEqual([...slow.errors, ...fast.errors], []);
    });
  });
});
