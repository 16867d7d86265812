// Whatever a template says, reading and evaluating it must not crash, must end, and must give well-formed
// JSON.
#include <boost/json.hpp>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/result.hpp"
#include "base/yaml.hpp"
#include "core/template/document.hpp"
#include "core/template/expression.hpp"

namespace {

namespace json = boost::json;
namespace expression = baton::expression;

class FixedScope : public expression::Scope {
 public:
  [[nodiscard]] const json::value* inputs() const override { return &inputs_; }
  [[nodiscard]] const json::value* node(std::string_view, std::string_view field) const override {
    return field == "error" ? nullptr : &inputs_;
  }
  [[nodiscard]] const json::value* item() const override { return &inputs_.at("l"); }
  [[nodiscard]] std::optional<std::int64_t> index() const override { return 3; }

 private:
  json::value inputs_ = json::parse(
      R"({"i":-9223372036854775808,"u":18446744073709551615,"f":1.5e300,"s":"a\u00e9 \ud83d\ude00,b","b":true,
          "z":null,"l":[3,1,2,1.0,"x",[],{}],"o":{"s":"t","n":1},"r":[{"s":"ok","n":1},{"s":"no","n":2.5}]})");
};

void check(const expression::Problem& problem, std::size_t size) {
  ENSURE(problem.offset <= size);
  ENSURE(!problem.message.empty() && !problem.code.empty());
}

void check_template(const std::expected<expression::Template, expression::Problem>& parsed,
                    std::string_view text, const FixedScope& scope) {
  if (!parsed) return check(parsed.error(), text.size());
  for (const auto& node : parsed->references().nodes) ENSURE(node.offset < text.size());
  if (const auto value = parsed->evaluate(scope); !value) check(value.error(), text.size());
}

void check_document(std::string_view text, const FixedScope& scope) {
  const auto yaml = baton::yaml::parse(text);
  if (!yaml) return;
  int problems = 0;
  const auto document =
      expression::Document::read(*yaml, [&](baton::Position at, const expression::Problem& problem) {
        ENSURE(at.line >= 1 && at.column >= 1);
        check(problem, text.size() * 2);
        ++problems;
      });
  ENSURE(document.has_value() == (problems == 0));
  if (!document) return;
  const auto value = document->evaluate(scope);
  if (!value) return check(value.error(), text.size() * 2);
  json::parse_options options;
  options.max_depth = 256;
  json::error_code error;
  (void)json::parse(value->text, error, {}, options);
  ENSURE(!error);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const FixedScope scope;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_template(expression::Template::parse(text), text, scope);
  check_template(expression::Template::parse_expression(text), text, scope);
  check_document(text, scope);
  return 0;
}
