// The backend without devices.
#include "backends/unavailable_backend.h"

#include <utility>

namespace prism {
namespace {

class UnavailableBackend final : public Backend {
 public:
  UnavailableBackend(std::string name, std::string label, std::string reason, std::string next_step)
      : name_(std::move(name)),
        label_(std::move(label)),
        reason_(std::move(reason)),
        next_step_(std::move(next_step)) {}

  std::string name() const override { return name_; }
  std::string label() const override { return label_; }
  bool starts_driver() const override { return false; }
  Discovery discover() override {
    Discovery discovery;
    discovery.reason = reason_;
    discovery.next_step = next_step_;
    return discovery;
  }

 private:
  std::string name_;
  std::string label_;
  std::string reason_;
  std::string next_step_;
};

}  // namespace

std::unique_ptr<Backend> make_unavailable_backend(std::string name, std::string label,
                                                  std::string reason, std::string next_step) {
  return std::make_unique<UnavailableBackend>(std::move(name), std::move(label), std::move(reason),
                                              std::move(next_step));
}

}  // namespace prism
