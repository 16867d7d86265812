#include "cli/commands.hpp"

int main(int argc, char** argv) { return baton::cli::run({argv + 1, argv + argc}); }
