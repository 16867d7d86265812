// What the clients of a broker saw: each send, each receipt, each completion, with its time and its answer. At the end it says what of it must not
// have been, and counts what was seen twice by its reason. It knows of the broker only what the clients were told.

const tolerance = 5;  // ms: times on the wire are whole milliseconds

// How a delivery ended, as far as its receiver can know:
//   completed   the broker answered that it is complete
//   unanswered  its receiver asked for the completion, and no answer came (or, settled at once, none comes)
//   mistaken    its client says that it is complete, though the broker answered another delivery
//   refused     the broker answered that the lock is lost
//   dropped     the connection ended before the receiver asked for anything
//   returned    its receiver gave it back
export const endings = ["completed", "unanswered", "mistaken", "refused", "dropped", "returned"];

export class Ledger {
  sends = new Map();       // message id -> [{ at, answer }]; answer: accepted, refused or lost
  mistakes = [];           // what a client itself saw that must not be
  deliveries = new Map();  // message id -> [{ at, sequence, count, lockedUntil, asked, end, endedAt }]

  // `isOfJobs`: baton itself sends, and a job is complete when its result was accepted, which needs no lock. Without `hasLocks` a broker is between, which may
  // give a message again whenever it likes; see judgeByKills.
  constructor({ detectsDuplicates = false, isOfJobs = false, hasLocks = true, clock = Date.now } = {}) {
    Object.assign(this, { detectsDuplicates, isOfJobs, hasLocks, clock });
  }

  sent(id) {
    const send = { at: this.clock() };
    this.sends.set(id, [...(this.sends.get(id) ?? []), send]);
    return send;
  }

  answered(send, answer) { send.answer ??= answer; }

  // `sequence` tells copies of a message apart, where the broker has such numbers.
  received(id, { sequence, count, lockedUntil, by = "" } = {}) {
    const delivery = { id, at: this.clock(), sequence, count, lockedUntil, by, asked: 0 };
    if (this.hasLocks && !Number.isFinite(lockedUntil)) this.mistakes.push(`${id} came without the time until which it is locked`);
    this.deliveries.set(id, [...(this.deliveries.get(id) ?? []), delivery]);
    return delivery;
  }

  ask(delivery) { delivery.asked++; }

  ended(delivery, end) {
    if (!endings.includes(end)) throw new Error(`no such end: ${end}`);
    if (delivery.end) return;
    // Asked twice, the first one may have done it, though its answer was lost.
    delivery.end = end === "refused" && delivery.asked > 1 ? "unanswered" : end;
    delivery.endedAt = this.clock();
  }

  // The connection of its receiver was lost.
  cutOff(delivery) { this.ended(delivery, delivery.asked ? "unanswered" : "dropped"); }

  acceptedCount() {
    let count = 0;
    for (const sends of this.sends.values()) if (sends.some(({ answer }) => answer === "accepted")) count++;
    return count;
  }

  // Sends without an answer, and receipts without an end.
  inFlight() {
    let count = 0;
    for (const sends of this.sends.values()) for (const { answer } of sends) if (!answer) count++;
    for (const deliveries of this.deliveries.values()) for (const { end } of deliveries) if (!end) count++;
    return count;
  }

  // `violations` are texts, `reasons` say how often something came again and why, `totals` what there was.
  verdict() {
    const found = { violations: [...this.mistakes], reasons: new Map(), totals: this.totals() };
    for (const id of this.sends.keys()) this.#judgeSends(id, found);
    for (const [id, deliveries] of this.deliveries) {
      if (!this.sends.has(id) && !this.isOfJobs) found.violations.push(`${id} was received and never sent`);
      for (const copies of groupBySequence(deliveries)) {
        if (this.hasLocks) judgeRepeats(id, copies, this.isOfJobs, found);
        if (!copies.some(({ asked, end }) => end === "completed" || end === "unanswered" || end === "mistaken" || (asked > 0 && !end))) found.violations.push(`${id} was received and never completed`);
      }
    }
    return found;
  }

  totals() {
    const totals = { sent: 0, accepted: 0, lost: 0, refused: 0, received: 0 };
    for (const end of endings) totals[`ended ${end}`] = 0;
    for (const sends of this.sends.values())
      for (const { answer } of sends) {
        totals.sent++;
        if (answer) totals[answer]++;
      }
    for (const deliveries of this.deliveries.values())
      for (const { end } of deliveries) {
        totals.received++;
        if (end) totals[`ended ${end}`]++;
      }
    return totals;
  }

  #judgeSends(id, { violations, reasons }) {
    const sends = this.sends.get(id);
    const accepted = sends.filter(({ answer }) => answer === "accepted").length, lost = sends.filter(({ answer }) => answer === "lost").length;
    const copies = groupBySequence(this.deliveries.get(id) ?? []).length;
    if (accepted > 0 && copies === 0) violations.push(`${id} was accepted and never received`);
    if (copies < accepted && copies > 0 && !this.detectsDuplicates) violations.push(`${id} was accepted ${accepted} times and received as ${copies} messages`);
    if (this.detectsDuplicates && copies > 1) violations.push(`${id} is ${copies} messages, though the queue detects duplicates`);
    else if (copies > accepted + lost) violations.push(`${id} is ${copies} messages, and was accepted ${accepted} times with ${lost} sends unanswered`);
    else if (copies > 1) add(reasons, "message stored twice: the first send was not answered, so it was sent again", copies - 1);
  }
}

const add = (reasons, reason, count = 1) => reasons.set(reason, (reasons.get(reason) ?? 0) + count);

function groupBySequence(deliveries) {
  const groups = new Map();
  for (const delivery of deliveries) groups.set(delivery.sequence, [...(groups.get(delivery.sequence) ?? []), delivery]);
  return [...groups.values()];
}

const why = {
  unanswered: "received again after its lock: the completion was not answered",
  mistaken: "received again after its lock: the completion was not answered, though the SDK took another answer for it",
  refused: "received again after its lock: the completion came too late",
  dropped: "received again after its lock: the connection was lost before the completion",
  undefined: "received again after its lock, which ended while its receiver had it",
};

// Of one message that the broker has once.
function judgeRepeats(id, deliveries, isOfJobs, { violations, reasons }) {
  deliveries.sort((a, b) => a.at - b.at);
  deliveries.forEach((delivery, i) => {
    judgeRefusal(id, delivery, violations);
    if (i === 0) {
      if (delivery.count > 0) add(reasons, "delivery count above 0 at the first receipt: locked for a receiver that was cut off", 1);
      return;
    }
    const before = deliveries[i - 1];
    // The second one may have been on its way when the result of the first was accepted.
    const wasCompleted = ({ end, endedAt }) => end === "completed" && (!isOfJobs || endedAt < delivery.at - 50);
    if (deliveries.slice(0, i).some(wasCompleted)) violations.push(`${id} was received again after its completion was answered: ${history(deliveries)}`);
    else if (before.end === "returned") add(reasons, "received again: its receiver gave it back");
    else if (delivery.at < before.lockedUntil - tolerance) violations.push(`${id} was received again ${before.lockedUntil - delivery.at} ms before the end of its lock: ${history(deliveries)}`);
    else add(reasons, why[before.end ?? (before.asked ? "unanswered" : undefined)]);
    if (delivery.count <= before.count) violations.push(`${id} has delivery count ${delivery.count} after ${before.count}`);
  });
}

// In milliseconds since the first receipt.
function history(deliveries) {
  const since = (time) => time === undefined ? "?" : time - deliveries[0].at;
  return deliveries.map(({ by, at, sequence, count, lockedUntil, asked, end, endedAt, way }) =>
    `[${by} at ${since(at)}, number ${sequence}, count ${count}, locked until ${since(lockedUntil)}, asked ${asked}, ${end ?? "no end"}${way ? ` by ${way}` : ""} at ${since(endedAt)}]`).join(" ");
}

// A completion in time is not refused: a lock survives a kill.
function judgeRefusal(id, { end, endedAt, lockedUntil }, violations) {
  if (end === "refused" && endedAt < lockedUntil - tolerance) violations.push(`${id} could not be completed ${lockedUntil - endedAt} ms before the end of its lock`);
}

export function printVerdict(title, { violations, reasons, totals }, print = console.log) {
  print(`${title}: ${Object.entries(totals).map(([name, count]) => `${name} ${count}`).join(", ")}`);
  for (const [reason, count] of reasons) print(`  ${String(count).padStart(6)}  ${reason}`);
  for (const violation of violations.slice(0, 20)) print(`  VIOLATION  ${violation}`);
  print(`  ${violations.length} violations`);
}
