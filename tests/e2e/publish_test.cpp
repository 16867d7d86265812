// A new version in the middle of a batch, with the real binary.
#include <algorithm>
#include <fstream>

#include "base/time.hpp"
#include "tests/e2e/agent.hpp"
#include "tests/e2e/server.hpp"

namespace baton::e2e::publish_test {
namespace {

// The wave is in the middle of its cut-over, and a step of the phase after it has a typo.
std::string book(const std::string& function) {
  return R"(
name: waves
data_source: {type: csv, connection: WAVES, interval: 1h, primary_key: Key, batch_time_column: T}
phases:
  - {name: cut-over, offset: T-0, steps: [{name: move, worker_id: pool, function: Move, params: {Key: "{{Key}}"}}]}
  - {name: tidy, offset: T+1m, steps: [{name: sweep, worker_id: pool, function: )" +
         function + R"(, params: {Key: "{{Key}}"}}]}
)";
}

class PublishInTheMiddle : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(data_.path() / "waves.csv") << "Key,T\nada," << to_iso(std::chrono::floor<Duration>(std::chrono::system_clock::now())) << "\n";
    setenv("WAVES", (data_.path() / "waves.csv").c_str(), 1);
    server_ = std::make_unique<Server>(std::vector<std::string>{"--data", data_.path().string()});
    unsetenv("WAVES");
    write(book("Swep"));
    ASSERT_EQ(baton({"runbook", "publish", file()}, environment()).code, 0);
    functions_.add("Move", "echo \"$$\" >> " + moved() + "\nwhile [ ! -e " + go() + " ]; do sleep 0.05; done\necho '{}'");
    functions_.add("Sweep", "echo '{}'");
    agent_ = std::make_unique<Agent>(server_->url(), functions_);
    ASSERT_TRUE(eventually([&] { return std::filesystem::exists(moved()); }));
  }
  void write(const std::string& yaml) const { std::ofstream(file()) << yaml; }
  [[nodiscard]] std::string file() const { return data_.path() / "waves.yaml"; }
  [[nodiscard]] std::string moved() const { return data_.path() / "moved"; }
  [[nodiscard]] std::string go() const { return data_.path() / "go"; }
  [[nodiscard]] std::vector<std::string> environment() const { return {"BATON_SERVER=" + server_->url()}; }
  [[nodiscard]] std::size_t moves() const {
    const std::string text = read_text(moved());
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  }
  std::string phases() {
    auto client = server_->client();
    const Answer answer = ask(client, "GET", "/batches/1/phases");
    std::string all;
    for (const auto& phase : answer.body.at("phases").as_array())
      all += (all.empty() ? "" : " ") + std::string(phase.at("phase_name").as_string()) + ".v" +
             std::to_string(phase.at("runbook_version").as_int64()) + "=" + std::string(phase.at("status").as_string());
    return all;
  }

  const support::TemporaryDirectory data_;
  FunctionDirectory functions_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Agent> agent_;
};

TEST_F(PublishInTheMiddle, IsRefusedWithWhatItWouldDoAndKeepLetsTheWaveFinishOnce) {
  write(book("Sweep"));
  const Ran refused = baton({"runbook", "publish", file()}, environment());
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("have begun"), std::string::npos) << refused.err;
  EXPECT_NE(refused.out.find("phase 'tidy', step 'sweep': function was Swep, is Sweep"), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find("cut-over BEGINS AGAIN at once"), std::string::npos) << refused.out;
  EXPECT_NE(refused.out.find("--open-batches keep"), std::string::npos) << refused.out;
  EXPECT_EQ(phases(), "cut-over.v1=dispatched tidy.v1=pending") << "nothing was published";

  const Ran kept = baton({"runbook", "publish", file(), "--open-batches", "keep"}, environment());
  EXPECT_EQ(kept.code, 0) << kept.err;
  std::ofstream(go()) << "go";
  EXPECT_TRUE(eventually([&] { return phases().starts_with("cut-over.v1=completed"); })) << phases();
  EXPECT_EQ(moves(), 1U);
  EXPECT_EQ(phases(), "cut-over.v1=completed tidy.v1=pending");
}

TEST_F(PublishInTheMiddle, IgnoreTakesTheNewVersionForWhatComesAndMovesNobodyTwice) {
  write(book("Sweep"));
  const Ran ran = baton({"runbook", "publish", file(), "--open-batches", "ignore"}, environment());
  EXPECT_EQ(ran.code, 0) << ran.err;
  std::ofstream(go()) << "go";
  EXPECT_TRUE(eventually([&] {
    return phases() == "cut-over.v1=completed tidy.v1=superseded cut-over.v2=skipped tidy.v2=pending";
  })) << phases();
  EXPECT_EQ(moves(), 1U);
}

// It is done twice because somebody said so, and never at once.
TEST_F(PublishInTheMiddle, RerunBeginsAgainWhenTheOldOneIsOver) {
  write(book("Sweep"));
  EXPECT_EQ(baton({"runbook", "publish", file(), "--open-batches", "rerun"}, environment()).code, 0);
  ASSERT_TRUE(eventually([&] { return phases().find("tidy.v2=pending") != std::string::npos; })) << phases();
  std::this_thread::sleep_for(500ms);
  EXPECT_EQ(moves(), 1U) << "two versions of a phase at once";
  std::ofstream(go()) << "go";
  EXPECT_TRUE(eventually([&] { return moves() == 2; }));
  EXPECT_TRUE(eventually([&] {
    return phases() == "cut-over.v1=completed tidy.v1=superseded cut-over.v2=completed tidy.v2=pending";
  })) << phases();
}

}  // namespace
}  // namespace baton::e2e::publish_test
