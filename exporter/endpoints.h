#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "exporter/clock.h"
#include "exporter/http.h"
#include "exporter/runner.h"
#include "exporter/sources.h"

namespace apu {

struct EndpointOptions {
  std::string telemetry_path = "/metrics";
  unsigned max_requests = 40;                 ///< 0: no limit
  std::vector<std::string> known_collectors;  ///< enabled or not, for clear errors
  std::shared_ptr<const Clock> clock = std::make_shared<SystemClock>();
};

/// Everything that is served: the metrics, `/`, `/triage`, `/-/healthy` and `/-/ready`. Reads no
/// kernel file.
class Endpoints {
 public:
  Endpoints(EndpointOptions options, std::shared_ptr<Runner> runner,
            std::shared_ptr<const SourceBoard> sources);

  HttpResponse handle(const HttpRequest& request);

  /// The page of all enabled collectors, from their newest snapshots.
  [[nodiscard]] std::string exposition() const;

 private:
  HttpResponse metrics(const HttpRequest& request);
  HttpResponse selected_metrics(const HttpRequest& request);
  [[nodiscard]] HttpResponse landing_page() const;
  [[nodiscard]] HttpResponse triage(const HttpRequest& request) const;
  [[nodiscard]] HttpResponse readiness() const;
  void log_conflicts(const std::vector<std::string>& conflicts) const;
  [[nodiscard]] std::string render(const std::vector<CollectorView>& views) const;

  EndpointOptions options_;
  std::shared_ptr<Runner> runner_;
  std::shared_ptr<const SourceBoard> sources_;
  std::atomic<unsigned> scrapes_in_flight_ = 0;
  mutable std::mutex logged_mutex_;
  mutable std::set<std::string> logged_conflicts_;  // each is logged once
};

}  // namespace apu
