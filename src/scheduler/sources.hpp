// Data sources as they are: CSV files, SQLite and PostgreSQL databases, HTTP servers. A source is read whole
// or not at all, within limits of size and time, and only ever read: databases are opened read-only.
//
// A runbook names a connection; what the name stands for is asked of the server at every fetch, so that a
// changed setting counts at once. What it stands for may hold a password and is in no message.
//
//   csv       a path, or file:///path
//   sqlite    a path, or sqlite:PATH
//   postgres  a URL or the key=value form of libpq
//   http      a URL; user:password@ in it is basic authentication, token@ a bearer token. The query of the
//   runbook
//             is appended to the URL's own. The answer is CSV, or a JSON array of objects, plain or as
//             "value" or "items" of an object.
//
// Every cell is missing or a text, a number or a boolean if the source knows it to be one; CSV does not. Of JSON:
// strings as they are, null is missing, arrays and objects are texts of JSON. An empty cell of a CSV file is an empty
// text.
#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>

#include "ports/data_source.hpp"
#include "scheduler/limits.hpp"

namespace baton::scheduler {

// What the name of a connection stands for; none: nothing.
using Connections = std::function<std::optional<std::string>(const std::string& name)>;

struct HttpAnswer {
  int status = 0;
  std::string content_type;
  std::string body;
};
// GET of a URL, credentials in it included. Any status is an answer. Errors do not hold the URL. It gives up
// when it is asked to stop.
using HttpGet = std::function<Result<HttpAnswer>(const std::string& url, std::stop_token stop)>;

class Sources final : public DataSources {
 public:
  Sources(Connections connections, HttpGet get, Limits limits = {});
  [[nodiscard]] Result<SourceTable> fetch(const runbook::DataSource& source) override;
  void interrupt() override { stop_.request_stop(); }

 private:
  [[nodiscard]] Result<SourceTable> read(const runbook::DataSource& source,
                                         const std::string& connection) const;

  Connections connections_;
  HttpGet get_;
  Limits limits_;
  std::stop_source stop_;
};

}  // namespace baton::scheduler
