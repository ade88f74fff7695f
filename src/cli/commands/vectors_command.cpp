// `prism vectors ...`: indexes of plain vectors.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include <fmt/format.h>

#include "base/json.h"
#include "base/units.h"
#include "cli/commands.h"
#include "prism/error.h"
#include "prism/search.h"
#include "search/filter.h"
#include "search/vector_file.h"

namespace prism::cli {
namespace {

using search::Access;
using search::Index;
using search::VectorTable;

struct Options {
  std::string index, data, type = "f32", metric = "cosine", rescore, filter, group_by, method;
  uint64_t count = 10, effort = 0;
  float recall = 0.95f;
  search::BuildOptions how;
  std::vector<std::string> ids;
  bool json = false;
};

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorCode::kInvalidArgument, "vectors: " + message);
}

DType type_named(const std::string& name) {
  const std::optional<DType> type = dtype_from_name(name);
  if (!type) fail(fmt::format("there is no element type {}; f32, f16, bf16, i8 or b1", name));
  return *type;
}

std::optional<search::Method> method_named(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const std::optional<search::Method> method = search::parse_method(name);
  if (!method) fail(fmt::format("there is no method {}; exact, ivf or graph", name));
  return method;
}

std::string counted(uint64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

void add_all(Index& index, const VectorTable& table, uint64_t first_id, bool replaces) {
  for (uint64_t r = 0; r < table.rows; ++r) {
    const search::Id id = table.ids.empty() ? search::Id(first_id + r) : table.ids[r];
    const search::Fields& fields = table.fields.empty() ? search::Fields() : table.fields[r];
    if (replaces)
      index.update(id, table.row(r), fields);
    else
      index.add(id, table.row(r), fields);
  }
}

// Options of another method would have no effect.
void check_method_options(const search::BuildOptions& given) {
  const search::BuildOptions usual;
  const auto needs = [&](search::Method method, const char* option, bool is_given) {
    if (is_given && given.method != method)
      fail(fmt::format("{} needs --method {}; the method is {}", option,
                       search::method_name(method), search::method_name(given.method)));
  };
  needs(search::Method::ivf, "--lists", given.lists != usual.lists);
  needs(search::Method::ivf, "--device", given.device != usual.device);
  needs(search::Method::graph, "--links", given.links != usual.links);
  needs(search::Method::graph, "--effort", given.effort != usual.effort);
}

// An index is made anew, but nothing else is replaced by one.
void check_replaced(const std::string& path) {
  std::error_code absent;
  if (std::filesystem::file_size(path, absent) == 0 || absent) return;
  try {
    Index::open(path);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCorruptFile) throw;
    fail(fmt::format("{} exists and is not a sound index; remove it or give another name", path));
  }
}

int build(const Options& o) {
  search::BuildOptions how = o.how;
  how.method = method_named(o.method).value_or(search::Method::exact);
  check_method_options(how);
  check_replaced(o.index);
  const VectorTable table = search::read_vectors(o.data);
  const std::optional<Metric> metric = parse_metric(o.metric);
  if (!metric) fail(fmt::format("there is no metric {}; cosine, dot, l2 or hamming", o.metric));
  search::IndexOptions options;
  options.width = table.width;
  options.metric = *metric;
  options.type = type_named(o.type);
  if (!o.rescore.empty()) options.rescore = type_named(o.rescore);
  options.text_ids = !table.ids.empty() && table.ids[0].is_text();
  Index index(options);
  add_all(index, table, 0, false);
  index.build(how);
  index.save(o.index);
  std::cout << fmt::format("{}: {} of {}, {} {}, {}\n", o.index, counted(table.rows, "vector"),
                           counted(table.width, "number"), o.metric, o.type,
                           search::method_name(index.info().method));
  return kRight;
}

int add(const Options& o) {
  const VectorTable table = search::read_vectors(o.data);
  Index index = Index::open(o.index, Access::write);
  uint64_t next = 0;  // behind the largest number
  if (table.ids.empty()) {
    if (index.info().options.text_ids)
      fail("the ids of this index are texts; give them in a folder with embeddings_meta.json");
    index.each([&](const search::Id& id, std::span<const float>) {
      if (id.number() > UINT64_MAX - 1 - table.rows)
        fail(
            fmt::format("no ids are left behind {}; give them in a folder with "
                        "embeddings_meta.json",
                        id.number()));
      next = std::max(next, id.number() + 1);
    });
  }
  add_all(index, table, next, true);
  index.commit();
  std::cout << fmt::format("{}: {}\n", o.index, counted(index.info().vectors, "vector"));
  return kRight;
}

int remove(const Options& o) {
  Index index = Index::open(o.index, Access::write);
  uint64_t removed = 0;
  for (const std::string& id : o.ids) {
    if (index.info().options.text_ids) {
      removed += index.remove(id);
      continue;
    }
    uint64_t number = 0;
    const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), number);
    if (error != std::errc() || end != id.data() + id.size())
      fail(fmt::format("the id {} is not a number from 0 to {}", id, UINT64_MAX));
    removed += index.remove(number);
  }
  index.commit();
  std::cout << fmt::format("{}: {} of {} removed, {}\n", o.index, removed, o.ids.size(),
                           counted(index.info().vectors, "vector"));
  return kRight;
}

// A condition on a field that no vector has would match nothing.
void check_fields(const Options& o, const std::vector<std::string>& present) {
  std::vector<std::string> names;
  if (!o.group_by.empty()) names.push_back(o.group_by);
  if (!o.filter.empty()) search::add_field_names(search::Filter::parse(o.filter), names);
  for (const std::string& name : names)
    if (std::ranges::count(present, name) == 0)
      fail(fmt::format("no vector of {} has a field {}; the fields are: {}", o.index, name,
                       present.empty() ? "none" : fmt::format("{}", fmt::join(present, ", "))));
}

int search_index(const Options& o) {
  if (o.effort > 0 &&
      method_named(o.method).value_or(search::Method::exact) == search::Method::exact)
    fail("--effort needs --method ivf or graph");
  const Index index = Index::open(o.index);
  check_fields(o, index.info().fields);
  const VectorTable queries = search::read_vectors(o.data);
  if (queries.width != index.info().options.width)
    fail(fmt::format("the queries have {} numbers, the vectors of {} have {}", queries.width,
                     o.index, index.info().options.width));
  search::SearchOptions options;
  options.k = o.count;
  options.group_by = o.group_by;
  options.recall = static_cast<double>(o.recall);
  options.method = method_named(o.method);
  options.effort = o.effort;
  if (!o.filter.empty()) options.filter = search::Filter::parse(o.filter);
  const auto results = index.search_batch(queries.values, options);
  Json all = Json::array();
  for (size_t q = 0; q < results.size(); ++q) {
    if (!o.json) {
      if (q == 0) std::cerr << results[q].how << "\n";
      if (results.size() > 1) std::cout << fmt::format("query {}\n", q);
      for (const search::Hit& hit : results[q].hits)
        std::cout << fmt::format("{}\t{:.6g}\n", hit.id.shown(), hit.score);
      continue;
    }
    Json hits = Json::array();
    for (const search::Hit& hit : results[q].hits) {
      const Json id = hit.id.is_text() ? Json(hit.id.text()) : Json(hit.id.number());
      hits.push_back({{"id", id}, {"score", static_cast<double>(hit.score)}});
    }
    all.push_back({{"hits", hits}, {"how", results[q].how}});
  }
  if (o.json) std::cout << Json{{"results", all}}.dump() << "\n";
  return kRight;
}

int info(const Options& o) {
  const search::IndexInfo facts = Index::open(o.index).info();
  const std::string rescore = facts.options.rescore ? dtype_name(*facts.options.rescore) : "";
  if (o.json) {
    Json measured = Json::array();
    for (const search::MeasuredEffort& point : facts.measured)
      measured.push_back({{"k", point.k},
                          {"effort", point.effort},
                          {"recall", point.recall},
                          {"microseconds", point.microseconds}});
    std::cout << Json{{"vectors", facts.vectors},
                      {"method", search::method_name(facts.method)},
                      {"scanned", facts.scanned},
                      {"measured", measured},
                      {"exact_microseconds", facts.exact_microseconds},
                      {"removed", facts.removed},
                      {"width", facts.options.width},
                      {"metric", metric_name(facts.options.metric)},
                      {"type", dtype_name(facts.options.type)},
                      {"rescore", rescore},
                      {"ids", facts.options.text_ids ? "texts" : "numbers"},
                      {"segments", facts.segments},
                      {"file_bytes", facts.file_bytes},
                      {"generation", facts.generation},
                      {"fields", facts.fields}}
                     .dump()
              << "\n";
    return kRight;
  }
  std::string fields;
  for (const std::string& field : facts.fields) fields += " " + field;
  std::cout << fmt::format(
      "vectors     {} of {} numbers{}\nmetric      {}\ntype        {}{}\nids         {}\nfields    "
      " "
      "{}\nfile        {} in {}, generation {}\n",
      facts.vectors, facts.options.width,
      facts.removed > 0 ? fmt::format(", {} removed", facts.removed) : "",
      metric_name(facts.options.metric), dtype_name(facts.options.type),
      rescore.empty() ? "" : ", rescored with " + rescore,
      facts.options.text_ids ? "texts" : "numbers", fields.empty() ? " none" : fields,
      size_text(facts.file_bytes), counted(facts.segments, "segment"), facts.generation);
  std::cout << fmt::format("method      {}{}\n", search::method_name(facts.method),
                           facts.method != search::Method::exact && facts.scanned > 0
                               ? fmt::format(", {} vectors are scanned", facts.scanned)
                               : "");
  if (facts.measured.empty()) return kRight;
  std::cout << "measured    k    effort   recall   us/query\n";
  for (const search::MeasuredEffort& point : facts.measured)
    std::cout << fmt::format("            {:<4} {:<8} {:.4f}   {:.1f}\n", point.k, point.effort,
                             point.recall, point.microseconds);
  std::cout << fmt::format("            {:<4} {:<8} {:.4f}   {:.1f}\n", 10, "exact", 1.0,
                           facts.exact_microseconds);
  return kRight;
}

int verify(const Options& o) {
  Index::open(o.index).verify();
  std::cout << o.index << ": all checksums are right\n";
  return kRight;
}

int compact(const Options& o) {
  Index index = Index::open(o.index, Access::write);
  const uint64_t before = index.info().file_bytes;
  index.compact();
  std::cout << fmt::format("{}: {} before, {} now\n", o.index, size_text(before),
                           size_text(index.info().file_bytes));
  return kRight;
}

int export_index(const Options& o) {
  const Index index = Index::open(o.index);
  VectorTable table;
  table.width = index.info().options.width;
  index.each([&](const search::Id& id, std::span<const float> vector) {
    table.values.insert(table.values.end(), vector.begin(), vector.end());
    table.ids.push_back(id);
    ++table.rows;
  });
  for (const search::Id& id : table.ids)
    table.fields.push_back(index.fields(id).value_or(search::Fields()));
  search::write_vectors(o.data, table);
  std::cout << fmt::format("{}: {} of {}\n", o.data, counted(table.rows, "vector"),
                           counted(table.width, "number"));
  return kRight;
}

}  // namespace

void add_vectors_command(const Command& program) {
  const Command vectors = program.subcommand("vectors", "make and search indexes of vectors");
  vectors.needs_subcommand();
  vectors.footer(
      "Vectors come from .npy, .fvecs, .bvecs, .ivecs and .fbin files, or from a folder with "
      "embeddings.npy and embeddings_meta.json.\nExamples:\n  prism vectors build data.npy "
      "data.index --type f16\n  prism vectors search data.index query.npy -n 10");
  auto options = std::make_shared<Options>();
  const auto with = [&](const char* name, const char* help, int (*action)(const Options&)) {
    const Command command = vectors.subcommand(name, help);
    command.run([options, action] { return action(*options); });
    return command;
  };
  const Command builds = with("build", "make an index from a file of vectors", build);
  builds.option("data", options->data, "the vectors").required();
  builds.option("index", options->index, "the file to write").required();
  builds.option("--type", options->type, "f32, f16, bf16, i8 or b1").shows_default();
  builds.option("--metric", options->metric, "cosine, dot, l2 or hamming").shows_default();
  builds.option("--rescore", options->rescore,
                "f32 or f16: keep a second copy that ranks the best of i8 or b1");
  builds.option("--method", options->method,
                "exact (default), ivf (lists of near vectors) or graph; measured when it is built");
  builds.option("--lists", options->how.lists,
                "ivf: the number of lists; default: the square root of the number of vectors");
  builds.option("--links", options->how.links, "graph: the links of a vector").shows_default();
  builds.option("--effort", options->how.effort, "graph: the vectors kept while linking one")
      .shows_default();
  builds.option("--device", options->how.device, "ivf: the device that trains").shows_default();
  const Command searches = with("search", "find the nearest vectors", search_index);
  searches.option("index", options->index, "the index").required();
  searches.option("queries", options->data, "a file with one or more queries").required();
  searches.option("-n,--count", options->count, "results for each query")
      .positive()
      .shows_default();
  searches
      .option("--recall", options->recall,
              "the share of the exact results to find; 1 scans all vectors")
      .shows_default();
  searches.option("--method", options->method,
                  "exact, or the method that the index was built with");
  searches.option("--effort", options->effort,
                  "with --method: the lists to scan, or the vectors that a walk keeps");
  searches.option("--filter", options->filter,
                  "a condition on fields: 'year >= 1990 and lang in (\"en\", \"de\")'");
  searches.option("--group-by", options->group_by, "the best result of each value of this field");
  searches.flag("--json", options->json, "print JSON: results[] with hits[] and how");
  const Command adds = with("add", "add vectors to an index, or replace them", add);
  adds.option("index", options->index, "the index").required();
  adds.option("data", options->data, "the vectors").required();
  const Command removes = with("remove", "remove vectors by id", remove);
  removes.option("index", options->index, "the index").required();
  removes.option("id", options->ids, "ids").required();
  const Command tells = with("info", "what an index holds", info);
  tells.option("index", options->index, "the index").required();
  tells.flag("--json", options->json, "print JSON");
  with("verify", "compare all checksums of an index", verify)
      .option("index", options->index, "the index")
      .required();
  with("compact", "rewrite an index without removed vectors", compact)
      .option("index", options->index, "the index")
      .required();
  const Command exports = with("export", "write the vectors of an index to a file", export_index);
  exports.option("index", options->index, "the index").required();
  exports
      .option(
          "data", options->data,
          "the file to write: .npy, .fvecs, .bvecs, .ivecs or .fbin; without an extension a folder "
          "with embeddings.npy")
      .required();
}

}  // namespace prism::cli
