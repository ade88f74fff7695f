// Nearest rows of a matrix: cosine_top_k and its siblings.
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "prism/error.h"
#include "prism/ops/nearest.h"

namespace prism::python {
namespace {

// Queries and matrices may be arrays of others. Both are on the matrix's device.
Tensor matrix_argument(nb::handle given) { return make_tensor(given, std::nullopt, {}, false); }

Tensor beside(const Tensor& matrix, nb::handle given, std::optional<ElementType> type = {}) {
  return given.is_none() ? Tensor() : make_tensor(given, type, matrix.device(), false);
}

// A mask of rows becomes bits, the form that nearest_rows takes.
Tensor allowed_argument(const Tensor& matrix, nb::handle given) {
  const Tensor rows = beside(matrix, given);
  if (given.is_none() || !(rows.dtype() == DType::b1)) return rows;
  if (rows.ndim() != 1 || matrix.ndim() != 2 || rows.shape()[0] != matrix.shape()[0])
    throw Error(ErrorCode::kInvalidArgument, "nearest rows: allowed has the shape " +
                                                 rows.shape().text() + ", the matrix the shape " +
                                                 matrix.shape().text() +
                                                 "; give one bool for each row");
  const std::vector<uint8_t> flags = rows.to_vector<uint8_t>();
  std::vector<int32_t> bits((flags.size() + 31) / 32, 0);
  for (size_t i = 0; i < flags.size(); ++i)
    if (flags[i]) bits[i / 32] |= static_cast<int32_t>(1u << (i % 32));
  return from_vector(bits, Shape{static_cast<int64_t>(bits.size())}, matrix.device());
}

nb::object nearest(Metric metric, nb::handle query, nb::handle matrix, int64_t k, nb::handle norms,
                   nb::handle scales, nb::handle allowed) {
  const Tensor rows = matrix_argument(matrix);
  const Tensor queries = beside(rows, query);
  const NearestInputs inputs{beside(rows, norms, DType::f32), beside(rows, scales, DType::f32),
                             allowed_argument(rows, allowed)};
  const Nearest found = nearest_rows(metric, queries, rows, k, inputs);
  deliver_warnings();
  return nb::module_::import_("prismrt._nearest").attr("Nearest")(found.scores, found.indices);
}

}  // namespace

void bind_nearest(nb::module_& m) {
  m.def(
      "cosine_top_k",
      [](nb::handle query, nb::handle matrix, int64_t k, nb::handle norms, nb::handle allowed) {
        return nearest(Metric::cosine, query, matrix, k, norms, nb::none(), allowed);
      },
      nb::arg("query"), nb::arg("matrix"), nb::arg("k"), nb::kw_only(),
      nb::arg("norms") = nb::none(), nb::arg("allowed") = nb::none(),
      nb::sig(
          "def cosine_top_k(query: TensorLike, matrix: TensorLike, k: int, *, norms: TensorLike "
          "| None = None, allowed: TensorLike | None = None) -> Nearest"),
      "The k rows of the matrix with the largest cosine to the query [width], or to each row of "
      "the query [queries, width], the best first: (scores, indices). norms: row_norms(matrix), "
      "which saves their computation. allowed: a bool for each row.");
  const auto plain = [&](const char* name, Metric metric, const char* signature, const char* doc) {
    m.def(
        name,
        [metric](nb::handle query, nb::handle matrix, int64_t k, nb::handle scales,
                 nb::handle allowed) {
          return nearest(metric, query, matrix, k, nb::none(), scales, allowed);
        },
        nb::arg("query"), nb::arg("matrix"), nb::arg("k"), nb::kw_only(),
        nb::arg("scales") = nb::none(), nb::arg("allowed") = nb::none(), nb::sig(signature), doc);
  };
  plain("dot_top_k", Metric::dot,
        "def dot_top_k(query: TensorLike, matrix: TensorLike, k: int, *, scales: TensorLike | None "
        "= None, allowed: TensorLike | None = None) -> Nearest",
        "The k rows with the largest product with the query. scales: a factor for each row of an "
        "int8 matrix.");
  plain("l2_top_k", Metric::l2,
        "def l2_top_k(query: TensorLike, matrix: TensorLike, k: int, *, scales: TensorLike | None "
        "= None, allowed: TensorLike | None = None) -> Nearest",
        "The k rows with the smallest squared Euclidean distance to the query.");
  m.def(
      "hamming_top_k",
      [](nb::handle query, nb::handle matrix, int64_t k, nb::handle allowed) {
        return nearest(Metric::hamming, query, matrix, k, nb::none(), nb::none(), allowed);
      },
      nb::arg("query"), nb::arg("matrix"), nb::arg("k"), nb::kw_only(),
      nb::arg("allowed") = nb::none(),
      nb::sig("def hamming_top_k(query: TensorLike, matrix: TensorLike, k: int, *, allowed: "
              "TensorLike | None = None) -> Nearest"),
      "The k rows with the fewest bits that differ from the query; both are uint8 with eight bits "
      "in each element.");
  m.def(
      "row_norms", [](nb::handle matrix) { return row_norms(matrix_argument(matrix)); },
      nb::arg("matrix"), nb::sig("def row_norms(matrix: TensorLike) -> Tensor"),
      "The lengths of the rows of a matrix, for cosine_top_k.");
}

}  // namespace prism::python
