#!/usr/bin/env node
// How long one job takes over AMQP, and one message through a queue, on a server that does nothing else.
import { Agent, request } from "node:http";
import { Baton } from "../../tests/bus/baton.mjs";
import { batonSide, closed, connectTo, opened, outcomeOf, quantile, readOptions, rhea, runProgram, sleep, within } from "./machine.mjs";

const usage = `bench/bus/latency.mjs [--jobs N] [--messages N] [--pause MS]

One after the other, with --pause (5) ms between them: --jobs (500) jobs of a workflow with one task, which a receiver of rhea takes and answers on
worker-results, and --messages (500) messages of 200 bytes through a queue. 50 of each are done before and not counted.
A job's time is from its submission over HTTP to the answer that it has completed (wait_ms), so that it has the client's HTTP in it; the parts are
  dispatch   submission to the receiver
  result     the receiver sends the result until the submission is answered
  accepted   the receiver sends the result until it is accepted
Beside it the time that the job's own events tell (node_dispatched to node_completed): whole milliseconds, without the client's HTTP, and of the moments in
which it was decided, so without the commit of the last one. A message's is from the send to the receiver, and to its acceptance. Client and worker are one process. BATON_BINARY names the program.
The bar is a p50 of 4 ms for a job, from its dispatch to its result.`;

const options = readOptions({ jobs: 500, messages: 500, pause: 5 }, usage);
const warmUp = 50, bar = 4;

const workflow = "workflow_id: latency\nnodes:\n  start: {type: start, next: [t]}\n" +
  "  t: {type: task, handler: H, queue: latency-tasks, next: [end]}\n  end: {type: end}\n";

const next = (on, event) => new Promise((resolve) => on.once(event, resolve));
const json = (value) => ({ content_type: "application/json", body: rhea.message.data_section(Buffer.from(JSON.stringify(value))) });

// Without `fetch`, whose own time is a good part of a millisecond.
class Submitter {
  agent = new Agent({ keepAlive: true, maxSockets: 1, noDelay: true });

  constructor(url) { this.url = new URL(url); }

  submit() {
    return new Promise((resolve, reject) => {
      const asked = request({ agent: this.agent, host: this.url.hostname, port: this.url.port, method: "POST", path: "/api/v1/jobs?wait_ms=30000",
        headers: { "Content-Type": "application/json" } }, (answer) => {
        let text = "";
        answer.on("data", (part) => { text += part; });
        answer.on("end", () => resolve({ status: answer.statusCode, text, at: performance.now() }));
      });
      asked.on("error", reject);
      asked.end('{"workflow_id":"latency","input_data":{}}');
    });
  }
}

async function measureJobs(baton) {
  await baton.http("POST", "/workflows", workflow, "application/yaml");
  const connection = await opened(connectTo(batonSide(baton)));
  const results = connection.open_sender("worker-results");
  await next(results, "sendable");
  let times;  // of the job that is under way
  const receiver = connection.open_receiver({ source: "latency-tasks", credit_window: 10, autoaccept: false });
  receiver.on("message", ({ message, delivery }) => {
    times.received = performance.now();
    const { task_id } = JSON.parse(message.body.content);
    results.send({ ...json({ task_id, status: "completed" }), application_properties: { MessageType: "worker-result" } });
    delivery.accept();
  });
  const accepted = () => next(results, "accepted").then(() => performance.now());
  const submitter = new Submitter(baton.url);
  const found = { total: [], dispatch: [], result: [], accepted: [], events: [] }, ids = [];
  for (let i = -warmUp; i < options.jobs; i++) {
    times = { began: performance.now() };
    const [answer, acceptedAt] = await within(30, () => `job ${i}`, Promise.race([Promise.all([submitter.submit(), accepted()]), connection.failure]));
    if (!/"status":\s*"COMPLETED"/.test(answer.text)) throw new Error(`a job was answered ${answer.status} ${answer.text}`);
    if (i >= 0) {
      found.total.push(answer.at - times.began);
      found.dispatch.push(times.received - times.began);
      found.result.push(answer.at - times.received);
      found.accepted.push(acceptedAt - times.received);
      ids.push(JSON.parse(answer.text).job_id);
    }
    await sleep(options.pause);
  }
  await closed(connection);
  for (const id of ids) found.events.push(await dispatchedToCompleted(baton, id));
  return found;
}

async function dispatchedToCompleted(baton, id) {
  const { events } = await baton.http("GET", `/jobs/${id}/timeline`);
  const at = (type) => new Date(events.find(({ event_type, node_id }) => event_type === type && node_id === "t").created_at).getTime();
  return at("node_completed") - at("node_dispatched");
}

async function measureMessages(baton) {
  baton.bus("create", "queue", "latency");
  const [from, to] = await Promise.all([opened(connectTo(batonSide(baton))), opened(connectTo(batonSide(baton)))]);
  const sender = from.open_sender("latency");
  await next(sender, "sendable");
  const receiver = to.open_receiver({ source: "latency", credit_window: 10, rcv_settle_mode: 1, autoaccept: false });
  const body = rhea.message.data_section(Buffer.alloc(200, "x"));
  const found = { received: [], accepted: [], completed: [] };
  for (let i = -warmUp; i < options.messages; i++) {
    const began = performance.now();
    const received = next(receiver, "message").then(({ delivery }) => {
      const at = performance.now();
      delivery.accept();
      return next(receiver, "settled").then(() => {
        if (outcomeOf(delivery) !== "accepted") throw new Error(`a completion was answered ${outcomeOf(delivery)}`);
        delivery.update(true);
        return [at - began, performance.now() - at];
      });
    });
    const accepted = next(sender, "accepted").then(() => performance.now() - began);
    sender.send({ durable: true, message_id: `m-${i}`, body });
    const [[receivedIn, completedIn], acceptedIn] = await within(30, () => `message ${i}`, Promise.race([Promise.all([received, accepted]), from.failure, to.failure]));
    if (i >= 0) {
      found.received.push(receivedIn);
      found.accepted.push(acceptedIn);
      found.completed.push(completedIn);
    }
    await sleep(options.pause);
  }
  await Promise.all([closed(from), closed(to)]);
  return found;
}

function print(title, values, verdict = "") {
  const ms = (part) => quantile(values, part).toFixed(2).padStart(9);
  console.log(`${title.padEnd(44)}${ms(0.5)}${ms(0.9)}${ms(0.99)}  ${verdict}`);
}

await runProgram(async (later) => {
  const baton = await Baton.start();
  later(() => baton.stop());
  console.log(`node bench/bus/latency.mjs --jobs ${options.jobs} --messages ${options.messages} --pause ${options.pause}`);
  console.log(`${"milliseconds".padEnd(44)}${"p50".padStart(9)}${"p90".padStart(9)}${"p99".padStart(9)}`);
  const jobs = await measureJobs(baton);
  const judge = (values) => `bar: p50 ${bar}, ${quantile(values, 0.5) <= bar ? "met" : "not met"}`;
  print("job: submission to its end", jobs.total, judge(jobs.total));
  print("job: dispatched to completed, by its events", jobs.events, judge(jobs.events));
  print("  submission to the receiver (dispatch)", jobs.dispatch);
  print("  result sent to the job's end", jobs.result);
  print("  result sent to its acceptance", jobs.accepted);
  const messages = await measureMessages(baton);
  print("message: send to the receiver", messages.received);
  print("  send to its acceptance", messages.accepted);
  print("  completion to its answer", messages.completed);
});
