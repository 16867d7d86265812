// What a site's programs speak: the real SDK of Azure, or plain AMQP. Both have
//   receive(topic, subscription, handle)      `handle(body, properties)`; then the message is complete
//   send(topic, body, properties)             ends when the message was accepted
//   sendAt(time, topic, body, properties)     the same, for a message that comes later
import { createRequire } from "node:module";
import { until } from "./baton.mjs";

const rhea = createRequire(import.meta.url)("rhea");

// The bus itself keeps what is sent for later.
export class AzureBus {
  senders = new Map();

  constructor(client) { this.client = client; }

  receive(topic, subscription, handle) {
    const receiver = this.client.createReceiver(topic, subscription);
    receiver.subscribe({ processMessage: ({ body, applicationProperties }) => handle(body, applicationProperties), processError: async () => {} },
      { maxConcurrentCalls: 4 });
    return receiver;
  }

  sender(topic) {
    if (!this.senders.has(topic)) this.senders.set(topic, this.client.createSender(topic));
    return this.senders.get(topic);
  }

  message(body, applicationProperties) { return { body, contentType: "application/json", applicationProperties }; }
  send(topic, ...message) { return this.sender(topic).sendMessages(this.message(...message)); }
  sendAt(time, topic, ...message) { return this.sender(topic).scheduleMessages(this.message(...message), time); }
}

// How one and the same program calls things at either broker.
export const batonAddresses = {
  queue: (name) => name,
  subscription: (topic, name) => `${topic}/Subscriptions/${name}`,
  topic: (name) => name,
};
export const rabbitAddresses = {  // a topic is an exchange, a subscription a queue
  queue: (name) => `/amq/queue/${name}`,
  subscription: (topic, name) => `/amq/queue/${topic}.${name}`,
  topic: (name) => `/exchange/${name}`,
};

// Plain AMQP with reconnects, and with nothing that only one broker knows: a message that was not confirmed is sent again, and for one that comes later it
// has a timer of its own, since RabbitMQ has none.
export class PlainBus {
  open = [];
  senders = new Map();

  constructor(url, addresses) { Object.assign(this, { url, addresses }); }

  connect() {
    const { hostname: host, port, username, password } = new URL(this.url);
    const connection = rhea.create_container().connect({ host, port, username, password, initial_reconnect_delay: 50, max_reconnect_delay: 500 });
    for (const event of ["disconnected", "connection_error", "error"]) connection.on(event, () => {});
    this.open.push(connection);
    return connection;
  }

  receive(topic, subscription, handle, queue) {
    const connection = this.connect();
    connection.on("message", async ({ message, delivery }) => {
      await handle(JSON.parse(message.body.content ?? message.body), message.application_properties);
      delivery.accept();
    });
    const source = queue ? this.addresses.queue(queue) : this.addresses.subscription(topic, subscription);
    connection.open_receiver({ source, autoaccept: false, credit_window: 20 });
    return { close: () => connection.close() };
  }

  sender(topic) {
    if (this.senders.has(topic)) return this.senders.get(topic);
    const connection = this.connect();
    const sender = connection.open_sender(this.addresses.topic(topic));
    sender.unconfirmed = new Map();
    const settle = (delivery, good) => {
      sender.unconfirmed.get(delivery)?.(good);
      sender.unconfirmed.delete(delivery);
    };
    sender.on("accepted", ({ delivery }) => settle(delivery, true));
    for (const event of ["rejected", "released", "modified"]) sender.on(event, ({ delivery }) => settle(delivery, false));
    connection.on("disconnected", () => { for (const delivery of [...sender.unconfirmed.keys()]) settle(delivery, false); });
    this.senders.set(topic, sender);
    return sender;
  }

  async send(topic, body, application_properties) {
    const sender = this.sender(topic);
    for (;;) {
      await until("credit of the broker", () => sender.sendable(), 60);
      const message = { durable: true, subject: "", content_type: "application/json", application_properties, body: rhea.message.data_section(Buffer.from(JSON.stringify(body))) };
      if (await new Promise((resolve) => sender.unconfirmed.set(sender.send(message), resolve))) return;
    }
  }

  async sendAt(time, ...message) {
    setTimeout(() => this.send(...message).catch(() => {}), time - Date.now());
  }

  // Also when the broker has gone: rhea would go on to look for it.
  close() {
    for (const connection of this.open) {
      connection.set_reconnect(false);
      clearTimeout(connection.scheduled_reconnect);
      connection.close();
    }
  }
}
