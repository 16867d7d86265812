#include "base/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <thread>

namespace baton {
namespace {

using namespace std::chrono_literals;

struct Started {
  Process process;
  Fd output;

  std::string read_all() const {
    std::string text;
    std::array<char, 256> buffer;
    for (ssize_t got = 0; (got = read(output.get(), buffer.data(), buffer.size())) > 0;)
      text.append(buffer.data(), static_cast<std::size_t>(got));
    return text;
  }
};

Started start(std::vector<std::string> command, bool ends_with_us = false) {
  Started made;
  auto output = make_pipe();
  auto process = Process::start({.command = std::move(command),
                                 .environment = {"GREETING=hello"},
                                 .fds = {STDIN_FILENO, output->writes.get(), STDERR_FILENO},
                                 .ends_with_us = ends_with_us});
  EXPECT_TRUE(process) << process.error().message;
  if (process) made.process = std::move(*process);
  made.output = std::move(output->reads);
  return made;
}

TEST(Process, IsFoundInThePathAndHasTheGivenEnvironmentOnly) {
  Started program = start({"sh", "-c", "echo $GREETING $HOME; exit 3"});
  EXPECT_EQ(program.read_all(), "hello\n");
  const auto exit = program.process.wait(10s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 3);
  EXPECT_EQ(exit->signal, 0);
}

TEST(Process, ThatIsNowhereInThePathIsNotLookedForElsewhere) {
  const auto here = std::filesystem::current_path();
  std::filesystem::current_path("/proc/self");
  const auto none = Process::start({.command = {"exe"}, .environment = {}, .fds = {}});
  std::filesystem::current_path(here);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().message, "cannot run exe: No such file or directory; is its interpreter installed?");
}

TEST(Process, IsWaitedForAsLongAsOneLikes) {
  Started program = start({"sleep", "100"});
  EXPECT_FALSE(program.process.wait(1ms));
  program.process.signal(SIGTERM);
  EXPECT_EQ(program.process.wait().signal, SIGTERM);
  program.process.signal(SIGTERM);  // its id may be somebody else's by now
}

TEST(Process, HasTheDefaultSignalsWhateverWeIgnoreOrBlock) {
  struct sigaction before{}, ignore{};
  ignore.sa_handler = SIG_IGN;
  sigset_t mask, blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR1);
  sigaction(SIGUSR1, &ignore, &before);
  pthread_sigmask(SIG_BLOCK, &blocked, &mask);
  Started program = start({"sh", "-c", "kill -USR1 $$; exit 1"});
  pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  sigaction(SIGUSR1, &before, nullptr);
  EXPECT_EQ(program.process.wait().signal, SIGUSR1);
}

TEST(Process, EndsWithTheThreadThatStartedItIfThatIsWanted) {
  Started with, without;
  std::thread([&] {
    with = start({"sleep", "100"}, true);
    without = start({"sleep", "100"});
  }).join();
  const auto exit = with.process.wait(10s);
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->signal, SIGKILL);
  EXPECT_FALSE(without.process.wait(1ms));
}

}  // namespace
}  // namespace baton
