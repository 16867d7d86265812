// The audit itself: it sees what it is there to see.
import assert from "node:assert/strict";
import { Ledger } from "./ledger.mjs";
import { describe, it } from "./testing.mjs";

function book(options) {
  const time = { now: 1000 };
  const ledger = new Ledger({ clock: () => time.now, ...options });
  const send = (id, answer) => ledger.answered(ledger.sent(id), answer);
  const receive = (id, end, more = {}) => {
    const delivery = ledger.received(id, { sequence: 1, count: 0, lockedUntil: time.now + 5000, ...more });
    if (["completed", "unanswered", "mistaken", "refused"].includes(end)) ledger.ask(delivery);
    if (end) ledger.ended(delivery, end);
    return delivery;
  };
  return { time, ledger, send, receive, violations: () => ledger.verdict().violations, reasons: () => [...ledger.verdict().reasons.values()] };
}

describe("the audit of a queue", () => {
  it("has nothing against a message that is sent, received and completed", () => {
    const { send, receive, violations, reasons } = book();
    send("a", "accepted");
    receive("a", "completed");
    assert.deepEqual([violations(), reasons()], [[], []]);
  });

  it("finds what was accepted and lost", () => {
    const { send, violations } = book();
    send("a", "accepted");
    assert.match(violations()[0], /never received/);
  });

  it("finds what was received and never completed", () => {
    const { send, receive, violations } = book();
    send("a", "accepted");
    receive("a", "dropped");
    assert.match(violations()[0], /never completed/);
  });

  it("finds what nobody sent", () => {
    const { receive, violations } = book();
    receive("a", "completed");
    assert.match(violations()[0], /never sent/);
  });

  it("finds a message that comes back after its completion was answered", () => {
    const { time, send, receive, violations } = book();
    send("a", "accepted");
    receive("a", "completed");
    time.now += 10_000;
    receive("a", "completed", { count: 1 });
    assert.match(violations()[0], /after its completion/);
  });

  it("explains one that comes back because its client took another answer for its own, and only after its lock", () => {
    for (const [later, found] of [[4000, 1], [5001, 0]]) {
      const { time, send, receive, violations } = book();
      send("a", "accepted");
      receive("a", "mistaken");
      time.now += later;
      receive("a", "completed", { count: 1 });
      assert.equal(violations().length, found);
    }
  });

  it("finds a lock that did not hold, and explains one that ended", () => {
    for (const [later, found] of [[4000, 1], [5001, 0]]) {
      const { time, send, receive, violations, reasons } = book();
      send("a", "accepted");
      receive("a", "unanswered");
      time.now += later;
      receive("a", "completed", { count: 1 });
      assert.equal(violations().length, found);
      assert.equal(reasons().length, 1 - found);
    }
  });

  it("finds a completion that was refused in time, and not one that was late or said twice", () => {
    for (const [later, asks, found] of [[4000, 1, 1], [5001, 1, 0], [4000, 2, 0]]) {
      const { time, ledger, send, receive, violations } = book();
      send("a", "accepted");
      const delivery = receive("a");
      time.now += later;
      for (let i = 0; i < asks; i++) ledger.ask(delivery);
      ledger.ended(delivery, "refused");
      time.now += 10_000;
      receive("a", "completed", { count: 1 });
      assert.equal(violations().length, found);
    }
  });

  it("explains a second copy by a send without an answer, and only then", () => {
    for (const [first, found] of [["lost", 0], ["accepted", 1]]) {
      const { send, receive, violations, reasons } = book();
      if (first === "lost") send("a", "lost");
      send("a", "accepted");
      receive("a", "completed");
      receive("a", "completed", { sequence: 2 });
      assert.equal(violations().length, found);
      assert.equal(reasons().length, 1 - found);
    }
  });

  it("finds a second copy in a queue that detects duplicates", () => {
    const { send, receive, violations } = book({ detectsDuplicates: true });
    send("a", "lost");
    send("a", "accepted");
    receive("a", "completed");
    receive("a", "completed", { sequence: 2 });
    assert.match(violations()[0], /detects duplicates/);
  });

  it("finds a delivery count that does not grow", () => {
    const { time, send, receive, violations } = book();
    send("a", "accepted");
    receive("a", "dropped", { count: 1 });
    time.now += 6000;
    receive("a", "completed", { count: 1 });
    assert.match(violations()[0], /delivery count/);
  });
});
