-- A database of schema version 2, as baton made it; never changed, because such databases exist.
CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, applied_at TEXT NOT NULL) STRICT;
INSERT INTO schema_migrations(version, applied_at) VALUES (1, '2026-02-01T00:00:00.000Z'), (2, '2026-02-02T00:00:00.000Z');

CREATE TABLE writer_state (
  partition INTEGER PRIMARY KEY,
  term INTEGER NOT NULL,
  last_commit INTEGER NOT NULL,
  owner TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dag_workflows (
  tenant TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  version INTEGER NOT NULL,
  published_at TEXT NOT NULL,
  definition TEXT NOT NULL,
  PRIMARY KEY (tenant, workflow_id, version)
) STRICT;

CREATE TABLE dag_task_results (
  task_id TEXT NOT NULL PRIMARY KEY,
  job_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  status TEXT NOT NULL,
  error TEXT,
  worker_id TEXT,
  lease TEXT,
  execution_duration_ms INTEGER,
  processed INTEGER NOT NULL,
  received_at TEXT NOT NULL,
  output TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE dag_job_events (
  job_id TEXT NOT NULL,
  event_id INTEGER NOT NULL,
  event_type TEXT NOT NULL,
  node_id TEXT,
  created_at TEXT NOT NULL,
  event_data TEXT,
  PRIMARY KEY (job_id, event_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE dag_timers (
  due INTEGER NOT NULL,
  job_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  PRIMARY KEY (due, job_id, node_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE dag_idempotency_keys (
  tenant TEXT NOT NULL,
  idempotency_key TEXT NOT NULL,
  job_id TEXT NOT NULL,
  request_hash TEXT NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE access_tokens (
  token_id TEXT NOT NULL PRIMARY KEY,
  token_hash TEXT NOT NULL UNIQUE,
  label TEXT NOT NULL,
  role TEXT NOT NULL,
  tenant TEXT,
  created_at TEXT NOT NULL,
  revoked_at TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE dag_jobs (
  job_id TEXT NOT NULL PRIMARY KEY,
  tenant TEXT NOT NULL,
  workflow_id TEXT NOT NULL,
  workflow_version INTEGER NOT NULL,
  status TEXT NOT NULL,
  priority INTEGER NOT NULL,
  tags TEXT,
  rerun_of TEXT,
  error TEXT,
  traceparent TEXT,
  nodes_active INTEGER NOT NULL,
  nodes_failed INTEGER NOT NULL,
  created_at TEXT NOT NULL,
  due_at TEXT,
  paused_at TEXT,
  paused_by TEXT,
  started_at TEXT,
  completed_at TEXT,
  input_data TEXT NOT NULL,
  result_data TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX dag_jobs_by_status ON dag_jobs (tenant, status, job_id);
CREATE INDEX dag_jobs_by_workflow ON dag_jobs (tenant, workflow_id, status, job_id);
CREATE TABLE dag_node_states (
  job_id TEXT NOT NULL,
  item_index INTEGER NOT NULL,
  node_id TEXT NOT NULL,
  status TEXT NOT NULL,
  waiting_for INTEGER NOT NULL,
  edges_fired INTEGER NOT NULL,
  retry_count INTEGER NOT NULL,
  retry_base INTEGER NOT NULL,
  delivery_count INTEGER NOT NULL,
  priority INTEGER NOT NULL,
  task_id TEXT,
  tenant TEXT NOT NULL,
  queue TEXT,
  worker_id TEXT,
  lease_until TEXT,
  timer_due TEXT,
  items_total INTEGER,
  items_created INTEGER NOT NULL,
  items_done INTEGER NOT NULL,
  items_failed INTEGER NOT NULL,
  sweep_next INTEGER,
  dispatched_at TEXT,
  started_at TEXT,
  completed_at TEXT,
  dead_at TEXT,
  log_bytes INTEGER NOT NULL,
  error TEXT,
  progress TEXT,
  checkpoint TEXT,
  params TEXT,
  output TEXT,
  PRIMARY KEY (job_id, item_index, node_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dag_node_states_waiting ON dag_node_states (tenant, queue, priority DESC, dispatched_at, job_id, item_index, node_id)
  WHERE status = 'DISPATCHED';
CREATE INDEX dag_node_states_builtin ON dag_node_states (job_id, item_index, node_id) WHERE status = 'RUNNING' AND tenant = '';
CREATE INDEX dag_node_states_dead ON dag_node_states (tenant, dead_at, job_id, item_index, node_id) WHERE dead_at IS NOT NULL;
ALTER TABLE dag_timers ADD COLUMN item_index INTEGER NOT NULL DEFAULT -1;
CREATE TABLE dag_job_tags (
  tenant TEXT NOT NULL,
  tag TEXT NOT NULL,
  job_id TEXT NOT NULL,
  PRIMARY KEY (tenant, tag, job_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE dag_task_logs (
  job_id TEXT NOT NULL,
  node_id TEXT NOT NULL,
  log_id INTEGER NOT NULL,
  retry_count INTEGER NOT NULL,
  stream TEXT NOT NULL,
  logged_at TEXT NOT NULL,
  text TEXT NOT NULL,
  PRIMARY KEY (job_id, node_id, log_id)
) STRICT, WITHOUT ROWID;


INSERT INTO writer_state VALUES (
  0, 3, 41, 'an old one');
INSERT INTO dag_workflows VALUES (
  'default', 'order-flow', 3, '2026-02-01T00:00:00.000Z', 'workflow_id: order-flow
version: 3
nodes:
  start: {type: start, next: [a, b, c]}
  a: {type: task, handler: work, queue: worker, next: join}
  b: {type: task, handler: work, queue: worker, next: join}
  c: {type: task, handler: echo, queue: builtin, next: join}
  join: {type: task, handler: work, queue: worker, next: end}
  end: {type: end}
');
INSERT INTO dag_jobs VALUES (
  '019c1b7c-4000-7000-8000-000000000001', 'default', 'order-flow', 3, 'RUNNING', 0, NULL, NULL, NULL,
  '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01', 3, 0, '2026-02-02T08:00:00.000Z', NULL,
  NULL, NULL, '2026-02-02T08:00:00.001Z', NULL, '{"n": 1}', NULL);
INSERT INTO dag_jobs VALUES (
  '019c1b7c-4000-7000-8000-000000000002', 'default', 'order-flow', 3, 'FAILED', 0, NULL, NULL,
  'node ''a'' failed: no', NULL, 0, 1, '2026-02-02T07:00:00.000Z', NULL, NULL, NULL,
  '2026-02-02T07:00:00.001Z', '2026-02-02T07:00:01.000Z', '{}', NULL);
INSERT INTO dag_node_states VALUES (
  '019c1b7c-4000-7000-8000-000000000001', -1, 'a', 'DISPATCHED', 0, 1, 0, 0, 0, 0,
  '019c1b7c-4000-7000-8000-000000000001_a_0', 'default', 'worker', NULL, NULL, NULL, NULL, 0, 0, 0,
  NULL, '2026-02-02T08:00:00.001Z', NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO dag_node_states VALUES (
  '019c1b7c-4000-7000-8000-000000000001', -1, 'b', 'RUNNING', 0, 1, 1, 0, 2, 0,
  '019c1b7c-4000-7000-8000-000000000001_b_1', 'default', 'worker', 'w-1', '2026-02-02T08:00:31.000Z',
  '2026-02-02T08:00:31.000Z', NULL, 0, 0, 0, NULL, '2026-02-02T08:00:00.500Z',
  '2026-02-02T08:00:01.000Z', NULL, NULL, 0, 'the first attempt', NULL, NULL, NULL, NULL);
INSERT INTO dag_node_states VALUES (
  '019c1b7c-4000-7000-8000-000000000001', -1, 'c', 'RUNNING', 0, 1, 0, 0, 1, 0,
  '019c1b7c-4000-7000-8000-000000000001_c_0', '', 'builtin', 'builtin', '2026-02-02T08:05:00.000Z',
  '2026-02-02T08:05:00.000Z', NULL, 0, 0, 0, NULL, '2026-02-02T08:00:00.001Z',
  '2026-02-02T08:00:00.002Z', NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO dag_node_states VALUES (
  '019c1b7c-4000-7000-8000-000000000001', -1, 'end', 'PENDING', 1, 0, 0, 0, 0, 0, NULL, 'default', NULL,
  NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO dag_node_states VALUES (
  '019c1b7c-4000-7000-8000-000000000001', -1, 'join', 'PENDING', 3, 0, 0, 0, 0, 0, NULL, 'default', NULL,
  NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL);
INSERT INTO dag_node_states VALUES (
  '019c1b7c-4000-7000-8000-000000000001', -1, 'start', 'COMPLETED', 0, 1, 0, 0, 0, 0, NULL, 'default',
  NULL, NULL, NULL, NULL, NULL, 0, 0, 0, NULL, NULL, NULL, '2026-02-02T08:00:00.000Z', NULL, 0, NULL,
  NULL, NULL, NULL, NULL);
INSERT INTO dag_timers VALUES (
  1770019231000, '019c1b7c-4000-7000-8000-000000000001', 'b', -1);
INSERT INTO dag_timers VALUES (
  1770019500000, '019c1b7c-4000-7000-8000-000000000001', 'c', -1);
INSERT INTO dag_task_results VALUES (
  '019c1b7c-4000-7000-8000-000000000001_b_0', '019c1b7c-4000-7000-8000-000000000001', 'b', 'failed',
  'the first attempt', 'w-1', '0.1', 12, true, '2026-02-02T08:00:00.400Z', NULL);
INSERT INTO dag_job_events VALUES (
  '019c1b7c-4000-7000-8000-000000000001', 4294967296, 'job_created', NULL, '2026-02-02T08:00:00.000Z',
  NULL);
INSERT INTO dag_idempotency_keys VALUES (
  'default', 'once', '019c1b7c-4000-7000-8000-000000000001', 'hash');
INSERT INTO access_tokens VALUES (
  't1', 'aa', 'mine', 'admin', NULL, '2026-02-01T00:00:00.000Z', NULL);
-- What only version 2 has.
INSERT INTO dag_jobs VALUES ('019c1b7c-4000-7000-8000-000000000003', 'default', 'split-flow', 1, 'RUNNING', 7, '["eu"]', NULL, NULL, NULL, 1, 0,
  '2026-02-02T09:00:00.000Z', '2026-02-02T09:00:00.000Z', '2026-02-02T09:00:01.000Z', 'ann', '2026-02-02T09:00:00.001Z',
  NULL, '{}', NULL);
INSERT INTO dag_node_states VALUES ('019c1b7c-4000-7000-8000-000000000003', 4, 'split_4', 'FAILED', 0, 1, 0, 0, 10, 7, '019c1b7c-4000-7000-8000-000000000003_split_4_0',
  'default', 'worker', NULL, NULL, NULL, NULL, 0, 0, 0, NULL, '2026-02-02T09:00:00.000Z', NULL,
  '2026-02-02T09:00:09.000Z', '2026-02-02T09:00:09.000Z', 5, 'gone', '0.5', '{"row":17}', '{}', NULL);
INSERT INTO dag_job_tags VALUES ('default', 'eu', '019c1b7c-4000-7000-8000-000000000003');
INSERT INTO dag_task_logs VALUES ('019c1b7c-4000-7000-8000-000000000003', 'split_4', 1, 0, 'stdout', '2026-02-02T09:00:05.000Z', 'hello');
