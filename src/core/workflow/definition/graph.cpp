#include "core/workflow/definition/graph.hpp"

#include <algorithm>
#include <numeric>
#include <unordered_set>

namespace baton::workflow {
namespace {

// One cycle often closes in many places; the first few tell enough.
constexpr int cycles_max = 10;

class Graph {
 public:
  Graph(Definition& definition, const std::vector<Sketch>& sketches, Position nodes_at, Diagnostics& diagnostics)
      : definition_(definition),
        sketches_(sketches),
        nodes_at_(nodes_at),
        diagnostics_(diagnostics),
        edges_at_(sketches.size()) {}

  void build() {
    index_ids();
    find_start_and_end();
    for (NodeIndex i = 0; i < sketches_.size(); ++i)
      for (const Reference& target : sketches_[i].next) add_edge(i, lookup(target, i, "next"), i, target);
    for (NodeIndex i = 0; i < sketches_.size(); ++i) add_branches(i);
    for (NodeIndex i = 0; i < sketches_.size(); ++i)
      for (const Reference& source : sketches_[i].depends_on)
        add_edge(lookup(source, i, "depends_on"), i, i, source);
    find_dead_ends();
    find_cycles();
    find_unreachable();
    check_fan_ins();
    check_item_names();
  }

  // Nothing that the graph as a whole is asked about was left out of it.
  [[nodiscard]] bool is_sound() const { return complete_ && sound_; }

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
        diagnostics_.error(
            sketch.at, "second_start",
            in_quotes(id(i)) + " is a second start node; " + in_quotes(id(*start_)) + " is the first");
      } else {
        start_ = i;
      }
    }
    definition_.start = start_.value_or(0);
    if (!all_typed) return;  // the one that is missing may be the one that was misspelt
    if (!start_)
      diagnostics_.error(nodes_at_, "no_start", "there is no start node",
                         "add one: start: {type: start, next: ...}");
    if (!ends) diagnostics_.error(nodes_at_, "no_end", "there is no end node", "add one: end: {type: end}");
  }

  MaybeNode lookup(const Reference& reference, NodeIndex owner, std::string_view key) {
    if (const auto found = definition_.find(reference.name)) return found;
    complete_ = false;
    diagnostics_.error(reference.at, "unknown_node",
                       "'" + std::string(key) + "' of node " + in_quotes(id(owner)) + " names " +
                           in_quotes(reference.name) + ", which is not a node",
                       guesses_left_-- > 0 ? diagnostics_.did_you_mean(reference.name, ids_) : std::string{});
    return std::nullopt;
  }

  void add_branches(NodeIndex i) {
    for (std::size_t b = 0; b < sketches_[i].branches.size(); ++b) {
      for (const Reference& target : sketches_[i].branches[b]) {
        const MaybeNode to = lookup(target, i, "branches");
        add_edge(i, to, i, target, true);
        auto& next = definition_.nodes[i].branches[b].next;
        if (to && std::ranges::find(next, *to) == next.end()) next.push_back(*to);
      }
    }
  }

  // Edges that may not be are reported and left out, so that they raise no errors about the graph as well.
  void add_edge(MaybeNode from, MaybeNode to, NodeIndex owner, const Reference& reference,
                bool by_branch = false) {
    if (!from || !to) return;
    const auto refuse = [&](std::string code, std::string message) {
      complete_ = false;
      diagnostics_.error(reference.at, std::move(code), std::move(message));
    };
    if (*from == *to)
      return refuse("follows_itself", "node " + in_quotes(id(owner)) + " cannot follow itself");
    if (sketches_[*to].type == NodeType::start)
      return refuse("edge_into_start", "nothing can come before the start node " + in_quotes(id(*to)));
    if (sketches_[*from].type == NodeType::end)
      return refuse("edge_out_of_end", "nothing can follow the end node " + in_quotes(id(*from)));
    if (!known_.insert((std::uint64_t{*from} << 32) | *to).second) return;  // named from both sides
    if (sketches_[*from].type == NodeType::conditional && !by_branch)
      return refuse("edge_past_branches", "node " + in_quotes(id(*to)) + " depends on the conditional " +
                                              in_quotes(id(*from)) + ", but no branch of that leads to it");
    definition_.nodes[*from].next.push_back(*to);
    definition_.nodes[*to].incoming.push_back(*from);
    edges_at_[*from].push_back(reference.at);
  }

  void find_dead_ends() {
    for (NodeIndex i = 0; i < sketches_.size(); ++i) {
      const Sketch& sketch = sketches_[i];
      const bool goes_on =
          !definition_.nodes[i].next.empty() || !sketch.next.empty();  // if to nowhere, that is reported
      if (goes_on || !sketch.type || sketch.type == NodeType::end || sketch.type == NodeType::conditional ||
          !sketch.edges_known)
        continue;
      diagnostics_.error(sketch.at, "dead_end",
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
    sound_ = false;
    diagnostics_.error(at, "cycle", "the nodes form a cycle: " + names + id(back_to));
  }

  // Only when all edges are known: one that is misspelt would make a whole tail unreachable.
  void find_unreachable() {
    const bool sketched =
        std::ranges::all_of(sketches_, [](const Sketch& s) { return s.type.has_value() && s.edges_known; });
    sound_ = sound_ && sketched && start_ && start_unique_;
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
      if (reached[i]) continue;
      sound_ = false;  // what comes before what is found along the edges from the start
      diagnostics_.error(sketches_[i].at, "unreachable",
                         "node " + in_quotes(id(i)) + " cannot be reached from the start");
    }
  }

  // A fan_in reads the children of the fan_out before it, and of no other node.
  void check_fan_ins() {
    for (NodeIndex i = 0; i < sketches_.size(); ++i) {
      if (sketches_[i].type != NodeType::fan_in || !is_sound()) continue;
      const auto& incoming = definition_.nodes[i].incoming;
      if (incoming.size() == 1 && definition_.nodes[incoming[0]].type == NodeType::fan_out) continue;
      diagnostics_.error(sketches_[i].at, "fan_in_without_fan_out",
                         "node " + in_quotes(id(i)) + " is a fan_in and must follow exactly one node, a fan_out");
    }
  }

  void check_item_names() {
    for (NodeIndex i = 0; i < sketches_.size(); ++i) {
      const auto name = parse_item_name(id(i));
      const MaybeNode fan_out = name ? definition_.find(name->fan_out) : std::nullopt;
      if (!fan_out || sketches_[*fan_out].type != NodeType::fan_out) continue;
      diagnostics_.error(
          sketches_[i].at, "name_clash",
          "the name " + in_quotes(id(i)) + " is that of a child of the fan_out " + in_quotes(id(*fan_out)));
    }
  }

  Definition& definition_;
  const std::vector<Sketch>& sketches_;
  const Position nodes_at_;
  Diagnostics& diagnostics_;
  std::vector<std::string_view> ids_;
  std::vector<std::vector<Position>>
      edges_at_;                             // beside each node's `next`: where the document names the edge
  std::unordered_set<std::uint64_t> known_;  // edges, as from << 32 | to
  MaybeNode start_;
  int guesses_left_ = 30;  // each compares a name with those of all nodes
  bool start_unique_ = true;
  bool complete_ = true;  // no edge was left out
  bool sound_ = true;     // every node has its type and its edges, there is one start, and no cycle
};

// What the expressions of a definition look at, once its graph is known.
class Lookups {
 public:
  Lookups(Definition& definition, const std::vector<Sketch>& sketches, bool graph_is_sound,
          Diagnostics& diagnostics)
      : definition_(definition), sketches_(sketches), graph_is_sound_(graph_is_sound), diagnostics_(diagnostics) {
    for (const Node& node : definition.nodes) nodes_.push_back(node.id);
    for (const Input& input : definition.inputs) inputs_.push_back(input.name);
    if (graph_is_sound) find_ancestors();
  }

  void check() {
    for (NodeIndex i = 0; i < sketches_.size(); ++i)
      for (const Place& place : sketches_[i].places) check(i, place);
  }

 private:
  // before_[i][j]: j is on a path to i.
  void find_ancestors() {
    const std::size_t count = definition_.nodes.size();
    before_.assign(count, std::vector<bool>(count));
    std::vector<std::size_t> open(count);
    std::vector<NodeIndex> ready{definition_.start};
    for (NodeIndex i = 0; i < count; ++i) open[i] = definition_.nodes[i].incoming.size();
    while (!ready.empty()) {
      const NodeIndex i = ready.back();
      ready.pop_back();
      for (const NodeIndex next : definition_.nodes[i].next) {
        for (NodeIndex j = 0; j < count; ++j)
          if (before_[i][j]) before_[next][j] = true;
        before_[next][i] = true;
        if (--open[next] == 0) ready.push_back(next);
      }
    }
  }

  void error(const Place& place, std::size_t offset, std::string code, const std::string& message,
             std::string hint = {}) {
    diagnostics_.error(place.written.position(offset), std::move(code), place.what + ": " + message,
                       std::move(hint));
  }

  void check(NodeIndex i, const Place& place) {
    const auto& found = place.references;
    Node& node = definition_.nodes[i];
    node.reads_input = node.reads_input || found.inputs;
    if ((found.item || found.index) && !place.sees_item)
      error(place, found.item_offset, "item_outside_fan_out",
            "'item' and 'index' are known only in the task of a fan_out");
    for (const auto& input : found.input_names) {
      if (inputs_.empty() || input.guarded || std::ranges::find(inputs_, input.name) != inputs_.end())
        continue;
      error(place, input.offset, "unknown_input", "there is no input " + in_quotes(input.name),
            diagnostics_.did_you_mean(input.name, inputs_));
    }
    for (const auto& other : found.nodes) check_node(i, place, other);
  }

  void check_node(NodeIndex i, const Place& place, const expression::NodeReference& other) {
    const auto index = definition_.find(other.node);
    if (!index)
      return error(place, other.offset, "unknown_node", "there is no node " + in_quotes(other.node),
                   diagnostics_.did_you_mean(other.node, nodes_));
    if (graph_is_sound_ && !before_[i][*index])
      return error(place, other.offset, "not_upstream",
                   "node " + in_quotes(other.node) + " does not come before node " +
                       in_quotes(definition_.nodes[i].id),
                   "an expression can look only at nodes that are over by then");
    auto& reads = definition_.nodes[i].reads;
    if (std::ranges::find(reads, *index) == reads.end()) reads.push_back(*index);
  }

  Definition& definition_;
  const std::vector<Sketch>& sketches_;
  const bool graph_is_sound_;
  Diagnostics& diagnostics_;
  std::vector<std::string_view> nodes_, inputs_;
  std::vector<std::vector<bool>> before_;
};

// Fills the hints of each node: what its completion is likely to touch.
class Hints {
 public:
  explicit Hints(Definition& definition) : definition_(definition) {}

  void fill() {
    std::size_t edges = 0;
    for (const Node& node : definition_.nodes) edges += node.next.size();
    if (edges * definition_.nodes.size() > 1'000'000) return;  // they would cost more than they spare
    for (NodeIndex i = 0; i < definition_.nodes.size(); ++i) fill(i);
  }

 private:
  void fill(NodeIndex i) {
    seen_.assign(definition_.nodes.size(), false);
    Node& node = definition_.nodes[i];
    std::vector<std::pair<NodeIndex, bool>> pending;  // with: whether a branch not taken may spread from it
    for (const NodeIndex next : node.next) pending.emplace_back(next, false);
    while (!pending.empty()) {
      const auto [at, spreads] = pending.back();
      pending.pop_back();
      if (seen_[at]) continue;
      seen_[at] = true;
      const Node& touched = definition_.nodes[at];
      add(node, at);
      for (const NodeIndex read : touched.reads) add(node, read);
      // A task without params is handed the input, likely in the same batch.
      node.touches_input =
          node.touches_input || touched.reads_input || (touched.type == NodeType::task && !touched.params);
      node.may_end_job = node.may_end_job || touched.type == NodeType::end;
      const bool at_once = touched.type == NodeType::conditional || touched.type == NodeType::fan_out;
      if (!at_once && !spreads) continue;
      for (const NodeIndex next : touched.next)
        pending.emplace_back(next, spreads || touched.type == NodeType::conditional);
    }
  }

  static void add(Node& node, NodeIndex touched) {
    if (std::ranges::find(node.touches, touched) == node.touches.end()) node.touches.push_back(touched);
  }

  Definition& definition_;
  std::vector<bool> seen_;
};

}  // namespace

void connect(Definition& definition, const std::vector<Sketch>& sketches, Position nodes_at,
             Diagnostics& diagnostics) {
  Graph graph(definition, sketches, nodes_at, diagnostics);
  graph.build();
  Lookups(definition, sketches, graph.is_sound(), diagnostics).check();
  if (graph.is_sound()) Hints(definition).fill();
}

}  // namespace baton::workflow
