#include <vector>

#include "scheduler/source_fixture.hpp"

namespace baton::scheduler {
namespace {

using enum runbook::SourceType;

class HttpSource : public SourceTest {
 protected:
  HttpSource() {
    get_ = [this](const std::string& url, const std::stop_token&) -> Result<HttpAnswer> {
      asked_ = url;
      return answer_;
    };
  }

  std::string ask(std::string body, std::string type = "application/json", const Limits& limits = {}) {
    answer_ = HttpAnswer{200, std::move(type), std::move(body)};
    return shown(fetch(http, "http://host/people", "", limits));
  }
  std::string url_of(const std::string& connection, const std::string& query) {
    answer_ = HttpAnswer{200, "text/csv", "Upn\n"};
    EXPECT_EQ(shown(fetch(http, connection, query)), "Upn");
    return asked_;
  }

  std::string asked_;
  Result<HttpAnswer> answer_;
};

TEST_F(HttpSource, a_json_array_of_objects_is_a_table_of_all_their_fields) {
  EXPECT_EQ(ask(R"([{"Upn":"ann","n":1.50,"ok":true},
                    {"Upn":"bob","x":null,"tags":[1, "a b", {"k": [null, false]}, [], {}],"o":{"a":1,"b":-2e5}}])"),
            "Upn,n,ok,x,tags,o|ann,=1.50,=true,-,-,-|"
            R"(bob,-,-,-,[1,"a b",{"k":[null,false]},[],{}],{"a":1,"b":-2e5})");
}

TEST_F(HttpSource, the_array_may_be_the_value_or_the_items_of_an_object) {
  EXPECT_EQ(ask(R"({"count": 1, "meta": {"items": [1]}, "value": [{"Upn": "ann"}], "items": [3]})"),
            "Upn|ann");
  EXPECT_EQ(ask(R"({"items": [{"Upn": "a\u00e9\"b"}]})", "application/vnd.api+json; charset=utf-8"),
            "Upn|aé\"b");
}

TEST_F(HttpSource, the_last_of_fields_with_the_same_name_counts) {
  EXPECT_EQ(ask(R"([{"Upn": "ann", "Upn": "bob"}, {"Upn": "ann", "Upn": null}])"), "Upn|bob|-");
}

TEST_F(HttpSource, an_empty_array_is_nobody) { EXPECT_EQ(ask("[]"), "Upn,Date"); }

TEST_F(HttpSource, what_is_no_list_of_objects_is_refused) {
  const std::string other =
      "connection 'WAVES': neither a JSON array nor an object with an array as 'value' or 'items'";
  EXPECT_EQ(ask("{}"), other);
  EXPECT_EQ(ask("7"), other);
  EXPECT_EQ(ask(R"({"value": {"Upn": "ann"}})"), other);
  EXPECT_EQ(ask(R"([{"Upn": "ann"}, 7])"), "connection 'WAVES': row 2: not a JSON object");
  EXPECT_EQ(ask("[[]]"), "connection 'WAVES': row 1: not a JSON object");
  EXPECT_EQ(ask("[{}]"), "connection 'WAVES': row 1: an object without fields");
  EXPECT_EQ(ask(R"([{"Upn": "ann"}, )"), "connection 'WAVES': not JSON: incomplete JSON at byte 17");
  EXPECT_EQ(ask(R"([{"Upn": "ann"}] x)"), "connection 'WAVES': not JSON: extra data at byte 17");
  EXPECT_EQ(ask(R"([{"Upn": "a\u0000b"}])"), "connection 'WAVES': row 1, column 'Upn': a NUL character");
  EXPECT_EQ(ask(R"([{"Upn": "a", "UPN": "b"}])"), "connection 'WAVES': column 'UPN' is there twice");
  EXPECT_NE(ask(std::string(100, '[')).find("row 1: not a JSON object"), std::string::npos);
}

TEST_F(HttpSource, another_encoding_is_told_as_such) {
  using namespace std::string_literals;
  EXPECT_EQ(ask("\xFF\xFE[\0]\0"s), "connection 'WAVES': the answer is UTF-16; it must be UTF-8");
  EXPECT_EQ(ask("[\0]\0"s), "connection 'WAVES': the answer is UTF-16; it must be UTF-8");
  EXPECT_EQ(ask("[{\"Upn\": \"M\xFCller\"}]"), "connection 'WAVES': the answer is not UTF-8");
  EXPECT_EQ(ask("\xFF\xFEU\0p\0n\0"s, "text/plain"),
            "connection 'WAVES': line 1, column 1: the file is UTF-16; save it as UTF-8 (in Excel: \"CSV UTF-8\")");
}

TEST_F(HttpSource, one_page_of_several_is_refused) {
  EXPECT_EQ(ask(R"({"value": [{"Upn": "ann"}], "@odata.nextLink": "http://host/people?page=2"})"),
            "connection 'WAVES': the answer is one page of several (@odata.nextLink)");
  EXPECT_EQ(ask(R"({"value": [{"Upn": "ann"}], "@odata.nextLink": null})"), "Upn|ann");
}

TEST_F(HttpSource, csv_is_known_by_its_type_or_by_its_look) {
  EXPECT_EQ(ask("Upn,Date\nann,1\n", "text/csv; charset=utf-8"), "Upn,Date|ann,1");
  EXPECT_EQ(ask("Upn,Date\nann,1\n", "text/plain"), "Upn,Date|ann,1");
  EXPECT_EQ(ask(" [{\"Upn\":\"ann\"}]", "application/octet-stream"), "Upn|ann");
  EXPECT_EQ(ask("<html>", "text/html"),
            "connection 'WAVES': the server answered with 'text/html', which is neither JSON nor CSV");
}

TEST_F(HttpSource, other_statuses_are_errors) {
  for (const auto& [status, expected] : std::vector<std::pair<int, Code>>{{204, Code::invalid},
                                                                          {401, Code::invalid},
                                                                          {404, Code::invalid},
                                                                          {429, Code::unavailable},
                                                                          {503, Code::unavailable}}) {
    answer_ = HttpAnswer{status, "application/json", "[]"};
    EXPECT_EQ(code(fetch(http, "http://host/people")), expected) << status;
  }
  answer_ = HttpAnswer{302, "", ""};
  EXPECT_EQ(shown(fetch(http, "http://host/people")),
            "connection 'WAVES': the server answered with status 302; redirects are not followed");
}

TEST_F(HttpSource, the_query_is_appended_to_the_url) {
  EXPECT_EQ(url_of("http://host/people", ""), "http://host/people");
  EXPECT_EQ(url_of("http://host/people", "?wave=1"), "http://host/people?wave=1");
  EXPECT_EQ(url_of("http://host/people?key=k#top", "wave=1"), "http://host/people?key=k&wave=1");
  EXPECT_EQ(url_of("http://host/people?", "$filter=City eq 'Bonn'&x=100%25%&y=ü#\r\n"),
            "http://host/people?$filter=City%20eq%20'Bonn'&x=100%25%25&y=%C3%BC%23%0D%0A");
}

TEST_F(HttpSource, errors_name_the_connection_only) {
  answer_ = fail(Code::unavailable, "no answer from http://joe:hunter2@host/people");
  EXPECT_EQ(shown(fetch(http, "http://joe:hunter2@host/people")), "connection 'WAVES': no answer from ***");
  EXPECT_EQ(shown(fetch(http, "ftp://host/people")),
            "connection 'WAVES': not a URL that begins with http:// or https://");
  get_ = [](const std::string&, const std::stop_token&) -> Result<HttpAnswer> {
    throw std::runtime_error("out of luck");
  };
  EXPECT_EQ(shown(fetch(http, "http://host/people")), "connection 'WAVES': out of luck");
}

TEST_F(HttpSource, limits_hold) {
  const std::string two = R"([{"a":1,"b":2},{"a":3,"b":4}])";
  EXPECT_EQ(ask(two, "application/json", {.bytes = 10}),
            "connection 'WAVES': the answer has 29 bytes; at most 10 are read");
  EXPECT_EQ(ask(two, "application/json", {.rows = 1}),
            "connection 'WAVES': too many rows; at most 1 are read");
  EXPECT_EQ(ask(two, "application/json", {.columns = 1}),
            "connection 'WAVES': too many columns; at most 1 are read");
  EXPECT_EQ(ask(two, "application/json", {.cells = 3}),
            "connection 'WAVES': too many cells; at most 3 are read");
}

}  // namespace
}  // namespace baton::scheduler
