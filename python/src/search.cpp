// Indexes of vectors: arrays of NumPy in and out, with Python's lock released while they work.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/search.h"

namespace prism::python {
namespace {

using namespace search;

using Floats = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Numbers = nb::ndarray<const uint64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Array = nb::ndarray<nb::numpy, T>;

template <class T>
Array<T> array_of(std::vector<T> values, std::vector<size_t> shape) {
  auto* const kept = new std::vector<T>(std::move(values));
  const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array<T>(kept->data(), shape.size(), shape.data(), owner);
}

Id id_of(nb::handle given) {
  if (nb::isinstance<nb::str>(given)) return nb::cast<std::string>(given);
  return nb::cast<uint64_t>(given);
}

nb::object object_of(const Id& id) {
  return id.is_text() ? nb::object(nb::str(id.text().c_str(), id.text().size()))
                      : nb::object(nb::int_(id.number()));
}

Fields fields_of(nb::handle given) {
  Fields fields;
  if (given.is_none()) return fields;
  for (const auto& [key, value] : nb::cast<nb::dict>(given)) {
    const std::string name = nb::cast<std::string>(key);
    if (nb::isinstance<nb::str>(value))
      fields.emplace(name, nb::cast<std::string>(value));
    else if (nb::isinstance<nb::float_>(value))
      fields.emplace(name, nb::cast<double>(value));
    else if (nb::isinstance<nb::int_>(value))
      fields.emplace(name, nb::cast<int64_t>(value));
    else if (std::vector<std::string> texts; nb::try_cast(value, texts))
      fields.emplace(name, std::move(texts));
    else
      throw Error(ErrorCode::kInvalidArgument,
                  "index: the field " + name + " is a " +
                      nb::cast<std::string>(value.type().attr("__name__")) +
                      "; it must be a number, a text or a list of texts");
  }
  return fields;
}

// None, a text in the language of filters, a list of ids, or a function of an id.
Filter filter_of(nb::handle given) {
  if (given.is_none()) return {};
  if (nb::isinstance<nb::str>(given)) return Filter::parse(nb::cast<std::string>(given));
  if (PyCallable_Check(given.ptr()) != 0)
    return Filter::where([given](const Id& id) {
      const nb::gil_scoped_acquire lock;
      return nb::cast<bool>(nb::borrow(given)(object_of(id)));
    });
  std::vector<Id> ids;
  for (const nb::handle each : given) ids.push_back(id_of(each));
  return Filter::ids(std::move(ids));
}

Method method_of(const std::string& name) {
  const std::optional<Method> method = parse_method(name);
  if (!method)
    throw Error(ErrorCode::kInvalidArgument,
                "there is no method " + name + "; use exact, ivf or graph");
  return *method;
}

Index make_index(uint64_t width, const std::string& metric, nb::handle type, nb::handle rescore,
                 bool text_ids) {
  const std::optional<Metric> known = parse_metric(metric);
  if (!known)
    throw Error(ErrorCode::kInvalidArgument,
                "there is no metric " + metric + "; use cosine, dot, l2 or hamming");
  const auto plain = [](nb::handle given) {
    if (nb::isinstance<nb::str>(given) && nb::cast<std::string>(given) == "b1") return DType::b1;
    const std::optional<DType> found = dtype_from_name(nb::cast<std::string>(nb::str(given)));
    return found ? *found : element_type(given).plain();
  };
  IndexOptions options{.width = width, .metric = *known, .type = plain(type)};
  if (!rescore.is_none()) options.rescore = plain(rescore);
  options.text_ids = text_ids;
  return Index(options);
}

// Adds or replaces rows of an array. `fields`: None, or a sequence of a dictionary for each row. If
// a row cannot be added, none is.
void change(Index& index, nb::handle ids, const Floats& vectors, nb::handle fields, bool replaces) {
  const size_t rows = vectors.shape(0), width = vectors.shape(1);
  std::vector<Id> names;
  for (const nb::handle each : ids) names.push_back(id_of(each));
  std::vector<Fields> values;
  if (!fields.is_none())
    for (const nb::handle each : fields) values.push_back(fields_of(each));
  if (names.size() != rows || (!fields.is_none() && values.size() != rows))
    throw Error(ErrorCode::kInvalidArgument,
                "index: " + std::to_string(rows) + " vectors, " + std::to_string(names.size()) +
                    " ids and " + std::to_string(values.size()) + " dictionaries of fields");
  const nb::gil_scoped_release release;
  for (size_t r = 0; r < rows; ++r) {
    const std::span<const float> vector(vectors.data() + r * width, width);
    const Fields none;
    const Fields& of_row = values.empty() ? none : values[r];
    if (replaces) {
      index.update(names[r], vector, of_row);
      continue;
    }
    try {
      index.add(names[r], vector, of_row);
    } catch (const Error&) {
      for (size_t added = 0; added < r; ++added) index.remove(names[added]);
      throw;
    }
  }
}

nb::tuple found_arrays(const std::vector<SearchResult>& results, uint64_t k, bool text_ids) {
  const size_t rows = results.size();
  std::vector<float> scores(rows * k, std::numeric_limits<float>::quiet_NaN());
  std::vector<uint64_t> numbers(text_ids ? 0 : rows * k, ~uint64_t{0});
  nb::list texts;
  for (size_t q = 0; q < rows; ++q) {
    nb::list of_query;
    for (size_t i = 0; i < results[q].hits.size(); ++i) {
      scores[q * k + i] = results[q].hits[i].score;
      if (text_ids)
        of_query.append(object_of(results[q].hits[i].id));
      else
        numbers[q * k + i] = results[q].hits[i].id.number();
    }
    if (text_ids) texts.append(of_query);
  }
  const nb::object ids =
      text_ids ? nb::object(texts) : nb::cast(array_of(std::move(numbers), {rows, k}));
  const std::string how = results.empty() ? "" : results[0].how;
  return nb::make_tuple(ids, array_of(std::move(scores), {rows, k}), how);
}

nb::tuple search_index(const Index& index, const Floats& queries, uint64_t k, double recall,
                       nb::handle filter, std::optional<std::string> method, uint64_t effort,
                       uint64_t oversample, const std::string& group_by) {
  SearchOptions options;
  options.k = k;
  options.recall = recall;
  options.filter = filter_of(filter);
  if (method) options.method = method_of(*method);
  options.effort = effort;
  options.oversample = oversample;
  options.group_by = group_by;
  const IndexOptions kept = index.info().options;
  if (queries.shape(1) != kept.width)
    throw Error(ErrorCode::kInvalidArgument,
                "search: the queries have " + std::to_string(queries.shape(1)) +
                    " numbers, the index " + std::to_string(kept.width));
  std::vector<SearchResult> results;
  {
    const nb::gil_scoped_release release;
    results = index.search_batch({queries.data(), queries.size()}, options);
  }
  return found_arrays(results, k, kept.text_ids);
}

nb::dict info_of(const Index& index) {
  const IndexInfo info = index.info();
  nb::dict all;
  all["vectors"] = info.vectors;
  all["removed"] = info.removed;
  all["width"] = info.options.width;
  all["metric"] = metric_name(info.options.metric);
  all["type"] = dtype_name(info.options.type);
  all["text_ids"] = info.options.text_ids;
  all["method"] = method_name(info.method);
  all["segments"] = info.segments;
  all["file_bytes"] = info.file_bytes;
  all["generation"] = info.generation;
  nb::list fields, measured;
  for (const std::string& field : info.fields) fields.append(field);
  for (const MeasuredEffort& point : info.measured) {
    nb::dict each;
    each["k"] = point.k;
    each["effort"] = point.effort;
    each["recall"] = point.recall;
    each["microseconds"] = point.microseconds;
    measured.append(each);
  }
  all["fields"] = fields;
  all["measured"] = measured;
  return all;
}

}  // namespace

void bind_search(nb::module_& m) {
  using release = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Index>(m, "_VectorIndex")
      .def(nb::new_(
               [](uint64_t width, const std::string& metric, nb::handle type, nb::handle rescore,
                  bool text_ids) { return make_index(width, metric, type, rescore, text_ids); }),
           nb::arg("width"), nb::arg("metric"), nb::arg("type"), nb::arg("rescore").none(),
           nb::arg("text_ids"))
      .def_static(
          "open",
          [](const std::string& path, bool writable) {
            return Index::open(path, writable ? Access::write : Access::read);
          },
          nb::arg("path"), nb::arg("writable"), release())
      .def(
          "add",
          [](Index& index, nb::handle ids, const Floats& vectors, nb::handle fields,
             bool replaces) { change(index, ids, vectors, fields, replaces); },
          nb::arg("ids"), nb::arg("vectors"), nb::arg("fields").none(), nb::arg("replaces"))
      .def("remove", [](Index& index, nb::handle id) { return index.remove(id_of(id)); })
      .def("contains", [](const Index& index, nb::handle id) { return index.contains(id_of(id)); })
      .def("vector",
           [](const Index& index, nb::handle id) -> nb::object {
             std::optional<std::vector<float>> found = index.vector(id_of(id));
             if (!found) return nb::none();
             const size_t width = found->size();
             return nb::cast(array_of(std::move(*found), {width}));
           })
      .def("search", &search_index, nb::arg("queries"), nb::arg("k"), nb::arg("recall"),
           nb::arg("filter").none(), nb::arg("method").none(), nb::arg("effort"),
           nb::arg("oversample"), nb::arg("group_by"))
      .def(
          "search_within",
          [](const Index& index, const Floats& query, float bound, nb::handle filter) {
            const Filter chosen = filter_of(filter);
            SearchResult found;
            {
              const nb::gil_scoped_release unlocked;
              found = index.search_within({query.data(), query.size()}, bound, chosen);
            }
            return found_arrays({found}, found.hits.size(), index.info().options.text_ids);
          },
          nb::arg("query"), nb::arg("bound"), nb::arg("filter").none())
      .def(
          "build",
          [](Index& index, const std::string& method, uint64_t lists, uint64_t links,
             uint64_t effort, const std::string& device) {
            BuildOptions options;
            options.method = method_of(method);
            options.lists = lists;
            options.links = links;
            options.effort = effort;
            options.device = device;
            index.build(options);
          },
          nb::arg("method"), nb::arg("lists"), nb::arg("links"), nb::arg("effort"),
          nb::arg("device"), release())
      .def("set_device", &Index::set_device, release())
      .def("commit", &Index::commit, release())
      .def("save", &Index::save, release())
      .def("compact", &Index::compact, release())
      .def("refresh", &Index::refresh, release())
      .def("verify", &Index::verify, release())
      .def("info", &info_of);
}

}  // namespace prism::python
