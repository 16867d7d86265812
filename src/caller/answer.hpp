// The answer to a request as it is read from the wire: the head, the beginning of the body, and a count of
// the rest.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/optional.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "ports/caller.hpp"

namespace baton::caller {

constexpr std::uint32_t head_bytes_max = 16 * 1024;
constexpr std::uint64_t body_bytes_max = 64 * 1024;  // more is not read: the connection is given up instead
constexpr std::size_t snippet_bytes_max = 1024;

// A body of which little is kept. It ends with body_limit when it is too long.
struct SnippetBody {
  struct value_type {
    std::string begin;
    std::uint64_t bytes = 0;
  };
  class reader {
   public:
    template <bool is_request, class Fields>
    reader(boost::beast::http::header<is_request, Fields>&, value_type& body) : body_(body) {}
    void init(const boost::optional<std::uint64_t>&, boost::system::error_code& error) { error = {}; }
    template <class Buffers>
    std::size_t put(const Buffers& buffers, boost::system::error_code& error) {
      error = {};
      const auto before = body_.bytes;
      for (auto it = boost::asio::buffer_sequence_begin(buffers);
           it != boost::asio::buffer_sequence_end(buffers); ++it)
        add(boost::asio::const_buffer(*it));
      if (body_.bytes > body_bytes_max) error = boost::beast::http::error::body_limit;
      return static_cast<std::size_t>(body_.bytes - before);
    }
    void finish(boost::system::error_code& error) { error = {}; }

   private:
    // Some bytes more than the snippet has, so that its last character is whole.
    void add(boost::asio::const_buffer part) {
      const std::size_t room = snippet_bytes_max + 4 - body_.begin.size();
      body_.begin.append(static_cast<const char*>(part.data()), std::min(room, part.size()));
      body_.bytes += part.size();
    }
    value_type& body_;
  };
};

using Parser = boost::beast::http::response_parser<SnippetBody>;

void prepare(Parser& parser, bool without_body);

// Fills in status, headers and body of the result, as far as they were read. Secrets are left out.
void tell(const Parser::value_type& answer, OutgoingResult& result);

// How long the server says that it keeps the connection; none: it says nothing.
[[nodiscard]] std::optional<std::chrono::seconds> keep_alive_of(const Parser::value_type& answer);

// What a parser's error means, for people.
[[nodiscard]] std::string answer_problem(const boost::system::error_code& error);

}  // namespace baton::caller
