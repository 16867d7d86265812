// What passes between the parties: runbooks as text, jobs and results as JSON.
#pragma once

#include <boost/json.hpp>
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "tests/contract/runbook/sql.hpp"
#include "tests/e2e/server.hpp"

namespace baton::runbook_contract {

using namespace std::chrono_literals;
namespace json = boost::json;
using e2e::Answer;

using Lines = std::vector<std::string>;

// Pieces of a runbook. POOL becomes the pool of the test.
[[nodiscard]] std::string doing(const std::string& name,
                                const std::string& more = "");  // calls Do-name, with Upn
[[nodiscard]] std::string preparing(const std::string& name,
                                    const std::string& more = "");  // the same, for init
[[nodiscard]] std::string phase_of(const std::string& name, const Lines& steps,
                                   const std::string& offset = "T-0");
[[nodiscard]] std::string phases(const Lines& phases);
[[nodiscard]] std::string section(const std::string& key, const Lines& steps);
[[nodiscard]] std::string rollback(const std::string& name,
                                   const Lines& steps);  // "rollbacks:" with one sequence

inline const std::string lockstep = "progression: lockstep\n";
inline const std::string one_step = phases({phase_of("p1", {doing("s1")})});
inline const std::string two_steps = phases({phase_of("p1", {doing("s1"), doing("s2")})});

// A job as a worker gets it. One that lacks a field throws: two of them would be equal.
struct Job {
  json::object body;
  [[nodiscard]] std::string text(std::string_view field) const;
  [[nodiscard]] std::string id() const { return text("jobId"); }
  [[nodiscard]] std::string function() const { return text("functionName"); }
  [[nodiscard]] std::string parameters() const { return json::serialize(body.at("parameters")); }
  [[nodiscard]] std::string parameter(std::string_view name) const;
  [[nodiscard]] Id correlated(std::string_view name) const;  // 0: there is none
};

[[nodiscard]] std::map<std::string, Job> by_member(const std::vector<Job>& jobs);  // their parameter Upn

// The body of 002, as a worker sends it that knows nothing of leases.
[[nodiscard]] json::object result_of(const Job& job, std::string_view status, const json::value& result,
                                     const json::value& error = nullptr);

// Whether the server took it in, with whatever it answers for that.
[[nodiscard]] bool is_accepted(const Answer& answer);
// Whether the server was polite about it and left everything as it was.
[[nodiscard]] bool is_ignored(const Answer& answer);

[[nodiscard]] std::string timestamp(std::chrono::seconds from_now = 0s);
[[nodiscard]] json::value parsed(const std::string& text);  // null when it is no JSON

inline const std::string batch_start = "2025-03-15T00:00:00Z";

// With each `what` turned into `by`.
[[nodiscard]] std::string replaced(std::string text, const std::string& what, const std::string& by);

// A field of an object; none if there is none or it is no object.
[[nodiscard]] const json::value* found(const json::value& body, std::string_view key);

}  // namespace baton::runbook_contract
