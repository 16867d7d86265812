#include "core/runbook/definition/parse_source.hpp"

#include <algorithm>
#include <array>

#include "core/runbook/definition/parse_policy.hpp"

namespace baton::runbook {
namespace {

using yaml::NodeKind;
using Words = std::vector<std::string_view>;

constexpr std::size_t multi_valued_columns_max = 100;
constexpr std::string_view types_hint = "types are csv, sqlite, postgres and http";

const Words& source_keys() {
  static const Words keys{"type",       "connection",          "query",
                          "interval",   "primary_key",         "batch_time_column",
                          "batch_time", "max_removal_percent", "multi_valued_columns"};
  return keys;
}

class SourceReader {
 public:
  SourceReader(const yaml::Entry& entry, DataSource& source, Diagnostics& diagnostics)
      : entry_(entry), body_(entry.value), source_(source), diagnostics_(diagnostics) {}

  void read() {
    if (!diagnostics_.expect(body_, NodeKind::mapping, "'data_source'")) return;
    diagnostics_.check_keys(body_, source_keys(), "'data_source'");
    read_type();
    read_connection();
    if (type_known_) read_query();
    if (const auto* interval = body_.find("interval"))
      source_.interval = read_duration(*interval, of("interval"), diagnostics_).value_or(source_.interval);
    if (const auto* key = needed("primary_key", "the column that tells members apart"))
      source_.primary_key = diagnostics_.short_text(*key, of("primary_key"));
    read_batch_time();
    if (const auto* percent = body_.find("max_removal_percent")) {
      const auto number = diagnostics_.integer(*percent, of("max_removal_percent"), 0, 100);
      source_.max_removal_percent = static_cast<std::int32_t>(number.value_or(0));
    }
    if (const auto* columns = body_.find("multi_valued_columns")) read_columns(*columns);
  }

 private:
  static std::string of(std::string_view key) { return "'" + std::string(key) + "' of 'data_source'"; }

  const yaml::Node* needed(std::string_view key, std::string_view hint) {
    const auto* value = body_.find(key);
    if (!value)
      diagnostics_.error(entry_.key_at, "missing_key", "'data_source' has no '" + std::string(key) + "'",
                         std::string(hint));
    return value;
  }

  void read_type() {
    const auto* type = needed("type", types_hint);
    if (!type || !diagnostics_.expect(*type, NodeKind::string, of("type"))) return;
    static const Words ours{"csv", "sqlite", "postgres", "http"};
    const auto found = std::ranges::find(ours, std::string_view(type->text));
    if (found != ours.end()) {
      type_known_ = true;
      source_.type = static_cast<SourceType>(found - ours.begin());
      return;
    }
    source_.type = SourceType::unsupported;
    if (type->text == "odbc" || type->text == "databricks")
      return diagnostics_.error(type->at, "unsupported_source_type",
                                "the data source type '" + type->text + "' is not supported yet",
                                std::string(types_hint));
    std::string guess = diagnostics_.did_you_mean(type->text, ours);
    diagnostics_.error(type->at, "unknown_source_type",
                       "'data_source' has the unknown type " + in_quotes(type->text),
                       guess.empty() ? std::string(types_hint) : std::move(guess));
  }

  // What looks like a secret is not repeated in a message: those are stored and shown.
  void read_connection() {
    const auto* connection = needed("connection", "the name of an environment variable or of a connection");
    if (!connection || !diagnostics_.expect(*connection, NodeKind::string, of("connection"))) return;
    source_.connection = connection->text;
    if (source_.connection.empty())
      return diagnostics_.error(connection->at, "empty_value", of("connection") + " must not be empty");
    if (!is_name(source_.connection))
      return diagnostics_.error(connection->at, "invalid_connection",
                                of("connection") + " must be a name, " + std::string(name_rule) +
                                    ", not a path, an address or a secret",
                                "put that into an environment variable, and its name here");
    constexpr std::array<std::string_view, 5> endings{".csv", ".db", ".sqlite", ".sqlite3", ".json"};
    const auto ends = [&](std::string_view ending) { return source_.connection.ends_with(ending); };
    if (std::ranges::any_of(endings, ends))
      diagnostics_.warning(connection->at, "file_as_connection",
                           of("connection") + " looks like a file, but it is the name of a connection",
                           "put the path into an environment variable, and its name here");
  }

  void read_query() {
    const auto* query = body_.find("query");
    const bool sql = source_.type == SourceType::sqlite || source_.type == SourceType::postgres;
    if (!query) {
      if (sql) (void)needed("query", "the SQL that lists the members");
      return;
    }
    source_.query = diagnostics_.text(*query, of("query")).value_or("");
    if (query->kind != NodeKind::string) return;
    const bool blank = source_.query.find_first_not_of(" \t\r\n") == std::string::npos;
    if (sql && blank)
      diagnostics_.error(query->at, "empty_value", of("query") + " must not be empty",
                         "the SQL that lists the members");
    if (source_.type == SourceType::csv && !blank)
      diagnostics_.error(query->at, "unexpected_query", of("query") + " means nothing for csv",
                         "remove it: all rows of the file are members");
  }

  void read_batch_time() {
    const auto* column = body_.find("batch_time_column");
    const auto* word = body_.find("batch_time");
    if ((column == nullptr) == (word == nullptr))
      diagnostics_.error(column ? std::max(column->at, word->at) : entry_.key_at, "invalid_batch_time",
                         "'data_source' must have either 'batch_time_column' or 'batch_time: immediate'");
    if (column) source_.batch_time_column = diagnostics_.short_text(*column, of("batch_time_column"));
    if (word) source_.immediate = diagnostics_.word(*word, of("batch_time"), {"immediate"}).has_value();
    if (column && !source_.primary_key.empty() && source_.batch_time_column == source_.primary_key)
      diagnostics_.error(column->at, "column_clash", "the time of a batch cannot be the key of its members");
  }

  void read_columns(const yaml::Node& columns) {
    if (!diagnostics_.expect(columns, NodeKind::sequence, of("multi_valued_columns"))) return;
    if (columns.items.size() > multi_valued_columns_max)
      return diagnostics_.error(
          columns.at, "too_many",
          "there may be at most " + std::to_string(multi_valued_columns_max) + " multi-valued columns");
    for (const yaml::Node& item : columns.items) read_column(item);
  }

  void read_column(const yaml::Node& item) {
    const std::string where = "a column of 'multi_valued_columns'";
    if (!diagnostics_.expect(item, NodeKind::mapping, where)) return;
    diagnostics_.check_keys(item, {"name", "format"}, where);
    MultiValuedColumn column;
    const auto* name = item.find("name");
    const auto* format = item.find("format");
    for (const auto& [key, value] : {std::pair{"name", name}, std::pair{"format", format}})
      if (!value)
        diagnostics_.error(item.at, "missing_key", where + " has no '" + key + "'",
                           "as {name: Aliases, format: semicolon_delimited}");
    if (format) {
      const auto word = diagnostics_.word(*format, "'format' of " + where,
                                          {"semicolon_delimited", "comma_delimited", "json_array"});
      column.format = static_cast<MultiFormat>(word.value_or(0));
    }
    if (!name) return;
    column.name = diagnostics_.short_text(*name, "'name' of " + where);
    if (column.name.empty()) return;
    const auto& known = source_.multi_valued_columns;
    if (std::ranges::find(known, column.name, &MultiValuedColumn::name) != known.end())
      diagnostics_.error(name->at, "duplicate_column", "the column " + in_quotes(column.name) + " is there twice");
    if (column.name == source_.primary_key || column.name == source_.batch_time_column)
      diagnostics_.error(name->at, "column_clash",
                         "the column " + in_quotes(column.name) + " is the key or the time: it has one value");
    source_.multi_valued_columns.push_back(std::move(column));
  }

  const yaml::Entry& entry_;
  const yaml::Node& body_;
  DataSource& source_;
  Diagnostics& diagnostics_;
  bool type_known_ = false;
};

}  // namespace

void read_source(const yaml::Entry& entry, DataSource& source, Diagnostics& diagnostics) {
  SourceReader(entry, source, diagnostics).read();
}

}  // namespace baton::runbook
