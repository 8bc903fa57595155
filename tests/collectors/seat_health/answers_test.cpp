#include "collectors/seat_health/answers.h"

#include <gtest/gtest.h>

#include <string>

namespace apu {
namespace {

using Slots = std::vector<ServerSlot>;

Slots slots_of(std::string_view text) {
  const auto slots = parse_slots(text);
  EXPECT_TRUE(slots.ok()) << text;
  return slots ? *slots : Slots();
}

bool is_malformed(std::string_view text) {
  const auto slots = parse_slots(text);
  return !slots.ok() && slots.error().kind == ErrorKind::kMalformed;
}

TEST(HealthAnswer, IsWhatLlamaServersOfAnyAgeSay) {
  EXPECT_TRUE(is_health_answer(R"({"status":"ok"})"));
  EXPECT_TRUE(is_health_answer(R"({"slots_idle":1,"slots_processing":0,"status":"ok"})"));
  EXPECT_TRUE(
      is_health_answer(R"({"slots_idle":0,"slots_processing":1,"status":"no slot available"})"));
  EXPECT_TRUE(is_health_answer(R"({"slots":[{"status":"busy"}],"status":"ok"})"));
}

TEST(HealthAnswer, IsNothingElse) {
  for (const char* text :
       {"", "OK", "ok", "\"ok\"", "[\"ok\"]", "{}", R"({"status":"error"})", R"({"status":1})",
        R"({"status":["ok"]})", R"({"status":{"status":"ok"}})", R"({"a":{"status":"ok"}})",
        R"({"status":"ok")", R"({"status":"ok"}{"status":"ok"})", R"([{"status":"ok"}])",
        R"({"key":"status","x":"ok"})", "<html>ok</html>"}) {
    EXPECT_FALSE(is_health_answer(text)) << text;
  }
}

TEST(SlotsAnswer, OfBuildsWithAState) {
  EXPECT_EQ(slots_of(R"([{"id":0,"state":0,"n_decoded":12,"n_ctx":4096,"model":"m.gguf"},
                         {"id":1,"id_task":7,"state":1,"n_decoded":80,"prompt":"secret"}])"),
            (Slots{{0, false, std::nullopt, 12, std::nullopt}, {1, true, 7, 80, std::nullopt}}));
}

TEST(SlotsAnswer, OfBuildsWithStateAndAnObjectOfTheNextToken) {
  EXPECT_EQ(slots_of(R"([{"id":0,"id_task":3,"state":1,"prompt":"secret",
                          "next_token":{"has_next_token":true,"n_remain":-1,"n_decoded":5,
                                        "stopped_eos":false,"stopping_word":""}}])"),
            (Slots{{0, true, 3, 5, std::nullopt}}));
}

TEST(SlotsAnswer, OfBuildsThatSayWhetherASlotIsProcessing) {
  EXPECT_EQ(slots_of(R"([{"id":0,"id_task":-1,"n_ctx":1024,"speculative":false,
                          "is_processing":false,"non_causal":false,
                          "params":{"n_predict":-1,"seed":4294967295,"temperature":0.800000011920929,
                                    "stop":["id","n_decoded"],"samplers":["top_k"],
                                    "lora":[{"id":9,"scale":1.0}]},
                          "prompt":"","next_token":{"has_next_token":true,"has_new_line":false,
                          "n_remain":-1,"n_decoded":0,"stopping_word":""}}])"),
            (Slots{{0, false, -1, 0, std::nullopt}}));
}

TEST(SlotsAnswer, OfBuildsWithAnArrayOfTheNextToken) {
  EXPECT_EQ(
      slots_of(R"([{"id":0,"n_ctx":8192,"speculative":false,"is_processing":false},
                         {"id":1,"n_ctx":8192,"speculative":false,"is_processing":true,
                          "id_task":42,"n_prompt_tokens":1500,"n_prompt_tokens_processed":1024,
                          "n_prompt_tokens_cache":0,"params":{"n_decoded":99,"id":77},
                          "next_token":[{"has_next_token":true,"n_remain":-1,"n_decoded":342}],
                          "prompt":"secret","generated":"secret"}])"),
      (Slots{{0, false, std::nullopt, std::nullopt, std::nullopt}, {1, true, 42, 342, 1024}}));
}

TEST(SlotsAnswer, WithoutASlotIsNoError) {
  EXPECT_EQ(slots_of("[]"), Slots());
}

TEST(SlotsAnswer, ValuesThatAreNoneAreAbsent) {
  for (const char* value :
       {"-1", "1.5", "\"5\"", "null", "true", "[5]", "{\"n_decoded\":5}", "1e300", "2147483648",
        "18446744073709551615", "99999999999999999999", "-9223372036854775808"}) {
    const std::string text =
        std::string(R"([{"id":0,"is_processing":true,"next_token":{"n_decoded":)") + value + "}}]";
    EXPECT_EQ(slots_of(text), (Slots{{0, true, std::nullopt, std::nullopt, std::nullopt}})) << text;
  }
}

TEST(SlotsAnswer, WhatIsNoListOfSlotsIsMalformed) {
  for (const char* text : {"",
                           "{}",
                           "5",
                           "null",
                           "[5]",
                           "[null]",
                           "[[]]",
                           "[[{\"id\":0,\"state\":0}]]",
                           "[{}]",
                           R"([{"id":0}])",
                           R"([{"state":0}])",
                           R"([{"id":0,"state":"0"}])",
                           R"([{"id":"0","state":0}])",
                           R"([{"id":-1,"state":0}])",
                           R"([{"id":0.5,"state":0}])",
                           R"([{"id":9999999999,"state":0}])",
                           R"([{"id":0,"is_processing":1}])",
                           R"([{"id":0,"state":0},{"id":0,"state":1}])",
                           R"([{"id":0,"state":0}][])",
                           R"([{"id":0,"state":0}] x)",
                           R"([{"id":0,"state":0})",
                           R"([{"id":0,"state":0},])",
                           R"({"slots":[{"id":0,"state":0}]})",
                           R"({"error":{"code":501,"message":"no"}})",
                           "[{\"id\":0,\"state\":0,\"prompt\":\"\xff\"}]"}) {
    EXPECT_TRUE(is_malformed(text)) << text;
  }
}

TEST(SlotsAnswer, BearsAnyNesting) {
  constexpr size_t kDepth = 400'000;
  const std::string open(kDepth, '[');
  const std::string close(kDepth, ']');
  EXPECT_TRUE(is_malformed(open));
  EXPECT_TRUE(is_malformed(open + close));
  const std::string text = R"([{"id":0,"state":1,"prompt":)" + open + close + R"(,"n_decoded":4}])";
  EXPECT_EQ(slots_of(text), (Slots{{0, true, std::nullopt, 4, std::nullopt}}));
}

TEST(SlotsAnswer, HasNoMoreSlotsThanAnyServer) {
  std::string text = "[";
  for (int id = 0; id <= 4096; ++id) {
    text += (id == 0 ? "" : ",") + std::string(R"({"state":0,"id":)") + std::to_string(id) + "}";
  }
  EXPECT_TRUE(is_malformed(text + "]"));
}

TEST(SlotsAnswer, ErrorsHoldNothingOfTheText) {
  for (const char* text : {R"([{"id":0,"state":0,"prompt":"secret"}, secret])",
                           R"([{"id":0,"prompt":"secret"}])", "secret", "[\"secret\"]"}) {
    const auto slots = parse_slots(text);
    ASSERT_FALSE(slots.ok());
    EXPECT_EQ(slots.error().message.find("secret"), std::string::npos);
  }
}

}  // namespace
}  // namespace apu
