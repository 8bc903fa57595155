#include "exporter/decoder.h"

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include <array>

namespace apu {
namespace {

using Take = std::function<void(std::string_view)>;

constexpr size_t kPieceBytes = 256 << 10;

Status malformed(const char* what) {
  return Error{ErrorKind::kMalformed, what};
}

class PlainDecoder : public Decoder {
 public:
  Status feed(std::string_view bytes, const Take& take) override {
    take(bytes);
    return std::nullopt;
  }

  Status finish() override { return std::nullopt; }
};

// zlib's, lzma's and zstd's interfaces take bytes through pointers of their own types.
// NOLINTBEGIN(cppcoreguidelines-pro-type-reinterpret-cast)

class GzipDecoder : public Decoder {
 public:
  GzipDecoder() { ready_ = ::inflateInit2(&stream_, kGzipWindow) == Z_OK; }

  GzipDecoder(const GzipDecoder&) = delete;
  GzipDecoder& operator=(const GzipDecoder&) = delete;

  ~GzipDecoder() override { ::inflateEnd(&stream_); }

  Status feed(std::string_view bytes, const Take& take) override {
    if (!ready_) {
      return malformed("no memory for gzip");
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream_.avail_in = static_cast<uInt>(bytes.size());
    while (stream_.avail_in > 0 || more_) {
      if (at_end_ && !begin_member()) {
        return std::nullopt;
      }
      if (Status error = inflate_piece(take)) {
        return error;
      }
    }
    return std::nullopt;
  }

  Status finish() override { return at_end_ ? std::nullopt : malformed("gzip data is cut off"); }

 private:
  static constexpr int kGzipWindow = 15 + 16;  // zlib's way to ask for gzip

  /// Members may follow each other, and NULs may pad the last one.
  bool begin_member() {
    while (stream_.avail_in > 0 && *stream_.next_in == 0) {
      ++stream_.next_in;
      --stream_.avail_in;
    }
    if (stream_.avail_in == 0) {
      return false;
    }
    at_end_ = false;
    return ::inflateReset(&stream_) == Z_OK;
  }

  Status inflate_piece(const Take& take) {
    stream_.next_out = reinterpret_cast<Bytef*>(piece_.data());
    stream_.avail_out = static_cast<uInt>(piece_.size());
    const int result = ::inflate(&stream_, Z_NO_FLUSH);
    take({piece_.data(), piece_.size() - stream_.avail_out});
    more_ = stream_.avail_out == 0;
    at_end_ = result == Z_STREAM_END;
    if (result == Z_BUF_ERROR) {
      more_ = false;
      return std::nullopt;
    }
    return result == Z_OK || at_end_ ? std::nullopt : malformed("gzip data is damaged");
  }

  z_stream stream_{};
  bool ready_ = false;
  bool at_end_ = false;
  bool more_ = false;  // output waits for room
  std::array<char, kPieceBytes> piece_{};
};

class XzDecoder : public Decoder {
 public:
  XzDecoder() {
    constexpr std::uint64_t kMaxMemory = 1ULL << 30;  // xz -9 takes 65 MiB
    ready_ = ::lzma_stream_decoder(&stream_, kMaxMemory, LZMA_CONCATENATED) == LZMA_OK;
  }

  XzDecoder(const XzDecoder&) = delete;
  XzDecoder& operator=(const XzDecoder&) = delete;

  ~XzDecoder() override { ::lzma_end(&stream_); }

  Status feed(std::string_view bytes, const Take& take) override {
    stream_.next_in = reinterpret_cast<const std::uint8_t*>(bytes.data());
    stream_.avail_in = bytes.size();
    return run(LZMA_RUN, take);
  }

  Status finish() override {
    const Status error = run(LZMA_FINISH, [](std::string_view /*bytes*/) {});
    return error || ended_ ? error : malformed("xz data is cut off");
  }

 private:
  Status run(lzma_action action, const Take& take) {
    if (!ready_) {
      return malformed("no memory for xz");
    }
    do {
      stream_.next_out = reinterpret_cast<std::uint8_t*>(piece_.data());
      stream_.avail_out = piece_.size();
      const lzma_ret result = ::lzma_code(&stream_, action);
      take({piece_.data(), piece_.size() - stream_.avail_out});
      ended_ = result == LZMA_STREAM_END;
      if (result == LZMA_BUF_ERROR) {
        return action == LZMA_FINISH ? malformed("xz data is cut off") : std::nullopt;
      }
      if (result != LZMA_OK && !ended_) {
        return malformed("xz data is damaged");
      }
    } while (!ended_ && (stream_.avail_in > 0 || stream_.avail_out == 0));
    return std::nullopt;
  }

  lzma_stream stream_ = LZMA_STREAM_INIT;
  bool ready_ = false;
  bool ended_ = false;
  std::array<char, kPieceBytes> piece_{};
};

class ZstdDecoder : public Decoder {
 public:
  ZstdDecoder() : stream_(::ZSTD_createDStream(), &::ZSTD_freeDStream) {}

  Status feed(std::string_view bytes, const Take& take) override {
    if (stream_ == nullptr) {
      return malformed("no memory for zstd");
    }
    ZSTD_inBuffer input{bytes.data(), bytes.size(), 0};
    bool full = true;
    while (input.pos < input.size || full) {
      ZSTD_outBuffer output{piece_.data(), piece_.size(), 0};
      const size_t result = ::ZSTD_decompressStream(stream_.get(), &output, &input);
      if (::ZSTD_isError(result) != 0) {
        return malformed("zstd data is damaged");
      }
      take({piece_.data(), output.pos});
      full = output.pos == output.size;
      in_frame_ = result != 0;
    }
    return std::nullopt;
  }

  Status finish() override { return in_frame_ ? malformed("zstd data is cut off") : std::nullopt; }

 private:
  std::unique_ptr<ZSTD_DStream, size_t (*)(ZSTD_DStream*)> stream_;
  bool in_frame_ = true;
  std::array<char, kPieceBytes> piece_{};
};

// NOLINTEND(cppcoreguidelines-pro-type-reinterpret-cast)

}  // namespace

std::unique_ptr<Decoder> make_decoder(std::string_view head) {
  if (head.starts_with("\x1f\x8b")) {
    return std::make_unique<GzipDecoder>();
  }
  if (head.starts_with(std::string_view("\xfd\x37\x7a\x58\x5a\x00", 6))) {
    return std::make_unique<XzDecoder>();
  }
  if (head.starts_with("\x28\xb5\x2f\xfd")) {
    return std::make_unique<ZstdDecoder>();
  }
  return std::make_unique<PlainDecoder>();
}

}  // namespace apu
