-- A database of schema version 1, as baton made it; never changed, because such databases exist.
CREATE TABLE schema_migrations (version integer PRIMARY KEY, applied_at timestamptz NOT NULL);
INSERT INTO schema_migrations(version, applied_at) VALUES (1, '2026-02-01T00:00:00.000Z');

CREATE TABLE writer_state (
  partition integer PRIMARY KEY,
  term bigint NOT NULL,
  last_commit bigint NOT NULL,
  owner text COLLATE "C" NOT NULL
);
INSERT INTO writer_state(partition, term, last_commit, owner) VALUES (0, 0, 0, '');

CREATE TABLE dag_workflows (
  tenant text COLLATE "C" NOT NULL,
  workflow_id text COLLATE "C" NOT NULL,
  version integer NOT NULL,
  published_at timestamptz NOT NULL,
  definition text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, workflow_id, version)
);

CREATE TABLE dag_jobs (
  job_id text COLLATE "C" NOT NULL PRIMARY KEY,
  tenant text COLLATE "C" NOT NULL,
  workflow_id text COLLATE "C" NOT NULL,
  workflow_version integer NOT NULL,
  status text COLLATE "C" NOT NULL,
  error text COLLATE "C",
  traceparent text COLLATE "C",
  nodes_active integer NOT NULL,
  nodes_failed integer NOT NULL,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  completed_at timestamptz,
  input_data json NOT NULL,
  result_data json
);
CREATE INDEX dag_jobs_by_status ON dag_jobs (tenant, status, job_id);
CREATE INDEX dag_jobs_by_workflow ON dag_jobs (tenant, workflow_id, status, job_id);

CREATE TABLE dag_node_states (
  job_id text COLLATE "C" NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  waiting_for integer NOT NULL,
  retry_count integer NOT NULL,
  delivery_count integer NOT NULL,
  task_id text COLLATE "C",
  tenant text COLLATE "C" NOT NULL,
  queue text COLLATE "C",
  worker_id text COLLATE "C",
  lease_until timestamptz,
  timer_due timestamptz,
  dispatched_at timestamptz,
  started_at timestamptz,
  completed_at timestamptz,
  error text COLLATE "C",
  output json,
  PRIMARY KEY (job_id, node_id)
);
CREATE INDEX dag_node_states_waiting ON dag_node_states (tenant, queue, dispatched_at, job_id, node_id)
  WHERE status = 'DISPATCHED';
-- Only the built-in queue has no tenant, so this holds nothing else.
CREATE INDEX dag_node_states_builtin ON dag_node_states (job_id, node_id) WHERE status = 'RUNNING' AND tenant = '';

CREATE TABLE dag_task_results (
  task_id text COLLATE "C" NOT NULL PRIMARY KEY,
  job_id text COLLATE "C" NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  status text COLLATE "C" NOT NULL,
  error text COLLATE "C",
  worker_id text COLLATE "C",
  lease text COLLATE "C",
  execution_duration_ms bigint,
  processed boolean NOT NULL,
  received_at timestamptz NOT NULL,
  output json
);

CREATE TABLE dag_job_events (
  job_id text COLLATE "C" NOT NULL,
  event_id bigint NOT NULL,
  event_type text COLLATE "C" NOT NULL,
  node_id text COLLATE "C",
  created_at timestamptz NOT NULL,
  event_data json,
  PRIMARY KEY (job_id, event_id)
);

CREATE TABLE dag_timers (
  due bigint NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  node_id text COLLATE "C" NOT NULL,
  PRIMARY KEY (due, job_id, node_id)
);

CREATE TABLE dag_idempotency_keys (
  tenant text COLLATE "C" NOT NULL,
  idempotency_key text COLLATE "C" NOT NULL,
  job_id text COLLATE "C" NOT NULL,
  request_hash text COLLATE "C" NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
);

CREATE TABLE access_tokens (
  token_id text COLLATE "C" NOT NULL PRIMARY KEY,
  token_hash text COLLATE "C" NOT NULL UNIQUE,
  label text COLLATE "C" NOT NULL,
  role text COLLATE "C" NOT NULL,
  tenant text COLLATE "C",
  created_at timestamptz NOT NULL,
  revoked_at timestamptz
);

-- What a server of that version had committed when it was stopped: a job with a task that waits, one that runs,
-- a built-in one that runs, and a join that waits for all three.
UPDATE writer_state SET term = 3, last_commit = 41, owner = 'an old one';
INSERT INTO dag_workflows VALUES ('default', 'order-flow', 3, '2026-02-01T00:00:00.000Z',
'workflow_id: order-flow
version: 3
nodes:
  start: {type: start, next: [a, b, c]}
  a: {type: task, handler: work, queue: worker, next: join}
  b: {type: task, handler: work, queue: worker, next: join}
  c: {type: task, handler: echo, queue: builtin, next: join}
  join: {type: task, handler: work, queue: worker, next: end}
  end: {type: end}
');
INSERT INTO dag_jobs VALUES ('019c1b7c-4000-7000-8000-000000000001', 'default', 'order-flow', 3, 'RUNNING', NULL,
  '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 3, 0, '2026-02-02T08:00:00.000Z',
  '2026-02-02T08:00:00.001Z', NULL, '{"n": 1}', NULL);
INSERT INTO dag_jobs VALUES ('019c1b7c-4000-7000-8000-000000000002', 'default', 'order-flow', 3, 'FAILED',
  'node ''a'' failed: no', NULL, 0, 1, '2026-02-02T07:00:00.000Z', '2026-02-02T07:00:00.001Z',
  '2026-02-02T07:00:01.000Z', '{}', NULL);
INSERT INTO dag_node_states VALUES
  ('019c1b7c-4000-7000-8000-000000000001', 'start', 'COMPLETED', 0, 0, 0, NULL, 'default', NULL, NULL, NULL, NULL, NULL,
   NULL, '2026-02-02T08:00:00.000Z', NULL, NULL),
  ('019c1b7c-4000-7000-8000-000000000001', 'a', 'DISPATCHED', 0, 0, 0, '019c1b7c-4000-7000-8000-000000000001_a_0',
   'default', 'worker', NULL, NULL, NULL, '2026-02-02T08:00:00.001Z', NULL, NULL, NULL, NULL),
  ('019c1b7c-4000-7000-8000-000000000001', 'b', 'RUNNING', 0, 1, 2, '019c1b7c-4000-7000-8000-000000000001_b_1',
   'default', 'worker', 'w-1', '2026-02-02T08:00:31.000Z', '2026-02-02T08:00:31.000Z', '2026-02-02T08:00:00.500Z',
   '2026-02-02T08:00:01.000Z', NULL, 'the first attempt', NULL),
  ('019c1b7c-4000-7000-8000-000000000001', 'c', 'RUNNING', 0, 0, 1, '019c1b7c-4000-7000-8000-000000000001_c_0',
   '', 'builtin', 'builtin', '2026-02-02T08:05:00.000Z', '2026-02-02T08:05:00.000Z', '2026-02-02T08:00:00.001Z',
   '2026-02-02T08:00:00.002Z', NULL, NULL, NULL),
  ('019c1b7c-4000-7000-8000-000000000001', 'join', 'PENDING', 3, 0, 0, NULL, 'default', NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL, NULL),
  ('019c1b7c-4000-7000-8000-000000000001', 'end', 'PENDING', 1, 0, 0, NULL, 'default', NULL, NULL, NULL, NULL, NULL,
   NULL, NULL, NULL, NULL);
INSERT INTO dag_timers VALUES (1770019231000, '019c1b7c-4000-7000-8000-000000000001', 'b'),
  (1770019500000, '019c1b7c-4000-7000-8000-000000000001', 'c');
INSERT INTO dag_task_results VALUES ('019c1b7c-4000-7000-8000-000000000001_b_0',
  '019c1b7c-4000-7000-8000-000000000001', 'b', 'failed', 'the first attempt', 'w-1', '0.1', 12, true,
  '2026-02-02T08:00:00.400Z', NULL);
INSERT INTO dag_job_events VALUES ('019c1b7c-4000-7000-8000-000000000001', 4294967296, 'job_created', NULL,
  '2026-02-02T08:00:00.000Z', NULL);
INSERT INTO dag_idempotency_keys VALUES ('default', 'once', '019c1b7c-4000-7000-8000-000000000001', 'hash');
INSERT INTO access_tokens VALUES ('t1', 'aa', 'mine', 'admin', NULL, '2026-02-01T00:00:00.000Z', NULL);
