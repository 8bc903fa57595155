#include "tests/support/gunzip.h"

#include <zlib.h>

#include <array>
#include <stdexcept>

namespace apu {

std::string gunzip(std::string_view packed) {
  constexpr int kGzipOnly = 15 + 16;
  std::string input(packed);
  z_stream stream{};
  if (inflateInit2(&stream, kGzipOnly) != Z_OK) {
    throw std::runtime_error("no memory for zlib");
  }
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  std::string text;
  int state = Z_OK;
  while (state == Z_OK) {
    std::array<char, 4096> piece{};
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&stream, Z_NO_FLUSH);
    text.append(piece.data(), piece.size() - stream.avail_out);
  }
  const bool whole = state == Z_STREAM_END && stream.avail_in == 0;
  inflateEnd(&stream);
  if (!whole) {
    throw std::runtime_error("not a whole gzip file");
  }
  return text;
}

}  // namespace apu
