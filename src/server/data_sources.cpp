#include "server/data_sources.hpp"

#include "http/wire/get.hpp"
#include "scheduler/sources.hpp"

namespace baton::server {

std::unique_ptr<DataSources> open_data_sources(const Config& config, Environment environment) {
  static constexpr scheduler::Limits limits;
  return std::make_unique<scheduler::Sources>(
      connections(config, std::move(environment)),
      [](const std::string& url, std::stop_token stop) -> Result<scheduler::HttpAnswer> {
        TRY_ASSIGN(http::ClientResponse answer, http::get(url, limits.timeout, std::move(stop)));
        return scheduler::HttpAnswer{answer.status, std::move(answer.content_type), std::move(answer.body)};
      },
      limits);
}

}  // namespace baton::server
