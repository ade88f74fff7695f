// Cases of concatenation, padding and repetition. These ops only move elements: results are exact.
#include <fmt/format.h>

#include "conformance/case_tools.h"
#include "conformance/cases.h"
#include "prism/ops/join.h"

namespace prism {

namespace {

using Coordinates = std::vector<int64_t>;

// The element at these coordinates.
double at(const ReferenceInput& input, const Coordinates& where) {
  int64_t place = 0;
  for (int axis = 0; axis < input.shape.rank(); ++axis)
    place = place * input.shape[axis] + where[static_cast<size_t>(axis)];
  return input.values[static_cast<size_t>(place)];
}

// Evaluates a function at the coordinates of every element of a shape.
Values made(const Shape& shape, const std::function<double(Coordinates)>& value) {
  Values values;
  for (int64_t i = 0; i < shape.elements(); ++i) {
    Coordinates where(static_cast<size_t>(shape.rank()));
    int64_t rest = i;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      where[static_cast<size_t>(axis)] = rest % shape[axis];
      rest /= shape[axis];
    }
    values.push_back(value(where));
  }
  return values;
}

struct Adder {
  std::vector<OpCase>& cases;
  CaseRandom& random;
  DType type;

  void add(const char* op, const std::string& what, const std::vector<Shape>& shapes,
           const std::function<Tensor(std::span<const Tensor>)>& compute,
           const std::function<Values(std::span<const ReferenceInput>)>& reference) {
    OpCase test;
    test.op = op;
    test.what = fmt::format("{} {} {}", ElementType(type).name(), shapes[0].text(), what);
    int64_t elements = 0;
    for (const Shape& each : shapes) {
      test.inputs.push_back(draw(random, each, type));
      elements += each.elements();
    }
    test.compute = [=](std::span<const Tensor> in) -> std::vector<Tensor> { return {compute(in)}; };
    test.reference = [=](std::span<const ReferenceInput> in) {
      return std::vector<Values>{reference(in)};
    };
    test.tolerance = Tolerance::exact();
    test.gradient = type == DType::f32 && elements > 0 && elements < 60;
    cases.push_back(std::move(test));
  }
};

void add_concat(Adder& adder) {
  struct Parts {
    Shape first;
    int axis;
    std::vector<int64_t> lengths;  // along the axis, one per tensor
  };
  const std::vector<Parts> all = {
      {{3}, 0, {3, 4}},         {{1, 5}, 0, {1, 2, 3}},
      {{3, 5}, 1, {5, 1, 11}},  {{2, 3, 4}, 1, {3, 0, 5}},
      {{2, 3, 4}, -1, {4, 7}},  {{0, 5}, 0, {0, 0}},
      {{13, 64}, 1, {64, 128}}, {{1, 1}, 1, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
  };
  for (const Parts& each : all) {
    std::vector<Shape> shapes;
    for (const int64_t length : each.lengths) {
      shapes.push_back(each.first);
      shapes.back()[each.axis] = length;
    }
    adder.add(
        "concat", fmt::format("{} along axis {}", shapes.size(), each.axis), shapes,
        [=](std::span<const Tensor> in) { return concat(in, each.axis); },
        [=](std::span<const ReferenceInput> in) {
          const auto axis =
              static_cast<size_t>(each.axis < 0 ? each.axis + each.first.rank() : each.axis);
          Shape shape = each.first;
          shape[each.axis] = 0;
          for (const int64_t length : each.lengths) shape[each.axis] += length;
          return made(shape, [&](Coordinates where) {
            size_t part = 0;
            while (where[axis] >= each.lengths[part]) where[axis] -= each.lengths[part++];
            return at(in[part], where);
          });
        });
  }
  for (const int axis : {0, 1, -1}) {
    adder.add(
        "stack", fmt::format("three along axis {}", axis), {{3, 5}, {3, 5}, {3, 5}},
        [=](std::span<const Tensor> in) { return stack(in, axis); },
        [=](std::span<const ReferenceInput> in) {
          const int place = axis < 0 ? 2 : axis;
          Shape shape = {3, 5};
          shape.insert(place, 3);
          return made(shape, [&](Coordinates where) {
            const auto which = static_cast<size_t>(where[static_cast<size_t>(place)]);
            where.erase(where.begin() + place);
            return at(in[which], where);
          });
        });
  }
}

void add_split(Adder& adder) {
  adder.add(
      "split", "the second of three", {{5, 11}},
      [](std::span<const Tensor> in) {
        return split(in[0], {2, 4, 5}, 1)[1];
      },
      [](std::span<const ReferenceInput> in) {
        return made(Shape{5, 4}, [&](Coordinates where) {
          where[1] += 2;
          return at(in[0], where);
        });
      });
  adder.add(
      "split", "the last of three equal parts", {{6, 7}},
      [](std::span<const Tensor> in) { return split(in[0], 3, 0)[2]; },
      [](std::span<const ReferenceInput> in) {
        return made(Shape{2, 7}, [&](Coordinates where) {
          where[0] += 4;
          return at(in[0], where);
        });
      });
}

void add_pad(Adder& adder) {
  struct Padded {
    Shape x;
    std::vector<Edges> edges;
    double value;
  };
  const std::vector<Padded> all = {
      {{5}, {{2, 3}}, 0},
      {{3, 7}, {{1, 0}, {0, 2}}, 1},
      {{3, 7}, {{2, 1}}, 1},
      {{0, 3}, {{1, 1}, {1, 1}}, 1},
      {{2, 3, 4}, {{0, 1}, {1, 1}, {3, 2}}, 0},
      {{4, 4}, {{0, 0}, {0, 0}}, 1},
      {{5, 16}, {{1, 1}, {8, 8}}, 0},
  };
  for (const Padded& each : all) {
    adder.add(
        "pad", fmt::format("{} axes with {}", each.edges.size(), each.value), {each.x},
        [=](std::span<const Tensor> in) { return pad(in[0], each.edges, each.value); },
        [=](std::span<const ReferenceInput> in) {
          const size_t first = static_cast<size_t>(each.x.rank()) - each.edges.size();
          Shape shape = each.x;
          for (size_t i = 0; i < each.edges.size(); ++i)
            shape[static_cast<int>(first + i)] += each.edges[i].before + each.edges[i].after;
          return made(shape, [&](Coordinates where) {
            for (size_t i = 0; i < each.edges.size(); ++i) {
              int64_t& place = where[first + i];
              place -= each.edges[i].before;
              if (place < 0 || place >= each.x[static_cast<int>(first + i)]) return each.value;
            }
            return at(in[0], where);
          });
        });
  }
}

void add_repeat(Adder& adder) {
  for (const Shape& x : {Shape{1}, Shape{7}, Shape{3, 5}, Shape{2, 3, 4}, Shape{0, 3}}) {
    const int axis = static_cast<int>(adder.random.between(0, x.rank() - 1));
    const int64_t times = adder.random.between(0, 3), length = x[axis];
    const auto place = static_cast<size_t>(axis);
    Shape shape = x;
    shape[axis] *= times;
    const std::string what = fmt::format("{} times along axis {}", times, axis);
    adder.add(
        "tile", what, {x},
        [=](std::span<const Tensor> in) {
          std::vector<int64_t> counts(static_cast<size_t>(x.rank() - axis), 1);
          counts[0] = times;
          return tile(in[0], counts);
        },
        [=](std::span<const ReferenceInput> in) {
          return made(shape, [&](Coordinates where) {
            where[place] %= length;
            return at(in[0], where);
          });
        });
    adder.add(
        "repeat", what, {x}, [=](std::span<const Tensor> in) { return repeat(in[0], times, axis); },
        [=](std::span<const ReferenceInput> in) {
          return made(shape, [&](Coordinates where) {
            where[place] /= times;
            return at(in[0], where);
          });
        });
    adder.add(
        "flip", fmt::format("axis {}", axis), {x},
        [=](std::span<const Tensor> in) { return flip(in[0], axis); },
        [=](std::span<const ReferenceInput> in) {
          return made(x, [&](Coordinates where) {
            where[place] = length - 1 - where[place];
            return at(in[0], where);
          });
        });
    const int64_t places = adder.random.between(-9, 9);
    adder.add(
        "roll", fmt::format("by {} along axis {}", places, axis), {x},
        [=](std::span<const Tensor> in) { return roll(in[0], places, axis); },
        [=](std::span<const ReferenceInput> in) {
          return made(x, [&](Coordinates where) {
            where[place] = ((where[place] - places) % length + length) % length;
            return at(in[0], where);
          });
        });
  }
}

}  // namespace

void add_join_cases(std::vector<OpCase>& cases, CaseRandom& random) {
  for (const DType type : kAllTypes) {
    Adder adder{cases, random, type};
    add_concat(adder);
    add_split(adder);
    add_pad(adder);
    add_repeat(adder);
  }
}

}  // namespace prism
