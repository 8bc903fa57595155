#include "exporter/result.h"

#include <fmt/format.h>

#include <cerrno>
#include <system_error>

namespace apu {

std::string_view to_label(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kNotFound:
      return "not_found";
    case ErrorKind::kPermissionDenied:
      return "permission_denied";
    case ErrorKind::kUnsupported:
      return "unsupported";
    case ErrorKind::kBlocked:
      return "blocked";
    case ErrorKind::kMalformed:
      return "malformed";
    case ErrorKind::kUnknown:
      break;
  }
  return "unknown";
}

namespace {

ErrorKind kind_of(int errno_value) {
  switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
    case ENODEV:
    case ENXIO:
    case ESRCH:  // the process of an open file of procfs has ended
      return ErrorKind::kNotFound;
    case EACCES:
    case EPERM:
      return ErrorKind::kPermissionDenied;
    case EOPNOTSUPP:
    case ENOSYS:
      return ErrorKind::kUnsupported;
    default:
      return ErrorKind::kUnknown;
  }
}

}  // namespace

Error error_from_errno(int errno_value, std::string_view what) {
  return {kind_of(errno_value),
          fmt::format("{}: {}", what, std::generic_category().message(errno_value))};
}

}  // namespace apu
