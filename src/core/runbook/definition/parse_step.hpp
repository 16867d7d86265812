// The steps of a runbook, wherever they stand. Private to the parser.
#pragma once

#include <string>
#include <vector>

#include "base/diagnostics.hpp"
#include "core/runbook/definition/definition.hpp"

namespace baton::runbook {

// init: before there is a member. cleanup: of a rollback, or after a member was removed.
enum class StepKind { init, member, cleanup };

// What the steps of one list say that can only be checked against the rest of the document.
struct Sketch {
  struct Mention {
    std::string name;
    Position at;
    std::string where;  // for messages: "'params' of step 'move' of phase 'cut-over'"
  };
  struct Output : Mention {
    std::size_t after = 0;  // how many of the variables stand in the step or before it
  };
  std::vector<Mention> variables;
  std::vector<Output> outputs;     // of `output_params`
  std::vector<Mention> rollbacks;  // of `on_failure`
  std::vector<Mention> polls;      // the names of the steps that poll
};

// `where` names the list: "phase 'cut-over'".
void read_steps(const yaml::Node& list, StepKind kind, const std::string& where, std::vector<Step>& steps,
                Sketch& sketch, Diagnostics& diagnostics);

// A name that is the same for all members: no template.
[[nodiscard]] std::string read_fixed(const yaml::Node& node, const std::string& what, Diagnostics& diagnostics);

// Init steps, and the rollbacks they name, know the batch only. `why` goes into the message.
void check_batch_variables(const std::vector<Sketch::Mention>& variables, const std::string& why,
                           Diagnostics& diagnostics);

}  // namespace baton::runbook
