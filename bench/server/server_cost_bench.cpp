// The cost of the server beside the model: the user time of a token that a model without weights
// gives to each of 64 streams at once. The clients are another process.
//
//   server_cost_bench [STREAMS] [TOKENS]
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "support/run_program.h"
#include "support/running_server.h"
#include "support/server/load_clients.h"
#include "support/server/scripted_model.h"

namespace prism {
namespace {

struct Asked {
  const char* name;
  const char* path;
  const char* prompt;  // the member of the request
};
constexpr Asked kAsked[] = {
    {"completions", "/v1/completions", R"("prompt":"tell 12")"},
    {"chat", "/v1/chat/completions", R"("messages":[{"role":"user","content":"tell 12"}])"},
    {"messages", "/v1/messages", R"("messages":[{"role":"user","content":"tell 12"}])"},
};

struct Times {
  double user = 0, system = 0;
};

Times times() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return {seconds(use.ru_utime), seconds(use.ru_stime)};
}

// Every stream reads one answer. Ends the process: status 0 if all answers are whole.
[[noreturn]] void be_clients(uint16_t port, size_t streams, const Asked& asked, int64_t tokens) {
  size_t whole = 0;
  test::run_load(
      {.port = port,
       .clients = streams,
       .next =
           [&](size_t, int64_t number) {
             test::LoadRequest request{.path = number == 0 ? asked.path : ""};
             request.body =
                 fmt::format(R"({{{},"max_tokens":{},"stream":true}})", asked.prompt, tokens);
             return request;
           },
       .on_answer = [&](const test::LoadAnswer& answer) { whole += answer.reply.status == 200; }});
  _exit(whole == streams ? 0 : 1);
}

// step_ms: the time that the model waits before each step; 0: none, so that tokens of several steps
// are written together.
void measure(const std::string& file, const Asked& asked, size_t streams, int64_t tokens,
             int step_ms) {
  int ports[2];
  if (pipe(ports) != 0) throw std::runtime_error("no pipe");
  const pid_t clients = fork();  // before there are threads
  if (clients == 0) {
    uint16_t port = 0;
    if (read(ports[0], &port, sizeof port) != sizeof port) _exit(1);
    be_clients(port, streams, asked, tokens);
  }
  test::Script script;
  script.parallel = static_cast<int64_t>(streams);
  if (step_ms > 0)
    script.before_step = [step_ms] {
      std::this_thread::sleep_for(std::chrono::milliseconds(step_ms));
      return true;
    };
  const test::RunningServer running(test::scripted_server(file, script));
  const Times before = times();
  const uint16_t port = running.port();
  if (write(ports[1], &port, sizeof port) != sizeof port) throw std::runtime_error("no pipe");
  int status = 0;
  waitpid(clients, &status, 0);
  const Times after = times();
  close(ports[0]);
  close(ports[1]);
  if (status != 0) throw std::runtime_error("some streams did not end");
  const double count = static_cast<double>(streams) * static_cast<double>(tokens);
  fmt::print("{:<12} {} streams, {} ms steps: {:.2f} us user, {:.2f} us system time a token\n",
             asked.name, streams, step_ms, (after.user - before.user) / count * 1e6,
             (after.system - before.system) / count * 1e6);
}

}  // namespace
}  // namespace prism

int main(int argc, char** argv) {
  using namespace prism;
  const size_t streams = argc > 1 ? static_cast<size_t>(std::atoll(argv[1])) : 64;
  const int64_t tokens = argc > 2 ? std::atoll(argv[2]) : 1000;
  const test::TemporaryFolder folder;
  const std::string file = test::write_tokenizer_file(folder.path());
  for (const int step_ms : {0, 5})
    for (const Asked& each : kAsked) measure(file, each, streams, tokens, step_ms);
  return 0;
}
