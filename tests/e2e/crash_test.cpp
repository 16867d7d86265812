// kill -9 under load, again and again; then an audit of every acknowledged job.
#include <signal.h>

#include <atomic>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

#include "tests/e2e/server.hpp"
#include "tests/support/postgres_server.hpp"

namespace baton::e2e {
namespace {

// Clients that submit without pause until told to stop, over a server that comes and goes.
class Load {
 public:
  void start(int clients) {
    for (int i = 0; i < clients; ++i) threads_.emplace_back([this, i] { run(i); });
  }
  void set_url(const std::string& url) {
    const std::scoped_lock lock(mutex_);
    url_ = url;
  }
  // The acknowledged jobs, by key.
  std::map<std::string, std::string> stop() {
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
    return acknowledged_;
  }
  // Waits until so many more jobs have been acknowledged. False: they were not, in that time.
  [[nodiscard]] bool wait_for_more(std::size_t jobs, std::chrono::seconds within) {
    std::unique_lock lock(mutex_);
    const std::size_t enough = acknowledged_.size() + jobs;
    return more_.wait_for(lock, within, [&] { return acknowledged_.size() >= enough; });
  }
  ~Load() { (void)stop(); }

 private:
  void run(int client_number) {
    for (int n = 0; !stopping_; ++n) {
      const std::string key = "c" + std::to_string(client_number) + "-" + std::to_string(n);
      // A submit with a key is repeated until it is answered: it must make one job all the same.
      while (!stopping_ && !submit(key)) std::this_thread::sleep_for(5ms);
    }
  }
  bool submit(const std::string& key) {
    std::string url;
    {
      const std::scoped_lock lock(mutex_);
      url = url_;
    }
    http::Client client(url);
    const Answer answer = ask(client, "POST", "/jobs",
                              R"({"workflow_id":"echo_test","input_data":{"key":")" + key +
                                  R"("},"idempotency_key":")" + key + "\"}");
    if (answer.status != 200 && answer.status != 201) return false;
    const std::scoped_lock lock(mutex_);
    acknowledged_[key] = answer.text("job_id");
    more_.notify_all();
    return true;
  }

  std::mutex mutex_;
  std::condition_variable more_;
  std::string url_;
  std::map<std::string, std::string> acknowledged_;
  std::vector<std::thread> threads_;
  std::atomic<bool> stopping_ = false;
};

// Every acknowledged job is there, finishes, has one result, and no key made two jobs.
void audit(Server& server, const std::map<std::string, std::string>& acknowledged) {
  auto client = server.client();
  std::map<std::string, int> jobs_of_key;
  std::string cursor;
  do {
    const Answer page = ask(client, "GET", "/jobs?limit=200" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(page.status, 200);
    for (const auto& job : page.body.at("jobs").as_array())
      ++jobs_of_key[std::string(job.at("job_id").as_string())];
    cursor =
        page.body.at("next_cursor").is_string() ? std::string(page.body.at("next_cursor").as_string()) : "";
  } while (!cursor.empty());
  for (const auto& [key, job_id] : acknowledged) {
    ASSERT_EQ(jobs_of_key[job_id], 1) << key << " was acknowledged and is lost";
    const Answer job = ask(client, "GET", "/jobs/" + job_id + "?wait_ms=60000");
    ASSERT_EQ(job.text("status"), "COMPLETED") << key << json::serialize(job.body);
    ASSERT_EQ(json::serialize(job.body.at("result_data")),
              R"({"echo_handler":{"echoed_params":{"key":")" + key + "\"}}}");
    const auto events = timeline(client, job_id);
    ASSERT_EQ(std::ranges::count(events, "job_completed"), 1) << key;
    ASSERT_EQ(std::ranges::count(events, "node_completed echo_handler"), 1) << key;
  }
}

void expect_consistent(const std::vector<std::string>& options) {
  std::vector<std::string> command{"check"};
  command.insert(command.end(), options.begin(), options.end());
  const Ran checked = baton(command);
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

void kill_again_and_again(const std::vector<std::string>& options, int times) {
  auto server = std::make_unique<Server>(options);
  {
    auto client = server->client();
    publish(client, echo_yaml);
  }
  Load load;
  load.set_url(server->url());
  load.start(4);
  for (int i = 0; i < times; ++i) {
    EXPECT_TRUE(load.wait_for_more(30, 20s)) << "the server took no jobs";
    expect_consistent(options);
    server->process().signal(SIGKILL);
    ASSERT_EQ(server->process().wait(10s), 128 + SIGKILL);
    expect_consistent(options);
    server = std::make_unique<Server>(options);
    load.set_url(server->url());
  }
  const auto acknowledged = load.stop();
  EXPECT_GT(acknowledged.size(), 100u);
  audit(*server, acknowledged);
}

TEST(Crash, LosesNothingAndDoublesNothingOnSqlite) {
  const support::TemporaryDirectory data;
  kill_again_and_again({"--data", data.path()}, 10);
}

TEST(Crash, LosesNothingAndDoublesNothingOnPostgres) {
  support::PostgresServer postgres;
  kill_again_and_again({"--store", postgres.url()}, 10);
}

TEST(Crash, OfTheDatabaseLosesNothingAndDoublesNothing) {
  support::PostgresServer postgres;
  Server server({"--store", postgres.url()});
  auto client = server.client();
  publish(client, echo_yaml);
  Load load;
  load.set_url(server.url());
  load.start(4);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(load.wait_for_more(30, 20s)) << "the server did not come back after the database did";
    postgres.crash();
    postgres.start();
  }
  EXPECT_TRUE(load.wait_for_more(30, 20s)) << "the server took no jobs";
  audit(server, load.stop());
  EXPECT_FALSE(server.process().wait(0ms).has_value());
}

}  // namespace
}  // namespace baton::e2e
