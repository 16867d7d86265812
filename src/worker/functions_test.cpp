#include "worker/functions.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/process.hpp"

namespace baton::worker {
namespace {

namespace fs = std::filesystem;

class FunctionFiles : public testing::Test {
 protected:
  void add(const std::string& name, bool executable = true) {
    std::ofstream(path() / name) << "#!/bin/sh\n";
    if (executable) fs::permissions(path() / name, fs::perms::owner_all);
  }
  [[nodiscard]] const fs::path& path() const { return directory_.path(); }
  [[nodiscard]] std::string found(std::string_view name) const {
    const auto command = functions_.find(name);
    return command ? fs::path(command->back()).filename().string() : "";
  }

  support::TemporaryDirectory directory_;
  Functions functions_{directory_.path()};
};

TEST_F(FunctionFiles, AreFoundByNameOrByTheirOnlyStem) {
  EXPECT_EQ(found("resize"), "");
  add("resize.py");
  EXPECT_EQ(found("resize"), "resize.py");
  EXPECT_EQ(found("resize.py"), "resize.py");
  add("resize");
  EXPECT_EQ(found("resize"), "resize");
}

TEST_F(FunctionFiles, AreAskedForWhenTwoCouldBeMeant) {
  add("resize.py");
  add("resize.sh");
  const auto command = functions_.find("resize");
  ASSERT_FALSE(command);
  EXPECT_EQ(command.error().message, "'resize' could be resize.py or resize.sh: rename one of them");
  EXPECT_EQ(found("resize.sh"), "resize.sh");
}

TEST_F(FunctionFiles, OfPowerShellNeedNotBeExecutable) {
  add("New-User.ps1", false);
  const auto command = functions_.find("New-User");
  ASSERT_TRUE(command);
  EXPECT_EQ(command->front(), "pwsh");
  EXPECT_EQ(command->back(), (path() / "New-User.ps1").string());
}

TEST_F(FunctionFiles, AreOnlyExecutableFilesOfTheDirectoryItself) {
  add("plain.txt", false);
  add(".hidden");
  add("old.sh~");
  add("run");
  fs::create_directory(path() / "folder");
  std::ofstream(path() / "folder" / "inside") << "#!/bin/sh\n";
  fs::permissions(path() / "folder" / "inside", fs::perms::owner_all);
  using namespace std::string_view_literals;
  for (const auto name : {""sv,
                          "."sv,
                          ".."sv,
                          "/"sv,
                          "/bin/true"sv,
                          "../run"sv,
                          "./run"sv,
                          "folder/inside"sv,
                          "folder/../run"sv,
                          "folder"sv,
                          ".hidden"sv,
                          "hidden"sv,
                          "old.sh~"sv,
                          "old"sv,
                          "plain"sv,
                          "plain.txt"sv,
                          "run\0"sv,
                          "run\0.sh"sv,
                          "run\n"sv,
                          "ru"sv,
                          "run "sv,
                          "*"sv,
                          "r*"sv,
                          "~"sv,
                          "$HOME"sv,
                          "-c"sv})
    EXPECT_EQ(found(name), "") << name;
  EXPECT_EQ(found(std::string(100'000, 'x')), "");
  EXPECT_EQ(found("run"), "run");
}

TEST_F(FunctionFiles, AreListedWhenOneIsMissing) {
  add("resize.py");
  add("send");
  const auto command = functions_.find("../../bin/sh");
  ASSERT_FALSE(command);
  EXPECT_EQ(command.error().message, "no such function: '../../bin/sh'; there are: resize, send");
}

}  // namespace
}  // namespace baton::worker
