#include "exporter/gzip.h"

#include <zlib.h>

namespace apu {

std::string gzip(std::string_view text) {
  constexpr int kGzipWindowBits = 15 + 16;  // + 16 asks zlib for a gzip header
  constexpr int kMemoryLevel = 8;
  z_stream stream{};
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, kGzipWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return {};
  }
  std::string packed(deflateBound(&stream, text.size()), '\0');
  // zlib's interface is not const-correct; it does not write to next_in.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  const bool whole = deflate(&stream, Z_FINISH) == Z_STREAM_END;
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return whole ? packed : std::string();
}

}  // namespace apu
