// A program of its own that holds messages under lock, so that it can be killed with them: node holder.mjs CONNECTION COUNT QUEUE. It prints what it got.
import { ServiceBusClient } from "@azure/service-bus";

const [connection, count, queue] = process.argv.slice(2);
const receiver = new ServiceBusClient(connection).createReceiver(queue, { maxAutoLockRenewalDurationInMs: 0 }), messages = [];
for (let tries = 0; tries < 3 && messages.length < Number(count); tries++) messages.push(...await receiver.receiveMessages(count - messages.length, { maxWaitTimeInMs: 10_000 }));
console.log(JSON.stringify(messages.map(({ body, deliveryCount, lockedUntilUtc }) => ({ body, deliveryCount, lockedUntil: lockedUntilUtc.getTime() }))));
setTimeout(() => {}, 60_000);
