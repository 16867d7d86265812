#include "core/template/read_json.hpp"

#include <boost/json.hpp>
#include <boost/json/basic_parser_impl.hpp>
#include <charconv>

namespace baton::expression {
namespace {

namespace json = boost::json;

// What Boost's own handler does, but for doubles. The text is given in one piece, so that numbers are whole.
struct Handler {
  using Text = json::string_view;
  using Failure = json::error_code;
  static constexpr std::size_t max_object_size = json::object::max_size();
  static constexpr std::size_t max_array_size = json::array::max_size();
  static constexpr std::size_t max_key_size = json::string::max_size();
  static constexpr std::size_t max_string_size = json::string::max_size();

  bool on_document_begin(Failure&) { return true; }
  bool on_document_end(Failure&) { return true; }
  bool on_object_begin(Failure&) { return true; }
  bool on_object_end(std::size_t size, Failure&) { return stack.push_object(size), true; }
  bool on_array_begin(Failure&) { return true; }
  bool on_array_end(std::size_t size, Failure&) { return stack.push_array(size), true; }
  bool on_key_part(Text text, std::size_t, Failure&) { return stack.push_chars(text), true; }
  bool on_key(Text text, std::size_t, Failure&) { return stack.push_key(text), true; }
  bool on_string_part(Text text, std::size_t, Failure&) { return stack.push_chars(text), true; }
  bool on_string(Text text, std::size_t, Failure&) { return stack.push_string(text), true; }
  bool on_number_part(Text, Failure&) { return true; }
  bool on_int64(std::int64_t number, Text, Failure&) { return stack.push_int64(number), true; }
  bool on_uint64(std::uint64_t number, Text, Failure&) { return stack.push_uint64(number), true; }
  bool on_double(double number, Text text, Failure&) {
    double exact = 0;
    const bool read = std::from_chars(text.data(), text.data() + text.size(), exact).ec == std::errc{};
    return stack.push_double(read ? exact : number), true;
  }
  bool on_bool(bool flag, Failure&) { return stack.push_bool(flag), true; }
  bool on_null(Failure&) { return stack.push_null(), true; }
  bool on_comment_part(Text, Failure&) { return true; }
  bool on_comment(Text, Failure&) { return true; }

  json::value_stack stack;
};

}  // namespace

std::expected<json::value, std::string> read_json(std::string_view text, int depth) {
  json::parse_options options;
  options.max_depth = static_cast<std::size_t>(depth);
  json::basic_parser<Handler> parser(options);
  parser.handler().stack.reset();
  json::error_code error;
  const std::size_t read = parser.write_some(false, text.data(), text.size(), error);
  if (!error && read < text.size()) error = json::error::extra_data;
  if (error) return std::unexpected(error.message());
  return parser.handler().stack.release();
}

}  // namespace baton::expression
