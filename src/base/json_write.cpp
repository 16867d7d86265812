#include "base/json_write.hpp"

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace baton {

void append_parsed(std::string& out, const boost::json::value& value) { out += boost::json::serialize(value); }

}  // namespace baton
