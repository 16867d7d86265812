// A tree such as the params of a node, in which each string may be a template, at any depth. It is kept as
// the JSON text that never changes, with holes: evaluating it writes text and fills the holes, nothing else.
//
// Immutable, and safe to share between threads.
#pragma once

#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.hpp"
#include "base/json.hpp"
#include "base/yaml.hpp"
#include "core/template/expression.hpp"

namespace baton::expression {

class Document {
 public:
  // A template with the place of its text in the document.
  struct Place {
    Position at;
    References references;
    yaml::Written written;
    // Of a byte of the template, such as the offset of a reference.
    [[nodiscard]] Position position(std::size_t offset) const { return written.position(offset); }
  };

  // Tells each problem with its place in the document: of the wrong word itself when the scalar is on one
  // line, of the scalar otherwise. Answers nothing when there was any.
  using OnProblem = std::function<void(Position, const Problem&)>;
  [[nodiscard]] static std::optional<Document> read(const yaml::Node& node, const OnProblem& on_problem);

  [[nodiscard]] bool is_constant() const { return holes_.empty(); }
  [[nodiscard]] const Json& constant() const;  // when it is constant; ENSUREd
  // Of all templates together; offsets are each within its own template, see places().
  [[nodiscard]] const References& references() const { return references_; }
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }

  // What was made of those of its templates that do not look at an item, for its evaluation with the next item:
  // everything else in the scope must be the same. Of one document.
  class Memo {
    friend class Document;
    struct Made {
      std::string text;
      std::size_t steps = 0, text_bytes = 0;  // what it cost
    };
    std::vector<std::optional<Made>> made_;
  };

  // One budget of steps and text covers the whole tree. The offset of a problem is within the template at its
  // place.
  [[nodiscard]] std::expected<Json, Problem> evaluate(const Scope& scope, Memo* memo = nullptr) const;

 private:
  friend class DocumentReader;
  [[nodiscard]] std::expected<void, Problem> fill(std::size_t hole, Evaluator& evaluator, Memo* memo,
                                                  std::string& out) const;
  struct Hole {
    std::size_t text_end;  // of the fixed text before it
    int depth;             // how deep it stands
    Template filling;
  };

  Json text_;                // with nothing where the holes are
  std::vector<Hole> holes_;  // as many as places, in the same order
  References references_;
  std::vector<Place> places_;
};

}  // namespace baton::expression
