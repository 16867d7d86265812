#include "store/migrations.hpp"

#include <array>

namespace baton::store {
namespace {

// Key and filter texts compare by bytes in both dialects ({text} is COLLATE "C" in PostgreSQL): pages are cut
// at ids, and an order that depends on the locale of a server would cut them elsewhere. Columns that may be
// large come last, so that SQLite does not walk through them to reach a status. JSON stays the text that it
// was ({json} is json, not jsonb).
//
// {clustered} tables are stored in the order of their primary key in SQLite. Job ids and commit numbers grow
// with time, so new rows go to the last pages, and one tree per table is written instead of two.
//
// Indexes are what a write costs, so dag_jobs has only the two that lists need. Both end in job_id, which is
// the order of the pages; a list that does not ask for a status is the merge of the five ranges, one per
// status (sql_reads.cpp). Thus every filter reads at most five times the rows that it returns, whatever the
// shares of tenants, workflows and statuses are. A range of created_at is a range of job_id. A waiting node
// is found by an index that holds waiting nodes only.
constexpr std::string_view version_1 = R"sql(
CREATE TABLE writer_state (
  partition {int} PRIMARY KEY,
  term {bigint} NOT NULL,
  last_commit {bigint} NOT NULL,
  owner {text} NOT NULL
) {clustered};

CREATE TABLE dag_workflows (
  tenant {text} NOT NULL,
  workflow_id {text} NOT NULL,
  version {int} NOT NULL,
  published_at {time} NOT NULL,
  definition {text} NOT NULL,
  PRIMARY KEY (tenant, workflow_id, version)
) {heap};

CREATE TABLE dag_jobs (
  job_id {text} NOT NULL PRIMARY KEY,
  tenant {text} NOT NULL,
  workflow_id {text} NOT NULL,
  workflow_version {int} NOT NULL,
  status {text} NOT NULL,
  error {text},
  traceparent {text},
  nodes_active {int} NOT NULL,
  nodes_failed {int} NOT NULL,
  created_at {time} NOT NULL,
  started_at {time},
  completed_at {time},
  input_data {json} NOT NULL,
  result_data {json}
) {clustered};
CREATE INDEX dag_jobs_by_status ON dag_jobs (tenant, status, job_id);
CREATE INDEX dag_jobs_by_workflow ON dag_jobs (tenant, workflow_id, status, job_id);

CREATE TABLE dag_node_states (
  job_id {text} NOT NULL,
  node_id {text} NOT NULL,
  status {text} NOT NULL,
  waiting_for {int} NOT NULL,
  retry_count {int} NOT NULL,
  delivery_count {int} NOT NULL,
  task_id {text},
  tenant {text} NOT NULL,
  queue {text},
  worker_id {text},
  lease_until {time},
  timer_due {time},
  dispatched_at {time},
  started_at {time},
  completed_at {time},
  error {text},
  output {json},
  PRIMARY KEY (job_id, node_id)
) {clustered};
CREATE INDEX dag_node_states_waiting ON dag_node_states (tenant, queue, dispatched_at, job_id, node_id)
  WHERE status = 'DISPATCHED';
-- Only the built-in queue has no tenant, so this holds nothing else.
CREATE INDEX dag_node_states_builtin ON dag_node_states (job_id, node_id) WHERE status = 'RUNNING' AND tenant = '';

CREATE TABLE dag_task_results (
  task_id {text} NOT NULL PRIMARY KEY,
  job_id {text} NOT NULL,
  node_id {text} NOT NULL,
  status {text} NOT NULL,
  error {text},
  worker_id {text},
  lease {text},
  execution_duration_ms {bigint},
  processed {bool} NOT NULL,
  received_at {time} NOT NULL,
  output {json}
) {clustered};

CREATE TABLE dag_job_events (
  job_id {text} NOT NULL,
  event_id {bigint} NOT NULL,
  event_type {text} NOT NULL,
  node_id {text},
  created_at {time} NOT NULL,
  event_data {json},
  PRIMARY KEY (job_id, event_id)
) {clustered};

CREATE TABLE dag_timers (
  due {bigint} NOT NULL,
  job_id {text} NOT NULL,
  node_id {text} NOT NULL,
  PRIMARY KEY (due, job_id, node_id)
) {clustered};

CREATE TABLE dag_idempotency_keys (
  tenant {text} NOT NULL,
  idempotency_key {text} NOT NULL,
  job_id {text} NOT NULL,
  request_hash {text} NOT NULL,
  PRIMARY KEY (tenant, idempotency_key)
) {clustered};

CREATE TABLE access_tokens (
  token_id {text} NOT NULL PRIMARY KEY,
  token_hash {text} NOT NULL UNIQUE,
  label {text} NOT NULL,
  role {text} NOT NULL,
  tenant {text},
  created_at {time} NOT NULL,
  revoked_at {time}
) {clustered};
)sql";

// Fan-outs, priorities, pauses, tags, logs. Where a key changes or a new column must stand before the
// documents, rows move into a new table: SQLite cannot do either in place, and both dialects stay alike.
constexpr std::string_view version_2 = R"sql(
ALTER TABLE dag_jobs RENAME TO dag_jobs_1;
DROP INDEX dag_jobs_by_status;
DROP INDEX dag_jobs_by_workflow;
CREATE TABLE dag_jobs (
  job_id {text} NOT NULL PRIMARY KEY,
  tenant {text} NOT NULL,
  workflow_id {text} NOT NULL,
  workflow_version {int} NOT NULL,
  status {text} NOT NULL,
  priority {int} NOT NULL,
  tags {text},
  rerun_of {text},
  error {text},
  traceparent {text},
  nodes_active {int} NOT NULL,
  nodes_failed {int} NOT NULL,
  created_at {time} NOT NULL,
  due_at {time},
  paused_at {time},
  paused_by {text},
  started_at {time},
  completed_at {time},
  input_data {json} NOT NULL,
  result_data {json}
) {clustered};
INSERT INTO dag_jobs SELECT job_id, tenant, workflow_id, workflow_version, status, 0, NULL, NULL, error, traceparent,
  nodes_active, nodes_failed, created_at, NULL, NULL, NULL, started_at, completed_at, input_data, result_data FROM dag_jobs_1;
DROP TABLE dag_jobs_1;
CREATE INDEX dag_jobs_by_status ON dag_jobs (tenant, status, job_id);
CREATE INDEX dag_jobs_by_workflow ON dag_jobs (tenant, workflow_id, status, job_id);

-- The key has the item before the name: the nodes of a definition stand together, before the children of its
-- fan-outs, and those in the order of their index.
ALTER TABLE dag_node_states RENAME TO dag_node_states_1;
DROP INDEX dag_node_states_waiting;
DROP INDEX dag_node_states_builtin;
CREATE TABLE dag_node_states (
  job_id {text} NOT NULL,
  item_index {int} NOT NULL,
  node_id {text} NOT NULL,
  status {text} NOT NULL,
  waiting_for {int} NOT NULL,
  edges_fired {int} NOT NULL,
  retry_count {int} NOT NULL,
  retry_base {int} NOT NULL,
  delivery_count {int} NOT NULL,
  priority {int} NOT NULL,
  task_id {text},
  tenant {text} NOT NULL,
  queue {text},
  worker_id {text},
  lease_until {time},
  timer_due {time},
  items_total {int},
  items_created {int} NOT NULL,
  items_done {int} NOT NULL,
  items_failed {int} NOT NULL,
  sweep_next {int},
  dispatched_at {time},
  started_at {time},
  completed_at {time},
  dead_at {time},
  log_bytes {int} NOT NULL,
  error {text},
  progress {json},
  checkpoint {json},
  params {json},
  output {json},
  PRIMARY KEY (job_id, item_index, node_id)
) {clustered};
INSERT INTO dag_node_states SELECT job_id, -1, node_id, status, waiting_for, CASE WHEN status = 'PENDING' THEN 0 ELSE 1 END,
  retry_count, 0, delivery_count, 0, task_id, tenant, queue, worker_id, lease_until, timer_due, NULL, 0, 0, 0, NULL,
  dispatched_at, started_at, completed_at, NULL, 0, error, NULL, NULL, NULL, output FROM dag_node_states_1;
DROP TABLE dag_node_states_1;
CREATE INDEX dag_node_states_waiting ON dag_node_states (tenant, queue, priority DESC, dispatched_at, job_id, item_index, node_id)
  WHERE status = 'DISPATCHED';
-- Only the built-in queue has no tenant, so this holds nothing else.
CREATE INDEX dag_node_states_builtin ON dag_node_states (job_id, item_index, node_id) WHERE status = 'RUNNING' AND tenant = '';
CREATE INDEX dag_node_states_dead ON dag_node_states (tenant, dead_at, job_id, item_index, node_id) WHERE dead_at IS NOT NULL;

ALTER TABLE dag_timers ADD COLUMN item_index {int} NOT NULL DEFAULT -1;

CREATE TABLE dag_job_tags (
  tenant {text} NOT NULL,
  tag {text} NOT NULL,
  job_id {text} NOT NULL,
  PRIMARY KEY (tenant, tag, job_id)
) {clustered};

CREATE TABLE dag_task_logs (
  job_id {text} NOT NULL,
  node_id {text} NOT NULL,
  log_id {bigint} NOT NULL,
  retry_count {int} NOT NULL,
  stream {text} NOT NULL,
  logged_at {time} NOT NULL,
  text {text} NOT NULL,
  PRIMARY KEY (job_id, node_id, log_id)
) {clustered};
)sql";

// Runbooks. Other programs insert and change rows here, naming the columns of the contract only: what they may
// leave out is nullable or has a default, ids are issued by the database, and JSON of the contract is text,
// since they write what they like. Enumerations whose column is ours are NULL where others left them out.
//
// A step is written three times or more, so step_executions has one whole index; the others hold the few rows
// that wait, are parked or have failed. That index begins with the phase: a walk over the members of a batch
// then adds its steps at one place, and the steps of one phase are a page. All steps of a member are found
// through the phases of its batch, which are few.
//
// {,id} ends an index that is read by id; in SQLite every index ends so by itself.
constexpr std::string_view version_3 = R"sql(
CREATE TABLE runbooks (
  id {id},
  name {text} NOT NULL,
  version {int} NOT NULL,
  data_table_name {text} DEFAULT '',
  is_active {bool} DEFAULT {true},
  overdue_behavior {text} DEFAULT 'rerun',
  ignore_overdue_applied {bool} DEFAULT {false},
  rerun_init {bool} DEFAULT {false},
  created_at {time} NOT NULL DEFAULT ({now}),
  automation_enabled {bool} DEFAULT {true},
  last_error {text},
  last_error_at {time},
  last_synced_at {time},
  transition_after {bigint},
  timer_due {time},
  held_removals {json},
  yaml_content {text} NOT NULL,
  UNIQUE (name, version)
) {heap};
CREATE INDEX runbooks_active ON runbooks (name, version) WHERE is_active;
CREATE INDEX runbooks_by_table ON runbooks (data_table_name);

CREATE TABLE batches (
  id {id},
  runbook_id {bigint} NOT NULL,
  batch_start_time {time},
  status {text} NOT NULL DEFAULT 'detected',
  detected_at {time} NOT NULL DEFAULT ({now}),
  init_dispatched_at {time},
  is_manual {bool} DEFAULT {false},
  importing {bool} DEFAULT {false},
  created_by {text},
  completed_at {time},
  paused_at {time},
  paused_by {text},
  removals_approved {text},
  walk {text},
  walk_after {bigint} DEFAULT 0,
  timer_due {time},
  error_message {text}
) {heap};
CREATE INDEX batches_by_time ON batches (runbook_id, batch_start_time);
CREATE INDEX batches_by_runbook ON batches (runbook_id, status{,id});
CREATE INDEX batches_by_status ON batches (status{,id});
CREATE INDEX batches_importing ON batches (id) WHERE importing;
CREATE INDEX batches_approved ON batches (runbook_id) WHERE removals_approved IS NOT NULL;

CREATE TABLE batch_members (
  id {id},
  batch_id {bigint} NOT NULL,
  member_key {text} NOT NULL,
  status {text} NOT NULL DEFAULT 'active',
  added_at {time} NOT NULL DEFAULT ({now}),
  removed_at {time},
  removed_by {text},
  add_dispatched_at {time},
  remove_dispatched_at {time},
  failed_at {time},
  catching_up {bool} DEFAULT {false},
  counted_as {text},
  data_json {text},
  worker_data_json {text}
) {heap};
CREATE INDEX batch_members_by_batch ON batch_members (batch_id{,id});
CREATE INDEX batch_members_by_key ON batch_members (batch_id, member_key{,id});
CREATE INDEX batch_members_left ON batch_members (batch_id, status{,id}) WHERE status<>'active';

CREATE TABLE phase_executions (
  id {id},
  batch_id {bigint} NOT NULL,
  phase_name {text} NOT NULL,
  offset_minutes {int} DEFAULT 0,
  due_at {time},
  runbook_version {int} NOT NULL,
  status {text} NOT NULL DEFAULT 'pending',
  dispatched_at {time},
  completed_at {time},
  walk {text},
  walk_after {bigint} DEFAULT 0,
  current_index {int} DEFAULT 0,
  timer_due {time},
  member_ids {json}
) {heap};
CREATE INDEX phase_executions_by_batch ON phase_executions (batch_id{,id});
CREATE INDEX phase_executions_untimed ON phase_executions (id)
  WHERE status='pending' AND timer_due IS NULL AND due_at IS NOT NULL;

CREATE TABLE step_executions (
  id {id},
  phase_execution_id {bigint} NOT NULL,
  batch_member_id {bigint} NOT NULL,
  is_catch_up {bool} DEFAULT {false},
  {execution_3}
) {heap};
CREATE INDEX step_executions_by_phase ON step_executions (phase_execution_id, batch_member_id, step_index{,id});
-- Not IN: for a list of three SQLite makes a temporary table, twice at each update.
CREATE INDEX step_executions_failed ON step_executions (phase_execution_id, coalesce(completed_at,{epoch}){,id})
  WHERE status='failed' OR status='poll_timeout' OR status='rolled_back';
CREATE INDEX step_executions_waiting ON step_executions (worker_id, queued_at{,id}) WHERE job_state='queued';
CREATE INDEX step_executions_parked ON step_executions (phase_execution_id{,id}) WHERE job_state='parked';

CREATE TABLE init_executions (
  id {id},
  batch_id {bigint} NOT NULL,
  runbook_version {int} NOT NULL,
  {execution_3}
) {heap};
CREATE INDEX init_executions_by_batch ON init_executions (batch_id, runbook_version, step_index{,id});
CREATE INDEX init_executions_waiting ON init_executions (worker_id, queued_at{,id}) WHERE job_state='queued';

CREATE TABLE cleanup_executions (
  id {id},
  kind {text} NOT NULL,
  batch_id {bigint} NOT NULL,
  runbook_version {int} NOT NULL,
  phase_execution_id {bigint},
  batch_member_id {bigint},
  caused_by_step_id {bigint},
  caused_by_init_id {bigint},
  sequence {text} NOT NULL,
  {execution_3}
) {heap};
CREATE INDEX cleanup_executions_by_batch ON cleanup_executions (batch_id{,id});
CREATE INDEX cleanup_executions_open ON cleanup_executions (batch_id{,id})
  WHERE status IN ('pending','dispatched','polling');
CREATE INDEX cleanup_executions_failed ON cleanup_executions (batch_id, coalesce(completed_at,{epoch}){,id})
  WHERE status='failed' OR status='poll_timeout';
CREATE INDEX cleanup_executions_of_step ON cleanup_executions (caused_by_step_id{,id}) WHERE caused_by_step_id IS NOT NULL;
CREATE INDEX cleanup_executions_of_init ON cleanup_executions (caused_by_init_id{,id}) WHERE caused_by_init_id IS NOT NULL;
CREATE INDEX cleanup_executions_removals ON cleanup_executions (batch_member_id{,id}) WHERE kind='removal';
CREATE INDEX cleanup_executions_waiting ON cleanup_executions (worker_id, queued_at{,id}) WHERE job_state='queued';

CREATE TABLE batch_counts (
  batch_id {bigint} NOT NULL,
  phase_execution_id {bigint} NOT NULL,
  lane {text} NOT NULL,
  step_index {int} NOT NULL,
  status {text} NOT NULL,
  n {bigint} NOT NULL,
  PRIMARY KEY (batch_id, phase_execution_id, lane, step_index, status)
) {clustered};

CREATE TABLE batch_events (
  batch_id {bigint} NOT NULL,
  event_id {bigint} NOT NULL,
  created_at {time} NOT NULL,
  event_type {text} NOT NULL,
  batch_member_id {bigint},
  job_id {text},
  message {text} NOT NULL,
  PRIMARY KEY (batch_id, event_id)
) {clustered};

CREATE TABLE runbook_timers (
  due {bigint} NOT NULL,
  kind {text} NOT NULL,
  id {bigint} NOT NULL,
  PRIMARY KEY (due, kind, id)
) {clustered};
)sql";

// What the three tables of jobs have in common, in version 3.
constexpr std::string_view execution_3 = R"sql(step_name {text} NOT NULL,
  step_index {int} NOT NULL,
  worker_id {text} NOT NULL,
  function_name {text},
  status {text} NOT NULL DEFAULT 'pending',
  job_id {text},
  dispatched_at {time},
  completed_at {time},
  is_poll_step {bool} DEFAULT {false},
  poll_interval_sec {int},
  poll_timeout_sec {int},
  poll_started_at {time},
  last_polled_at {time},
  poll_count {int} DEFAULT 0,
  max_retries {int},
  retry_interval_sec {int},
  retry_count {int} DEFAULT 0,
  retry_after {time},
  retry_backoff {text},
  retry_max_interval_sec {int},
  timeout_sec {int},
  job_state {text},
  queued_at {time},
  leased_by {text},
  leased_at {time},
  lease_until {time},
  delivery_count {int} DEFAULT 0,
  log_bytes {int} DEFAULT 0,
  dead_at {time},
  timer_due {time},
  counted_as {text},
  error_message {text},
  params_json {text},
  result_json {text})sql";

// Service calls. The events are the truth; service_calls is their fold, and what lists are made from. Ids grow with
// time, so the rows of new calls go to the last pages of each tree. What waits for its time is found by two indexes that
// hold nothing else, and are the timer: by time, which tells where something is due soon, and by tenant and origin, which
// have a window each (core/call/agenda.hpp). Both end with the status, so that the table itself need not be looked at.
constexpr std::string_view version_4 = R"sql(
CREATE TABLE service_calls (
  tenant_id {text} NOT NULL,
  service_call_id {text} NOT NULL,
  version {bigint} NOT NULL,
  name {text} NOT NULL,
  status {text} NOT NULL,
  due_at {time} NOT NULL,
  submitted_at {time} NOT NULL,
  started_at {time},
  finished_at {time},
  started_by {text},
  correlation_id {text} NOT NULL,
  origin {text} NOT NULL,
  repeat_of {text},
  tags {text} NOT NULL,
  request_spec {json} NOT NULL,
  response_meta {json},
  error_meta {json},
  PRIMARY KEY (tenant_id, service_call_id)
) {clustered};
CREATE INDEX service_calls_due ON service_calls (tenant_id, origin, due_at, service_call_id, status) WHERE status='Scheduled';
CREATE INDEX service_calls_by_time ON service_calls (due_at, tenant_id, origin, status) WHERE status='Scheduled';
CREATE INDEX service_calls_by_due ON service_calls (tenant_id, due_at, service_call_id);
CREATE INDEX service_calls_running ON service_calls (tenant_id, service_call_id) WHERE status='Running';
CREATE INDEX service_calls_by_status ON service_calls (tenant_id, status, service_call_id);
CREATE INDEX service_calls_by_name ON service_calls (tenant_id, name, service_call_id);
{service_calls_pkey_last}

CREATE TABLE service_call_events (
  tenant_id {text} NOT NULL,
  service_call_id {text} NOT NULL,
  version {bigint} NOT NULL,
  event_type {text} NOT NULL,
  occurred_at {time} NOT NULL,
  correlation_id {text} NOT NULL,
  causation_id {text} NOT NULL,
  data {json} NOT NULL,
  PRIMARY KEY (tenant_id, service_call_id, version)
) {clustered};

CREATE TABLE service_call_requests (
  tenant_id {text} NOT NULL,
  service_call_id {text} NOT NULL,
  method {text} NOT NULL,
  url {text} NOT NULL,
  headers {text} NOT NULL,
  timeout_ms {bigint} NOT NULL,
  redirects_max {int} NOT NULL,
  probe {json},
  body_is_base64 {int} NOT NULL,
  body {text} NOT NULL,
  PRIMARY KEY (tenant_id, service_call_id)
) {clustered};

CREATE TABLE service_call_keys (
  tenant_id {text} NOT NULL,
  idempotency_key {text} NOT NULL,
  service_call_id {text} NOT NULL,
  request_hash {text} NOT NULL,
  PRIMARY KEY (tenant_id, idempotency_key)
) {clustered};

CREATE TABLE service_call_tags (
  tenant_id {text} NOT NULL,
  tag {text} NOT NULL,
  service_call_id {text} NOT NULL,
  PRIMARY KEY (tenant_id, tag, service_call_id)
) {clustered};
)sql";

// Dead letters of runbooks.
constexpr std::string_view version_5 = R"sql(
CREATE INDEX step_executions_dead ON step_executions (dead_at{,id}) WHERE dead_at IS NOT NULL;
CREATE INDEX init_executions_dead ON init_executions (dead_at{,id}) WHERE dead_at IS NOT NULL;
CREATE INDEX cleanup_executions_dead ON cleanup_executions (dead_at{,id}) WHERE dead_at IS NOT NULL;
)sql";

// Flags are 0 and 1 in PostgreSQL too, as the contract's SQL has them; SQLite never had anything else. Statuses that
// others wrote in capitals are found: indexes are on the word, whatever its case.
constexpr std::string_view version_6 = R"sql(
DROP INDEX runbooks_active;
DROP INDEX batches_importing;
DROP INDEX batches_by_runbook;
DROP INDEX batches_by_status;
DROP INDEX batch_members_left;
DROP INDEX phase_executions_untimed;
DROP INDEX step_executions_failed;
{flags_6}
CREATE INDEX runbooks_active ON runbooks (name, version) WHERE is_active=1;
CREATE INDEX batches_importing ON batches (id) WHERE importing=1;
CREATE INDEX batches_by_runbook ON batches (runbook_id, {status}{,id});
CREATE INDEX batches_by_status ON batches ({status}{,id});
CREATE INDEX batch_members_left ON batch_members (batch_id, {status}{,id}) WHERE {status}<>'active';
CREATE INDEX phase_executions_untimed ON phase_executions (id)
  WHERE {status}='pending' AND timer_due IS NULL AND due_at IS NOT NULL;
CREATE INDEX step_executions_failed ON step_executions (phase_execution_id, coalesce(completed_at,{epoch}){,id})
  WHERE {status}='failed' OR {status}='poll_timeout' OR {status}='rolled_back';
)sql";

// One table of timers for all kinds of work; sql_timers.hpp says what a subject is.
constexpr std::string_view version_7 = R"sql(
CREATE TABLE baton_timers (
  due {bigint} NOT NULL,
  subject {text} NOT NULL,
  what {text} NOT NULL,
  PRIMARY KEY (due, subject, what)
) {clustered};
INSERT INTO baton_timers(due, subject, what) SELECT due, job_id, node_id FROM dag_timers;
INSERT INTO baton_timers(due, subject, what)
  SELECT due, CASE kind WHEN 'runbook' THEN 'version' ELSE kind END || ' ' || CAST(id AS text), '' FROM runbook_timers;
DROP TABLE dag_timers;
DROP TABLE runbook_timers;
)sql";

// All flags of a table in one go, because each change of a type writes the table anew. A table of members is not
// touched if it is another's.
constexpr std::string_view flags_6 = R"sql(
DO $flags$
DECLARE change text;
BEGIN
  FOR change IN
    SELECT format('ALTER TABLE %I ', c.relname) ||
           string_agg(format('ALTER %1$I DROP DEFAULT, ALTER %1$I TYPE integer USING %1$I::integer', a.attname) ||
                      CASE WHEN d.oid IS NULL THEN ''
                           ELSE format(', ALTER %I SET DEFAULT %s', a.attname,
                                       CASE pg_get_expr(d.adbin, d.adrelid) WHEN 'true' THEN 1 ELSE 0 END) END, ', ')
    FROM pg_class c
    JOIN pg_attribute a ON a.attrelid=c.oid AND a.atttypid='boolean'::regtype AND NOT a.attisdropped
    LEFT JOIN pg_attrdef d ON d.adrelid=c.oid AND d.adnum=a.attnum
    WHERE c.relkind='r' AND c.relnamespace=(SELECT oid FROM pg_namespace WHERE nspname=current_schema())
      AND (c.relname IN ('runbooks','batches','batch_members','step_executions','init_executions',
                         'cleanup_executions','dag_task_results')
           OR (c.relname LIKE 'runbook\_%' AND a.attname='_is_current' AND pg_has_role(c.relowner, 'USAGE')))
    GROUP BY c.relname
  LOOP
    EXECUTE change;
  END LOOP;
END $flags$;
)sql";

// The journal (store/journal/journal_store.hpp): commits that the tables do not show yet. An id is the partition times
// 2^48 and the commit number. `followed` is the commit whose state the tables show.
constexpr std::string_view version_8 = R"sql(
CREATE TABLE baton_journal (
  id {bigint} PRIMARY KEY,
  format {int} NOT NULL,
  data {bytes} NOT NULL
) {heap};
{journal_uncompressed}
ALTER TABLE writer_state ADD COLUMN followed {bigint} NOT NULL DEFAULT 0;
UPDATE writer_state SET followed = last_commit;
)sql";

// The events of jobs in pages (sql_job_pages.hpp); those of before stay rows. Whoever asks for dag_job_events sees both.
constexpr std::string_view version_9 = R"sql(
{names_in_views_stay}
ALTER TABLE dag_job_events RENAME TO dag_job_event_rows;
CREATE TABLE dag_job_event_pages (
  job_id {text} NOT NULL,
  last_event_id {bigint} NOT NULL,
  events {text} NOT NULL,
  PRIMARY KEY (job_id, last_event_id)
) {heap};
CREATE VIEW dag_job_events(job_id, event_id, event_type, node_id, created_at, event_data) AS
SELECT job_id, event_id, event_type, node_id, created_at, event_data FROM dag_job_event_rows
UNION ALL
{paged_events};
{names_in_views_go_with_tables}
)sql";

// Commits may be in a log beside the database (sql_journal.hpp), of which versions before this one know nothing.
constexpr std::string_view version_10 = "SELECT 1;";

// Ids and times in a page are told by how far they are from those of the page, and a job that has completed keeps its
// nodes and results there (sql_job_pages.hpp). What others read are views; nothing is converted.
constexpr std::string_view version_11 = R"sql(
{names_in_views_stay}
{drop_events_view}
ALTER TABLE dag_job_event_pages RENAME TO dag_job_pages;
ALTER TABLE dag_job_pages ADD COLUMN since {bigint};
ALTER TABLE dag_job_pages ADD COLUMN nodes {text};
ALTER TABLE dag_job_pages ADD COLUMN results {text};
ALTER TABLE dag_node_states RENAME TO dag_node_rows;
ALTER TABLE dag_task_results RENAME TO dag_task_result_rows;
{replace_view} dag_job_events(job_id, event_id, event_type, node_id, created_at, event_data) AS
SELECT job_id, event_id, event_type, node_id, created_at, event_data FROM dag_job_event_rows
UNION ALL
{paged_events_of_9}
UNION ALL
{paged_events_of_11};
CREATE VIEW dag_node_states(job_id, item_index, node_id, status, waiting_for, edges_fired, retry_count, retry_base, delivery_count,
  priority, task_id, tenant, queue, worker_id, lease_until, timer_due, items_total, items_created, items_done, items_failed,
  sweep_next, dispatched_at, started_at, completed_at, dead_at, log_bytes, error, progress, checkpoint, params, output) AS
SELECT job_id, item_index, node_id, status, waiting_for, edges_fired, retry_count, retry_base, delivery_count,
  priority, task_id, tenant, queue, worker_id, lease_until, timer_due, items_total, items_created, items_done, items_failed,
  sweep_next, dispatched_at, started_at, completed_at, dead_at, log_bytes, error, progress, checkpoint, params, output
FROM dag_node_rows
UNION ALL
SELECT p.job_id, {int:0}, {text:1}, {text:2}, {int:3}, {int:4}, {int:5}, {int:6}, {int:7},
  {int:8}, p.job_id || '_' || {text:9}, {text:10}, {text:11}, {text:12}, {time:13}, {time:14}, {int:15}, {int:16}, {int:17}, {int:18},
  {int:19}, {time:20}, {time:21}, {time:22}, {time:23}, {int:24}, {text:25}, {json:26}, {json:27}, {json:28}, {json:29}
FROM dag_job_pages AS p, {each:nodes} WHERE p.nodes IS NOT NULL;
CREATE VIEW dag_task_results(task_id, job_id, node_id, status, error, worker_id, lease, execution_duration_ms, processed,
  received_at, output) AS
SELECT task_id, job_id, node_id, status, error, worker_id, lease, execution_duration_ms, processed, received_at, output
FROM dag_task_result_rows
UNION ALL
SELECT p.job_id || '_' || {text:0}, p.job_id, {text:1}, {text:2}, {text:3}, {text:4}, {text:5}, {bigint:6}, {int:7}, {time:8}, {json:9}
FROM dag_job_pages AS p, {each:results} WHERE p.results IS NOT NULL;
{names_in_views_go_with_tables}
)sql";

// What the log beside a SQLite database has in common with it (commit_log.hpp); empty: the database needs no log.
constexpr std::string_view version_12 = "ALTER TABLE writer_state ADD COLUMN log_id {text} NOT NULL DEFAULT '';";

// Which commit was the last that the log had (commit_log.hpp).
constexpr std::string_view version_13 = "ALTER TABLE writer_state ADD COLUMN log_last {bigint} NOT NULL DEFAULT 0;";

// Keys of the bus.
constexpr std::string_view version_14 = "ALTER TABLE access_tokens ADD COLUMN bus_key {text};";

// Queues, topics and subscriptions, and their messages. A lane is read from its front, so that its messages are one range of
// the key. Whoever looks for what is due, or for what is locked, finds it in indexes that hold nothing else. What is large comes
// last: a row whose content lies elsewhere is judged without it.
constexpr std::string_view version_15 = R"sql(
CREATE TABLE bus_entities (
  entity_id {bigint} PRIMARY KEY,
  tenant_id {text} NOT NULL,
  entity_type {text} NOT NULL,
  path {text} NOT NULL,
  created_at {time} NOT NULL,
  updated_at {time} NOT NULL,
  settings {json} NOT NULL,
  rules {json} NOT NULL
) {heap};
CREATE INDEX bus_entities_by_path ON bus_entities (tenant_id, lower(path));

CREATE TABLE bus_counters (
  entity_id {bigint} PRIMARY KEY,
  last_sequence_number {bigint} NOT NULL,
  active {bigint} NOT NULL,
  dead {bigint} NOT NULL,
  scheduled {bigint} NOT NULL,
  deferred {bigint} NOT NULL,
  bytes {bigint} NOT NULL,
  accessed_at {time} NOT NULL,
  wake_at {time}
) {heap};

CREATE TABLE bus_messages (
  entity_id {bigint} NOT NULL,
  lane {text} NOT NULL,
  sequence_number {bigint} NOT NULL,
  delivery_count {int} NOT NULL,
  locks {int} NOT NULL,
  locked_until {time},
  changes {json},
  message_id {text} NOT NULL,
  enqueued_at {time} NOT NULL,
  due_at {time},
  time_to_live_ms {bigint},
  enqueued_sequence_number {bigint} NOT NULL,
  dead_letter_source {text},
  dead_letter_reason {text},
  dead_letter_description {text},
  bytes {bigint} NOT NULL,
  envelope {json},
  annotations {bytes} NOT NULL,
  content {bytes} NOT NULL,
  PRIMARY KEY (entity_id, lane, sequence_number)
) {clustered};
CREATE INDEX bus_messages_due ON bus_messages (entity_id, lane, due_at, sequence_number) WHERE due_at IS NOT NULL;
CREATE INDEX bus_messages_locked ON bus_messages (entity_id, lane, sequence_number) WHERE locked_until IS NOT NULL;

CREATE TABLE bus_history (
  entity_id {bigint} NOT NULL,
  message_id {text} NOT NULL,
  forget_at {time} NOT NULL,
  PRIMARY KEY (entity_id, message_id)
) {clustered};
CREATE INDEX bus_history_oldest ON bus_history (entity_id, forget_at, message_id);
)sql";

// What waits for a person, and the rules that batches run by. Columns that others do not know have defaults, and a batch
// that was open before has none of the rules.
constexpr std::string_view version_16 = R"sql(
CREATE TABLE holds (
  id {id},
  kind {text} NOT NULL,
  status {text} NOT NULL DEFAULT 'open',
  runbook_name {text} NOT NULL,
  batch_id {bigint} NOT NULL,
  phase_execution_id {bigint},
  opened_at {time} NOT NULL DEFAULT ({now}),
  mark {text},
  answer_by {time},
  answer {text},
  decided_by {text},
  decided_at {time},
  reason {text},
  message {text} NOT NULL,
  details_json {json}
) {heap};
CREATE INDEX holds_by_batch ON holds (batch_id{,id});
CREATE INDEX holds_open ON holds (id) WHERE status='open';

ALTER TABLE runbooks ADD COLUMN open_batches {text};
ALTER TABLE batches ADD COLUMN paused_reason {text};
ALTER TABLE batches ADD COLUMN phase_overlap {text};
ALTER TABLE batches ADD COLUMN source_time {time};
ALTER TABLE batches ADD COLUMN hold_id {bigint};
ALTER TABLE batches ADD COLUMN failures_accepted {int} DEFAULT 0;
ALTER TABLE batch_members ADD COLUMN added_by {text};
ALTER TABLE batch_members ADD COLUMN hold_id {bigint};
ALTER TABLE batch_members ADD COLUMN moved_to {bigint};
ALTER TABLE batch_members ADD COLUMN done_json {json};
CREATE INDEX batch_members_held ON batch_members (hold_id{,id}) WHERE hold_id IS NOT NULL;
ALTER TABLE phase_executions ADD COLUMN waits_for {text};
ALTER TABLE phase_executions ADD COLUMN expected_at {time};
ALTER TABLE step_executions ADD COLUMN has_slot {int} DEFAULT 0;
CREATE INDEX step_executions_retrying ON step_executions (phase_execution_id{,id}) WHERE retry_after IS NOT NULL;
CREATE INDEX step_executions_limited ON step_executions (phase_execution_id, step_index DESC{,id}) WHERE job_state='limited';
)sql";

// Version n is at n - 1; append only.
constexpr std::array all = {version_1, version_2, version_3, version_4,  version_5,  version_6,
                            version_7, version_8, version_9, version_10, version_11, version_12,
                            version_13, version_14, version_15, version_16};

constexpr std::string_view paged_events_sqlite =
    "SELECT p.job_id, e.value->>0, e.value->>1, e.value->>2, e.value->>3, e.value->4"
    " FROM dag_job_event_pages AS p, json_each(p.events) AS e";
constexpr std::string_view paged_events_postgres =
    "SELECT p.job_id, (e.value->>0)::bigint, e.value->>1, e.value->>2, (e.value->>3)::timestamptz, e.value->4"
    " FROM dag_job_event_pages AS p, json_array_elements(p.events::json) AS e(value)";

// A cell of a page (version 11): the n-th of an array in it.
std::string cell(Dialect dialect, std::string_view type, std::string_view n) {
  const std::string text = "(e.value->>" + std::string(n) + ")";
  const std::string since = "(p.since + " + text + (dialect == Dialect::sqlite ? ")" : "::bigint)");
  if (dialect == Dialect::sqlite) {
    if (type != "time") return text;
    return "strftime('%Y-%m-%dT%H:%M:%S', " + since + " / 1000, 'unixepoch') || printf('.%03dZ', " + since + " % 1000)";
  }
  if (type == "time") return "'epoch'::timestamptz + " + since + " * interval '1 millisecond'";
  if (type == "text") return text + " COLLATE \"C\"";
  return text + "::" + (type == "int" ? "integer" : std::string(type));
}

// {int:3}, {each:nodes}
std::string with_cells(std::string sql, Dialect dialect) {
  for (const std::string_view type : {"int", "bigint", "text", "time", "json", "each"}) {
    const std::string word = "{" + std::string(type) + ":";
    for (std::size_t at = 0; (at = sql.find(word, at)) != sql.npos;) {
      const std::size_t from = at + word.size(), end = sql.find('}', at);
      const std::string what = sql.substr(from, end - from);
      const std::string each = dialect == Dialect::sqlite ? "json_each(p." + what + ") AS e"
                                                          : "json_array_elements(p." + what + "::json) AS e(value)";
      sql.replace(at, end - at + 1, type == "each" ? each : cell(dialect, type, what));
    }
  }
  return sql;
}

constexpr std::string_view paged_events_of_9_sqlite =
    "SELECT p.job_id, e.value->>0, e.value->>1, e.value->>2, e.value->>3, e.value->4"
    " FROM dag_job_pages AS p, json_each(p.events) AS e WHERE p.since IS NULL";
constexpr std::string_view paged_events_of_9_postgres =
    "SELECT p.job_id, (e.value->>0)::bigint, e.value->>1, e.value->>2, (e.value->>3)::timestamptz, e.value->4"
    " FROM dag_job_pages AS p, json_array_elements(p.events::json) AS e(value) WHERE p.since IS NULL";
constexpr std::string_view paged_events_of_11 =
    "SELECT p.job_id, p.last_event_id - {bigint:0}, e.value->>1, e.value->>2, {time:3}, e.value->4"
    " FROM dag_job_pages AS p, {each:events} WHERE p.since IS NOT NULL";

struct Word {
  std::string_view placeholder, sqlite, postgres;
};
// Before there are statistics PostgreSQL takes, of indexes that seem equally good, the one that was made last. A call is
// looked up by its key, and any index with a tenant in front would do, but for the speed.
constexpr std::string_view service_calls_pkey_last =
    "ALTER TABLE service_calls DROP CONSTRAINT service_calls_pkey, ADD PRIMARY KEY (tenant_id, service_call_id);";

constexpr Word words[] = {
    {"{execution_3}", execution_3, execution_3},  // first: it holds other words
    {"{flags_6}", "", flags_6},
    {"{status}", "status COLLATE NOCASE", "lower(status)"},
    {"{id}", "INTEGER PRIMARY KEY AUTOINCREMENT", "bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY"},
    {"{,id}", "", ", id"},
    {"{service_calls_pkey_last}", "", service_calls_pkey_last},
    {"{journal_uncompressed}", "", "ALTER TABLE baton_journal ALTER COLUMN data SET STORAGE EXTERNAL;"},
    {"{paged_events}", paged_events_sqlite, paged_events_postgres},
    {"{paged_events_of_9}", paged_events_of_9_sqlite, paged_events_of_9_postgres},
    {"{paged_events_of_11}", paged_events_of_11, paged_events_of_11},
    // What people have made on these tables means the views from now on.
    {"{names_in_views_stay}", "PRAGMA legacy_alter_table=ON;", ""},
    {"{names_in_views_go_with_tables}", "PRAGMA legacy_alter_table=OFF;", ""},
    // PostgreSQL keeps who may read it.
    {"{drop_events_view}", "DROP VIEW dag_job_events;", ""},
    {"{replace_view}", "CREATE VIEW", "CREATE OR REPLACE VIEW"},
    {"{true}", "1", "true"},
    {"{false}", "0", "false"},
    {"{text}", "TEXT", "text COLLATE \"C\""},
    {"{json}", "TEXT", "json"},
    {"{time}", "TEXT", "timestamptz"},
    {"{int}", "INTEGER", "integer"},
    {"{bigint}", "INTEGER", "bigint"},
    {"{bool}", "INTEGER", "boolean"},
    {"{bytes}", "BLOB", "bytea"},
    {"{clustered}", "STRICT, WITHOUT ROWID", ""},
    {"{heap}", "STRICT", ""},
    {"{now}", "strftime('%Y-%m-%dT%H:%M:%fZ','now')", "now()"},
    {"{epoch}", "'1970-01-01T00:00:00.000Z'", "'epoch'::timestamptz"},
    // The number is ours alone. Everybody who comes to a table after us waits with us for whoever holds it.
    {"{begin}", "BEGIN IMMEDIATE",
     "BEGIN; SET LOCAL statement_timeout=0; SELECT pg_advisory_xact_lock(7021951); SET LOCAL lock_timeout='3s'"},
    {"{migrated}", "EXISTS (SELECT 1 FROM sqlite_master WHERE name='schema_migrations')",
     "(to_regclass('schema_migrations') IS NOT NULL)::int"},
};

}  // namespace

std::span<const std::string_view> migrations() { return all; }

std::string in_dialect(std::string_view text, Dialect dialect) {
  std::string sql(text);
  for (const Word& word : words) {
    const std::string_view replacement = dialect == Dialect::sqlite ? word.sqlite : word.postgres;
    for (std::size_t at = 0; (at = sql.find(word.placeholder, at)) != sql.npos; at += replacement.size()) {
      sql.replace(at, word.placeholder.size(), replacement);
    }
  }
  return with_cells(std::move(sql), dialect);
}

}  // namespace baton::store
