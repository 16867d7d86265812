#include "core/workflow/graph.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace baton::workflow {
namespace {

// One cycle often closes in many places; the first few tell enough.
constexpr int cycles_max = 10;

class Graph {
 public:
  Graph(Definition& definition, const std::vector<Sketch>& sketches, Position nodes_at, Report& report)
      : definition_(definition),
        sketches_(sketches),
        nodes_at_(nodes_at),
        report_(report),
        edges_at_(sketches.size()) {}

  void build() {
    index_ids();
    find_start_and_end();
    for (NodeIndex i = 0; i < sketches_.size(); ++i)
      for (const Reference& target : sketches_[i].next) add_edge(i, lookup(target, i, "next"), i, target);
    for (NodeIndex i = 0; i < sketches_.size(); ++i)
      for (const Reference& source : sketches_[i].depends_on)
        add_edge(lookup(source, i, "depends_on"), i, i, source);
    find_dead_ends();
    find_cycles();
    find_unreachable();
  }

 private:
  using MaybeNode = std::optional<NodeIndex>;

  [[nodiscard]] const std::string& id(NodeIndex node) const { return definition_.nodes[node].id; }

  void index_ids() {
    definition_.by_id.resize(definition_.nodes.size());
    std::iota(definition_.by_id.begin(), definition_.by_id.end(), NodeIndex{0});
    std::ranges::sort(definition_.by_id, {}, [this](NodeIndex i) { return std::string_view(id(i)); });
    for (const Node& node : definition_.nodes) ids_.push_back(node.id);
  }

  void find_start_and_end() {
    bool ends = false;
    bool all_typed = true;
    for (NodeIndex i = 0; i < sketches_.size(); ++i) {
      const Sketch& sketch = sketches_[i];
      ends = ends || sketch.type == NodeType::end;
      all_typed = all_typed && (sketch.type || sketch.unsupported);
      if (sketch.type != NodeType::start) continue;
      if (start_) {
        start_unique_ = false;
        report_.error(
            sketch.at, "second_start",
            in_quotes(id(i)) + " is a second start node; " + in_quotes(id(*start_)) + " is the first");
      } else {
        start_ = i;
      }
    }
    definition_.start = start_.value_or(0);
    if (!all_typed) return;  // the one that is missing may be the one that was misspelt
    if (!start_)
      report_.error(nodes_at_, "no_start", "there is no start node",
                    "add one: start: {type: start, next: ...}");
    if (!ends) report_.error(nodes_at_, "no_end", "there is no end node", "add one: end: {type: end}");
  }

  MaybeNode lookup(const Reference& reference, NodeIndex owner, std::string_view key) {
    if (const auto found = definition_.find(reference.name)) return found;
    complete_ = false;
    report_.error(reference.at, "unknown_node",
                  "'" + std::string(key) + "' of node " + in_quotes(id(owner)) + " names " +
                      in_quotes(reference.name) + ", which is not a node",
                  guesses_left_-- > 0 ? report_.did_you_mean(reference.name, ids_) : std::string{});
    return std::nullopt;
  }

  // Edges that may not be are reported and left out, so that they raise no errors about the graph as well.
  void add_edge(MaybeNode from, MaybeNode to, NodeIndex owner, const Reference& reference) {
    if (!from || !to) return;
    const auto refuse = [&](std::string code, std::string message) {
      complete_ = false;
      report_.error(reference.at, std::move(code), std::move(message));
    };
    if (*from == *to)
      return refuse("follows_itself", "node " + in_quotes(id(owner)) + " cannot follow itself");
    if (sketches_[*to].type == NodeType::start)
      return refuse("edge_into_start", "nothing can come before the start node " + in_quotes(id(*to)));
    if (sketches_[*from].type == NodeType::end)
      return refuse("edge_out_of_end", "nothing can follow the end node " + in_quotes(id(*from)));
    if (!known_.insert((std::uint64_t{*from} << 32) | *to).second) return;  // named from both sides
    definition_.nodes[*from].next.push_back(*to);
    definition_.nodes[*to].dependencies += 1;
    edges_at_[*from].push_back(reference.at);
  }

  void find_dead_ends() {
    for (NodeIndex i = 0; i < sketches_.size(); ++i) {
      const Sketch& sketch = sketches_[i];
      const bool goes_on =
          !definition_.nodes[i].next.empty() || !sketch.next.empty();  // if to nowhere, that is reported
      if (goes_on || !sketch.type || sketch.type == NodeType::end || !sketch.edges_known) continue;
      report_.error(sketch.at, "dead_end",
                    "node " + in_quotes(id(i)) + " has no next; every path must reach an end node");
    }
  }

  struct Visit {
    NodeIndex node;
    std::size_t edge = 0;  // the next one to follow
  };

  // Depth first, with the path on a stack of its own: an edge back into the path closes a cycle.
  void find_cycles() {
    enum class Mark : char { fresh, on_path, finished };
    std::vector<Mark> marks(sketches_.size(), Mark::fresh);
    std::vector<Visit> path;
    int cycles = 0;
    for (NodeIndex root = 0; root < sketches_.size(); ++root) {
      if (marks[root] != Mark::fresh) continue;
      marks[root] = Mark::on_path;
      path.push_back({root});
      while (!path.empty()) {
        const NodeIndex node = path.back().node;
        const auto& next = definition_.nodes[node].next;
        if (path.back().edge == next.size()) {
          marks[node] = Mark::finished;
          path.pop_back();
          continue;
        }
        const std::size_t edge = path.back().edge++;
        if (marks[next[edge]] == Mark::fresh) {
          marks[next[edge]] = Mark::on_path;
          path.push_back({next[edge]});
        } else if (marks[next[edge]] == Mark::on_path) {
          if (cycles++ < cycles_max) report_cycle(path, next[edge], edges_at_[node][edge]);
        }
      }
    }
  }

  void report_cycle(const std::vector<Visit>& path, NodeIndex back_to, Position at) {
    std::string names;
    for (auto visit = std::ranges::find(path, back_to, &Visit::node); visit != path.end(); ++visit)
      names += id(visit->node) + " -> ";
    report_.error(at, "cycle", "the nodes form a cycle: " + names + id(back_to));
  }

  // Only when all edges are known: one that is misspelt would make a whole tail unreachable.
  void find_unreachable() {
    const bool sketched =
        std::ranges::all_of(sketches_, [](const Sketch& s) { return s.type.has_value() && s.edges_known; });
    if (!complete_ || !sketched || !start_ || !start_unique_) return;
    std::vector<bool> reached(sketches_.size());
    std::vector<NodeIndex> pending{*start_};
    reached[*start_] = true;
    while (!pending.empty()) {
      const NodeIndex node = pending.back();
      pending.pop_back();
      for (const NodeIndex next : definition_.nodes[node].next) {
        if (reached[next]) continue;
        reached[next] = true;
        pending.push_back(next);
      }
    }
    for (NodeIndex i = 0; i < sketches_.size(); ++i) {
      if (!reached[i])
        report_.error(sketches_[i].at, "unreachable",
                      "node " + in_quotes(id(i)) + " cannot be reached from the start");
    }
  }

  Definition& definition_;
  const std::vector<Sketch>& sketches_;
  const Position nodes_at_;
  Report& report_;
  std::vector<std::string_view> ids_;
  std::vector<std::vector<Position>>
      edges_at_;                             // beside each node's `next`: where the document names the edge
  std::unordered_set<std::uint64_t> known_;  // edges, as from << 32 | to
  MaybeNode start_;
  int guesses_left_ = 30;  // each compares a name with those of all nodes
  bool start_unique_ = true;
  bool complete_ = true;  // no edge was left out
};

}  // namespace

void connect(Definition& definition, const std::vector<Sketch>& sketches, Position nodes_at, Report& report) {
  Graph(definition, sketches, nodes_at, report).build();
}

}  // namespace baton::workflow
