#include "ports/mailbox.hpp"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace baton {
namespace {

struct Letter final : Arrival {
  Letter(std::string said, std::string& reader) : what(std::move(said)), read(reader) {}
  void arrive() override {
    if (what == "!") throw std::runtime_error("unreadable");
    read += what;
  }
  void drop() override { read += "dropped " + what; }

  const std::string what;
  std::string& read;
};

TEST(Mailbox, OneThatThrowsDoesNotTakeTheOthersWithIt) {
  int woken = 0;
  std::string read;
  const auto mailbox = std::make_shared<Mailbox>([&] { ++woken; });
  for (const char* what : {"a", "!", "b", "c"}) mailbox->put(std::make_shared<Letter>(what, read));
  EXPECT_THROW(mailbox->drain(), std::runtime_error);
  EXPECT_EQ(read, "a");
  EXPECT_EQ(woken, 2);
  mailbox->put(std::make_shared<Letter>("d", read));
  mailbox->drain();
  EXPECT_EQ(read, "abcd");
}

}  // namespace
}  // namespace baton
