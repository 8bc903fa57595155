#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace apu {

/// A GET over plain HTTP to an address in numbers: nothing is resolved.
struct HttpRequest {
  std::string url;
  std::size_t max_bytes = 0;  ///< of the body
};

enum class HttpOutcome {
  kAnswered,  ///< whole, whatever its status
  kRefused,   ///< nobody listens
  kSilent,    ///< not whole within the time
  kTooLarge,  ///< the body is larger than asked for, or the headers than any server's
  kFailed,    ///< closed too early, or no HTTP
};

struct HttpReply {
  HttpOutcome outcome = HttpOutcome::kFailed;
  long status = 0;   ///< where it answered; a redirect is an answer, and is not followed
  std::string body;  ///< likewise
};

/// Asks servers of this host. It takes no proxy, name, password or certificate from anywhere.
class HttpClient {
 public:
  virtual ~HttpClient() = default;

  /// Sends all requests at once; each has `timeout` from connecting to its last byte. Replies stand
  /// in the order of the requests. No connection is kept.
  virtual std::vector<HttpReply> get(std::span<const HttpRequest> requests,
                                     std::chrono::milliseconds timeout) = 0;
};

/// Once, before any thread is started.
void prepare_http_client();

/// By libcurl. To be used in the thread that made it: its sockets are in that thread's descriptor
/// table.
std::unique_ptr<HttpClient> make_http_client();

}  // namespace apu
