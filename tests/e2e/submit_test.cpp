// What is submitted from the command line, when the connection breaks before the answer.
#include <fstream>
#include <regex>

#include "tests/e2e/fake_server.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e {
namespace {

using Request = FakeServer::Request;
using Reply = FakeServer::Reply;

class Submit : public testing::Test {
 protected:
  Ran run(std::vector<std::string> arguments) {
    return baton(std::move(arguments), {"BATON_SERVER=" + server_.url()});
  }
  // The keys in what was sent, header or body.
  std::vector<std::string> keys() {
    static const std::regex pattern(R"re(dempotency-?[Kk]ey"?: ?"?([^"\r\n]+))re");
    std::vector<std::string> found;
    for (const std::string& text : sent())
      for (std::sregex_iterator it(text.begin(), text.end(), pattern), end; it != end; ++it)
        found.push_back((*it)[1]);
    return found;
  }

  std::vector<std::string> sent() {
    std::vector<std::string> all;
    server_.between_requests([&] { all = sent_; });
    return all;
  }

  int breaks_ = 1;
  Reply answer_{201, R"({"job_id":"j1"})"};
  std::vector<std::string> sent_;
  FakeServer server_{[this](const Request& request) -> Reply {
    sent_.push_back(request.head + request.body);
    if (breaks_-- > 0) return {0, ""};
    return answer_;
  }};
};

TEST_F(Submit, AJobIsSubmittedOnceThoughTheConnectionBreaks) {
  const Ran ran = run({"job", "submit", "w"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.out, "j1\n");
  EXPECT_NE(ran.err.find("waiting for the server"), std::string::npos) << ran.err;
  ASSERT_EQ(keys().size(), 2U);
  EXPECT_EQ(keys()[0], keys()[1]);
  EXPECT_EQ(sent()[0], sent()[1]);
}

TEST_F(Submit, EachHasAKeyOfItsOwnUnlessOneIsGiven) {
  server_.between_requests([&] { breaks_ = 0; });
  EXPECT_EQ(run({"job", "submit", "w"}).code, 0);
  EXPECT_EQ(run({"job", "submit", "w"}).code, 0);
  EXPECT_EQ(run({"job", "submit", "w", "--idempotency-key", "mine"}).code, 0);
  ASSERT_EQ(keys().size(), 3U);
  EXPECT_NE(keys()[0], keys()[1]);
  EXPECT_EQ(keys()[2], "mine");
}

TEST_F(Submit, SoAreServiceCalls) {
  server_.between_requests([&] {
    answer_ = {202, R"({"serviceCallId":"c1","status":"Scheduled","calls":[{"created":true},{"created":true}]})"};
  });
  EXPECT_EQ(run({"call", "submit", "http://a.example/"}).code, 0);
  server_.between_requests([&] { breaks_ = 1; });
  EXPECT_EQ(run({"call", "repeat", "c1"}).code, 0);
  ASSERT_EQ(keys().size(), 4U);
  EXPECT_EQ(keys()[0], keys()[1]);
  EXPECT_EQ(keys()[2], keys()[3]);
  EXPECT_NE(keys()[0], keys()[2]);
  server_.between_requests([&] {
    sent_.clear();
    breaks_ = 1;
  });
  const support::TemporaryDirectory directory;
  const std::string file = (directory.path() / "calls").string();
  std::ofstream(file) << R"({"name":"a"})" << '\n' << R"({"name":"b","idempotencyKey":"mine"})" << '\n';
  const Ran ran = run({"call", "submit-all", file});
  EXPECT_EQ(ran.out, "2 submitted, 0 known already, 0 refused\n") << ran.err;
  ASSERT_EQ(keys().size(), 4U);
  EXPECT_EQ(keys()[0], keys()[2]);
  EXPECT_EQ(keys()[1], "mine");
  EXPECT_EQ(keys()[3], "mine");
}

TEST_F(Submit, AServerThatOnlyFailsCouldNotServe) {
  int looks = 0;
  FakeServer failing([&](const Request&) -> Reply {
    if (looks++ == 0) return {200, R"({"events":[],"status":"RUNNING","next_after":0})"};
    return {500, R"({"status":500,"code":"internal","detail":"something went wrong"})"};
  });
  const Ran ran = baton({"job", "watch", "j1", "--reconnect", "1"}, {"BATON_SERVER=" + failing.url()});
  EXPECT_EQ(ran.code, 6) << ran.err;
  EXPECT_NE(ran.err.find("something went wrong; waiting for the server"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace baton::e2e
