// `baton needs-you`: what needs a person, and how to answer it.
#include <fmt/format.h>

#include <memory>

#include "cli/commands/commands.hpp"
#include "cli/commands/subcommand.hpp"
#include "cli/request.hpp"
#include "cli/terminal/output.hpp"

namespace baton::cli {
namespace {

struct Options {
  RemoteOptions remote;
  std::string id, answer, by, reason;
  bool answers = false;  // the subcommand was given
};

constexpr std::string_view target = "/api/v1/needs-you";

std::string about(const Fields& need) {
  std::string text = need.text("runbook");
  if (need.has("batch_id")) text += fmt::format("{}batch {}", text.empty() ? "" : ", ", need.number("batch_id"));
  if (need.has("phase")) text += ", " + need.text("phase");
  if (need.has("job_id")) text = "job " + need.text("job_id");
  return text;
}

std::string answers(const Fields& need) {
  std::string words;
  for (const Fields& answer : need.items("answers")) words += (words.empty() ? "" : "|") + answer.text("answer");
  return words;
}

int list(const Options& options) {
  bool any = false;
  const int code = list_page(options.remote,
                             {.target = std::string(target),
                              .key = "needs",
                              .heading = {"ID", "SINCE", "ABOUT", "ANSWERS", "ANSWER BY", "WHAT"},
                              .none = "Nothing needs you."},
                             [&](const Fields& need) -> Row {
                               any = true;
                               return {need.text("id"),   need.text("since"),     about(need),
                                       answers(need),     need.text("answer_by"), one_line(need.text("message"))};
                             });
  if (any && !options.remote.as_json)
    fmt::print("\n'baton needs-you answer ID ANSWER' decides; what has no answers ends when it is mended.\n");
  return code;
}

int answer(const Options& options) {
  const std::string path = fmt::format("{}/{}/answer", target, escaped(options.id));
  const std::string body =
      json_object_of_given("answer", options.answer, "by", options.by, "reason", options.reason).text;
  return post(options.remote, path, body, [&](const Fields& decided) {
    if (decided.flag("changed"))
      fmt::print("Answered {}: {}.\n", options.id, printable(decided.text("answer")));
    else
      fmt::print("Nothing to do: {} was answered before: {}.\n", options.id, printable(decided.text("answer")));
  });
}

}  // namespace

void add_needs_you(Parser app, Action& chosen) {
  auto options = std::make_shared<Options>();
  Parser needs = app.add_subcommand("needs-you", "List what needs a person, and answer it");
  add_remote_options(needs, options->remote);
  // Called after that of the subcommand.
  needs.callback([options, &chosen] {
    if (!options->answers) chosen = [options] { return list(*options); };
  });
  Parser decide = needs.add_subcommand("answer", "Decide what waits for a person; it is decided once");
  add_remote_options(decide, options->remote);
  decide.add_option("ID", options->id, "such as hold-7; `baton needs-you` has them").required();
  decide.add_option("ANSWER", options->answer, "one of those that are listed with it").required();
  decide.add_option("--by", options->by, "who decides; kept with the batch");
  decide.add_option("--reason", options->reason, "kept with the batch");
  decide.callback([options, &chosen] {
    options->answers = true;
    chosen = [options] { return answer(*options); };
  });
  decide.footer("Example:\n  baton needs-you answer hold-7 go --by ann --reason 'all checks are green'");
}

}  // namespace baton::cli
