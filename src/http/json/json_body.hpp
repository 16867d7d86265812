// JSON as it arrives, under the names by which this folder and the CLI know it.
#pragma once

#include "base/json_document.hpp"

namespace baton::http {

using baton::JsonDocument;
using baton::JsonKind;
using baton::JsonView;

}  // namespace baton::http
