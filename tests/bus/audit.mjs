// Kills of a server while messages flow both ways over a plain queue, and what its clients saw of it.
import { Baton, until } from "./baton.mjs";
import { Ledger } from "./ledger.mjs";
import { AzureReceiver, AzureSender, LockHolder, Outbox, RheaReceiver, RheaSender, sleep } from "./traffic.mjs";

export const counts = async (baton, queue) => (await baton.http("GET", `/bus/entities/${queue}`)).counts;

const newQueue = (baton, queue, lockSeconds, ...more) => baton.bus("create", "queue", queue, "--lock", `${lockSeconds}s`, "--max-deliveries", "1000", ...more);

// Everything was received and completed; what a kill left locked comes when its lock has ended. Then the clients are closed, and the ledger is read.
async function drainAndJudge({ baton, queue, lockSeconds, ledger }, seconds, close) {
  const isEmpty = async () => (await counts(baton, queue)).active === 0;
  const late = await until(`${queue} is empty`, async () => await isEmpty() || sleep(200).then(() => false), seconds + 2 * lockSeconds).catch((error) => error);
  await sleep(500);  // the answers to the last completions
  await close();
  const left = await counts(baton, queue), found = ledger.verdict();
  if (late instanceof Error) found.violations.push(late.message);
  if (Object.values(left).some((count) => count > 0)) found.violations.push(`${queue} has ${JSON.stringify(left)} left`);
  return found;
}

// A queue with its clients; `release(part)` lets them send so much of all messages.
export class QueueTraffic {
  constructor(baton, queue, { messages, lockSeconds, detectsDuplicates = false }) {
    Object.assign(this, { baton, queue, messages, lockSeconds, ledger: new Ledger({ detectsDuplicates }), outbox: new Outbox(messages) });
    newQueue(baton, queue, lockSeconds, ...(detectsDuplicates ? ["--detect-duplicates", "1h"] : []));
    const { ledger, outbox } = this;
    this.senders = [new RheaSender(baton, queue, ledger, outbox).run(), new AzureSender(baton, queue, ledger, outbox).run()];
    this.receivers = [new RheaReceiver(baton, queue, ledger, "second").run(), new RheaReceiver(baton, queue, ledger, "first").run(), new AzureReceiver(baton, queue, ledger).run()];
  }

  release(part) { this.outbox.release(part); }

  async finish(seconds) {
    this.release(1);
    await until(`${this.queue}: every send is accepted`, () => this.ledger.acceptedCount() === this.messages || sleep(200).then(() => false), seconds);
    return drainAndJudge(this, seconds, () => this.close());
  }

  close() { return Promise.all([...this.senders, ...this.receivers].map((each) => each.close())); }
}

// Locks that are held over each kill, in a queue of their own.
export class LockTraffic {
  constructor(baton, queue, { lockSeconds }) {
    Object.assign(this, { baton, queue, lockSeconds, ledger: new Ledger() });
    newQueue(baton, queue, lockSeconds);
    this.holder = new LockHolder(baton, queue, this.ledger);
  }

  async finish(seconds) {
    const last = new RheaReceiver(this.baton, this.queue, this.ledger, "second").run();
    const found = await drainAndJudge(this, seconds, () => last.close());
    found.totals["locks held over a kill"] = this.holder.survived;
    return found;
  }
}

// What may be sent before a kill is a burst, into the midst of which the kill comes. Answers how many messages of the queues are under way then.
export async function burst(queues, part, milliseconds = 150) {
  for (const queue of queues) queue.release(part);
  await sleep(Math.random() * milliseconds);
  return queues.reduce((sum, { ledger }) => sum + ledger.inFlight(), 0);
}

// Kills it while the traffic flows, and starts it again where it was. Answers what was under way at each kill.
export async function killOften(baton, kills, queues, locks) {
  const inFlight = [];
  for (let i = 0; i < kills; i++) {
    await locks?.holder.beforeKill(i);
    inFlight.push(await burst(queues, (i + 1) / (kills + 1)));
    await baton.kill();
    await baton.start(...baton.options);
    await locks?.holder.afterStart();
  }
  return inFlight;
}

// With a broker between there are no locks to hold: whether a message may come again is judged by the kills around it.
export function judgeByKills({ deliveries }, kills, found, windowSeconds = 30) {
  const add = (reason) => found.reasons.set(reason, (found.reasons.get(reason) ?? 0) + 1);
  for (const [id, all] of deliveries)
    all.slice(1).forEach((delivery, i) => {
      const between = (from, to, who) => kills.some(({ at, what }) => what === who && at > from && at <= to);
      const before = all[i].at;
      if (between(before, delivery.at, "RabbitMQ")) add("received again after a kill of RabbitMQ: it did not know the acceptance, or baton not its confirmation");
      else if (between(before - windowSeconds * 1000, delivery.at, "baton")) add("received again after a kill of baton, which did not know RabbitMQ's confirmation and published it again");
      else if (between(before - windowSeconds * 1000, before, "RabbitMQ")) add("received twice after a kill of RabbitMQ, which had the first copy though its confirmation was lost");
      else found.violations.push(`${id} was received again, and nothing was killed`);
    });
  return found;
}
