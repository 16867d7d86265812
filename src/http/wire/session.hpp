// One connection: reads a request, has it handled, writes the answer, and again. Lives on the I/O thread.
//
// Time limits cost nothing per request: a session only notes its deadline, and the server looks at all of
// them a few times a second.
#pragma once

#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <chrono>
#include <list>
#include <memory>
#include <string>

#include "http/wire/context.hpp"
#include "http/wire/request_reader.hpp"
#include "http/wire/subscriptions.hpp"
#include "http/wire/task.hpp"

namespace baton::http {

class Session;

// What all sessions share.
struct SessionGroup {
  Services& services;
  std::list<Session*> sessions;
  bool stopping = false;
  std::string date;  // of the Date header, renewed once a second
  std::function<void()> on_empty;
  metrics::Gauge& connections;
  struct RouteMetrics {
    metrics::Histogram* seconds = nullptr;
    std::vector<std::pair<int, metrics::Counter*>> by_status;
  };
  std::vector<RouteMetrics> by_route;  // the last one: no route

  void count(int route, std::string_view method, int status, std::chrono::nanoseconds took);
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(boost::asio::ip::tcp::socket socket, SessionGroup& group);
  ~Session();

  // welcome: false when there are too many already; the client is told so and let go.
  void start(bool welcome);
  void check_time(SteadyTime now);
  void stop();       // finish what is in flight, then close
  void terminate();  // tell whoever waits that there will be no answer, and close now

 private:
  enum class Phase { idle, header, body, handling, writing, draining };

  Detached serve(std::shared_ptr<Session> self, bool welcome);
  Task<bool> serve_one();
  Task<int> read_request(RequestReader& reader);  // 0: read; -1: the client has gone; else the status of the refusal
  Task<bool> respond(Response response, bool keep_alive, bool head, std::string_view request_id);
  Task<bool> respond_with_stream(Context& context, Response response);
  void begin_answer(const Response& response, bool keep_alive, std::string_view request_id);
  void end_of_answers();
  void tell_no_answer();
  Task<bool> write(std::string_view text);
  Task<bool> drain();
  void enter(Phase phase, std::chrono::milliseconds limit);
  void watch();
  void release_buffer();
  [[nodiscard]] Request take_request(RequestReader& reader);

  boost::asio::ip::tcp::socket socket_;
  SessionGroup& group_;
  std::list<Session*>::iterator place_;
  boost::beast::flat_buffer buffer_;
  std::string out_;
  WaitState wait_state_;
  Phase phase_ = Phase::idle;
  SteadyTime deadline_ = SteadyTime::max();
  bool timed_out_ = false;
  bool first_ = true;
  bool watched_ = false;
  const Request* unanswered_ = nullptr;  // it is being handled
  std::uint64_t requests_ = 0;  // tells a watch of this request from one of an earlier request
};

}  // namespace baton::http
