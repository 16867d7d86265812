// A site over our endpoint, with the real SDK of Azure Service Bus, and with plain AMQP as over RabbitMQ; the built-in scheduler is off.
import assert from "node:assert/strict";
import { Baton } from "./baton.mjs";
import { lateAndLeaver, waves } from "./site.mjs";
import { AzureBus, batonAddresses, PlainBus } from "./site_buses.mjs";
import { after, before, describe, it } from "./testing.mjs";

let baton;
before(async () => { baton = await Baton.start("--scheduler", "off"); });
after(() => baton.stop());

describe("a site with the SDK of Azure and a connection string of baton", () => {
  it("does its waves, with retries that it schedules on the bus", () => waves(baton, new AzureBus(baton.client())));

  it("takes in who comes late, and lets go who leaves", () => lateAndLeaver(baton, new AzureBus(baton.client())));
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
