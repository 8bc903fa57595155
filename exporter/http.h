#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "exporter/listen_address.h"
#include "exporter/result.h"

namespace apu {

/// What a handler needs of a request.
struct HttpRequest {
  std::string method;                                      ///< "GET"
  std::string path;                                        ///< decoded, without the query
  std::vector<std::pair<std::string, std::string>> query;  ///< decoded, in the order given
  bool accepts_gzip = false;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
};

/// Called from several threads at a time. Must not throw and must not block for long: it holds
/// one of a fixed number of threads.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

struct HttpServerOptions {
  std::vector<ListenAddress> addresses;
  unsigned threads = 1;  ///< a slow or idle connection holds one, so many more than scrapers
};

/// A web server. The one implementation is in http_civetweb.cpp; nothing else knows it.
class HttpServer {
 public:
  /// Binds and serves. The error of a failed bind names the reason the kernel gave.
  static Result<std::unique_ptr<HttpServer>> start(const HttpServerOptions& options,
                                                   HttpHandler handler);

  virtual ~HttpServer() = default;

  /// The addresses listened on, "127.0.0.1:10151", with the real port where 0 was asked for.
  [[nodiscard]] virtual std::vector<std::string> addresses() const = 0;

  /// Closes the ports and waits for running handlers, `max_wait` at most. False if one still runs;
  /// the process must then be left without destructors.
  virtual bool stop(std::chrono::milliseconds max_wait) = 0;
};

}  // namespace apu
