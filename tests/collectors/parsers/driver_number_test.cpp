#include "collectors/parsers/driver_number.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

using std::string_view_literals::operator""sv;

TEST(ParseDriverNumber, ReadsWhatTheKernelPrints) {
  EXPECT_EQ(parse_driver_number("120259084288\n"), 120259084288U);
  EXPECT_EQ(parse_driver_number("0\n"), 0U);
  EXPECT_EQ(parse_driver_number("9223372036854775807\n"), 9223372036854775807U);
}

TEST(ParseDriverNumber, NeedsItsNewlineAndNothingElse) {
  for (const auto text : {""sv, "\n"sv, "12"sv, "12\n\n"sv, " 12\n"sv, "12 \n"sv, "+1\n"sv,
                          "-1\n"sv, "0x10\n"sv, "1.5\n"sv, "12x\n"sv, "\0\xff\n"sv, "1\0\n"sv}) {
    EXPECT_FALSE(parse_driver_number(text)) << text;
  }
}

TEST(ParseDriverNumber, DifferenceThatWrappedIsNone) {
  for (const auto text : {"18446744073709547520\n"sv, "9223372036854775808\n"sv,
                          "18446744073709551616\n"sv, "99999999999999999999999\n"sv}) {
    EXPECT_FALSE(parse_driver_number(text)) << text;
  }
}

TEST(ParseBareNumber, ReadsANumberWithoutNewline) {
  EXPECT_EQ(parse_bare_number("29772"), 29772U);
  for (const auto text : {""sv, "29772\n"sv, "zero"sv, "18446744073709547520"sv}) {
    EXPECT_FALSE(parse_bare_number(text)) << text;
  }
}

TEST(ParsePciId, ReadsHexadecimalDigits) {
  EXPECT_EQ(parse_pci_id("0x1002\n"), 0x1002U);
  for (const auto text : {""sv, "0x\n"sv, "1002\n"sv, "0x1002"sv, "0xg\n"sv, "0x1002 \n"sv,
                          "0x100000000\n"sv, "0x10\0\n"sv, "\xff\n"sv}) {
    EXPECT_FALSE(parse_pci_id(text)) << text;
  }
}

}  // namespace
}  // namespace apu
