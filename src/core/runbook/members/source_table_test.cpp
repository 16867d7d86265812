#include "core/runbook/members/source_table.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/json.hpp"
#include "core/template/read_json.hpp"

namespace baton::runbook {
namespace {

TEST(Cells, numbers_that_JSON_keeps_are_numbers) {
  for (const char* text : {"0", "41", "-7", "9223372036854775807", "18446744073709551615", "-9223372036854775808", "60.5",
                           "10.50", "0.30000000000000004", "1e+20", "1.0e+30", "-2E-5", "100.0", "0.0", "1.7976931348623157e308"})
    EXPECT_TRUE(Cell::number(text).is_literal()) << text;
}

TEST(Cells, numbers_that_JSON_would_change_and_what_is_none_are_texts) {
  for (const char* text :
       {"", "-", "007", "+1", ".5", "5.", "1e", "1e+", "1e--5", "1e-+5", "NaN", "Infinity", "-Inf", "1 ", "0x10", "1e400",
        "18446744073709551616", "-9223372036854775809", "12345678901234567890123", "0.1234567890123456789",
        "1e99999999999"}) {
    EXPECT_FALSE(Cell::number(text).is_literal()) << text;
    EXPECT_EQ(Cell::number(text).text(), text);
  }
}

TEST(Cells, are_missing_texts_numbers_or_booleans) {
  EXPECT_FALSE(Cell());
  EXPECT_FALSE(Cell(std::nullopt));
  EXPECT_TRUE(Cell(""));
  EXPECT_FALSE(Cell("41").is_literal());
  EXPECT_EQ(Cell::boolean(false).text(), "false");
  EXPECT_LE(sizeof(Cell), sizeof(std::optional<std::string>)) << "a table may have millions";
}

RC_GTEST_PROP(Cells, every_finite_double_is_a_number, (double value)) {
  std::string text;
  append_real(text, value);
  RC_ASSERT(Cell::number(text).is_literal());
  RC_ASSERT(expression::read_json(text)->get_double() == value);
}

RC_GTEST_PROP(Cells, any_text_that_is_a_number_is_JSON, (const std::string& text)) {
  const Cell cell = Cell::number(text);
  RC_ASSERT(cell.text() == text);
  if (cell.is_literal()) RC_ASSERT(expression::read_json(text).has_value());
}

}  // namespace
}  // namespace baton::runbook
