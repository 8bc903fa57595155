#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace apu {

/// Why something could not be read. A closed list: it is the `reason` label of
/// apu_source_unavailable_info.
enum class ErrorKind {
  kNotFound,          ///< the file, directory or device does not exist
  kPermissionDenied,  ///< EACCES or EPERM
  kUnsupported,       ///< this kernel, or this build, does not offer it
  kBlocked,           ///< a read has not returned within its deadline
  kMalformed,         ///< the bytes are not what the format says
  kUnknown,           ///< any other errno; the message has its text
};

/// The label value of `kind`, as the metrics contract spells it.
std::string_view to_label(ErrorKind kind);

/// An error as a value. `message` is for a person: path, errno text, offending line.
struct Error {
  ErrorKind kind = ErrorKind::kUnknown;
  std::string message;
};

/// An error for `errno_value` met while doing `what` ("read /proc/meminfo").
Error error_from_errno(int errno_value, std::string_view what);

/// A value or the reason there is none. Stands in for std::expected, which C++20 lacks.
template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: a function returns its value or its Error as they are.
  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}

  // NOLINTNEXTLINE(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }

  explicit operator bool() const { return ok(); }

  /// Precondition of the four below: ok().
  T& operator*() & { return std::get<0>(state_); }

  const T& operator*() const& { return std::get<0>(state_); }

  T&& operator*() && { return std::get<0>(std::move(state_)); }

  T* operator->() { return &std::get<0>(state_); }

  const T* operator->() const { return &std::get<0>(state_); }

  /// Precondition: !ok().
  [[nodiscard]] const Error& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, Error> state_;
};

/// The result of an action that yields nothing: empty, or the error.
using Status = std::optional<Error>;

}  // namespace apu
