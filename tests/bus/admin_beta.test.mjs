// The administration client of the next version of the SDK, which UseDevelopmentEmulator=true lets speak plain HTTP: with nothing but a connection string.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { ServiceBusAdministrationClient, ServiceBusClient } from "service-bus-beta";
import { Baton, refusal } from "./baton.mjs";

const names = async (pages, key = "name") => {
  const found = [];
  for await (const each of pages) found.push(each[key]);
  return found;
};

for (const isGuarded of [false, true])
  describe(`the administration client over plain HTTP ${isGuarded ? "with a key" : "without tokens"}`, () => {
    let baton, admin, key = { token_id: "any", shared_access_key: "any" };
    const connectionString = (host, { token_id: id, shared_access_key: secret } = key) =>
      `Endpoint=sb://${host};SharedAccessKeyName=${id};SharedAccessKey=${secret};UseDevelopmentEmulator=true;`;
    before(async () => {
      baton = new Baton();
      if (isGuarded) key = JSON.parse(baton.command("token", "create", "--json", "--role", "admin", "--bus"));
      await baton.start();
      admin = new ServiceBusAdministrationClient(connectionString(baton.admin), { retryOptions: { maxRetries: 0 } });
    });
    after(() => baton.stop());

    it("makes, reads, changes, lists and deletes queues", async () => {
      assert.equal((await admin.createQueue("plain", { maxDeliveryCount: 4 })).maxDeliveryCount, 4);
      const read = await admin.getQueue("plain");
      assert.equal(read.lockDuration, "PT1M");
      assert.equal((await admin.updateQueue({ ...read, lockDuration: "PT30S" })).lockDuration, "PT30S");
      assert.ok((await names(admin.listQueues())).includes("plain"));
      assert.equal(await admin.queueExists("plain"), true);
      await admin.deleteQueue("plain");
      assert.equal(await admin.queueExists("plain"), false);
    });

    it("does so with topics, subscriptions and rules", async () => {
      await admin.createTopic("news");
      await admin.createSubscription("news", "large");
      await admin.createRule("news", "large", "amount", { sqlExpression: "amount > @least", sqlParameters: { "@least": 100 } });
      assert.deepEqual((await admin.getRule("news", "large", "amount")).filter.sqlParameters, { "@least": 100 });
      await admin.deleteRule("news", "large", "$Default");
      assert.deepEqual(await names(admin.listRules("news", "large")), ["amount"]);
      assert.deepEqual(await names(admin.listSubscriptions("news"), "subscriptionName"), ["large"]);
      await admin.deleteTopic("news");
      assert.equal(await admin.subscriptionExists("news", "large"), false);
    });

    it("counts what the client of the same version has sent", async () => {
      await admin.createQueue("counted");
      const client = new ServiceBusClient(connectionString(baton.amqp));
      try {
        await client.createSender("counted").sendMessages([{ body: 1 }, { body: 2 }]);
        assert.equal((await admin.getQueueRuntimeProperties("counted")).activeMessageCount, 2);
        const receiver = client.createReceiver("counted"), [message] = await receiver.receiveMessages(1, { maxWaitTimeInMs: 5000 });
        await receiver.completeMessage(message);
        assert.equal((await admin.getQueueRuntimeProperties("counted")).activeMessageCount, 1);
      } finally { await client.close(); }
    });

    it("hears why it is refused", async () => {
      await admin.createQueue("twice");
      assert.equal((await refusal(admin.createQueue("twice"))).code, "MessageEntityAlreadyExistsError");
      assert.equal((await refusal(admin.getQueue("nothing"))).code, "MessageEntityNotFoundError");
      if (!isGuarded) return;
      const wrong = new ServiceBusAdministrationClient(connectionString(baton.admin, { ...key, shared_access_key: "bm8=" }), { retryOptions: { maxRetries: 0 } });
      assert.equal((await refusal(wrong.getQueue("twice"))).code, "UnauthorizedRequestError");
    });
  });
