#include "cli/commands/parser.hpp"

#include <CLI/CLI.hpp>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace baton::cli {

Option Option::required() { return Option(option_->required()); }

Option Option::type_name(const std::string& name) { return Option(option_->type_name(name)); }

Option Option::delimiter(char separator) { return Option(option_->delimiter(separator)); }

Option Option::allow_extra_args(bool allowed) { return Option(option_->allow_extra_args(allowed)); }

Option Option::excludes(Option other) { return Option(option_->excludes(other.option_)); }

Option Option::needs(Option other) { return Option(option_->needs(other.option_)); }

Option Option::check(const std::function<std::string(const std::string&)>& wrong_with) {
  return Option(option_->check(wrong_with));
}

Option Option::range(int least, int most) { return Option(option_->check(CLI::Range(least, most))); }

Option Option::range(double least, double most) { return Option(option_->check(CLI::Range(least, most))); }

Option Option::positive() { return Option(option_->check(CLI::PositiveNumber)); }

Option Option::one_of(const std::vector<std::string>& words) {
  return Option(option_->check(CLI::IsMember(words)));
}

Option Option::one_of_any_case(const std::vector<std::string>& words) {
  return Option(option_->check(CLI::IsMember(words, CLI::ignore_case)));
}

Option Option::bytes() { return Option(option_->transform(CLI::AsSizeValue(false))); }

Parser Parser::add_subcommand(const std::string& name, const std::string& help) {
  return Parser(*app_->add_subcommand(name, help));
}

Parser Parser::group(const std::string& name) { return Parser(*app_->group(name)); }

Parser Parser::footer(const std::string& text) { return Parser(*app_->footer(text)); }

Parser Parser::require_subcommand(int count) { return Parser(*app_->require_subcommand(count)); }

Parser Parser::callback(std::function<void()> chosen) { return Parser(*app_->callback(std::move(chosen))); }

template <class Value>
Option Parser::add_option(const std::string& name, Value& value, const std::string& help) {
  return Option(app_->add_option(name, value, help));
}

Option Parser::add_option(const std::string& name, std::function<void(const std::string&)> take,
                          const std::string& help) {
  return Option(app_->add_option_function<std::string>(name, take, help));
}

Option Parser::add_flag(const std::string& name, bool& value, const std::string& help) {
  return Option(app_->add_flag(name, value, help));
}

Option Parser::add_flag(const std::string& name, std::function<void()> given, const std::string& help) {
  return Option(app_->add_flag_callback(name, std::move(given), help));
}

#define VALUE(...) template Option Parser::add_option(const std::string&, __VA_ARGS__&, const std::string&)
VALUE(std::string);
VALUE(std::optional<std::string>);
VALUE(std::vector<std::string>);
VALUE(int);
VALUE(std::optional<int>);
VALUE(std::int64_t);
VALUE(std::size_t);
VALUE(std::vector<std::size_t>);
VALUE(double);
#undef VALUE

}  // namespace baton::cli
