#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "exporter/result.h"

namespace apu {

/// Until when an answer is waited for.
using Deadline = std::chrono::steady_clock::time_point;

/// A unit that a manager has in memory, as ListUnitsByPatterns tells it.
struct LoadedUnit {
  std::string id;            ///< its name, escaped: "llama\x2dserver.service"
  std::string load_state;    ///< "loaded", "masked"; "not-found": others name it, there is no file
  std::string active_state;  ///< "active", "inactive", "failed", ...
  std::string sub_state;     ///< "running", "dead", ...
  std::string path;          ///< of its object on the bus
};

/// A file on disk that defines a unit, loaded or not, as ListUnitFilesByPatterns tells it.
struct UnitFile {
  std::string path;
  std::string state;  ///< UnitFileState=: "enabled", "disabled", "static", ...
};

/// The value of a property; std::monostate for one of a type that no property of interest has.
using PropertyValue =
    std::variant<std::monostate, bool, std::uint64_t, std::string, std::vector<std::string>>;

using Properties = std::map<std::string, PropertyValue>;

/// A service manager, asked by what changes nothing. After an error it is of no more use.
///
/// Errors of all: kBlocked past the deadline; kPermissionDenied; kNotFound where there is no
/// manager; kUnsupported for one that does not know the question; kMalformed; kUnknown, as for a
/// connection that broke.
class ServiceManager {
 public:
  virtual ~ServiceManager() = default;

  /// Whether its connection still stands, as far as can be told without waiting.
  virtual bool alive() = 0;

  /// Units in memory of which a name matches one of `patterns`, in which case matters.
  virtual Result<std::vector<LoadedUnit>> list_units(const std::vector<std::string>& patterns,
                                                     Deadline deadline) = 0;

  /// Unit files whose names match. The manager reads directories, so ask seldom.
  virtual Result<std::vector<UnitFile>> list_unit_files(const std::vector<std::string>& patterns,
                                                        Deadline deadline) = 0;

  /// What it knows of a unit that it listed. What a unit of that kind, or this version, does not
  /// have is missing; all is, of a unit that is gone.
  virtual Result<Properties> properties(const LoadedUnit& unit, Deadline deadline) = 0;
};

/// The service managers of a host, by user id; the one of the system, PID 1, is "".
class ServiceManagers {
 public:
  virtual ~ServiceManagers() = default;

  /// Users who have a manager.
  [[nodiscard]] virtual std::vector<std::string> users() const = 0;

  virtual Result<std::unique_ptr<ServiceManager>> connect(const std::string& user,
                                                          Deadline deadline) = 0;
};

}  // namespace apu
