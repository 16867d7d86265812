// Reads, or the part of them that is about service calls, in which there is no call. Tests say what they
// need.
#pragma once

#include "ports/call_reads.hpp"

namespace baton::support {

template <class Base = CallReads>
class WithoutCalls : public Base {
 public:
  Result<std::optional<call::Call>> service_call(const call::CallKey&) override { return std::nullopt; }
  Result<std::vector<call::EventRow>> call_events(const call::CallKey&) override {
    return std::vector<call::EventRow>{};
  }
  Result<std::vector<call::Call>> calls(const CallFilter&, const std::optional<call::Due>&,
                                        std::size_t) override {
    return std::vector<call::Call>{};
  }
  Result<std::vector<call::Due>> due_calls(const call::Agenda::Refill&) override {
    return std::vector<call::Due>{};
  }
  Result<std::vector<std::pair<call::Lane, Time>>> lanes_due(Time, Time) override {
    return std::vector<std::pair<call::Lane, Time>>{};
  }
  Result<std::vector<call::CallKey>> running_calls(const call::CallKey&, std::size_t) override {
    return std::vector<call::CallKey>{};
  }
  Result<std::optional<call::Request>> call_request(const call::CallKey&) override { return std::nullopt; }
  Result<CallReads::Streams> streams_without_row(const call::EventKey&, std::size_t) override {
    return CallReads::Streams{};
  }
  Result<std::optional<call::Call>> call_row(const call::CallKey&) override { return std::nullopt; }
  Result<std::vector<call::CallKey>> call_keys(const call::CallKey&, std::size_t) override {
    return std::vector<call::CallKey>{};
  }
  Result<bool> has_tag(const call::CallKey&, const std::string&) override { return false; }
  Result<std::int64_t> count_stray_rows() override { return 0; }
};

}  // namespace baton::support
