// What the endpoint can do, one thing after another. Everything that is not `run(…)` would do the same with Azure Service Bus.
import assert from "node:assert/strict";
import { ServiceBusClient } from "@azure/service-bus";
import { baton, startServer } from "./server.mjs";

const server = await startServer();
const run = (...words) => {
  const typed = (word) => /^[\w./-]+$/.test(word) ? word : word.includes("'") ? `"${word}"` : `'${word}'`;
  console.log(`$ baton ${words.map(typed).join(" ")}`);
  return baton(server.url, ...words);
};
const client = new ServiceBusClient(server.connectionString);

const say = (text) => console.log(`  ${text}`);
async function next(receiver) {
  const [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 10_000 });
  assert(message, "a message should have come");
  return message;
}

// A queue, and a message whose time comes later.
async function queues() {
  await run("bus", "create", "queue", "orders", "--max-deliveries", "3");
  const sender = client.createSender("orders"), receiver = client.createReceiver("orders");
  await sender.sendMessages({ body: { order: 1 } });
  const message = await next(receiver);
  await receiver.completeMessage(message);
  say(`queue: received ${JSON.stringify(message.body)}`);

  await sender.scheduleMessages({ body: { reminder: 1 } }, new Date(Date.now() + 3000));
  say(`scheduled: a reminder, for three seconds from now`);
  return async () => {
    const reminder = await next(receiver);
    await receiver.completeMessage(reminder);
    say(`scheduled: received ${JSON.stringify(reminder.body)}`);
  };
}

// A topic copies what is sent into each subscription whose rule selects it.
async function topics() {
  await run("bus", "create", "topic", "sales");
  await run("bus", "create", "subscription", "sales/all");
  await run("bus", "create", "subscription", "sales/large", "--rule", "amount > 100 AND region LIKE 'eu-%'");
  const sale = (amount, region) => ({ body: amount, applicationProperties: { amount, region } });
  await client.createSender("sales").sendMessages([sale(5, "eu-1"), sale(500, "eu-2"), sale(700, "us-1")]);
  for (const name of ["all", "large"]) {
    const found = await client.createReceiver("sales", name, { receiveMode: "receiveAndDelete" }).receiveMessages(10, { maxWaitTimeInMs: 2000 });
    say(`topic: subscription ${name} has ${found.map(({ body }) => body).join(", ")}`);
  }
}

// A message that nobody can work on is a dead letter after three deliveries. When the worker is mended, it is sent back.
async function deadLetters() {
  const receiver = client.createReceiver("orders");
  await client.createSender("orders").sendMessages({ body: { order: "poison" }, messageId: "order-2" });
  for (let delivery = 1; delivery <= 3; ++delivery) await receiver.abandonMessage(await next(receiver));
  console.log((await run("bus", "dead-letters", "orders")).replaceAll(/^/gm, "  "));
  say(await run("bus", "replay", "orders", "--all"));
  const message = await next(receiver);
  await receiver.completeMessage(message);
  say(`dead letter: received again, and completed: ${message.messageId}`);
}

// A worker of a workflow: its tasks are in the queue that the workflow names, its results go to worker-results.
async function worker() {
  await run("workflow", "publish", "greeting.yaml");
  const results = client.createSender("worker-results");
  const receiver = client.createReceiver("greetings");
  receiver.subscribe({
    async processMessage({ body: task }) {
      const output = { text: `Hello, ${task.params.name}` };
      await results.sendMessages({ body: { task_id: task.task_id, status: "completed", output } });
    },
    async processError({ error }) { console.error(error); },
  });
  const result = await run("job", "submit", "greeting", "--input", '{"name":"Ada"}', "--wait");
  say(`workflow: ${result}`);
  await receiver.close();
}

try {
  const remind = await queues();
  await topics();
  await worker();
  await remind();
  await deadLetters();
} finally {
  await client.close();
  await server.stop();
}
