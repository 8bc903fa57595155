#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "exporter/result.h"

namespace apu {

/// Undoes a compression piece by piece.
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Hands on what `bytes` add. Errors: kMalformed; what came before was handed on.
  virtual Status feed(std::string_view bytes,
                      const std::function<void(std::string_view)>& take) = 0;

  /// The input ended. Errors: kMalformed, if it was cut off.
  virtual Status finish() = 0;
};

/// The decoder for an input that begins with `head` (six bytes tell), by the magic numbers of gzip,
/// xz and zstd. Anything else is handed on as it is.
std::unique_ptr<Decoder> make_decoder(std::string_view head);

}  // namespace apu
