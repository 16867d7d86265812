// Real processes: what they write, how they end, and that nothing of them is left.
#include "worker/runner.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

namespace baton::worker {
namespace {

using namespace std::chrono_literals;

class Programs : public testing::Test, protected RunListener {
 protected:
  static RunOptions small_options() {
    return {
        .output_bytes = 1'000'000, .tail_bytes = 64, .line_bytes = 32, .report_bytes = 4096, .grace = 300ms};
  }

  Ticket shell(std::string script, std::string input = {}) {
    const auto started = runner_.start({.command = {"/bin/sh", "-c", std::move(script)},
                                        .variables = {"MINE=1"},
                                        .input = std::move(input)});
    EXPECT_TRUE(started) << started.error().message;
    return started.value_or(0);
  }
  // Runs the loop until the program has ended.
  const Ending& wait_for(Ticket ticket) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (!endings_.contains(ticket) && std::chrono::steady_clock::now() < give_up) runner_.turn(100ms);
    EXPECT_TRUE(endings_.contains(ticket)) << "it did not end";
    return endings_[ticket];
  }
  // Runs the loop until the program has written so many lines to its log.
  void wait_for_log(std::size_t lines) {
    const auto give_up = std::chrono::steady_clock::now() + 20s;
    while (log_.size() < lines && std::chrono::steady_clock::now() < give_up) runner_.turn(100ms);
    ASSERT_GE(log_.size(), lines);
  }
  // A process that is not our child is gone once init has reaped it.
  static bool is_gone(pid_t id) {
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (std::chrono::steady_clock::now() < give_up) {
      std::error_code error;
      if (kill(id, 0) != 0 && errno == ESRCH) return true;
      const auto state = std::filesystem::status("/proc/" + std::to_string(id) + "/exe", error);
      if (error || !std::filesystem::exists(state)) return true;  // a zombie has no program any more
      std::this_thread::sleep_for(5ms);  // nothing tells of the end of a process that is not a child
    }
    return false;
  }

  void on_log(Ticket, std::string_view line) override { log_.emplace_back(line); }
  void on_report(Ticket, std::string_view line) override { reports_.emplace_back(line); }
  void on_end(Ticket ticket, Ending ending) override { endings_[ticket] = std::move(ending); }

  std::vector<std::string> log_, reports_;
  std::map<Ticket, Ending> endings_;
  Runner runner_{*this, {"PATH=/usr/bin:/bin", "SHARED=2"}, small_options()};
};

TEST_F(Programs, GetTheirInputAndEnvironmentAndAreHeard) {
  const Ending& ending =
      wait_for(shell("read line; echo \"$line $MINE $SHARED\"; echo note >&2; exit 7", "hello\n"));
  EXPECT_EQ(ending.output, "hello 1 2\n");
  EXPECT_EQ(ending.error_tail, "note\n");
  EXPECT_EQ(ending.exit_code, 7);
  EXPECT_EQ(ending.signal, 0);
  EXPECT_EQ(log_, std::vector<std::string>{"note"});
  EXPECT_EQ(runner_.running(), 0u);
}

TEST_F(Programs, MayIgnoreALargeInput) {
  const Ending& ending = wait_for(shell("echo done", std::string(8'000'000, 'x')));
  EXPECT_EQ(ending.output, "done\n");
  EXPECT_EQ(ending.exit_code, 0);
}

TEST_F(Programs, AnswerALargeInputWhileTheyReadIt) {
  const std::string text(900'000, 'y');
  EXPECT_EQ(wait_for(shell("cat", text)).output, text);
}

TEST_F(Programs, AreEndedWhenTheyWriteTooMuch) {
  const Ending& ending = wait_for(shell("exec yes"));
  EXPECT_TRUE(ending.too_much_output);
  EXPECT_TRUE(ending.output.empty());
}

TEST_F(Programs, KeepOnlyTheEndOfALargeLog) {
  const Ending& ending = wait_for(shell("seq 1 50000 >&2"));
  EXPECT_EQ(log_.size(), 50'000u);
  EXPECT_EQ(ending.error_tail.size(), 64u);
  EXPECT_TRUE(ending.error_tail.ends_with("49999\n50000\n"));
}

TEST_F(Programs, HaveTheirLongLinesCut) {
  wait_for(shell("printf '%0100d\\nshort\\r\\nlast' 0 >&2"));
  EXPECT_EQ(log_, (std::vector<std::string>{std::string(32, '0') + " ... (cut)", "short", "last"}));
}

TEST_F(Programs, MayWriteBytesThatAreNoText) {
  const Ending& ending = wait_for(shell(R"(printf '\377\000\376'; printf '\377\n' >&2)"));
  EXPECT_EQ(ending.output, std::string("\xff\0\xfe", 3));
  EXPECT_EQ(log_, std::vector<std::string>{"\xff"});
}

TEST_F(Programs, ReportOnTheirThirdDescriptor) {
  wait_for(shell(R"(echo '{"progress": 1}' >&3; echo two >&3)"));
  EXPECT_EQ(reports_, (std::vector<std::string>{R"({"progress": 1})", "two"}));
}

TEST_F(Programs, HaveNoOtherDescriptors) {
  const Ending& ending = wait_for(shell("ls /proc/self/fd | tr '\\n' ' '"));
  EXPECT_EQ(ending.output, "0 1 2 3 4 ");  // the last one is the directory that ls reads
}

TEST_F(Programs, EndByTheSignalThatEndsThem) {
  const Ending& ending = wait_for(shell("kill -SEGV $$"));
  EXPECT_EQ(ending.signal, SIGSEGV);
  EXPECT_EQ(ending.exit_code, 0);
}

TEST_F(Programs, AreToldToEndAndMaySayGoodbye) {
  const Ticket ticket = shell("trap 'echo bye; exit 5' TERM; echo up >&2; while :; do sleep 0.01; done");
  wait_for_log(1);
  runner_.terminate(ticket);
  const Ending& ending = wait_for(ticket);
  EXPECT_EQ(ending.output, "bye\n");
  EXPECT_EQ(ending.exit_code, 5);
}

TEST_F(Programs, AreKilledWhenTheyDoNotListen) {
  const Ticket ticket = shell("trap '' TERM; echo up >&2; while :; do sleep 0.01; done");
  wait_for_log(1);
  const auto told = std::chrono::steady_clock::now();
  runner_.terminate(ticket);
  runner_.terminate(ticket);
  EXPECT_EQ(wait_for(ticket).signal, SIGKILL);
  EXPECT_GE(std::chrono::steady_clock::now() - told, 300ms);
}

TEST_F(Programs, AreEndedEvenWhenStopped) {
  const Ticket ticket = shell("echo up >&2; kill -STOP $$; exec sleep 100");
  wait_for_log(1);
  runner_.terminate(ticket);
  EXPECT_EQ(wait_for(ticket).signal, SIGTERM);
}

TEST_F(Programs, TakeTheirChildrenAlong) {
  // The child holds both pipes open and ignores what is polite.
  const Ending& ending = wait_for(shell("(trap '' TERM; exec sleep 100) & echo $!"));
  EXPECT_EQ(ending.exit_code, 0);
  EXPECT_LT(ending.took, 20s);
  EXPECT_TRUE(is_gone(std::stoi(ending.output)));
}

TEST_F(Programs, DoNotHoldUpTheEndWithAChildThatGotAway) {
  // It holds the pipe of the standard output open, from a session of its own.
  const Ending& ending =
      wait_for(shell("f=$(mktemp); setsid sh -c \"echo \\$\\$ > $f; exec sleep 100\" & "
                     "while [ ! -s $f ]; do sleep 0.01; done; cat $f; rm $f; echo end"));
  EXPECT_TRUE(ending.output.ends_with("end\n"));
  EXPECT_LT(ending.took, 20s);
  const pid_t id = std::stoi(ending.output);
  EXPECT_EQ(kill(id, 0), 0);
  kill(id, SIGKILL);
}

TEST_F(Programs, ThatCannotRunSayWhy) {
  const auto none = runner_.start({.command = {"/no/such/program"}});
  ASSERT_FALSE(none);
  EXPECT_NE(none.error().message.find("/no/such/program: No such file"), std::string::npos)
      << none.error().message;
  const auto directory = runner_.start({.command = {"/tmp"}});
  ASSERT_FALSE(directory);
  EXPECT_EQ(runner_.running(), 0u);
}

TEST_F(Programs, LeaveNoZombiesAndNoDescriptors) {
  const auto descriptors = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const std::size_t before = descriptors();
  std::vector<Ticket> tickets;
  for (int i = 0; i < 100; ++i) tickets.push_back(shell("exit 0"));
  for (const Ticket ticket : tickets) EXPECT_EQ(wait_for(ticket).exit_code, 0);
  EXPECT_EQ(descriptors(), before);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1);
  EXPECT_EQ(errno, ECHILD);
}

TEST_F(Programs, LeadTheirOwnGroupAndWhereThereIsATerminalTheirOwnSession) {
  for (const auto isolation : {Isolation::group, Isolation::session}) {
    RunOptions options = small_options();
    options.isolation = isolation;
    Runner other(*this, {"PATH=/usr/bin:/bin"}, options);
    const auto ticket = other.start({.command = {"/bin/sh", "-c", "cut -d' ' -f1,5,6 /proc/$$/stat"}});
    ASSERT_TRUE(ticket) << ticket.error().message;
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (other.running() > 0 && std::chrono::steady_clock::now() < give_up) other.turn(100ms);
    std::istringstream said(endings_[*ticket].output);
    pid_t id = 0, group = 0, session = 0;
    said >> id >> group >> session;
    EXPECT_EQ(group, id);
    EXPECT_EQ(session, isolation == Isolation::session ? id : getsid(0));
  }
}

TEST_F(Programs, EndWithTheRunner) {
  std::vector<std::string> ids;
  {
    Runner other(*this, {"PATH=/usr/bin:/bin"}, small_options());
    ASSERT_TRUE(other.start({.command = {"/bin/sh", "-c", "echo $$ >&2; exec sleep 100"}}));
    const auto give_up = std::chrono::steady_clock::now() + 10s;
    while (log_.empty() && std::chrono::steady_clock::now() < give_up) other.turn(100ms);
  }
  ASSERT_FALSE(log_.empty());
  EXPECT_TRUE(is_gone(std::stoi(log_.front())));
}

TEST_F(Programs, WaitIsEndedFromAnotherThread) {
  const auto begin = std::chrono::steady_clock::now();
  std::thread waker([this] { runner_.wake(); });
  runner_.turn(20s);
  waker.join();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace baton::worker
