// Makes a request of the bytes of a connection, as they arrive. It owns no socket and reads no clock.
//
// A proxy in front of the server must see the same requests as the server. So what leaves room for two
// opinions about where a request ends, or whom it is for, is refused. Fields that follow the body are
// ignored: a proxy that checks or sets a header does not look for it there.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <cstddef>

#include "http/wire/message.hpp"

namespace baton::http {

class RequestReader {
 public:
  enum class Step { needs_more, header, body, refused };

  RequestReader(std::size_t header_bytes_max, std::size_t body_bytes_max);

  // Consumes the next part of what has arrived. `header`: the header is whole with this part. To be called
  // while there is something in the buffer and the request is not whole.
  [[nodiscard]] Step read(boost::beast::flat_buffer& buffer);

  [[nodiscard]] int refused_with() const { return refused_with_; }  // the status of the answer
  [[nodiscard]] bool has_header() const { return parser_.is_header_done(); }
  [[nodiscard]] bool is_done() const { return parser_.is_done(); }

  // These are known with the header.
  [[nodiscard]] bool expects_continue() const;
  [[nodiscard]] bool keep_alive() const;

  // The request is whole. The id is the client's own or empty.
  [[nodiscard]] Request take();

 private:
  void take_header();
  [[nodiscard]] Step refuse(int status);

  boost::beast::http::request_parser<boost::beast::http::string_body> parser_;
  Request request_;
  int refused_with_ = 0;
};

}  // namespace baton::http
