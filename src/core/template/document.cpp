#include "core/template/document.hpp"

#include <boost/json.hpp>
#include <utility>

#include "base/result.hpp"
#include "core/template/evaluator.hpp"

namespace baton::expression {

class DocumentReader {
 public:
  explicit DocumentReader(const Document::OnProblem& on_problem) : on_problem_(on_problem) {}

  std::optional<Document> read(const yaml::Node& node) {
    append(node, 0);
    if (failed_) return std::nullopt;
    return std::move(document_);
  }

 private:
  // Recursion is bounded by the depth limit of YAML.
  void append(const yaml::Node& node, int depth) {
    std::string& out = document_.text_.text;
    bool first = true;
    switch (node.kind) {
      case yaml::NodeKind::string: return append_string(node, depth);
      case yaml::NodeKind::sequence:
        out += '[';
        for (const yaml::Node& item : node.items) {
          if (!std::exchange(first, false)) out += ',';
          append(item, depth + 1);
        }
        out += ']';
        return;
      case yaml::NodeKind::mapping:
        out += '{';
        for (const yaml::Entry& entry : node.entries) {
          if (!std::exchange(first, false)) out += ',';
          append_key(entry);
          append(entry.value, depth + 1);
        }
        out += '}';
        return;
      default: out += yaml::to_json(node).text; return;
    }
  }

  void append_key(const yaml::Entry& entry) {
    if (has_expression(entry.key))
      report(entry.key_at, {0, "a key cannot be an expression", {}, "expression_in_key"});
    append_quoted(document_.text_.text, entry.key);
    document_.text_.text += ':';
  }

  void append_string(const yaml::Node& node, int depth) {
    if (!has_expression(node.text)) return append_quoted(document_.text_.text, node.text);
    auto parsed = Template::parse(node.text);
    if (!parsed) return report(node.written.position(parsed.error().offset), parsed.error());
    if (parsed->is_constant()) return append_constant(*parsed);
    merge(parsed->references());
    document_.places_.push_back({node.written.at, parsed->references(), node.written});
    document_.holes_.push_back({document_.text_.text.size(), depth, *std::move(parsed)});
  }

  // Text with nothing but comments in it.
  void append_constant(const Template& constant);

  void merge(const References& references) {
    References& all = document_.references_;
    if ((references.item || references.index) && !all.item && !all.index)
      all.item_offset = references.item_offset;
    all.inputs |= references.inputs;
    all.item |= references.item;
    all.index |= references.index;
    const auto append_all = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
    append_all(all.input_names, references.input_names);
    append_all(all.nodes, references.nodes);
    append_all(all.env, references.env);
  }

  void report(Position at, const Problem& problem) {
    failed_ = true;
    on_problem_(at, problem);
  }

  const Document::OnProblem& on_problem_;
  Document document_;
  bool failed_ = false;
};

namespace {

class NoScope : public Scope {
  [[nodiscard]] const json::value* inputs() const override { return nullptr; }
  [[nodiscard]] const json::value* node(std::string_view, std::string_view) const override { return nullptr; }
};

}  // namespace

void DocumentReader::append_constant(const Template& constant) {
  const auto value = constant.evaluate(NoScope());
  ENSURE(value && value->is_string());
  append_quoted(document_.text_.text, view(value->get_string()));
}

std::optional<Document> Document::read(const yaml::Node& node, const OnProblem& on_problem) {
  return DocumentReader(on_problem).read(node);
}

const Json& Document::constant() const {
  ENSURE(is_constant());
  return text_;
}

std::expected<void, Problem> Document::fill(std::size_t hole, Evaluator& evaluator, Memo* memo,
                                            std::string& out) const {
  const Template& filling = holes_[hole].filling;
  const bool same_for_all = memo && !filling.references().item && !filling.references().index;
  if (!same_for_all) return filling.append_json(evaluator, holes_[hole].depth, out);
  memo->made_.resize(holes_.size());
  auto& made = memo->made_[hole];
  if (made) {
    if (!evaluator.charge_remembered({made->steps, made->text_bytes})) return evaluator.budget().exceeded();
    out += made->text;
    return {};
  }
  const std::size_t begin = out.size();
  const Usage before = evaluator.budget().used();
  TRY(filling.append_json(evaluator, holes_[hole].depth, out));
  const Usage after = evaluator.budget().used();
  made = {out.substr(begin), after.steps - before.steps, after.text - before.text};
  return {};
}

std::expected<Json, Problem> Document::evaluate(const Scope& scope, Memo* memo) const {
  Evaluator evaluator(scope);
  Json result;
  result.text.reserve(text_.text.size() + 32 * holes_.size());
  std::size_t copied = 0;
  for (std::size_t i = 0; i < holes_.size(); ++i) {
    result.text.append(text_.text, copied, holes_[i].text_end - copied);
    copied = holes_[i].text_end;
    if (auto filled = fill(i, evaluator, memo, result.text); !filled) [[unlikely]] {
      filled.error().place = i;
      return std::unexpected(std::move(filled).error());
    }
  }
  result.text.append(text_.text, copied);
  return result;
}

}  // namespace baton::expression
