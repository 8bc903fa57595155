#include <CivetServer.h>
#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "exporter/descriptor.h"
#include "exporter/http.h"
#include "exporter/log.h"
#include "exporter/text.h"
#include "exporter/thread.h"

namespace apu {
namespace {

// A connection that sends nothing, or a byte a second, gives its thread back after this time.
constexpr std::string_view kRequestTimeoutMs = "3000";

constexpr int kMaxQueryFields = 256;

// civetweb gives the reason of a failed start to its log callback alone, and from the thread that
// starts it.
thread_local std::string* start_messages = nullptr;

int log_message(const mg_connection* /*connection*/, const char* message) {
  if (start_messages != nullptr) {
    *start_messages += start_messages->empty() ? "" : "; ";
    *start_messages += message;
  } else {
    log::debug("Web server", {{"detail", message}});
  }
  return 1;
}

std::string_view status_text(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 503:
      return "Service Unavailable";
    default:
      return "Internal Server Error";
  }
}

std::string or_empty(const char* text) {
  return text == nullptr ? "" : text;
}

std::vector<std::pair<std::string, std::string>> parse_query(const char* raw) {
  std::string buffer = or_empty(raw);
  std::array<mg_header, kMaxQueryFields> fields{};
  const int count = mg_split_form_urlencoded(buffer.data(), fields.data(), kMaxQueryFields);
  std::vector<std::pair<std::string, std::string>> query;
  for (int i = 0; i < count; ++i) {
    const mg_header& field = fields.at(static_cast<size_t>(i));
    query.emplace_back(or_empty(field.name), or_empty(field.value));
  }
  return query;
}

/// Whether an Accept-Encoding header allows gzip: named, and not with a weight of zero.
bool allows_gzip(std::string_view header) {
  while (!header.empty()) {
    const size_t comma = std::min(header.find(','), header.size());
    std::string_view coding = trim(header.substr(0, comma));
    header.remove_prefix(std::min(comma + 1, header.size()));
    if (consume(coding, "gzip") && (coding.empty() || coding.find_first_of("; \t") == 0)) {
      const std::string_view weight = coding.substr(std::min(coding.find("q="), coding.size()));
      return weight.empty() || weight.find_first_of("123456789") != std::string_view::npos;
    }
  }
  return false;
}

HttpRequest to_request(mg_connection* connection) {
  const mg_request_info& info = *mg_get_request_info(connection);
  HttpRequest request;
  request.method = or_empty(info.request_method);
  request.path = or_empty(info.local_uri);
  request.query = parse_query(info.query_string);
  request.accepts_gzip = allows_gzip(or_empty(mg_get_header(connection, "Accept-Encoding")));
  return request;
}

void send(mg_connection* connection, const HttpResponse& response, bool with_body) {
  std::string message = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nConnection: close\r\n"
      "X-Content-Type-Options: nosniff\r\n",
      response.status, status_text(response.status), response.content_type, response.body.size());
  for (const auto& [name, value] : response.headers) {
    message += fmt::format("{}: {}\r\n", name, value);
  }
  message += "\r\n";
  if (with_body) {
    message += response.body;
  }
  mg_write(connection, message.data(), message.size());
}

HttpResponse call_handler(const HttpHandler& handler, mg_connection* connection) {
  // An exception that left the callback would end the process.
  try {
    return handler(to_request(connection));
  } catch (const std::exception& exception) {
    log::error("Request failed", {{"err", exception.what()}});
  } catch (...) {
    log::error("Request failed", {{"err", "unknown exception"}});
  }
  return {500, "text/plain; charset=utf-8", {}, "Internal error\n"};
}

int begin_request(mg_connection* connection) {
  const auto* server = static_cast<CivetServer*>(mg_get_user_data(mg_get_context(connection)));
  const auto& handler = *static_cast<const HttpHandler*>(server->getUserContext());
  const HttpResponse response = call_handler(handler, connection);
  const bool head = or_empty(mg_get_request_info(connection)->request_method) == "HEAD";
  send(connection, response, !head);
  return response.status;
}

std::string to_civetweb(const ListenAddress& address) {
  return fmt::format("{}:{}", address.host.empty() ? "0.0.0.0" : address.host, address.port);
}

std::string listening_ports(const std::vector<ListenAddress>& addresses) {
  std::string ports;
  for (const ListenAddress& address : addresses) {
    ports += ports.empty() ? "" : ",";
    ports += to_civetweb(address);
  }
  return ports;
}

/// What outlives the server object if a handler is stuck.
struct Running {
  HttpHandler handler;
  std::unique_ptr<CivetServer> server;
  std::mutex mutex;
  std::condition_variable closed_changed;
  bool closing = false;
  bool closed = false;
};

/// Connects to `address` and hangs up: civetweb's accepting thread looks whether it shall stop only
/// when somebody connects, or after 2 s.
void knock(const std::string& address) {
  const auto parsed = parse_listen_address(address);
  sockaddr_in target{};
  if (!parsed || ::inet_pton(AF_INET, parsed->host.c_str(), &target.sin_addr) != 1) {
    return;  // a name, which could take long to look up
  }
  target.sin_family = AF_INET;
  target.sin_port = htons(parsed->port);
  const Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // The attempt is what wakes it; it does not block, and whether it succeeds does not matter.
  static_cast<void>(
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&target), sizeof(target)));
}

class CivetwebServer : public HttpServer {
 public:
  CivetwebServer(std::shared_ptr<Running> running, std::vector<std::string> addresses)
      : running_(std::move(running)), addresses_(std::move(addresses)) {}

  [[nodiscard]] std::vector<std::string> addresses() const override { return addresses_; }

  bool stop(std::chrono::milliseconds max_wait) override {
    constexpr std::chrono::milliseconds kBetweenKnocks{10};
    const auto deadline = std::chrono::steady_clock::now() + max_wait;
    std::unique_lock lock(running_->mutex);
    if (!std::exchange(running_->closing, true)) {
      start_closing();
    }
    const auto closed = [this] { return running_->closed; };
    while (!running_->closed_changed.wait_for(lock, kBetweenKnocks, closed)) {
      if (std::chrono::steady_clock::now() >= deadline) {
        return false;
      }
      std::for_each(addresses_.begin(), addresses_.end(), knock);
    }
    return true;
  }

 private:
  /// close() waits for handlers without a bound: it runs on a thread that nobody waits for.
  void start_closing() const {
    start_detached_thread("web-stop", [running = running_] {
      running->server->close();
      const std::lock_guard lock(running->mutex);
      running->closed = true;
      running->closed_changed.notify_all();
    });
  }

  std::shared_ptr<Running> running_;
  std::vector<std::string> addresses_;
};

std::vector<std::string> bound_addresses(CivetServer& server,
                                         const std::vector<ListenAddress>& asked) {
  const std::vector<int> ports = server.getListeningPorts();
  std::vector<std::string> bound;
  for (size_t i = 0; i < asked.size() && i < ports.size(); ++i) {
    bound.push_back(
        fmt::format("{}:{}", asked[i].host.empty() ? "0.0.0.0" : asked[i].host, ports[i]));
  }
  return bound;
}

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpServerOptions& options,
                                                      HttpHandler handler) {
  const std::vector<std::string> settings{"listening_ports",    listening_ports(options.addresses),
                                          "num_threads",        std::to_string(options.threads),
                                          "request_timeout_ms", std::string(kRequestTimeoutMs),
                                          "enable_keep_alive",  "no",
                                          "listen_backlog",     "200"};
  CivetCallbacks callbacks;
  callbacks.begin_request = begin_request;
  callbacks.log_message = log_message;
  auto running = std::make_shared<Running>();
  running->handler = std::move(handler);
  std::string messages;
  start_messages = &messages;
  try {
    running->server = std::make_unique<CivetServer>(settings, &callbacks, &running->handler);
  } catch (const CivetException& exception) {
    start_messages = nullptr;
    return Error{ErrorKind::kUnknown,
                 fmt::format("cannot listen on {}: {}", listening_ports(options.addresses),
                             messages.empty() ? exception.what() : messages)};
  }
  start_messages = nullptr;
  auto addresses = bound_addresses(*running->server, options.addresses);
  return std::unique_ptr<HttpServer>(
      std::make_unique<CivetwebServer>(std::move(running), std::move(addresses)));
}

}  // namespace apu
