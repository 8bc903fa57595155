#include "collectors/seat_health/watch.h"

#include <gtest/gtest.h>

namespace apu {
namespace {

using std::chrono::seconds;
using Seconds = LoadWatch::Seconds;

ServerSlot idle(std::int64_t id, std::optional<std::uint64_t> decoded) {
  return {id, false, 1, decoded, std::nullopt};
}

ServerSlot busy(std::int64_t id, std::int64_t task, std::optional<std::uint64_t> decoded,
                std::optional<std::uint64_t> prompt_done = std::nullopt) {
  return {id, true, task, decoded, prompt_done};
}

// --- loads

TEST(LoadWatch, EndsWithTheFirstAnswerThatItIsReady) {
  LoadWatch watch;
  watch.note(false, Seconds(500), Seconds(0));  // it loaded before anybody asked
  EXPECT_FALSE(watch.duration());
  watch.note(false, Seconds(530), Seconds(30));
  watch.note(true, Seconds(560), Seconds(60));
  EXPECT_EQ(watch.duration(), Seconds(560));
  watch.note(false, Seconds(590), Seconds(90));
  watch.note(true, Seconds(620), Seconds(120));
  EXPECT_EQ(watch.duration(), Seconds(560));
}

TEST(LoadWatch, OfAServerThatWasReadyAllAlongIsNotKnown) {
  LoadWatch watch;
  watch.note(true, Seconds(500), Seconds(30));
  EXPECT_FALSE(watch.duration());
  watch.note(false, Seconds(530), Seconds(60));
  watch.note(true, Seconds(560), Seconds(90));
  EXPECT_FALSE(watch.duration());
}

TEST(LoadWatch, OfAServerThatStartedWhileItWatchedIsKnown) {
  LoadWatch watch;
  watch.note(true, Seconds(25), Seconds(600));
  EXPECT_EQ(watch.duration(), Seconds(25));
}

TEST(LoadWatch, WithoutAnAgeIsNotKnown) {
  LoadWatch watch;
  watch.note(false, std::nullopt, Seconds(0));
  watch.note(true, std::nullopt, Seconds(30));
  EXPECT_FALSE(watch.duration());
}

// --- tokens

TEST(TokenCount, CountsFromItsFirstAnswerOn) {
  TokenCount count;
  count.note({busy(0, 1, 500), idle(1, std::nullopt)});
  EXPECT_EQ(count.total(), 0U);
  count.note({busy(0, 1, 620), busy(1, 2, 80)});
  EXPECT_EQ(count.total(), 120U);
  count.note({busy(0, 1, 620), busy(1, 2, 90)});
  EXPECT_EQ(count.total(), 130U);
}

TEST(TokenCount, NeverFallsWhereATaskStartsAnew) {
  TokenCount count;
  count.note({busy(0, 1, 100)});
  count.note({busy(0, 2, 30)});
  EXPECT_EQ(count.total(), 30U);
  count.note({idle(0, 0)});
  EXPECT_EQ(count.total(), 30U);
  count.note({busy(0, 3, 5)});
  EXPECT_EQ(count.total(), 35U);
}

TEST(TokenCount, TheLastTasksCountDuringAPromptIsNotCountedAgain) {
  TokenCount count;
  count.note({busy(0, 1, 100)});
  count.note({busy(0, 2, 150)});  // its prompt is read; the first task went on to 150
  count.note({busy(0, 2, 150)});
  EXPECT_EQ(count.total(), 50U);
  count.note({busy(0, 2, 20)});
  EXPECT_EQ(count.total(), 70U);
}

TEST(TokenCount, SlotThatDoesNotTellKeepsWhatItHad) {
  TokenCount count;
  count.note({busy(0, 1, 100)});
  count.note({idle(0, std::nullopt)});
  count.note({busy(0, 2, 110)});
  EXPECT_EQ(count.total(), 10U);
  count.note({});
  EXPECT_EQ(count.total(), 10U);
}

// --- progress

TEST(BusyWatch, CountsWhileNoBusySlotMakesProgress) {
  BusyWatch watch;
  EXPECT_FALSE(watch.without_progress());
  watch.note({idle(0, 5)}, seconds(0));
  EXPECT_FALSE(watch.without_progress());
  watch.note({busy(0, 1, 5)}, seconds(30));
  EXPECT_EQ(watch.without_progress(), seconds(0));
  watch.note({busy(0, 1, 5)}, seconds(160));
  EXPECT_EQ(watch.without_progress(), seconds(130));
  watch.note({busy(0, 1, 6)}, seconds(190));
  EXPECT_EQ(watch.without_progress(), seconds(0));
  watch.note({busy(0, 2, 6)}, seconds(220));  // another task
  EXPECT_EQ(watch.without_progress(), seconds(0));
  watch.note({idle(0, 6)}, seconds(250));
  EXPECT_FALSE(watch.without_progress());
}

TEST(BusyWatch, APromptThatIsReadIsProgress) {
  BusyWatch watch;
  for (int time = 0; time <= 600; time += 30) {
    watch.note({busy(0, 1, 0, static_cast<std::uint64_t>(time))}, seconds(time));
    EXPECT_EQ(watch.without_progress(), seconds(0));
  }
}

TEST(BusyWatch, OneSlotThatWorksIsEnough) {
  BusyWatch watch;
  for (int time = 0; time <= 600; time += 30) {
    watch.note({busy(0, 1, 7), busy(1, 2, static_cast<std::uint64_t>(time))}, seconds(time));
    EXPECT_EQ(watch.without_progress(), seconds(0));
  }
}

TEST(BusyWatch, SlotThatDoesNotTellHowFarItIsLeavesItUnknown) {
  BusyWatch watch;
  for (int time = 0; time <= 600; time += 30) {
    watch.note({busy(0, 1, std::nullopt)}, seconds(time));
    EXPECT_FALSE(watch.without_progress());
  }
}

TEST(BusyWatch, SilenceOfABusyServerIsCountedFromItsLastAnswer) {
  BusyWatch watch;
  watch.note_silence(seconds(0));
  EXPECT_FALSE(watch.unanswered());  // whether it is busy is not known
  watch.note({idle(0, 5)}, seconds(30));
  watch.note_silence(seconds(60));
  EXPECT_FALSE(watch.unanswered());
  watch.note({busy(0, 1, 5)}, seconds(90));
  EXPECT_FALSE(watch.unanswered());
  watch.note_silence(seconds(120));
  watch.note_silence(seconds(390));
  EXPECT_EQ(watch.unanswered(), seconds(300));
  EXPECT_FALSE(watch.without_progress());
  watch.note({busy(0, 1, 6)}, seconds(420));
  EXPECT_FALSE(watch.unanswered());
  EXPECT_EQ(watch.without_progress(), seconds(0));
}

}  // namespace
}  // namespace apu
