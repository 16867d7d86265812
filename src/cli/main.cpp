#include <cstdio>

#include "cli/commands/commands.hpp"

int main(int argc, char** argv) {
  const int code = baton::cli::run({argv + 1, argv + argc});
  // An answer that could not be written was not given.
  if (std::fflush(stdout) != 0 && code == baton::cli::exit_ok) {
    std::perror("baton: standard output");
    return baton::cli::exit_failed;
  }
  return code;
}
