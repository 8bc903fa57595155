#include "collectors/seat_health/answers.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

namespace apu {
namespace {

using Json = nlohmann::json;

/// What a reader of JSON is told, one piece after the other: nothing is kept but what a subclass
/// takes. It bears any nesting, as nlohmann's parser keeps no more than a bit for each level.
class JsonEvents {
 public:
  virtual ~JsonEvents() = default;

  // Names and types are nlohmann's.
  virtual bool null() { return on_scalar(); }

  virtual bool boolean(bool /*value*/) { return on_scalar(); }

  virtual bool number_integer(Json::number_integer_t value) { return on_number(value); }

  virtual bool number_unsigned(Json::number_unsigned_t value) {
    constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
    return value <= static_cast<std::uint64_t>(kMax) ? on_number(static_cast<std::int64_t>(value))
                                                     : on_scalar();
  }

  virtual bool number_float(Json::number_float_t /*value*/, const std::string& /*text*/) {
    return on_scalar();
  }

  virtual bool string(std::string& /*value*/) { return on_scalar(); }

  virtual bool binary(Json::binary_t& /*value*/) { return false; }

  virtual bool start_object(size_t /*size*/) = 0;
  virtual bool end_object() = 0;
  virtual bool start_array(size_t /*size*/) = 0;
  virtual bool end_array() = 0;
  virtual bool key(std::string& name) = 0;

  /// The exception's text quotes the input.
  static bool parse_error(size_t /*position*/, const std::string& /*token*/,
                          const nlohmann::detail::exception& /*error*/) {
    return false;
  }

 protected:
  virtual bool on_number(std::int64_t /*value*/) { return on_scalar(); }

  /// Any other value that is neither an object nor an array.
  virtual bool on_scalar() { return true; }
};

bool read_json(std::string_view text, JsonEvents& events) {
  return Json::sax_parse(text, &events, Json::input_format_t::json, true);
}

// --- /health

class HealthReader : public JsonEvents {
 public:
  [[nodiscard]] bool found() const { return found_; }

  bool start_object(size_t /*size*/) override { return enter(); }

  bool start_array(size_t /*size*/) override { return depth_ > 0 && enter(); }

  bool end_object() override { return leave(); }

  bool end_array() override { return leave(); }

  bool key(std::string& name) override {
    at_status_ = depth_ == 1 && name == "status";
    return true;
  }

  bool string(std::string& value) override {
    found_ = found_ || (at_status_ && (value == "ok" || value == "no slot available"));
    return on_scalar();
  }

 protected:
  bool on_scalar() override {
    at_status_ = false;
    return depth_ > 0;
  }

 private:
  bool enter() {
    at_status_ = false;
    ++depth_;
    return true;
  }

  bool leave() {
    --depth_;
    return true;
  }

  size_t depth_ = 0;
  bool at_status_ = false;
  bool found_ = false;
};

// --- /slots

class SlotsReader : public JsonEvents {
 public:
  std::vector<ServerSlot> take() { return std::move(slots_); }

  bool start_array(size_t /*size*/) override {
    const bool opens = ignored_ == 0 && place_ == Place::kOutside && slots_.empty() && !closed_;
    if (opens) {
      place_ = Place::kSlots;
      return true;
    }
    return is_next_token() ? enter_next_token() : ignore();
  }

  bool start_object(size_t /*size*/) override {
    if (ignored_ == 0 && place_ == Place::kSlots) {
      place_ = Place::kSlot;
      slot_ = Slot();
      return true;
    }
    if (ignored_ == 0 && place_ == Place::kNextTokens) {
      place_ = Place::kNextToken;
      return true;
    }
    if (is_next_token()) {
      place_ = Place::kNextToken;
      bare_next_token_ = true;
      return true;
    }
    return ignore();
  }

  bool end_array() override {
    if (ignored_ > 0) {
      --ignored_;
    } else if (place_ == Place::kNextTokens) {
      place_ = Place::kSlot;
    } else {
      place_ = Place::kOutside;
      closed_ = true;
    }
    return true;
  }

  bool end_object() override {
    if (ignored_ > 0) {
      --ignored_;
      return true;
    }
    if (place_ == Place::kNextToken) {
      place_ = bare_next_token_ ? Place::kSlot : Place::kNextTokens;
      bare_next_token_ = false;
      return true;
    }
    place_ = Place::kSlots;
    return add_slot();
  }

  bool key(std::string& name) override {
    key_ = Key::kOther;
    for (const auto& [known, key] : kKeys) {
      if (name == known) {
        key_ = key;
      }
    }
    return true;
  }

  bool boolean(bool value) override {
    if (in(Place::kSlot) && key_ == Key::kBusy) {
      slot_.busy = value;
    }
    return on_scalar();
  }

 protected:
  bool on_number(std::int64_t value) override {
    if (in(Place::kSlot)) {
      take_of_slot(value);
    } else if (in(Place::kNextToken) && key_ == Key::kDecoded) {
      slot_.found.decoded = to_count(value);
    }
    return on_scalar();
  }

  /// One outside, or in the array itself, is no slot.
  bool on_scalar() override {
    return ignored_ > 0 || (place_ != Place::kOutside && place_ != Place::kSlots);
  }

 private:
  enum class Place { kOutside, kSlots, kSlot, kNextTokens, kNextToken };

  enum class Key { kOther, kId, kTask, kState, kBusy, kNextToken, kDecoded, kPromptDone };

  struct Slot {
    ServerSlot found;
    bool has_id = false;
    std::optional<bool> busy;
  };

  static constexpr std::array<std::pair<std::string_view, Key>, 7> kKeys{
      {{"id", Key::kId},
       {"id_task", Key::kTask},
       {"state", Key::kState},
       {"is_processing", Key::kBusy},
       {"next_token", Key::kNextToken},
       {"n_decoded", Key::kDecoded},
       {"n_prompt_tokens_processed", Key::kPromptDone}}};

  static constexpr size_t kMaxSlots = 4096;

  /// llama.cpp counts in 32 bits.
  static std::optional<std::uint64_t> to_count(std::int64_t value) {
    const bool fits = value >= 0 && value <= std::numeric_limits<std::int32_t>::max();
    return fits ? std::optional(static_cast<std::uint64_t>(value)) : std::nullopt;
  }

  [[nodiscard]] bool in(Place place) const { return ignored_ == 0 && place_ == place; }

  [[nodiscard]] bool is_next_token() const { return in(Place::kSlot) && key_ == Key::kNextToken; }

  bool enter_next_token() {
    place_ = Place::kNextTokens;
    return true;
  }

  /// False for what is no answer of a llama-server: anything else than an array of objects.
  bool ignore() {
    ++ignored_;
    return place_ != Place::kOutside && place_ != Place::kSlots;
  }

  void take_of_slot(std::int64_t value) {
    switch (key_) {
      case Key::kId:
        slot_.has_id = to_count(value).has_value();
        slot_.found.id = value;
        break;
      case Key::kTask:
        slot_.found.task = value;
        break;
      case Key::kState:
        slot_.busy = slot_.busy.value_or(value != 0);
        break;
      case Key::kDecoded:
        slot_.found.decoded = to_count(value);
        break;
      case Key::kPromptDone:
        slot_.found.prompt_done = to_count(value);
        break;
      default:
        break;
    }
  }

  bool add_slot() {
    const bool is_new = std::none_of(slots_.begin(), slots_.end(), [&](const ServerSlot& slot) {
      return slot.id == slot_.found.id;
    });
    if (!slot_.has_id || !slot_.busy || !is_new || slots_.size() == kMaxSlots) {
      return false;
    }
    slot_.found.busy = *slot_.busy;
    slots_.push_back(slot_.found);
    return true;
  }

  std::vector<ServerSlot> slots_;
  Slot slot_;
  Place place_ = Place::kOutside;
  Key key_ = Key::kOther;
  size_t ignored_ = 0;            // levels of what is not looked at
  bool bare_next_token_ = false;  // it stands in no array
  bool closed_ = false;
};

}  // namespace

bool is_health_answer(std::string_view text) {
  HealthReader reader;
  return read_json(text, reader) && reader.found();
}

Result<std::vector<ServerSlot>> parse_slots(std::string_view text) {
  SlotsReader reader;
  if (!read_json(text, reader)) {
    return Error{ErrorKind::kMalformed, "no list of slots"};
  }
  return reader.take();
}

}  // namespace apu
