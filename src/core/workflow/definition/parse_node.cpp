#include "core/workflow/definition/parse_node.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/workflow/definition/span.hpp"

namespace baton::workflow {
namespace {

using yaml::NodeKind;
using Words = std::vector<std::string_view>;

constexpr std::int64_t timeout_seconds_max = 365 * 24 * 3600;
constexpr double delay_seconds_max = 30 * 24 * 3600;
constexpr std::string_view types_hint =
    "types are start, end, task, conditional, fan_out, fan_in, wait and approval";

const Words& node_types() {  // those of NodeType in its order, then those to come
  static const Words types{"start",  "end",  "task",     "conditional", "fan_out",
                           "fan_in", "wait", "approval", "http",        "workflow"};
  return types;
}
constexpr std::size_t node_types_supported = 8;

// The keys of each type, by NodeType.
const Words& keys_of(NodeType type) {
  static const std::array<Words, node_types_supported> keys{
      Words{"type", "next", "depends_on", "description"},
      Words{"type", "depends_on", "description"},
      Words{"type", "handler", "queue", "params", "timeout_seconds", "retry", "on_failure", "next",
            "depends_on", "description"},
      Words{"type", "condition", "condition_field", "branches", "depends_on", "description"},
      Words{"type", "source", "task", "max_parallel", "on_item_failure", "on_failure", "next", "depends_on",
            "description"},
      Words{"type", "aggregation", "field", "on_failure", "next", "depends_on", "description"},
      Words{"type", "duration", "until", "next", "depends_on", "description"},
      Words{"type", "message", "timeout_seconds", "on_timeout", "on_reject", "on_failure", "next",
            "depends_on", "description"}};
  return keys[static_cast<std::size_t>(type)];
}

const Words& all_keys() {
  static const Words keys = [] {
    Words all;
    for (std::size_t i = 0; i < node_types_supported; ++i)
      for (const auto key : keys_of(static_cast<NodeType>(i)))
        if (std::ranges::find(all, key) == all.end()) all.push_back(key);
    return all;
  }();
  return keys;
}

bool has(const Words& words, std::string_view word) { return std::ranges::find(words, word) != words.end(); }

std::string a_type(NodeType type) {
  const std::string_view word = name(type);
  return (word == "end" || word == "approval" ? "an " : "a ") + std::string(word);
}

class NodeReader {
 public:
  NodeReader(const yaml::Entry& entry, Node& node, Sketch& sketch, Diagnostics& diagnostics)
      : entry_(entry),
        body_(entry.value),
        node_(node),
        sketch_(sketch),
        diagnostics_(diagnostics),
        where_("node " + in_quotes(entry.key)) {}

  void read() {
    node_.id = entry_.key;
    sketch_.at = entry_.key_at;
    if (!is_name(entry_.key))
      diagnostics_.error(
          entry_.key_at, "invalid_name",
          "the name of a node must be " + std::string(name_rule) + ", found " + in_quotes(entry_.key));
    if (!diagnostics_.expect(body_, NodeKind::mapping, where_)) {
      sketch_.edges_known = false;
      return;
    }
    read_type();
    read_edges();
    if (sketch_.unsupported) return;  // its other keys are those of a later version
    check_keys();
    if (const auto* description = body_.find("description"))
      (void)diagnostics_.text(*description, "'description' of " + where_);
    if (const auto* on_failure = body_.find("on_failure");
        on_failure && (!sketch_.type || has(keys_of(*sketch_.type), "on_failure")))
      node_.on_failure = read_consequence(*on_failure, "'on_failure' of " + where_);
    switch (sketch_.type.value_or(NodeType::task)) {
      case NodeType::start:
      case NodeType::end: break;
      case NodeType::task: read_task(body_, entry_.key_at, where_, sketch_.type.has_value()); break;
      case NodeType::conditional: read_conditional(); break;
      case NodeType::fan_out: read_fan_out(); break;
      case NodeType::fan_in: read_fan_in(); break;
      case NodeType::wait: read_wait(); break;
      case NodeType::approval: read_approval(); break;
    }
  }

 private:
  void read_type() {
    const auto* type = body_.find("type");
    if (!type)
      return diagnostics_.error(entry_.key_at, "missing_key", where_ + " has no 'type'", std::string(types_hint));
    if (!diagnostics_.expect(*type, NodeKind::string, "'type' of " + where_)) return;
    const auto found = std::ranges::find(node_types(), std::string_view(type->text));
    if (found == node_types().end()) {
      std::string guess = diagnostics_.did_you_mean(type->text, node_types());
      return diagnostics_.error(type->at, "unknown_node_type",
                                where_ + " has the unknown type " + in_quotes(type->text),
                                guess.empty() ? std::string(types_hint) : std::move(guess));
    }
    const auto index = static_cast<std::size_t>(found - node_types().begin());
    if (index < node_types_supported) {
      sketch_.type = static_cast<NodeType>(index);
      node_.type = *sketch_.type;
      return;
    }
    sketch_.unsupported = true;
    diagnostics_.error(type->at, "unsupported_node_type",
                       "the node type '" + type->text + "' is not supported by this version",
                       std::string(types_hint));
  }

  // A key of another type does no harm; one of no type may be a slip for one of this.
  void check_keys() {
    if (!sketch_.type) return diagnostics_.check_keys(body_, all_keys(), where_);
    const NodeType type = *sketch_.type;
    yaml::Node others{.kind = NodeKind::mapping, .at = body_.at};
    for (const yaml::Entry& entry : body_.entries) {
      if (has(keys_of(type), entry.key)) continue;
      if (entry.key == "next" && type == NodeType::end) {
        diagnostics_.error(entry.key_at, "end_has_next", where_ + " is an end node and cannot have 'next'");
      } else if (entry.key == "next" && type == NodeType::conditional) {
        diagnostics_.error(entry.key_at, "conditional_has_next",
                           where_ + " is a conditional and goes on by its 'branches', not by 'next'");
      } else if (has(all_keys(), entry.key)) {
        diagnostics_.warning(entry.key_at, "ignored_key",
                             "'" + entry.key + "' means nothing in " + a_type(type) + " node");
      } else {
        others.entries.push_back({entry.key, entry.key_at, {}});
      }
    }
    diagnostics_.check_keys(others, keys_of(type), where_);
  }

  // ---- Edges ----

  void read_edges() {
    const auto* next = body_.find("next");
    const bool goes_on = sketch_.type != NodeType::end && sketch_.type != NodeType::conditional;
    if (next && goes_on)  // the others' is reported as such
      sketch_.edges_known &= read_names(*next, "'next' of " + where_, sketch_.next);
    if (const auto* depends_on = body_.find("depends_on"))
      sketch_.edges_known &= read_depends_on(*depends_on);
  }

  bool read_depends_on(const yaml::Node& value) {
    const std::string what = "'depends_on' of " + where_;
    if (value.kind != NodeKind::mapping) return read_names(value, what, sketch_.depends_on);
    diagnostics_.check_keys(value, {"all_of", "any_of"}, what);
    const auto* all = value.find("all_of");
    const auto* any = value.find("any_of");
    if ((all == nullptr) == (any == nullptr)) {
      diagnostics_.error(value.at, "invalid_depends_on", what + " must have either 'all_of' or 'any_of'");
      return false;
    }
    if (any) node_.join = Join::any_of;
    return any ? read_names(*any, "'any_of' of " + where_, sketch_.depends_on)
               : read_names(*all, "'all_of' of " + where_, sketch_.depends_on);
  }

  // A name or a list of names. Names are taken as they are written, as keys are: `1` and `true` can be nodes.
  bool read_names(const yaml::Node& value, const std::string& what, std::vector<Reference>& names) {
    const auto is_text = [](const yaml::Node& item) {
      return item.is_scalar() && item.kind != NodeKind::null;
    };
    if (is_text(value)) {
      names.push_back({value.text, value.at});
      return true;
    }
    if (value.kind != NodeKind::sequence) {
      diagnostics_.wrong_type(value, what, "a name or a list of names");
      return false;
    }
    bool all_read = true;
    for (const yaml::Node& item : value.items) {
      if (is_text(item)) {
        names.push_back({item.text, item.at});
      } else {
        diagnostics_.wrong_type(item, "a name in " + what, "a name");
        all_read = false;
      }
    }
    return all_read;
  }

  // ---- Expressions ----

  // Only strings know how they are written; a number is written as it stands.
  static yaml::Written written(const yaml::Node& value) {
    return value.kind == NodeKind::string ? value.written : yaml::Written{.at = value.at};
  }

  void problem(Position at, const expression::Problem& problem, const std::string& what) {
    diagnostics_.error(at, problem.code, what + ": " + problem.message, problem.hint);
  }

  // Text in which expressions may stand; `bare`: it is one, without braces.
  std::optional<expression::Template> read_template(const yaml::Node& value, const std::string& what,
                                                    bool bare = false) {
    if (!value.is_scalar() || value.kind == NodeKind::null) {
      diagnostics_.wrong_type(value, what, "a text");
      return std::nullopt;
    }
    auto parsed =
        bare ? expression::Template::parse_expression(value.text) : expression::Template::parse(value.text);
    if (!parsed) {
      problem(written(value).position(parsed.error().offset), parsed.error(), what);
      return std::nullopt;
    }
    sketch_.places.push_back({written(value), parsed->references(), false, what});
    return *std::move(parsed);
  }

  // One that must be an expression: a text without any would always be the same.
  std::optional<expression::Template> read_expression(const yaml::Node& value, const std::string& what) {
    auto text = read_template(value, what);
    if (text && text->is_constant()) {
      diagnostics_.error(value.at, "not_an_expression", what + " has no expression", "write it as {{ ... }}");
      return std::nullopt;
    }
    return text;
  }

  // ---- Tasks ----

  void read_task(const yaml::Node& body, Position at, const std::string& where, bool handler_needed) {
    if (const auto* handler = body.find("handler")) {
      node_.handler = read_literal(*handler, "'handler' of " + where);
    } else if (handler_needed) {
      diagnostics_.error(at, "missing_key", where + " is a task and has no 'handler'");
    }
    if (const auto* queue = body.find("queue")) {
      node_.queue = read_literal(*queue, "'queue' of " + where);
      if (node_.queue == builtin_queue)
        diagnostics_.error(queue->at, "reserved_queue",
                           "the queue 'builtin' is reserved for the server's own handlers",
                           "leave 'queue' out, and a built-in handler is found there");
      if (node_.queue == approval_queue)
        diagnostics_.error(queue->at, "reserved_queue", "the queue 'approval' is reserved for approvals",
                           "a node of type approval waits there");
      if (node_.queue.starts_with(message_queues))
        diagnostics_.error(queue->at, "reserved_queue", "queues whose names begin with '$bus/' are those of messages",
                           "name the queue that your workers poll");
    }
    if (const auto* params = body.find("params");
        params && diagnostics_.expect(*params, NodeKind::mapping, "'params' of " + where))
      read_params(*params, "'params' of " + where);
    if (const auto* timeout = body.find("timeout_seconds"))
      node_.timeout = std::chrono::seconds{
          diagnostics_.integer(*timeout, "'timeout_seconds' of " + where, 1, timeout_seconds_max).value_or(1)};
    if (const auto* retry = body.find("retry")) read_retry(*retry, where);
  }

  void read_params(const yaml::Node& value, const std::string& what) {
    const auto on_problem = [&](Position at, const expression::Problem& found) { problem(at, found, what); };
    node_.params = expression::Document::read(value, on_problem);
    if (!node_.params) return;
    for (const auto& place : node_.params->places())
      sketch_.places.push_back({place.written, place.references, node_.type == NodeType::fan_out, what});
  }

  std::string read_literal(const yaml::Node& value, const std::string& what) {
    std::string text = diagnostics_.short_text(value, what);
    if (expression::has_expression(text))
      diagnostics_.error(value.at, "unsupported_expression", what + " must be a fixed text, without expressions");
    return text;
  }

  void read_retry(const yaml::Node& value, const std::string& where) {
    RetryPolicy& retry = node_.retry;
    if (!diagnostics_.expect(value, NodeKind::mapping, "'retry' of " + where)) return;
    diagnostics_.check_keys(value, {"max_attempts", "backoff", "initial_delay_seconds", "max_delay_seconds"},
                            "'retry' of " + where);
    if (const auto* attempts = value.find("max_attempts")) {
      const auto number = diagnostics_.integer(*attempts, "'max_attempts' of " + where, 1, 1000);
      retry.attempts_max = static_cast<std::int32_t>(number.value_or(1));
    } else {
      diagnostics_.warning(value.at, "retry_without_attempts",
                           "'retry' of " + where + " has no 'max_attempts', so that it is tried once");
    }
    if (const auto* backoff = value.find("backoff")) {
      const auto word = diagnostics_.word(*backoff, "'backoff' of " + where, {"fixed", "exponential"});
      retry.backoff = static_cast<Backoff>(word.value_or(0));
    }
    bool delays_known = true;
    if (const auto* initial = value.find("initial_delay_seconds"))
      delays_known &= read_delay(*initial, "'initial_delay_seconds' of " + where, retry.initial_delay);
    const auto* longest = value.find("max_delay_seconds");
    if (longest) delays_known &= read_delay(*longest, "'max_delay_seconds' of " + where, retry.delay_max);
    if (!delays_known || retry.delay_max >= retry.initial_delay) return;
    if (!longest) {  // whoever sets only the first delay does not mean to have it cut by a default
      retry.delay_max = retry.initial_delay;
    } else if (retry.backoff == Backoff::exponential) {
      diagnostics_.warning(longest->at, "delay_order",
                           "'max_delay_seconds' of " + where + " is less than the initial delay and replaces it");
    }
  }

  bool read_delay(const yaml::Node& value, const std::string& what, Duration& delay) {
    const auto number = diagnostics_.number(value, what, 0, delay_seconds_max);
    if (number) delay = Duration{std::llround(*number * 1000)};
    return number.has_value();
  }

  Consequence read_consequence(const yaml::Node& value, const std::string& what) {
    return diagnostics_.word(value, what, {"fail", "continue"}) == 1u ? Consequence::go_on : Consequence::fail;
  }

  // ---- Conditionals ----

  void read_conditional() {
    const auto* condition = body_.find("condition");
    const auto* field = body_.find("condition_field");
    const auto* branches = body_.find("branches");
    if ((condition == nullptr) == (field == nullptr))
      diagnostics_.error(condition ? field->at : entry_.key_at, "invalid_condition",
                         where_ + " must have either 'condition' or 'condition_field'");
    if (!branches) {
      sketch_.edges_known = false;
      return diagnostics_.error(entry_.key_at, "missing_key", where_ + " is a conditional and has no 'branches'",
                                "as branches: {true: ..., false: ...}");
    }
    if (field && !condition)
      read_cases(*branches, *field);
    else
      read_true_false(*branches, condition);
  }

  void read_true_false(const yaml::Node& branches, const yaml::Node* condition) {
    const std::string what = "'branches' of " + where_;
    if (!diagnostics_.expect(branches, NodeKind::mapping, what)) {
      sketch_.edges_known = false;
      return;
    }
    std::optional<expression::Template> test;
    if (condition) test = read_expression(*condition, "'condition' of " + where_);
    if (test && only_expression(condition->text).empty())  // text beside it would always be true
      diagnostics_.error(condition->at, "invalid_condition",
                         "'condition' of " + where_ + " must be one expression");
    for (const yaml::Entry& entry : branches.entries) {
      if (entry.key != "true" && entry.key != "false") {
        sketch_.edges_known = false;
        diagnostics_.error(entry.key_at, "unknown_branch",
                           what + " are 'true' and 'false', found " + in_quotes(entry.key));
        continue;
      }
      Branch branch{.name = entry.key, .is_default = entry.key == "false"};
      if (entry.key == "true") branch.condition = test;
      add_branch(std::move(branch), entry.value, "branch '" + entry.key + "' of " + where_);
    }
    for (const std::string_view word : {"true", "false"})
      if (!branches.find(word)) {
        sketch_.edges_known = false;
        diagnostics_.error(
            branches.at, "missing_branch", what + " have no '" + std::string(word) + "'",
            "add " + std::string(word) + ": with the name of an end node, if nothing is to be done");
      }
    // The true branch is looked at first, whatever the order of the document.
    if (node_.branches.size() == 2 && node_.branches[0].name == "false") {
      std::swap(node_.branches[0], node_.branches[1]);
      std::swap(sketch_.branches[0], sketch_.branches[1]);
    }
  }

  void add_branch(Branch branch, const yaml::Node& targets, const std::string& what) {
    auto& names = sketch_.branches.emplace_back();
    sketch_.edges_known &= read_names(targets, what, names);
    if (names.empty() && targets.kind == NodeKind::sequence) {
      sketch_.edges_known = false;
      diagnostics_.error(targets.at, "empty_value", what + " leads nowhere",
                         "name a node, an end node for example");
    }
    node_.branches.push_back(std::move(branch));
  }

  void read_cases(const yaml::Node& branches, const yaml::Node& field) {
    const std::string what = "'branches' of " + where_;
    if (!diagnostics_.expect(branches, NodeKind::sequence, what)) {
      sketch_.edges_known = false;
      return;
    }
    const std::string subject = read_subject(field);
    int defaults = 0;
    for (const yaml::Node& item : branches.items) defaults += read_case(item, subject) ? 1 : 0;
    if (branches.items.empty()) {
      sketch_.edges_known = false;
      diagnostics_.error(branches.at, "missing_branch", what + " are none");
    } else if (defaults == 0)
      diagnostics_.warning(branches.at, "no_default_branch",
                           what + " have no default: the node fails when none of them fits",
                           "add default: true to one");
    if (defaults > 1) diagnostics_.error(branches.at, "second_default", what + " have more than one default");
  }

  // What stands between the braces of a text that is one expression and nothing else; empty: it is not.
  static std::string only_expression(const std::string& text) {
    const auto begin = text.find("{{") + 2;
    const auto end = text.rfind("}}");
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\n'; };
    const bool alone = std::ranges::all_of(text.substr(0, begin - 2), blank) &&
                       std::ranges::all_of(text.substr(end + 2), blank);
    if (!alone || text.find("{{", begin) != std::string::npos) return {};
    return text.substr(begin, end - begin);
  }

  // The expression that all conditions of the list are about. Empty: it is wrong, and that is reported.
  std::string read_subject(const yaml::Node& field) {
    const std::string what = "'condition_field' of " + where_;
    const bool braces = field.is_scalar() && expression::has_expression(field.text);
    if (!(braces ? read_expression(field, what) : read_template(field, what, true))) return {};
    const std::string inner = braces ? only_expression(field.text) : field.text;
    if (!inner.empty()) return "(" + inner + ")";
    diagnostics_.error(field.at, "invalid_condition", what + " must be one expression");
    return {};
  }

  // True: it is the default.
  bool read_case(const yaml::Node& item, const std::string& subject) {
    const std::string what = "a branch of " + where_;
    if (!diagnostics_.expect(item, NodeKind::mapping, what)) {
      sketch_.edges_known = false;
      return false;
    }
    diagnostics_.check_keys(item, {"name", "condition", "default", "next"}, what);
    Branch branch{.name = std::to_string(node_.branches.size())};
    if (const auto* given = item.find("name"))
      branch.name = diagnostics_.text(*given, "'name' of " + what).value_or("");
    if (std::ranges::find(node_.branches, branch.name, &Branch::name) != node_.branches.end())
      diagnostics_.error(item.at, "duplicate_branch",
                         where_ + " has two branches named " + in_quotes(branch.name));
    if (const auto* preset = item.find("default");
        preset && diagnostics_.expect(*preset, NodeKind::boolean, "'default' of " + what))
      branch.is_default = preset->as_bool();
    const auto* condition = item.find("condition");
    if (condition && !subject.empty()) branch.condition = read_case_condition(*condition, subject);
    if (!condition && !branch.is_default)
      diagnostics_.error(item.at, "missing_key", what + " has neither 'condition' nor 'default: true'");
    const bool is_default = branch.is_default;
    if (const auto* next = item.find("next")) {
      const std::string next_of = "'next' of branch " + in_quotes(branch.name) + " of " + where_;
      add_branch(std::move(branch), *next, next_of);
    } else {
      sketch_.edges_known = false;
      diagnostics_.error(item.at, "missing_key", what + " has no 'next'");
    }
    return is_default;
  }

  // ">= 1000" about the subject.
  std::optional<expression::Template> read_case_condition(const yaml::Node& value,
                                                          const std::string& subject) {
    const std::string what = "'condition' of a branch of " + where_;
    if (!value.is_scalar()) {
      diagnostics_.wrong_type(value, what, "a comparison as \">= 1000\"");
      return std::nullopt;
    }
    constexpr std::array<std::string_view, 9> operators{"==", "!=",  "<=",      ">=", "<",
                                                        ">",  "in ", "not in ", "is "};
    if (std::ranges::none_of(operators, [&](std::string_view op) { return value.text.starts_with(op); })) {
      diagnostics_.error(value.at, "invalid_condition",
                         what + " must begin with a comparison, found " + in_quotes(value.text),
                         "as \">= 1000\" or \"== 'gold'\"");
      return std::nullopt;
    }
    auto parsed = expression::Template::parse_expression(subject + " " + value.text);
    const std::size_t before = subject.size() + 1;
    if (parsed) {  // what the subject looks at is known already
      auto own = parsed->references();
      const auto of_subject = [&](const auto& reference) { return reference.offset < before; };
      std::erase_if(own.nodes, of_subject);
      std::erase_if(own.input_names, of_subject);
      for (auto& reference : own.nodes) reference.offset -= before;
      for (auto& reference : own.input_names) reference.offset -= before;
      if (own.item_offset < before) own.item = own.index = false;
      own.item_offset -= std::min(own.item_offset, before);
      sketch_.places.push_back({written(value), std::move(own), false, what});
      return *std::move(parsed);
    }
    const std::size_t offset = parsed.error().offset;
    problem(written(value).position(offset < before ? 0 : offset - before), parsed.error(), what);
    return std::nullopt;
  }

  // ---- Fan-out and fan-in ----

  void read_fan_out() {
    if (const auto* source = body_.find("source"))
      node_.source = read_expression(*source, "'source' of " + where_);
    else
      diagnostics_.error(entry_.key_at, "missing_key", where_ + " is a fan_out and has no 'source'",
                         "as source: \"{{ inputs.urls }}\"");
    const auto* task = body_.find("task");
    if (!task) {
      diagnostics_.error(entry_.key_at, "missing_key", where_ + " is a fan_out and has no 'task'",
                         "as task: {handler: ..., params: {url: \"{{ item }}\"}}");
    } else if (diagnostics_.expect(*task, NodeKind::mapping, "'task' of " + where_)) {
      diagnostics_.check_keys(*task, {"handler", "queue", "params", "timeout_seconds", "retry"},
                              "'task' of " + where_);
      read_task(*task, task->at, "'task' of " + where_, true);
    }
    if (const auto* limit = body_.find("max_parallel"))
      node_.parallel_max = static_cast<std::int32_t>(
          diagnostics_.integer(*limit, "'max_parallel' of " + where_, 1, 1'000'000).value_or(1));
    if (const auto* value = body_.find("on_item_failure"))
      node_.on_item_failure = read_consequence(*value, "'on_item_failure' of " + where_);
  }

  void read_fan_in() {
    if (const auto* value = body_.find("aggregation")) {
      const auto word =
          diagnostics_.word(*value, "'aggregation' of " + where_, {"collect", "concat", "sum", "first", "last"});
      node_.aggregation = static_cast<Aggregation>(word.value_or(0));
    }
    if (const auto* field = body_.find("field")) node_.field = read_literal(*field, "'field' of " + where_);
  }

  // ---- Waits and approvals ----

  void read_wait() {
    const auto* duration = body_.find("duration");
    const auto* until = body_.find("until");
    if ((duration == nullptr) == (until == nullptr))
      return diagnostics_.error(duration ? until->at : entry_.key_at, "invalid_wait",
                                where_ + " must have either 'duration' or 'until'");
    if (duration) {
      node_.duration = read_template(*duration, "'duration' of " + where_);
      if (node_.duration && node_.duration->is_constant() && !read_span(std::string_view(duration->text)))
        diagnostics_.error(duration->at, "wrong_value",
                           "'duration' of " + where_ + " must be seconds or a text as '1h30m', found " +
                               in_quotes(duration->text));
    } else {
      node_.until = read_template(*until, "'until' of " + where_);
      if (node_.until && node_.until->is_constant() && !from_iso(until->text))
        diagnostics_.error(until->at, "wrong_value",
                           "'until' of " + where_ + " must be an instant as 2026-01-31T08:00:00Z, found " +
                               in_quotes(until->text));
    }
  }

  void read_approval() {
    node_.timeout = std::chrono::seconds{0};
    if (const auto* message = body_.find("message"))
      node_.message = read_template(*message, "'message' of " + where_);
    if (const auto* timeout = body_.find("timeout_seconds"))
      node_.timeout = std::chrono::seconds{
          diagnostics_.integer(*timeout, "'timeout_seconds' of " + where_, 1, timeout_seconds_max).value_or(1)};
    if (const auto* value = body_.find("on_timeout")) {
      const auto word = diagnostics_.word(*value, "'on_timeout' of " + where_, {"reject", "approve"});
      node_.approved_by_timeout = word == 1u;
      if (node_.timeout.count() == 0)
        diagnostics_.warning(value->at, "ignored_key", "'on_timeout' means nothing without 'timeout_seconds'");
    }
    if (const auto* value = body_.find("on_reject"))
      node_.on_reject = read_consequence(*value, "'on_reject' of " + where_);
  }

  const yaml::Entry& entry_;
  const yaml::Node& body_;
  Node& node_;
  Sketch& sketch_;
  Diagnostics& diagnostics_;
  const std::string where_;
};

}  // namespace

void read_node(const yaml::Entry& entry, Node& node, Sketch& sketch, Diagnostics& diagnostics) {
  NodeReader(entry, node, sketch, diagnostics).read();
}

}  // namespace baton::workflow
