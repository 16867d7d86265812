// How commands declare themselves: handles on the parsers and options of CLI11, whose header costs every
// file that includes it several seconds of compiling. Only parser.cpp and app.cpp see that header.
// A handle is one pointer, is passed by value and lives no longer than the parser.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace baton::cli {

class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required();
  Option type_name(const std::string& name);
  Option delimiter(char separator);
  Option allow_extra_args(bool allowed);
  Option excludes(Option other);
  Option needs(Option other);

  // What a value may be. A check answers what is wrong, or nothing.
  Option check(const std::function<std::string(const std::string&)>& wrong_with);
  Option range(int least, int most);
  Option range(double least, double most);
  Option positive();
  Option one_of(const std::vector<std::string>& words);
  Option one_of_any_case(const std::vector<std::string>& words);
  Option bytes();  // a number with a unit behind it: 64k, 1 GB

 private:
  CLI::Option* option_;
};

class Parser {
 public:
  explicit Parser(CLI::App& app) : app_(&app) {}

  Parser add_subcommand(const std::string& name, const std::string& help);
  Parser group(const std::string& name);  // an empty name hides the command
  Parser footer(const std::string& text);
  Parser require_subcommand(int count);
  Parser callback(std::function<void()> chosen);

  // The types of values that exist are at the end of parser.cpp.
  template <class Value>
  Option add_option(const std::string& name, Value& value, const std::string& help = {});
  Option add_option(const std::string& name, std::function<void(const std::string&)> take,
                    const std::string& help);
  Option add_flag(const std::string& name, bool& value, const std::string& help);
  Option add_flag(const std::string& name, std::function<void()> given, const std::string& help);

 private:
  CLI::App* app_;
};

}  // namespace baton::cli
