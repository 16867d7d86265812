#include "server/definition_files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace baton::server {
namespace {

TEST(DefinitionFiles, ARunbookAmongTheWorkflowsIsToldByOneSentence) {
  const auto directory = std::filesystem::temp_directory_path() / ("baton-definitions-" + std::to_string(::getpid()));
  std::filesystem::create_directory(directory);
  std::ofstream(directory / "a.yaml") << "workflow_id: a\nnodes:\n  start: {type: start, next: end}\n  end: {type: end}\n";
  std::ofstream(directory / "b.yaml") << "name: move\ndata_source: {type: csv}\nphases: []\n";
  const auto files = read_definitions(directory);
  std::filesystem::remove_all(directory);
  ASSERT_TRUE(files) << files.error().message;
  ASSERT_EQ(files->size(), 2u);
  EXPECT_TRUE((*files)[0].definition);
  EXPECT_FALSE((*files)[1].definition);
  ASSERT_EQ((*files)[1].diagnostics.size(), 1u);
  EXPECT_EQ((*files)[1].diagnostics[0].code, "not_a_workflow");
}

}  // namespace
}  // namespace baton::server
