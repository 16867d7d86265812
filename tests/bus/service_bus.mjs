// What of Service Bus its clients see first: TLS, $cbs with signatures or tokens, then topics and subscriptions. Messages are kept in memory.
// Beside it: who hands out tokens, and a front that speaks websockets.
import { execFileSync } from "node:child_process";
import { createHash, createHmac } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { createRequire } from "node:module";
import net from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

const rhea = createRequire(import.meta.url)("rhea");

// A certificate for localhost, which is its own authority.
export class Certificate {
  folder = mkdtempSync(join(tmpdir(), "baton-tls-"));
  file = join(this.folder, "cert.pem");

  constructor() {
    execFileSync("openssl", ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost",
      "-keyout", join(this.folder, "key.pem"), "-out", this.file], { stdio: "ignore" });
  }

  options() { return { key: readFileSync(join(this.folder, "key.pem")), cert: readFileSync(this.file) }; }
  remove() { rmSync(this.folder, { recursive: true, force: true }); }
}

const listening = async (server) => {
  if (!server.listening) await new Promise((resolve) => server.once("listening", resolve));
  return server.address().port;
};

// Ends a server with all its connections, those too that are a websocket by now, which it does not know any more: a test ends when nothing is open.
const closable = (server) => {
  const open = new Set();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  return () => {
    server.close();
    for (const socket of open) socket.destroy();
  };
};

export class ServiceBus {
  tokens = new Map();    // when they expire, in seconds, by address
  put = [];              // the texts of all tokens that were taken
  sent = new Map();      // by address
  rejected = [];
  refused = 0;           // messages, while `refuses` is the outcome for all of them: "release", or "reject" for the reason `refusal`
  receivers = new Map(); // our sending ends, by address
  attached = [];         // all addresses, as often as they were
  connections = 0;
  all = [];
  mute = new Set();      // addresses that are refused without a word

  // certificate: none without TLS. tokenEndpoint: whose tokens are taken, beside signatures.
  constructor({ certificate, tokenEndpoint } = {}) {
    this.certificate = certificate;
    this.tokenEndpoint = tokenEndpoint;
    this.container = rhea.create_container();
    const { container } = this;
    container.on("connection_open", ({ connection }) => { this.connections++; this.connection = connection; this.all.push(connection); if (this.isShut) this.showOut(connection); });
    container.on("receiver_open", ({ receiver }) => this.attach(receiver, receiver.target.address));
    container.on("sender_open", ({ sender }) => {
      const address = sender.source.address;
      sender.set_source({ address });
      if (address === "$cbs") this.answers = sender;
      else this.attach(sender, address) && this.receivers.set(address, sender);
    });
    container.on("message", ({ message, delivery, receiver }) => {
      if (receiver.target.address === "$cbs") return this.repeats ? this.putSlowly(message) : this.putToken(message);
      if (this.refuses) { this.refused++; return delivery[this.refuses](this.refusal); }
      this.sent.set(receiver.target.address, [...(this.sent.get(receiver.target.address) ?? []), message]);
      delivery.accept();
    });
    container.on("rejected", ({ delivery }) => this.rejected.push(delivery.remote_state.error));
    for (const event of ["connection_error", "error"]) container.on(event, () => {});
    // Nobody is to be sent to who is gone.
    for (const event of ["connection_close", "disconnected"])
      container.on(event, ({ connection }) => { for (const [address, link] of this.receivers) if (link.connection === connection) this.receivers.delete(address); });
    // As Service Bus does: whose token has expired is shown out.
    this.watch = setInterval(() => {
      const isOver = [...this.tokens.values()].some((expires) => expires < Date.now() / 1000);
      if (!isOver) return;
      this.tokens.clear();
      this.connection?.close({ condition: "amqp:unauthorized-access", description: "the token has expired" });
    }, 100);
  }

  attach(link, address) {
    this.attached.push(address);
    if (this.mute.has(address)) return false;
    link.set_target?.({ address: link.target.address });
    if (address === "$cbs" || this.tokens.has(address)) return true;
    link.close({ condition: "amqp:unauthorized-access", description: "no token for it" });
    return false;
  }

  expiryOf({ body, application_properties: { type } }) {
    if (type === "jwt") return this.tokenEndpoint?.issued.get(body);
    const fields = Object.fromEntries(body.replace("SharedAccessSignature ", "").split("&").map((field) => field.split("=")));
    const good = createHmac("sha256", "the key").update(`${fields.sr}\n${fields.se}`).digest("base64") === decodeURIComponent(fields.sig) && fields.skn === "site";
    return good ? Number(fields.se) : undefined;
  }

  putToken(message) {
    const expires = this.expiryOf(message);
    const good = expires > Date.now() / 1000;
    if (good) {
      this.tokens.set(message.application_properties.name.replace(/sb:\/\/[^/]*\//, ""), expires);
      this.put.push(message.body);
    }
    this.answers.send({ correlation_id: message.message_id, body: null,
      application_properties: { "status-code": rhea.types.wrap_int(good ? 202 : 401), "status-description": good ? "Accepted" : `InvalidSignature, TrackingId:${Math.random()}` } });
    if (!good) this.showOut(this.answers.connection);
  }

  // With a text that is another one each time.
  showOut(connection) { connection.close({ condition: "amqp:connection:forced", description: `not now, TrackingId:${Math.random()}` }); }

  // The first one is answered three times, the others are not answered at once.
  putSlowly(message) {
    if (this.put.length > 0) return setTimeout(() => this.putToken(message), 300);
    for (let i = 0; i < 3; i++) this.putToken(message);
  }

  async listen() {
    this.server = this.container.listen({ port: 0, host: "127.0.0.1", ...(this.certificate ? { transport: "tls", ...this.certificate.options() } : {}) });
    this.server.on("tlsClientError", () => { this.refusedUs = true; });
    this.end = closable(this.server);
    this.port = await listening(this.server);
    return this;
  }

  connectionString(key = "the key", port = this.port, host = "localhost") {
    return `Endpoint=sb://${host}:${port}/;SharedAccessKeyName=site;SharedAccessKey=${key}`;
  }

  say(address, body) { this.receivers.get(address).send({ body: rhea.message.data_section(Buffer.from(JSON.stringify(body))), content_type: "application/json" }); }
  close() {
    clearInterval(this.watch);
    this.end();
    for (const { heartbeat_out } of this.all) clearTimeout(heartbeat_out);  // rhea's, which goes on though the socket is gone
  }
}

// Hands out tokens as Azure does, to machines and to applications with a secret.
export class TokenEndpoint {
  issued = new Map();  // when they expire, in seconds, by text
  requests = [];
  lasts = 3600;
  secret = "the secret&";

  async listen(port = 0) {
    this.server = http.createServer((request, response) => {
      let body = "";
      request.on("data", (data) => { body += data; });
      request.on("end", () => this.answer(new URL(request.url, "http://localhost"), request, new URLSearchParams(body), response));
    }).listen(port, "127.0.0.1");
    this.close = closable(this.server);
    this.port = await listening(this.server);
    return this;
  }

  answer(url, { method, headers }, form, response) {
    this.requests.push({ method, path: url.pathname, query: Object.fromEntries(url.searchParams), form: Object.fromEntries(form), headers });
    const say = (status, value) => response.writeHead(status, { "Content-Type": "application/json", Connection: "close" }).end(JSON.stringify(value));
    const isMachine = method === "GET" && url.pathname === "/metadata/identity/oauth2/token" && headers.metadata === "true";
    const isApplication = method === "POST" && url.pathname === "/the-tenant/oauth2/v2.0/token";
    if (!isMachine && !isApplication) return say(404, { error: "not_found" });
    if (isApplication && form.get("client_secret") !== this.secret)
      return say(401, { error: "invalid_client", error_description: `Invalid client secret provided: ${form.get("client_secret")} Trace ID: ${this.requests.length}` });
    const token = `token-${this.issued.size + 1}`;
    this.issued.set(token, Date.now() / 1000 + this.lasts);
    say(200, { access_token: token, expires_in: isMachine ? String(this.lasts) : this.lasts, token_type: "Bearer" });
  }

  url() { return `http://127.0.0.1:${this.port}`; }
}

// Speaks websockets, and passes the bytes on to a port of this machine.
export class WebsocketFront {
  seen = [];

  constructor({ certificate, protocol = "AMQPWSB10" } = {}) {
    this.server = certificate ? https.createServer(certificate.options()) : http.createServer();
    this.protocol = protocol;
    this.close = closable(this.server);
  }

  async listen(target) {
    this.server.on("upgrade", (request, socket) => this.open(request, socket, target));
    this.server.listen(0, "127.0.0.1");
    this.port = await listening(this.server);
    return this;
  }

  open({ url, headers }, socket, target) {
    this.seen.push({ url, protocol: headers["sec-websocket-protocol"] });
    const accept = createHash("sha1").update(headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest("base64");
    socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      `Sec-WebSocket-Accept: ${accept}\r\nSec-WebSocket-Protocol: ${this.protocol}\r\n\r\n`);
    const behind = net.connect(target, "127.0.0.1");
    let bytes = Buffer.alloc(0);
    socket.on("data", (data) => {
      bytes = Buffer.concat([bytes, data]);
      for (let frame; (frame = readFrame(bytes)); bytes = bytes.subarray(frame.end)) {
        if (frame.opcode === 8) { this.saidEnd = true; socket.end(writeFrame(frame.payload, 8)); behind.end(); }
        else if (frame.opcode <= 2) behind.write(frame.payload);
      }
    });
    // In pieces that have nothing to do with frames of AMQP.
    behind.on("data", (data) => { for (let at = 0; at < data.length; at += 1000) socket.write(writeFrame(data.subarray(at, at + 1000), 2)); });
    for (const [one, other] of [[socket, behind], [behind, socket]]) {
      one.on("error", () => {});
      one.on("close", () => other.destroy());
    }
  }
}

function readFrame(bytes) {
  if (bytes.length < 2) return undefined;
  const short = bytes[1] & 127;
  const start = short === 126 ? 4 : short === 127 ? 10 : 2;
  if (bytes.length < start + 4) return undefined;
  const size = short === 126 ? bytes.readUInt16BE(2) : short === 127 ? Number(bytes.readBigUInt64BE(2)) : short;
  const end = start + 4 + size;
  if (bytes.length < end) return undefined;
  const mask = bytes.subarray(start, start + 4);  // clients mask what they send
  const payload = Buffer.from(bytes.subarray(start + 4, end).map((byte, i) => byte ^ mask[i % 4]));
  return { opcode: bytes[0] & 15, payload, end };
}

function writeFrame(payload, opcode) {
  const head = payload.length < 126 ? Buffer.from([0x80 | opcode, payload.length]) : Buffer.from([0x80 | opcode, 126, payload.length >> 8, payload.length & 255]);
  return Buffer.concat([head, payload]);
}
