// Trains a small GPT on the characters of a text, and prints text of its own.
// Usage: example_char_gpt [--data FILE] [--steps N] [--layers N] [--width N] [--heads N] [--batch
// N]
//                         [--length N] [--dropout P] [--precision f32|bf16] [--device NAME]
#include <prism/prism.h>
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <string>

using namespace prism;

namespace {

struct Block : nn::Module {
  Block(int64_t width, int64_t heads, double p)
      : attention(width, heads, {.dropout = p}),
        norm1(width),
        norm2(width),
        up(width, 4 * width),
        down(4 * width, width),
        dropout(p) {}
  nn::SelfAttention attention;
  nn::LayerNorm norm1, norm2;
  nn::Linear up, down;
  nn::Dropout dropout;
  PRISM_MEMBERS(norm1, attention, norm2, up, down, dropout)

  Tensor operator()(const Tensor& x) {
    const Tensor mixed = x + attention(norm1(x));
    return mixed + dropout(down(gelu(up(norm2(mixed)))));
  }
};

struct Gpt : nn::Module {
  Gpt(int64_t characters, int64_t length, int64_t width, int64_t layers, int64_t heads, double p)
      : tokens(characters, width),
        positions(length, width),
        dropout(p),
        norm(width),
        head(width, characters) {
    for (int64_t i = 0; i < layers; ++i) blocks.emplace_back(width, heads, p);
    // As in GPT-2: what adds to the residual stream starts smaller, and the first and the last
    // layer share their weights.
    const double smaller = 0.02 / std::sqrt(2.0 * static_cast<double>(layers));
    for (auto& [name, parameter] : named_parameters()) {
      const bool adds = name.ends_with("output.weight") || name.ends_with("down.weight");
      if (parameter.ndim() == 2) nn::init::normal(parameter, 0, adds ? smaller : 0.02);
      if (name.ends_with("bias")) nn::init::constant(parameter, 0);
    }
    head.weight = tokens.weight;
  }
  nn::Embedding tokens, positions;
  nn::Dropout dropout;
  std::vector<Block> blocks;
  nn::LayerNorm norm;
  nn::Linear head;
  PRISM_MEMBERS(tokens, positions, dropout, blocks, norm, head)

  Tensor operator()(const Tensor& text) {  // [batch, length] to [batch, length, characters]
    const Tensor places = arange(text.size(1), DType::i32, text.device());
    Tensor x = dropout(tokens(text) + positions(places));
    for (Block& each : blocks) x = each(x);
    return head(norm(x));
  }
};

// A text for machines that have none: sums and their results.
std::string made_up_text() {
  std::string text;
  for (int a = 0; a < 60; ++a)
    for (int b = 0; b < 60; ++b)
      text += std::to_string(a) + " + " + std::to_string(b) + " = " + std::to_string(a + b) + ".\n";
  return text;
}

struct Settings {
  std::string data = "../shared/data/tinyshakespeare.txt", device = "auto", precision = "f32";
  int64_t steps = 2000, layers = 4, width = 128, heads = 4, batch = 12, length = 64;
  double dropout = 0;
};

Settings read_settings(int count, char** words) {
  Settings s;
  const std::map<std::string, int64_t*> numbers = {{"--steps", &s.steps}, {"--layers", &s.layers},
                                                   {"--width", &s.width}, {"--heads", &s.heads},
                                                   {"--batch", &s.batch}, {"--length", &s.length}};
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i], value = words[i + 1];
    if (numbers.contains(word))
      *numbers.at(word) = std::atoll(value.c_str());
    else if (word == "--data")
      s.data = value;
    else if (word == "--device")
      s.device = value;
    else if (word == "--precision" && (value == "f32" || value == "bf16"))
      s.precision = value;
    else if (word == "--dropout")
      s.dropout = std::atof(value.c_str());
    else
      throw Error(ErrorCode::kInvalidArgument, "unknown option " + word + " " + value);
  }
  return s;
}

// The mean loss over the validation text.
double validate(Gpt& model, CompiledFunction& loss, const std::shared_ptr<nn::BatchSource>& source,
                int64_t batch) {
  nn::DataLoader loader(source, {.batch = std::min(batch, source->size()), .shuffle = false});
  const int64_t count = loader.batches_per_epoch();
  model.eval();
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += loss(loader.next())[0].item();
  model.train();
  return sum / static_cast<double>(count);
}

// The weights with the lowest validation loss so far.
struct Best {
  double loss = std::numeric_limits<double>::infinity();
  int64_t step = 0;
  nn::StateDict weights;

  void note(Gpt& model, double now, int64_t at) {
    if (!(now < loss)) return;
    loss = now;
    step = at;
    weights = model.state_dict();
    for (auto& [name, tensor] : weights) tensor = (tensor * 1.0).eval();  // a copy
  }
};

std::string write_text(Gpt& model, const std::string& characters, int64_t length, int count) {
  const NoGrad off;
  model.eval();
  std::vector<int32_t> text(static_cast<size_t>(length), 0);  // a window, filled from the start
  CompiledFunction next = compile(
      [&](std::span<const Tensor> in) { return std::vector<Tensor>{softmax(model(in[0]) / 0.8)}; });
  std::string result;
  const std::vector<double> draws = uniform({count}, 5, 0, 1, DType::f32).to_doubles();
  for (int i = 0; i < count; ++i) {
    const auto place = std::min<size_t>(static_cast<size_t>(i), text.size() - 1);
    const std::vector<float> odds = next({from_vector(text, {1, length})})[0].to_vector<float>();
    const size_t classes = characters.size();
    double rest = draws[static_cast<size_t>(i)];
    size_t chosen = 0;
    while (chosen + 1 < classes &&
           (rest -= static_cast<double>(odds[place * classes + chosen])) > 0)
      ++chosen;
    result += characters[chosen];
    if (static_cast<size_t>(i) + 1 < text.size()) {
      text[static_cast<size_t>(i) + 1] = static_cast<int32_t>(chosen);
    } else {
      text.erase(text.begin());
      text.push_back(static_cast<int32_t>(chosen));
    }
  }
  return result;
}

}  // namespace

int main(int count, char** words) try {
  const Settings settings = read_settings(count, words);
  set_default_device(Device::named(settings.device));
  const bool found = std::filesystem::exists(settings.data);
  if (!found) std::cout << "no " << settings.data << ": learning made-up sums\n";
  const std::string text = found ? nn::load_text(settings.data) : made_up_text();
  std::string characters = text;
  std::ranges::sort(characters);
  characters.erase(std::unique(characters.begin(), characters.end()), characters.end());
  std::vector<int32_t> tokens;
  for (const char each : text) tokens.push_back(static_cast<int32_t>(characters.find(each)));
  const auto split = static_cast<ptrdiff_t>(tokens.size() * 9 / 10);
  const auto training =
      nn::token_source({tokens.begin(), tokens.begin() + split}, settings.length, 1);
  const auto validation = nn::token_source({tokens.begin() + split, tokens.end()}, settings.length);

  seed(1);
  Gpt model(static_cast<int64_t>(characters.size()), settings.length, settings.width,
            settings.layers, settings.heads, settings.dropout);
  std::cout << model.parameter_count() << " parameters, " << characters.size() << " characters\n";
  nn::DataLoader loader(training, {.batch = settings.batch, .seed = 1});
  nn::ParameterGroup<nn::AdamWSettings> matrices{{},
                                                 {.lr = 1e-3, .beta2 = 0.99, .weight_decay = 0.1}},
      others{{}, {.lr = 1e-3, .beta2 = 0.99, .weight_decay = 0}};
  for (const Tensor& each : model.parameters())
    (each.ndim() == 2 ? matrices : others).parameters.push_back(each);
  nn::AdamW optimizer({matrices, others});
  const int64_t warm = std::min<int64_t>(100, settings.steps / 2 + 1);
  optimizer.set_schedule(
      nn::warm_up(warm, nn::cosine_schedule(std::max<int64_t>(1, settings.steps - warm), 0.1)));
  const auto loss_of = [&](std::span<const Tensor> batch) {
    return nn::cross_entropy(model(batch[0]), batch[1]);
  };
  nn::TrainStepOptions options = {.clip_norm = 1.0};
  if (settings.precision == "bf16") options.compute = DType::bf16;
  nn::TrainStep step(optimizer, loss_of, options);
  CompiledFunction loss_only = compile([&](std::span<const Tensor> batch) {
    const NoGrad off;
    return std::vector<Tensor>{loss_of(batch)};
  });
  const nn::Progress progress(settings.steps, settings.batch * settings.length, "characters");
  const int64_t validate_every = std::max<int64_t>(250, settings.steps / 20);
  Best best;
  for (int64_t i = 1; i <= settings.steps; ++i) {
    const Tensor loss = step(loader.next());
    if (i % 100 == 0 || i == settings.steps)
      std::cout << progress.line(i, loss.item()) << std::endl;
    if (i % validate_every != 0 && i != settings.steps) continue;
    const double validated = validate(model, loss_only, validation, settings.batch);
    std::cout << "validation loss " << validated << " after step " << i << std::endl;
    best.note(model, validated, i);
  }
  const double seconds = progress.seconds();
  model.load_state_dict(best.weights);
  std::cout << "validation loss " << best.loss << " of step " << best.step << " after " << seconds
            << " s of training\n"
            << write_text(model, characters, settings.length, 200) << "\n";
  return 0;
} catch (const Error& error) {
  std::cerr << error.what() << "\n";
  return 1;
}
