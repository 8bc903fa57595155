#include "exporter/http_client.h"

#include <curl/curl.h>

#include <algorithm>

#include "exporter/log.h"

namespace apu {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

struct EasyDeleter {
  void operator()(CURL* handle) const { curl_easy_cleanup(handle); }
};

struct MultiDeleter {
  void operator()(CURLM* handle) const { curl_multi_cleanup(handle); }
};

struct ListDeleter {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

using Easy = std::unique_ptr<CURL, EasyDeleter>;
using Multi = std::unique_ptr<CURLM, MultiDeleter>;
using HeaderList = std::unique_ptr<curl_slist, ListDeleter>;

/// A request on its way.
struct Transfer {
  static constexpr size_t kMaxHeaderBytes = size_t{64} << 10U;

  Easy handle;
  size_t max_bytes = 0;
  size_t header_bytes = 0;
  bool too_large = false;
  HttpReply reply;
};

/// What tells libcurl to go on is the number of bytes that were taken.
size_t take_body(char* data, size_t /*one*/, size_t bytes, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  transfer.too_large = bytes > transfer.max_bytes - transfer.reply.body.size();
  if (transfer.too_large) {
    return 0;
  }
  transfer.reply.body.append(data, bytes);
  return bytes;
}

size_t take_header(char* /*data*/, size_t /*one*/, size_t bytes, void* user) {
  Transfer& transfer = *static_cast<Transfer*>(user);
  transfer.header_bytes += bytes;
  transfer.too_large = transfer.header_bytes > Transfer::kMaxHeaderBytes;
  return transfer.too_large ? 0 : bytes;
}

/// False if libcurl has no memory, or was built without one of these.
bool set_up(Transfer& transfer, const HttpRequest& request, milliseconds timeout,
            curl_slist* headers) {
  CURL* handle = transfer.handle.get();
  const auto set = [&](CURLoption option, auto value) {
    return curl_easy_setopt(handle, option, value) == CURLE_OK;
  };
  const long limit = static_cast<long>(timeout.count());
  return handle != nullptr && set(CURLOPT_URL, request.url.c_str()) &&
         set(CURLOPT_PROTOCOLS_STR, "http") && set(CURLOPT_FOLLOWLOCATION, 0L) &&
         set(CURLOPT_PROXY, "") && set(CURLOPT_HTTP_VERSION, long{CURL_HTTP_VERSION_1_1}) &&
         set(CURLOPT_HTTPHEADER, headers) && set(CURLOPT_USERAGENT, "apu_exporter") &&
         set(CURLOPT_FRESH_CONNECT, 1L) && set(CURLOPT_FORBID_REUSE, 1L) &&
         set(CURLOPT_NOSIGNAL, 1L) && set(CURLOPT_CONNECTTIMEOUT_MS, limit) &&
         set(CURLOPT_TIMEOUT_MS, limit) && set(CURLOPT_WRITEFUNCTION, take_body) &&
         set(CURLOPT_WRITEDATA, static_cast<void*>(&transfer)) &&
         set(CURLOPT_HEADERFUNCTION, take_header) &&
         set(CURLOPT_HEADERDATA, static_cast<void*>(&transfer)) &&
         set(CURLOPT_PRIVATE, static_cast<void*>(&transfer));
}

HttpOutcome outcome_of(CURLcode code, const Transfer& transfer) {
  if (transfer.too_large) {
    return HttpOutcome::kTooLarge;
  }
  switch (code) {
    case CURLE_OK:
      return HttpOutcome::kAnswered;
    case CURLE_COULDNT_CONNECT:
      return HttpOutcome::kRefused;
    case CURLE_OPERATION_TIMEDOUT:
      return HttpOutcome::kSilent;
    default:
      return HttpOutcome::kFailed;
  }
}

void take_finished(CURLM* multi) {
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi, &left)) {
    if (message->msg != CURLMSG_DONE) {
      continue;
    }
    void* user = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
    Transfer& transfer = *static_cast<Transfer*>(user);
    transfer.reply.outcome = outcome_of(message->data.result, transfer);
    curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &transfer.reply.status);
  }
}

/// Until all are finished. The transfers' own timeouts end it; `end` is there for the case that
/// they do not.
void run(CURLM* multi, steady_clock::time_point end) {
  constexpr int kWaitMs = 200;
  int running = 1;
  while (running > 0 && steady_clock::now() < end) {
    if (curl_multi_perform(multi, &running) != CURLM_OK) {
      return;
    }
    take_finished(multi);
    if (running > 0 && curl_multi_poll(multi, nullptr, 0, kWaitMs, nullptr) != CURLM_OK) {
      return;
    }
  }
}

class CurlClient : public HttpClient {
 public:
  std::vector<HttpReply> get(std::span<const HttpRequest> requests, milliseconds timeout) override {
    std::vector<Transfer> transfers(requests.size());  // libcurl has their addresses
    const Multi multi(curl_multi_init());
    const HeaderList headers(curl_slist_append(nullptr, "Connection: close"));
    std::vector<CURL*> added;
    for (size_t i = 0; i < requests.size(); ++i) {
      Transfer& transfer = transfers[i];
      transfer.handle.reset(curl_easy_init());
      transfer.max_bytes = requests[i].max_bytes;
      transfer.reply.outcome = HttpOutcome::kSilent;
      if (!multi || !headers || !set_up(transfer, requests[i], timeout, headers.get()) ||
          curl_multi_add_handle(multi.get(), transfer.handle.get()) != CURLM_OK) {
        transfer.reply.outcome = HttpOutcome::kFailed;
        continue;
      }
      added.push_back(transfer.handle.get());
    }
    if (multi) {
      run(multi.get(), steady_clock::now() + timeout + kGrace);
    }
    for (CURL* handle : added) {
      curl_multi_remove_handle(multi.get(), handle);
    }
    std::vector<HttpReply> replies;
    replies.reserve(transfers.size());
    for (Transfer& transfer : transfers) {
      replies.push_back(std::move(transfer.reply));
    }
    return replies;
  }

 private:
  static constexpr milliseconds kGrace{500};
};

}  // namespace

void prepare_http_client() {
  if (curl_global_init(CURL_GLOBAL_NOTHING) != CURLE_OK) {
    log::warn("libcurl cannot be used");
  }
}

std::unique_ptr<HttpClient> make_http_client() {
  return std::make_unique<CurlClient>();
}

}  // namespace apu
